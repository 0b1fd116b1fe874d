/* nrg_activation_forward and nrg_activation_backward: two ops of kernels.def, and a family for each.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { X, D_O, O };
enum { FORWARD = 1 << X | 1 << O, BACKWARD = 1 << X | 1 << D_O | 1 << O };

/* In L1, in L2, from memory. */
static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(1, 65536), BENCH_ROWS(1, 33554432)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op forward_ops[] = {
    {"identity", FORWARD, SHAPES, .activation = NRG_ACT_IDENTITY},
    {"sigmoid", FORWARD, SHAPES, .activation = NRG_ACT_SIGMOID},
    {"silu", FORWARD, SHAPES, .activation = NRG_ACT_SILU},
    {"relu", FORWARD, SHAPES, .activation = NRG_ACT_RELU},
    {"relu2", FORWARD, SHAPES, .activation = NRG_ACT_RELU2},
    {"tanh", FORWARD, SHAPES, .activation = NRG_ACT_TANH},
    {"gelu", FORWARD, SHAPES, .activation = NRG_ACT_GELU},
    {"gelu_tanh", FORWARD, SHAPES, .activation = NRG_ACT_GELU_TANH},
    {"softplus", FORWARD, SHAPES, .activation = NRG_ACT_SOFTPLUS},
};

static const bench_op backward_ops[] = {
    {"silu", BACKWARD, SHAPES, .activation = NRG_ACT_SILU},
    {"gelu", BACKWARD, SHAPES, .activation = NRG_ACT_GELU},
    {"tanh", BACKWARD, SHAPES, .activation = NRG_ACT_TANH},
};

struct bound {
    nrg_activation g;
    nrg_dtype dtype;
    size_t n;
    const char *x, *d_o;
    char *o;
};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    *(struct bound *)bound = (struct bound){
        .g = c->op->activation,
        .dtype = c->dtype,
        .n = c->shape.rows * c->shape.dim,
        .x = operand[X],
        .d_o = operand[D_O],
        .o = operand[O],
    };
}

static nrg_status forward(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_activation_forward(b->g, b->dtype, b->n, b->x, b->o, ith, nth);
}

static nrg_status backward(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_activation_backward(b->g, b->dtype, b->n, b->x, b->d_o, b->o, ith, nth);
}

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

const bench_family bench_activation = {
    .kernel = "activation",
    .flat = 1,
    .ops = forward_ops,
    .op_count = COUNT(forward_ops),
    .quick_ops = "silu,gelu",
    .quick_shapes = "4096,33554432",
    .operand = {[X] = {"x", BENCH_IN, BENCH_WIDE}, [O] = {"o", BENCH_OUT, BENCH_EVEN}},
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {forward},
    .run = run_forward,
};

const bench_family bench_activation_backward = {
    .kernel = "activation_backward",
    .flat = 1,
    .ops = backward_ops,
    .op_count = COUNT(backward_ops),
    .quick_ops = "silu,gelu",
    .quick_shapes = "4096,33554432",
    .operand = {[X] = {"x", BENCH_IN, BENCH_WIDE}, [D_O] = {"d_o", BENCH_IN, BENCH_EVEN}, [O] = {"dx", BENCH_OUT, BENCH_EVEN}},
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {backward},
    .run = run_backward,
};
