/* A family: all that the benchmark knows of one op of kernels.def. Its variants ("ops") and shapes, the operands a call has, and
 * the call itself. What a call moves, its memory and its limit follow from the operands.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_FAMILY_H
#define NRG_BENCH_FAMILY_H

#include "../src/operands/operand.h"
#include "cases.h"

/* Operands a family can have, and phases: parts of a call that threads have to wait for each other between. */
enum { BENCH_OPERANDS = NRG_OPERANDS, BENCH_PHASES = 2 };

typedef enum bench_kind {
    BENCH_IN,          /* a tensor that is read */
    BENCH_OUT,         /* a tensor that is written */
    BENCH_ROW_IN,      /* one row, read */
    BENCH_ROW_OUT,     /* one row of f32, written */
    BENCH_CHANNEL_IN,  /* one number a channel, read; so few beside the tensors that no bare loop reads them */
    BENCH_CHANNEL_F32, /* the same in f32 whatever the dtype is, read or written */
    BENCH_SCRATCH      /* workspace: as many bytes as the family asks for, and no part of what a call moves */
} bench_kind;

/* What an operand is filled with, in either sign where nothing else is said. */
typedef enum bench_fill {
    BENCH_EVEN,    /* magnitudes in [0.5, 2) */
    BENCH_WIDE,    /* magnitudes in [1/8, 4), every power of two as likely: what activations are given */
    BENCH_POSITIVE /* numbers in [0.5, 2): variances */
} bench_fill;

typedef struct bench_operand {
    const char *name;
    bench_kind kind;
    bench_fill fill;
} bench_operand;

typedef struct bench_family {
    const char *kernel; /* as in kernels.def */
    int flat;           /* shapes are one row, and named by its length alone */
    const bench_op *ops;
    size_t op_count;
    const char *quick_ops, *quick_shapes; /* what --quick leaves */
    bench_operand operand[BENCH_OPERANDS];

    /* A family of a described call has these, and no operands, scratch, bind, phase and bound_size: its operands are the call's,
     * in bits of the call's numbers for them, and each is what its shape and role make it. */
    const nrg_call *call;
    void (*prepare)(const bench_case *c, void *const *part); /* options and numbers, in parts that are zero */
    void (*ready)(const bench_case *c, void *const *part);   /* operands have their places: what else; may be NULL */
    nrg_status (*share[BENCH_PHASES])(void *const *part, int ith, int nth);
    unsigned wide, positive; /* operands that are filled so, and not with BENCH_EVEN */
    unsigned aside;          /* operands that are no part of what a call moves: tables that stay in cache */

    /* Bytes of BENCH_SCRATCH; NULL where there is no such operand. */
    size_t (*scratch)(const bench_case *c);

    /* Where a call needs statistics before it can write: elements of a tensor that they take at once, and the operands that are
     * read for them and again for the output. NULL where there is no such thing. */
    size_t (*set_elements)(const bench_case *c);
    unsigned read_twice;

    /* Makes a call of bound_size bytes from a case and its operands (NULL: not in this op). */
    size_t bound_size;
    void (*bind)(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch);

    /* Share ith of nth of each phase; the last ones may be NULL. */
    nrg_status (*phase[BENCH_PHASES])(const void *bound, int ith, int nth);

    /* The whole call, a number of times: a loop without anything between the calls that a user would not have there. */
    void (*run)(const void *bound, size_t calls);
} bench_family;

/* An operand of a case: of its family's list, or of the described call. bytes: 0 where it is absent, or scratch that only the
 * family knows. */
typedef struct bench_memory_of {
    bench_kind kind;
    bench_fill fill;
    nrg_dtype dtype; /* of the numbers it is filled with */
    size_t bytes;
} bench_memory_of;
bench_memory_of bench_operand_of(const bench_case *c, int operand);
int bench_operand_is_there(const bench_case *c, int operand);

/* What a described call is bound to. */
enum { BENCH_PART_BYTES = 512 };
typedef struct bench_parts {
    _Alignas(16) unsigned char bytes[NRG_PARTS][BENCH_PART_BYTES];
    void *part[NRG_PARTS];
} bench_parts;

/* Makes them: options, numbers and pointers (NULL: not in this op). */
void bench_parts_bind(bench_parts *parts, const bench_case *c, char *const operand[BENCH_OPERANDS]);

/* One for each op of kernels.def, under its name: cases.c does not compile or link without. An op never stands in for another. */
#define NRG_KERNEL(family, op, job) extern const bench_family bench_##op;
#include "kernels.def"
#undef NRG_KERNEL

#endif
