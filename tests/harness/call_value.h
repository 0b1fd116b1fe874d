/* Elements of all types that an operand of a call can have: drawn, compared, written for a message.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CALL_VALUE_H
#define NRG_TESTS_HARNESS_CALL_VALUE_H

#include "call_harness.h"

/* Bytes of an element; 0 where there is no such type. */
size_t value_bytes(int type);

/* Bytes of a dense row. */
static inline size_t call_row_bytes(const call_operand *o) { return o->dim * value_bytes(o->type); }

static inline int call_is_result(const call_operand *o) { return o->type && (o->role == CALL_OUTPUT || o->role == CALL_INOUT); }

/* The dense contents of an operand, to be freed. */
void *value_draw(const call_operand *o, uint64_t seed);

/* NULL, or the first element of an operand that differs, NaN from NaN not counted. In static storage. */
const char *value_compare(const call_operand *o, const void *expected, const void *got);

#endif
