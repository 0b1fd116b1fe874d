/* A family: what the benchmark knows of one op of kernels.def. Its variants ("ops"), their shapes and options, and the calls. The
 * operands are those of the call's description: what a call moves, its memory and its limit follow from it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_FAMILY_H
#define NRG_BENCH_FAMILY_H

#include <stdalign.h>

#include "../check/own_memory.h"
#include "../src/operands/operand.h"
#include "cases.h"
#include "rival.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands of a case: the call's, and one that only the limit has. Phases: parts of a call that threads have to wait for each
 * other between. */
enum { BENCH_OPERANDS = NRG_OPERANDS + 1, BENCH_PHASES = 2 };

typedef enum bench_kind {
    BENCH_ASIDE,    /* no part of what a call moves: a workspace, a table that stays in cache */
    BENCH_IN,       /* a tensor that is read */
    BENCH_OUT,      /* a tensor that is written */
    BENCH_ROW_IN,   /* one row, read */
    BENCH_ROW_OUT,  /* one row of f32, written */
    BENCH_FEW,      /* so few numbers beside the tensors that no bare loop moves them */
    BENCH_BYTES_IN, /* rows as bytes with scales, read */
    BENCH_BYTES_OUT /* the same, written */
} bench_kind;

/* What an operand is filled with, in either sign where nothing else is said. */
typedef enum bench_fill {
    BENCH_EVEN,    /* magnitudes in [0.5, 2) */
    BENCH_WIDE,    /* magnitudes in [1/8, 4), every power of two as likely: what activations are given */
    BENCH_POSITIVE /* numbers in [0.5, 2): variances */
} bench_fill;

/* What is called, on parts as the description has them. */
struct bench_function {
    const nrg_call *call;
    nrg_status (*share[BENCH_PHASES])(void *const *part, int ith, int nth); /* the last ones may be NULL */
    void (*run)(void *const *part, size_t calls);                           /* all phases, a number of times */
};

/* call_<function>, as check/functions.py names them: those that have shares. */
#define SHARES(id, ...) extern const bench_function call_##id;
#define WHOLE(...)
#define WORKSPACE(...)
#include "functions.def"
#undef SHARES
#undef WHOLE
#undef WORKSPACE

/* Makes one of one phase, or of two: expressions in part, ith and nth. The loop has nothing between the calls that a user would
 * not have there. */
