/* Any public call on every path against scalar, to the last bit. A test describes the operands of the call and how it is made;
 * everything that must not change a bit is varied here: where operands stand, strides, in place or apart, the shares and their
 * order. Everything a call may do to memory that is not its own is noticed; harness_call_test.c proves it with calls that are
 * wrong. For o = x + table[ids], rows of `dim`:
 *
 *     enum { X, IDS, TABLE, O, OPERANDS };
 *
 *     static nrg_status gather(void *context, const call_operand *all, int ith, int nth)
 *     {
 *         const nrg_gather_spec *spec = context;
 *         nrg_gather_args args = nrg_gather_args_init(all[X].rows, all[X].at, all[IDS].at, all[TABLE].at, all[O].at);
 *         args.x_stride = all[X].stride;
 *         args.o_stride = all[O].stride;
 *         return nrg_gather(spec, &args, ith, nth);
 *     }
 *
 *     const call_operand operands[OPERANDS] = {
 *         [X] = {.name = "x", .type = dtype, .rows = rows, .dim = dim, .padded = 1},
 *         [IDS] = {.name = "ids", .type = CALL_I32, .rows = 1, .dim = rows, .below = entries},
 *         [TABLE] = {.name = "table", .type = dtype, .rows = entries, .dim = dim},
 *         [O] = {.name = "o", .role = CALL_OUTPUT, .type = dtype, .rows = rows, .dim = dim, .padded = 1, .over = CALL_OVER(X)},
 *     };
 *     const call_case c = {.op = "gather", .dtype = dtype, .run = {gather}, .context = &spec,
 *                          .operands = operands, .count = OPERANDS, .seed = seed};
 *     call_sweep(&c);
 *
 * main() calls call_start() before anything else, and the suite's last test is call_check_account("gather").
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CALL_HARNESS_H
#define NRG_TESTS_HARNESS_CALL_HARNESS_H

#include "operands.h"
#include "rows.h"

/* Types of operands beside the dtypes. The 8-byte ones are for workspaces too: what wants the alignment of a double. */
enum { CALL_I32 = 16, CALL_I64, CALL_F64, CALL_BYTE };

typedef enum call_role {
    CALL_INPUT,  /* cannot be written during the call, not even with what it holds */
    CALL_OUTPUT, /* every element is written: one that keeps what was there before differs from run to run */
    CALL_INOUT,  /* given before the call, changed by it, all of it or in parts */
    CALL_SCRATCH /* rubbish before the call, and nobody's business after it */
} call_role;

/* Bits for call_operand.over. */
#define CALL_OVER(operand) (1u << (operand))

typedef struct call_operand {
    const char *name;
    int type; /* an nrg_dtype or one of the above; 0: absent, `at` is NULL */
    call_role role;
    size_t rows, dim;
    size_t group; /* rows of a group, such as the heads of a token: groups then have a stride of their own; 0: no groups */

    /* what the call allows */
    int padded;     /* rows, and groups, may be apart: the call takes strides */
    int transposed; /* with groups: these may be closer than their rows, as in a tensor of [heads][tokens][dim] */
    int fused;      /* its rows, or groups, and those of other fused operands may be slices of one buffer's rows (q, k, v) */
    int optional;   /* an output that need not be asked for: NULL now and then, and the others must be the same */
    unsigned over;  /* an output: the inputs in whose place it may be; those of another type or shape do not count */

    /* what an input, or in and out, holds: the test's dense content, or what the case's seed draws */
    const void *content;
    unsigned kinds;   /* of rows that are drawn, 1u << ROW_…; 0: half of them normal numbers, and some of everything */
    int least, below; /* drawn integers: from least up to below, which is not among them */

    int kept; /* scratch whose contents the call may look at */

    /* scratch that depends on the shares: the number of its elements, in the place of rows × dim */
    size_t (*scratch)(const void *context, int nth);

    /* what run() finds, and hands on */
    void *at;
    /* bytes, 0 now and then where dense: between rows, of a group where there are groups; between groups */
    size_t stride, group_stride;
} call_operand;

/* Share ith of nth of the call, or of one phase of it. The operands are the case's, with at and strides. */
typedef nrg_status call_run(void *context, const call_operand *all, int ith, int nth);

enum { CALL_PHASES = 4, CALL_LAYOUTS = 4 };

typedef struct call_case {
    const char *op;             /* of kernels.def, for the account and for messages */
    const char *text;           /* options, for messages; may be NULL */
    nrg_dtype dtype;            /* for the account */
    call_run *run[CALL_PHASES]; /* all shares of one phase before the first of the next */
    void *context;
    const call_operand *operands;
    int count;
    size_t work; /* more shares than this have nothing to do; 0: the most rows of an output */
    int layouts; /* a path; 0: CALL_LAYOUTS */
    uint64_t seed;
    /* before every call: chooses options that must not change a bit, such as nrg_store. The reference's draw is 0. May be NULL */
    void (*vary)(void *context, uint64_t draw);
} call_case;

/* First thing in main(): the account is shared with the processes of the tests. */
void call_start(void);

/* Ends the test where a path differs from scalar's dense call in one share, or touches what it may not. */
void call_sweep(const call_case *c);

/* The same as a verdict: NULL, or what is wrong. In static storage. */
const char *call_verdict(const call_case *c);

/* Ends the test unless every path and dtype of an op (those of kernels.def; for an op that is not there, those it was called
 * with) has met all combinations of in place, odd gaps, padded rows and shares that its cases offer, under test_small() each of
 * the four, and each of what else they offer, unless very few do. A hundred calls a path and dtype usually do. */
void call_check_account(const char *op);

/* The same as a verdict: NULL, or what was not met. In static storage. */
const char *call_account_verdict(const char *op);

#endif
