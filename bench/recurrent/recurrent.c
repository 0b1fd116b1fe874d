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
    *(nrg_recurrent_args *)part[NRG_RECURRENT_ARGS] =
        nrg_recurrent_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL);
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    *(nrg_recurrent_backward_args *)part[NRG_RECURRENT_ARGS] =
        nrg_recurrent_backward_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL, NULL);
}

/* For --scan: few positions, since each multiplies by a matrix of row times row. */
#define SCAN .scan_row_most = 1024, .scan_rows_most = 8

const bench_family bench_recurrent = {
    BENCH_OPS(forward_ops, call_recurrent_forward, prepare_forward),
    BENCH_QUICK(NULL, "64x64,512x512"),
    SCAN,
};

const bench_family bench_recurrent_backward = {
    BENCH_OPS(backward_ops, call_recurrent_backward, prepare_backward), BENCH_QUICK(NULL, "64x64,512x512"), SCAN,
    .also = BENCH_OUT, /* g, which is the workspace */
};

const bench_family bench_recurrent_reduce = {
    BENCH_OPS(reduce_ops, call_recurrent_backward_reduce, prepare_backward),
    BENCH_QUICK(NULL, "64x64,512x512"),
    SCAN,
    .aside = "w,dw",   /* w is not read */
    .also = BENCH_OUT, /* dw */
};
