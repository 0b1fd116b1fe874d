/* The cases of nrg check as plain arrays: options and data for tests of what a header promises.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_PLAIN_CASE_H
#define NRG_TESTS_HARNESS_PLAIN_CASE_H

#include "../../check/sweep.h"
#include "support.h"

typedef struct plain_case {
    sweep_case c; /* its operands dense, apart, and filled */
    unsigned char *memory;
    char text[SWEEP_TEXT_ROOM];
} plain_case;

/* The array of an operand; NULL where absent. */
void *plain_array(const plain_case *p, int operand);

/* Calls body for some of an op's cases, part i of so many, on every path: about `most` of each dtype in all parts, or far fewer
 * where test_small(). */
typedef void plain_body(const plain_case *p, nrg_isa isa);
void plain_each(const char *op, int i, int parts, uint64_t most, plain_body *body);

#endif
