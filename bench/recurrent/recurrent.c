/* nrg_recurrent_forward, nrg_recurrent_backward and nrg_recurrent_backward_reduce: three ops of kernels.def. Rows are the
 * positions of one chain, as many as a vector has elements, so that W is a tensor of the same shape.
 *
 * A limit is a loop that reads W once, and every position reads it again: the share says how far this is from being a matter of
 * memory. The time is that of rows · dim² multiplications in double. What is f32 whatever the dtype, the gradients g and dW,
 * counts as a tensor of the dtype; in 16 bits it is twice that, and lives in the scratch.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { W, P0, B, P, DP, OUT, DB, DP0, SCRATCH };
enum {
    FORWARD = 1 << W | 1 << P0 | 1 << B | 1 << P,
    CHAIN = 1 << W | 1 << P | 1 << DP | 1 << OUT | 1 << DP0 | 1 << SCRATCH,
    WEIGHT = 1 << P0 | 1 << P | 1 << DP | 1 << OUT | 1 << DB | 1 << SCRATCH,
};

static const bench_shape shapes[] = {BENCH_ROWS(64, 64), BENCH_ROWS(256, 256), BENCH_ROWS(512, 512)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op forward_ops[] = {{"chain", FORWARD, SHAPES}};
static const bench_op backward_ops[] = {{"chain", CHAIN, SHAPES}};
static const bench_op reduce_ops[] = {{"dw+db", WEIGHT, SHAPES}};

/* A tensor of f32, whatever the dtype: all of them have dim · dim elements. */
static size_t tensor_bytes(const bench_case *c) { return c->shape.rows * c->shape.dim * sizeof(float); }

/* g, and an output in 16 bits. */
static size_t scratch_of(const bench_case *c) { return 2 * tensor_bytes(c); }

static void bind_forward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    nrg_recurrent_args *args = bound;
    (void)scratch;
    *args = nrg_recurrent_args_init(c->shape.dim, c->shape.rows, operand[W], operand[P0], operand[P]);
    args->dtype = c->dtype;
    args->b = operand[B];
}

/* With db it is the second phase. */
static void bind_backward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    nrg_recurrent_backward_args *args = bound;
    char *g = operand[SCRATCH], *out = c->dtype == NRG_F32 ? operand[OUT] : g + tensor_bytes(c);
    const char *w = operand[W] ? operand[W] : operand[P]; /* not read by the second phase */
    (void)scratch;
    *args = nrg_recurrent_backward_args_init(c->shape.dim, c->shape.rows, w, operand[P0], operand[P], operand[DP]);
    args->dtype = c->dtype;
    args->dp0 = (float *)(void *)operand[DP0];
    args->db = (float *)(void *)operand[DB];
    args->dw = operand[DB] ? (float *)(void *)out : NULL;
    args->workspace = operand[DB] ? g : out;
    args->workspace_size = tensor_bytes(c);
}

static nrg_status forward(const void *bound, int ith, int nth) { return nrg_recurrent_forward(bound, ith, nth); }
static nrg_status backward(const void *bound, int ith, int nth) { return nrg_recurrent_backward(bound, ith, nth); }
static nrg_status reduce(const void *bound, int ith, int nth) { return nrg_recurrent_backward_reduce(bound, ith, nth); }

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

static void run_reduce(const void *bound, size_t calls)
{
    for (; calls; calls--)
        reduce(bound, 0, 1);
}

const bench_family bench_recurrent = {
    .kernel = "recurrent",
    .ops = forward_ops,
    .op_count = COUNT(forward_ops),
    .quick_ops = "chain",
    .quick_shapes = "64x64,512x512",
    .operand = {[W] = {"w", BENCH_IN, BENCH_EVEN},
                [P0] = {"p0", BENCH_ROW_IN, BENCH_EVEN},
                [B] = {"b", BENCH_ROW_IN, BENCH_EVEN},
                [P] = {"p", BENCH_OUT, BENCH_EVEN}},
    .bound_size = sizeof(nrg_recurrent_args),
    .bind = bind_forward,
    .phase = {forward},
    .run = run_forward,
};

const bench_family bench_recurrent_backward = {
    .kernel = "recurrent_backward",
    .ops = backward_ops,
    .op_count = COUNT(backward_ops),
    .quick_ops = "chain",
    .quick_shapes = "64x64,512x512",
    .operand = {[W] = {"w", BENCH_IN, BENCH_EVEN},
                [P] = {"p", BENCH_IN, BENCH_EVEN},
                [DP] = {"dp", BENCH_IN, BENCH_EVEN},
                [OUT] = {"g", BENCH_OUT, BENCH_EVEN},
                [DP0] = {"dp0", BENCH_ROW_OUT, BENCH_EVEN},
                [SCRATCH] = {"g in 16 bits", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .bound_size = sizeof(nrg_recurrent_backward_args),
    .bind = bind_backward,
    .phase = {backward},
    .run = run_backward,
};

const bench_family bench_recurrent_reduce = {
    .kernel = "recurrent_reduce",
    .ops = reduce_ops,
    .op_count = COUNT(reduce_ops),
    .quick_ops = "dw+db",
    .quick_shapes = "64x64,512x512",
    .operand = {[P0] = {"p0", BENCH_ROW_IN, BENCH_EVEN},
                [P] = {"p", BENCH_IN, BENCH_EVEN},
                [DP] = {"dp", BENCH_IN, BENCH_EVEN},
                [OUT] = {"dw", BENCH_OUT, BENCH_EVEN},
                [DB] = {"db", BENCH_ROW_OUT, BENCH_EVEN},
                [SCRATCH] = {"g", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .bound_size = sizeof(nrg_recurrent_backward_args),
    .bind = bind_backward,
    .phase = {reduce},
    .run = run_reduce,
};
