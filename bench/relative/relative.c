/* nrg_relative_scores, which adds to scores that are there; nrg_relative_values, which keeps the ends; nrg_relative_backward,
 * with the ends that it has kept.
 *
 * Rows are the queries of all heads, and elements of a row keys. Scores are one tensor to the call, and two to the limit: what is
 * read and what is written. To what only reads such a tensor the limit, which writes another, is no more than a unit. What has as
 * many elements as a query, or is a table, is aside.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"
#include "../family.h"

enum { DIM = 64, CLIP = 16, HEADS = 8 };

static const bench_shape shapes[] = {BENCH_ROWS(HEADS * 128, 128), BENCH_ROWS(HEADS * 1024, 1024), BENCH_ROWS(HEADS, 64)};

/* option: the farthest distance that counts; 0: every one does */
#define OPS(operands)                                                                                                            \
    {                                                                                                                            \
        {"clip", operands, BENCH_SHAPES(shapes), .option = CLIP, .rows_step = HEADS},                                            \
        {                                                                                                                        \
            "all", operands, BENCH_SHAPES(shapes), .rows_step = HEADS                                                            \
        }                                                                                                                        \
    }
static const bench_op scores_ops[] = OPS(NULL);
static const bench_op values_ops[] = OPS("ends");
static const bench_op backward_ops[] = OPS("ends_in");

/* Queries and keys of every case stand at the same positions. */
static void prepare(const bench_case *c, void *const *part)
{
    const size_t queries = c->shape.rows / HEADS, keys = c->shape.dim;
    const int64_t farthest = (int64_t)(c->op->option ? c->op->option : keys - 1);
    nrg_relative_args *args = part[NRG_RELATIVE_SCORES_ARGS];
    *args = nrg_relative_args_init(c->dtype, 1, HEADS, queries, keys, DIM, -farthest, farthest);
    args->accumulate = 1; /* to e and o, which the other term is in */
}

/* What the values are is of no interest: their table lies where d_table does, and o where q does. */
static void find_ends(const bench_case *c, void *const *part)
{
    nrg_relative_args *args = part[NRG_RELATIVE_SCORES_ARGS], values;
    args->accumulate = 0;
    values = nrg_relative_args_init(c->dtype, args->batch, args->heads, args->queries, args->keys, DIM, args->p_min, args->p_max);
    values.a = args->a;
    values.a_strides = args->a_strides;
    values.table = args->d_table;
    values.table_strides = args->d_table_strides;
    values.table_dtype = NRG_F32;
    values.o = own_memory(args->q);
    values.o_strides = args->q_strides;
    values.ends = own_memory(args->ends_in);
    if (nrg_relative_values(&values, 0, 1) != NRG_OK)
        args->ends_in = NULL;
}

const bench_family bench_relative_scores = {
    BENCH_OPS(scores_ops, call_relative_scores, prepare),
    BENCH_QUICK("clip", "1024x128"),
    .aside = "q,table",
    .also = BENCH_IN,
};

const bench_family bench_relative_values = {
    BENCH_OPS(values_ops, call_relative_values, prepare),
    BENCH_QUICK("clip", "1024x128"),
    .aside = "table,o,ends",
    .also = BENCH_OUT,
};

const bench_family bench_relative_backward = {
    BENCH_OPS(backward_ops, call_relative_backward, prepare),
    BENCH_QUICK("clip", "1024x128"),
    .ready = find_ends,
    .aside = "q,ends_in,d_table",
    .also = BENCH_OUT,
};