#define BENCH_FUNCTION(name, described, expression)                                                                              \
    BENCH_SHARE(name##_share, expression)                                                                                        \
    BENCH_RUN(name##_run, name##_share(part, 0, 1))                                                                              \
    static const bench_function name = {&(described), {name##_share}, name##_run};
#define BENCH_FUNCTION_OF_TWO(name, described, first, second)                                                                    \
    BENCH_SHARE(name##_first, first)                                                                                             \
    BENCH_SHARE(name##_second, second)                                                                                           \
    BENCH_RUN(name##_run, (name##_first(part, 0, 1), name##_second(part, 0, 1)))                                                 \
    static const bench_function name = {&(described), {name##_first, name##_second}, name##_run};
#define BENCH_SHARE(name, expression)                                                                                            \
    static nrg_status name(void *const *part, int ith, int nth) { return (expression); }
#define BENCH_RUN(name, calls_)                                                                                                  \
    static void name(void *const *part, size_t calls)                                                                            \
    {                                                                                                                            \
        for (; calls; calls--)                                                                                                   \
            (void)(calls_);                                                                                                      \
    }

struct bench_family {
    int flat; /* shapes are one row, and named by its length alone */
    const bench_op *ops;
    size_t op_count;
    const char *quick_ops, *quick_shapes; /* what --quick leaves; NULL: all (BENCH_QUICK) */
    const bench_function *function;       /* of ops that name no other */

    void (*prepare)(const bench_case *c, void *const *part); /* options and numbers, in parts that are zero */
    void (*ready)(const bench_case *c, void *const *part);   /* operands have their places: what else; may be NULL */

    /* The operands of a rival, and by which names where it has others: "x,o=q_o"; NULL where the family has no rivals. And its
     * numbers, where they are others than bench_rival_job sets; may be NULL. */
    const char *rival;
    void (*rival_numbers)(const bench_case *c, void *const *part, rival_job *job);

    /* The largest error of an op's rival, or (loop NULL) of the op itself, in ulps over a dense sample of inputs; NULL where that
     * is no figure of one element. */
    double (*ulp)(const bench_case *c, const rival_loop *loop);

    /* Names of the calls' operands: what is filled otherwise than with BENCH_EVEN, and what is BENCH_ASIDE. */
    const char *wide, *positive, *aside;

    /* A tensor or row that the limit moves for an operand that is set aside, or for the old contents of what is added to;
     * BENCH_ASIDE: none. */
    bench_kind also;

    /* Where a call needs statistics before it can write: elements of a tensor that they take at once, and the operands that are
     * read for them and again for the output. NULL where there is no such thing. */
    size_t (*set_elements)(const bench_case *c);
    const char *read_twice;

    /* For --scan: the shape of about `rows` rows of about `row` elements that the op accepts. Sets both to the numbers of this
     * shape, from which the same shape follows again. NULL: a matrix, no larger than the numbers say (0: any). */
    bench_shape (*scan_shape)(const bench_op *op, size_t *row, size_t *rows);
    size_t scan_row_most, scan_rows_most;
    size_t scan_heads; /* rows are heads, so many of a token, as tokens x heads x 1 x head; 0: no such thing */
};

/* Rows of scores, as batch x heads x queries x keys. */
bench_shape bench_scan_scores(const bench_op *op, size_t *row, size_t *rows);

/* Elements of a head, of which a row has several; and the most that --scan draws, which are an even number. */
enum { BENCH_HEAD = 128, BENCH_HEAD_MAX = 512 };
static inline size_t bench_head_of(const bench_case *c) { return c->shape.channels ? c->shape.width : (size_t)BENCH_HEAD; }

/* What every family has: its ops, the function of those that name no other, and what prepares its parts. */
#define BENCH_OPS(array, function_, prepare_)                                                                                    \
    .ops = (array), .op_count = NRG_COUNT(array), .function = &(function_), .prepare = (prepare_)
#define BENCH_QUICK(ops, shapes) .quick_ops = (ops), .quick_shapes = (shapes)
#define BENCH_SHAPES(array) .shapes = (array), .shape_count = NRG_COUNT(array)
#define BENCH_TO(format_, array) BENCH_SHAPES(array), .format = NRG_QUANT_##format_

/* An operand of a case; bytes 0: it is absent. */
typedef struct bench_operand {
    bench_kind kind;
    bench_fill fill;
    nrg_dtype dtype;     /* of the numbers it is filled with */
    size_t bytes;        /* of its elements */
    size_t span;         /* from its first byte to its last, gaps between rows included */
    size_t element, row; /* bytes of an element and of a row */
} bench_operand;
bench_operand bench_operand_of(const bench_case *c, int operand);

/* Where the operands of a case lie, if not in the way of all other cases. */
struct bench_layout {
    struct bench_place {
        size_t offset; /* bytes after the start of a cache line */
        size_t stride; /* of rows, in bytes; 0: dense */
        int over;      /* 1 + the operand whose place it takes; 0: it has its own place */
    } of[BENCH_OPERANDS];
};

/* How far a number is from what it should be, in ulps of scale in its dtype: of the exact value itself where nothing is said
 * against it. 0 where it is as large as the dtype has, and what it should be is larger. An infinity or a NaN where a number
 * should be is BENCH_NO_NUMBER away, since a report's JSON has no infinity. */
#define BENCH_NO_NUMBER 1e300
double bench_ulps(float value, double exact, double scale, nrg_dtype dtype);

/* The largest error of a case's results, or of a rival's (loop; NULL: nrg's): of an activation, as a family's ulp; of other ops
 * in ulps (truth.h says of what), over the benchmark's numbers. It does not depend on the shape. 0: no truth is here for it. */
double bench_activation_ulp(const bench_case *c, const rival_loop *loop);
double bench_error_of(const bench_case *c, const rival_loop *loop);

const bench_function *bench_function_of(const bench_case *c);

/* Whether a list of names, "x,w", has the operand's; a list may be NULL. */
int bench_names(const char *list, const nrg_operand *operand);

/* The call, with its operands in their places, as a rival's. */
rival_job bench_rival_job(const bench_case *c, void *const *part);

/* Whether a layout may give an operand an offset, which a workspace does not get; whether it may set the stride of its rows;
 * whether an output may take the place of an input. */
int bench_may_move(const bench_case *c, int operand);
int bench_has_stride(const bench_case *c, int operand);
int bench_fits_over(const bench_case *c, int output, int input);

/* What a call takes: options, numbers and pointers (NULL: not in this op). */
enum { BENCH_PART_BYTES = 512 };
typedef struct bench_parts {
    alignas(16) unsigned char bytes[NRG_PARTS][BENCH_PART_BYTES];
    void *part[NRG_PARTS];
} bench_parts;
void bench_parts_bind(bench_parts *parts, const bench_case *c, char *const operand[BENCH_OPERANDS]);

/* One for each op of kernels.def, under its name: cases.c does not compile or link without. An op never stands in for another. */
#define NRG_KERNEL(family, op, job) extern const bench_family bench_##op;
#include "kernels.def"
#undef NRG_KERNEL

#ifdef __cplusplus
}
#endif

#endif
