/* The cases of nrg check as calls of the harness: the same options and data, with operands between fences, and layouts, shares
 * and places of their own.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CASE_CALL_H
#define NRG_TESTS_HARNESS_CASE_CALL_H

#include "../../check/sweep.h"
#include "call_harness.h"

typedef struct case_call {
    call_case call;
    call_operand operand[OPERANDS_MOST];
    unsigned char slot[OPERANDS_MOST]; /* of the case's operands */
    void *content[OPERANDS_MOST];      /* dense, of those that are given */
    sweep_case c, plain;
    const sweep_case *wanted; /* what the next call runs: one of the two */
    char text[SWEEP_TEXT_ROOM];
} case_call;

/* memory: room for c->bytes, which is filled. To be freed. */
void case_call_make(case_call *to, const sweep_case *c, unsigned char *memory);
/* What an operand holds before each call, dense; NULL where it is absent, or not given. A test may change it. */
void *case_call_content(const case_call *c, int slot);

void case_call_free(case_call *c);

/* Sweeps cases of an op and a dtype, part i of so many: the quick level's where test_small(), else the full level's, and those of
 * SWEEP_LOOPS; about `most` of each, all if there are fewer. change: what a test does to a call before; where it returns 0, there
 * is no call. May be NULL. */
typedef int case_change(case_call *call);
void case_sweep(int kernel, int i, int parts, uint64_t most, case_change *change);

/* The same for all dtypes of an op. */
void case_sweep_op(const char *op, int i, int parts, uint64_t most, case_change *change);

#endif
