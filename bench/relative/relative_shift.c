/* nrg_relative_shift, forward and backward, as Transformer-XL calls it: a column for every key, heads of as many queries as keys.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { IN, OUT };

static const bench_shape shapes[] = {BENCH_ROWS(128, 128), BENCH_ROWS(512, 512), BENCH_ROWS(16 * 1024, 1024)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

/* add: to scores that are there, which are then read as well */
static const bench_op ops[] = {
    {"store", 1 << IN | 1 << OUT, SHAPES},
    {"add", 1 << IN | 1 << OUT, SHAPES},
    {"backward", 1 << IN | 1 << OUT, SHAPES},
};

struct bound {
    nrg_relative_shift_args args;
    int backward;
};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    struct bound *b = bound;
    b->args = nrg_transformer_xl_shift_args(1, c->shape.rows / c->shape.dim, c->shape.dim, c->shape.dim);
    b->args.dtype = c->dtype;
    b->args.store = c->store;
    b->args.accumulate = strcmp(c->op->name, "add") == 0;
    b->args.x = b->args.d_scores = operand[IN];
    b->args.scores = b->args.dx = operand[OUT];
    b->backward = strcmp(c->op->name, "backward") == 0;
}

static nrg_status share(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return b->backward ? nrg_relative_shift_backward(&b->args, ith, nth) : nrg_relative_shift(&b->args, ith, nth);
}

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        share(bound, 0, 1);
}

const bench_family bench_relative_shift = {
    .kernel = "relative_shift",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "store,add",
    .quick_shapes = "128x128,16384x1024",
    .operand = {[IN] = {"x", BENCH_IN, BENCH_EVEN}, [OUT] = {"scores", BENCH_OUT, BENCH_EVEN}},
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {share},
    .run = run,
};
