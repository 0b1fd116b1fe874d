/* nrg_head_bias_pair and nrg_head_bias_pair_backward: two ops of kernels.def, and a family for each. Heads lie together.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { Q, U, V, O_U, O_V };
enum { D_O_U, D_O_V, DQ, DU, DV };

static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(64, 1024), BENCH_ROWS(8192, 1024), BENCH_ROWS(4096, 4096)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op forward_ops[] = {{"pair", 1 << Q | 1 << U | 1 << V | 1 << O_U | 1 << O_V, SHAPES}};
static const bench_op backward_ops[] = {{"pair", 1 << D_O_U | 1 << D_O_V | 1 << DQ | 1 << DU | 1 << DV, SHAPES}};

static nrg_head_bias_args args_of(const bench_case *c)
{
    nrg_head_bias_args args = nrg_head_bias_args_init(1, c->shape.dim / 64, c->shape.rows, 64);
    args.dtype = c->dtype;
    args.store = c->store;
    return args;
}

static void bind_forward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    nrg_head_bias_args *args = bound;
    *args = args_of(c);
    args->q = operand[Q];
    args->u = operand[U];
    args->v = operand[V];
    args->o_u = operand[O_U];
    args->o_v = operand[O_V];
}

static void bind_backward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    nrg_head_bias_args *args = bound;
    *args = args_of(c);
    args->d_o_u = operand[D_O_U];
    args->d_o_v = operand[D_O_V];
    args->dq = operand[DQ];
    args->du = (float *)(void *)operand[DU];
    args->dv = (float *)(void *)operand[DV];
}

static nrg_status forward(const void *bound, int ith, int nth) { return nrg_head_bias_pair(bound, ith, nth); }
static nrg_status backward(const void *bound, int ith, int nth) { return nrg_head_bias_pair_backward(bound, ith, nth); }

static void run_forward(const void *bound, size_t calls)
{
    for (; calls; calls--)
        forward(bound, 0, 1);
}

static void run_backward(const void *bound, size_t calls)
{
    for (; calls; calls--)
        backward(bound, 0, 1);
}

const bench_family bench_head_bias_pair = {
    .kernel = "head_bias_pair",
    .ops = forward_ops,
    .op_count = COUNT(forward_ops),
    .quick_ops = "pair",
    .quick_shapes = "64x1024,8192x1024",
    .operand = {[Q] = {"q", BENCH_IN, BENCH_EVEN},
                [U] = {"u", BENCH_ROW_IN, BENCH_EVEN},
                [V] = {"v", BENCH_ROW_IN, BENCH_EVEN},
                [O_U] = {"o_u", BENCH_OUT, BENCH_EVEN},
                [O_V] = {"o_v", BENCH_OUT, BENCH_EVEN}},
    .bound_size = sizeof(nrg_head_bias_args),
    .bind = bind_forward,
    .phase = {forward},
    .run = run_forward,
};

const bench_family bench_head_bias_pair_backward = {
    .kernel = "head_bias_pair_backward",
    .ops = backward_ops,
    .op_count = COUNT(backward_ops),
    .quick_ops = "pair",
    .quick_shapes = "64x1024,8192x1024",
    .operand = {[D_O_U] = {"d_o_u", BENCH_IN, BENCH_EVEN},
                [D_O_V] = {"d_o_v", BENCH_IN, BENCH_EVEN},
                [DQ] = {"dq", BENCH_OUT, BENCH_EVEN},
                [DU] = {"du", BENCH_ROW_OUT, BENCH_EVEN},
                [DV] = {"dv", BENCH_ROW_OUT, BENCH_EVEN}},
    .bound_size = sizeof(nrg_head_bias_args),
    .bind = bind_backward,
    .phase = {backward},
    .run = run_backward,
};
