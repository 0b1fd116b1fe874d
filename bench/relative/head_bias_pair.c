/* nrg_head_bias_forward and nrg_head_bias_backward. Heads lie together.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"
#include "../family.h"

static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(64, 1024), BENCH_ROWS(8192, 1024), BENCH_ROWS(4096, 4096),
                                     BENCH_ROWS(1, 64)};

static const bench_op forward_ops[] = {{"pair", "u,v,o_u,o_v", BENCH_SHAPES(shapes)}};
static const bench_op backward_ops[] = {{"pair", "d_o_u,d_o_v,dq,du,dv", BENCH_SHAPES(shapes)}};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_head_bias_args *args = part[NRG_HEAD_BIAS_ARGS];
    const size_t head = c->shape.channels ? c->shape.width : 64;
    *args = nrg_head_bias_args_init(c->dtype, 1, c->shape.dim / head, c->shape.rows, head);
    args->store = c->store;
}

const bench_family bench_head_bias_pair = {
    BENCH_OPS(forward_ops, call_head_bias_forward, prepare),
    BENCH_QUICK(NULL, "64x1024,8192x1024"),
    .scan_heads = 8,
};

const bench_family bench_head_bias_pair_backward = {
    BENCH_OPS(backward_ops, call_head_bias_backward, prepare),
    BENCH_QUICK(NULL, "64x1024,8192x1024"),
    .scan_heads = 8,
};
