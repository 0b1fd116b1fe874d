/* A library with stubs for its kernels, as a module: wild_calls_test --against FILE makes each call of it, too.
 * scripts/verdicts.sh compiles wild_module.c among the sound calls of another commit, whose structs may have other fields.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_WILD_MODULE_H
#define NRG_TESTS_CALLS_WILD_MODULE_H

#include <nrg/nrg.h>

#include "stub_kernels.h"

typedef struct wild_call {
    const char *function;
    int is_part, operand_count;
    nrg_status (*run)(void *const *part, int ith, int nth);
    nrg_status (*ask)(void *const *part);
} wild_call;

enum { WILD_CALLS = 200 };

typedef struct wild_module {
    wild_call calls[WILD_CALLS];
    int call_count;
    stub_calls *stub;
    jmp_buf *stub_end;
} wild_module;

#define WILD_MODULE "nrg_wild_module" /* the name of the module's own */

struct sound_call;

/* A module's; a file that is none ends the program. */
const wild_module *wild_load(const char *file);

/* The same call of it; NULL where it has none. */
const wild_call *wild_find(const wild_module *m, const struct sound_call *sound);

#endif
