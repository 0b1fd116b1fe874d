/* What a call's description says of its arguments, found slowly: sizes in 128 bits, overlaps byte by byte. The library's checker
 * must come to the same.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_VERDICT_H
#define NRG_TESTS_CALLS_VERDICT_H

#include "../../src/operands/operand.h"

/* An operand of a call with sound options, as its description has it. */
typedef struct verdict_operand {
    int is_there, has_elements;
    size_t element, dim, row;       /* bytes, elements, bytes */
    size_t count[NRG_LEVELS], rows; /* steps of each level, and their product */
    unsigned levels;
    uint32_t repeated; /* levels that take no step: their count is 1 here */
} verdict_operand;

/* Measures all operands; or says what is wrong with parts and options. */
nrg_status verdict_measure(const nrg_call *call, const void *const *part, nrg_sizes *s, verdict_operand *operands);

/* Bytes from an operand's first to behind its last, from 0 on; 0 where strides or sizes do not fit. */
int verdict_span(const nrg_operand *o, const verdict_operand *v, const void *part, size_t *span);

/* Element i of an operand whose strides fit. */
const void *verdict_element(const nrg_operand *o, const verdict_operand *v, const void *const *part, size_t i);

/* The verdict on a call, whose parts have this version's size. *is_open: rows of several levels interleave without a common byte;
 * the call may refuse them, or not. */
nrg_status verdict_of(const nrg_call *call, const void *const *part, int ith, int nth, int *is_open);

#endif
