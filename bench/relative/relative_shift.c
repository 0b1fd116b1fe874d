/* nrg_relative_shift, forward and backward, as Transformer-XL calls it: a column for every key, heads of as many queries as keys.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"
#include "../family.h"

static const bench_shape shapes[] = {BENCH_ROWS(128, 128), BENCH_ROWS(512, 512), BENCH_ROWS(16 * 1024, 1024), BENCH_ROWS(64, 64)};

/* option: to scores that are there, which are then read as well */
static const bench_op ops[] = {
    {"store", NULL, BENCH_SHAPES(shapes)},
    {"add", NULL, BENCH_SHAPES(shapes), .option = 1},
    {"backward", NULL, BENCH_SHAPES(shapes), .function = &call_relative_shift_backward},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_relative_shift_args *args = part[NRG_RELATIVE_SHIFT_ARGS];
    *args = nrg_relative_shift_args_transformer_xl(c->dtype, 1, c->shape.rows / c->shape.dim, c->shape.dim, c->shape.dim);
    args->store = c->store;
    args->accumulate = (int)c->op->option;
}

/* Heads of as many queries as keys, which 50 MB have to hold. */
static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    enum { KEYS_MAX = 1024 };
    (void)op;
    *row = *row < KEYS_MAX ? *row : KEYS_MAX;
    *rows = (*rows < *row ? 1 : *rows / *row) * *row;
    return (bench_shape)BENCH_ROWS(*rows, *row);
}

const bench_family bench_relative_shift = {
    BENCH_OPS(ops, call_relative_shift_forward, prepare),
    BENCH_QUICK("store,add", "128x128,16384x1024"),
    .scan_shape = scan_shape,
};
