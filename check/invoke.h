/* check/invoke.h: public functions by one type, from the parts of their descriptions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_INVOKE_H
#define NRG_CHECK_INVOKE_H

#include "../src/operands/operand.h"

typedef struct invoke_function {
    const char *name; /* of the public function */
    const nrg_call *call;
    nrg_status (*run)(void *const *part, int ith, int nth);
    nrg_status (*ask)(void *const *part); /* its _check; NULL: it takes no shares, and run ignores ith and nth */
    nrg_status (*ask_bytes)(void *const *part, size_t *bytes); /* a workspace: how many; NULL: it returns none */
} invoke_function;

/* invoke_<function>; if two descriptions have the function, that of the second is invoke_<description>. functions.py makes the
 * list. */
#define SHARES(id, ...) extern const invoke_function invoke_##id;
#define WHOLE(id, ...) extern const invoke_function invoke_##id;
#define WORKSPACE(id, ...) extern const invoke_function invoke_##id;
#include "functions.def"
#undef SHARES
#undef WHOLE
#undef WORKSPACE

/* Sets the pointer of an operand, or a number, in a call's structs. */
static inline void invoke_set_pointer(const nrg_operand *o, void *const *part, const void *pointer)
{
    memcpy((unsigned char *)part[o->part] + o->at, &pointer, sizeof pointer);
}

static inline void invoke_set_number(void *part, size_t at, size_t number)
{
    memcpy((unsigned char *)part + at, &number, sizeof number);
}

#endif
