/* nrg_recurrent_forward, nrg_recurrent_backward and nrg_recurrent_backward_reduce: three ops of kernels.def. Rows are the
 * positions of one chain, as many as a vector has elements, so that W is a tensor of the same shape. One row is one position: its
 * W has another shape, and there is no limit for it.
 *
 * A limit is a loop that reads W once, and every position reads it again: the share says how far this is from being a matter of
 * memory. The time is that of rows · dim² multiplications in double. What is f32 whatever the dtype, the gradients g and dW,
 * counts as a tensor of the dtype.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/recurrent.h"
#include "../family.h"

static const bench_shape shapes[] = {BENCH_ROWS(64, 64), BENCH_ROWS(256, 256), BENCH_ROWS(512, 512), BENCH_ROWS(1, 64)};

static const bench_op forward_ops[] = {{"chain", "b", BENCH_SHAPES(shapes)}};
static const bench_op backward_ops[] = {{"chain", "d_p0", BENCH_SHAPES(shapes)}};
static const bench_op reduce_ops[] = {{"dw+db", "dw,db", BENCH_SHAPES(shapes)}};

static void prepare_forward(const bench_case *c, void *const *part)
{
    nrg_recurrent_args *args = part[NRG_RECURRENT_ARGS];
    *args = nrg_recurrent_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL);
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    nrg_recurrent_backward_args *args = part[NRG_RECURRENT_ARGS];
    *args = nrg_recurrent_backward_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL, NULL);
}

/* Few positions: each multiplies by a matrix of row times row. */
static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    enum { DIM_MAX = 1024, ROWS_MAX = 8 };
    (void)op;
    *row = *row < DIM_MAX ? *row : DIM_MAX;
    *rows = *rows < ROWS_MAX ? *rows : ROWS_MAX;
    return (bench_shape)BENCH_ROWS(*rows, *row);
}

BENCH_FUNCTION(forward, nrg_call_recurrent_forward, nrg_recurrent_forward(part[NRG_RECURRENT_ARGS], ith, nth))
BENCH_FUNCTION(backward, nrg_call_recurrent_backward, nrg_recurrent_backward(part[NRG_RECURRENT_ARGS], ith, nth))
BENCH_FUNCTION(reduce, nrg_call_recurrent_backward, nrg_recurrent_backward_reduce(part[NRG_RECURRENT_ARGS], ith, nth))

const bench_family bench_recurrent = {
    .kernel = "recurrent",
    BENCH_OPS(forward_ops),
    .quick_shapes = "64x64,512x512",
    .function = &forward,
    .prepare = prepare_forward,
    .scan_shape = scan_shape,
};

const bench_family bench_recurrent_backward = {
    .kernel = "recurrent_backward",
    BENCH_OPS(backward_ops),
    .quick_shapes = "64x64,512x512",
    .function = &backward,
    .prepare = prepare_backward,
    .scan_shape = scan_shape,
    .also = BENCH_OUT, /* g, which is the workspace */
};

const bench_family bench_recurrent_reduce = {
    .kernel = "recurrent_reduce",
    BENCH_OPS(reduce_ops),
    .quick_shapes = "64x64,512x512",
    .function = &reduce,
    .prepare = prepare_backward,
    .scan_shape = scan_shape,
    .aside = "w,dw",   /* w is not read */
    .also = BENCH_OUT, /* dw */
};
