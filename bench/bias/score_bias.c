/* nrg_score_bias_forward and nrg_score_bias_backward: two ops of kernels.def, and a family for each. Shapes are batch x heads x
 * queries x keys. The table is no part of what a call moves: it is read from cache, or added up in it.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { SCORES, O, TABLE };
enum { FORWARD = 1 << SCORES | 1 << O | 1 << TABLE, BACKWARD = 1 << SCORES | 1 << TABLE };

/* In L1 or near it, in L2, in what caches there are behind it, from memory; rows that no vector divides; one query and a cache.
 */
static const bench_shape shapes[] = {BENCH_IMAGES(1, 1, 64, 64),    BENCH_IMAGES(1, 4, 128, 128),
                                     BENCH_IMAGES(1, 8, 512, 512),  BENCH_IMAGES(1, 32, 2048, 2048),
                                     BENCH_IMAGES(8, 16, 511, 513), BENCH_IMAGES(16, 32, 1, 4096)};
static const bench_shape large[] = {BENCH_IMAGES(1, 8, 512, 512), BENCH_IMAGES(1, 32, 2048, 2048)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op forward_ops[] = {
    {"t5", FORWARD, SHAPES},
    {"alibi", FORWARD, .shapes = large, .shape_count = COUNT(large)},
};

static const bench_op backward_ops[] = {
    {"t5", BACKWARD, SHAPES},
};

static size_t table_bytes(const bench_case *c)
{
    return c->shape.channels * nrg_score_diagonals(c->shape.height, c->shape.width) * sizeof(double);
}

enum { BUCKETS = 32, HEADS_MOST = 64 };

/* The table that the op is named after. */
static void fill_table(const bench_case *c, float *diagonals)
{
    static float numbers[BUCKETS * HEADS_MOST];
    const nrg_bias_spec spec = nrg_bias_spec_init(c->shape.channels, c->shape.height, c->shape.width);
    if (c->op == &forward_ops[0]) {
        for (size_t i = 0; i < COUNT(numbers); i++)
            numbers[i] = (float)(i % 61) * 0.0625f - 2;
        nrg_t5_diagonals(&spec, NRG_F32, numbers, 0, diagonals, 0, 0, 1);
    } else {
        nrg_alibi_slopes(spec.heads, 8, numbers);
        nrg_alibi_diagonals(&spec, numbers, diagonals, 0, 0, 1);
    }
}

static void bind_forward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    fill_table(c, (float *)operand[TABLE]);
    nrg_score_bias_args args = nrg_score_bias_args_init(c->dtype, c->shape.rows, c->shape.channels, c->shape.height,
                                                        c->shape.width, operand[SCORES], (float *)operand[TABLE], operand[O]);
    args.store = c->store;
    *(nrg_score_bias_args *)bound = args;
}

static void bind_backward(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    *(nrg_score_bias_backward_args *)bound = nrg_score_bias_backward_args_init(
        c->dtype, c->shape.rows, c->shape.channels, c->shape.height, c->shape.width, operand[SCORES], (double *)operand[TABLE]);
}

static nrg_status forward(const void *bound, int ith, int nth) { return nrg_score_bias_forward(bound, ith, nth); }
static nrg_status backward(const void *bound, int ith, int nth) { return nrg_score_bias_backward(bound, ith, nth); }

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

const bench_family bench_score_bias = {
    .kernel = "score_bias",
    .ops = forward_ops,
    .op_count = COUNT(forward_ops),
    .quick_ops = "t5,alibi",
    .quick_shapes = "1x4x128x128,1x32x2048x2048",
    .operand = {[SCORES] = {"scores", BENCH_IN, BENCH_WIDE},
                [O] = {"o", BENCH_OUT, BENCH_EVEN},
                [TABLE] = {"diagonals", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = table_bytes,
    .bound_size = sizeof(nrg_score_bias_args),
    .bind = bind_forward,
    .phase = {forward},
    .run = run_forward,
};

const bench_family bench_score_bias_backward = {
    .kernel = "score_bias_backward",
    .ops = backward_ops,
    .op_count = COUNT(backward_ops),
    .quick_ops = "t5",
    .quick_shapes = "1x4x128x128,1x32x2048x2048",
    .operand = {[SCORES] = {"d_o", BENCH_IN, BENCH_WIDE}, [TABLE] = {"d_diagonals", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = table_bytes,
    .bound_size = sizeof(nrg_score_bias_backward_args),
    .bind = bind_backward,
    .phase = {backward},
    .run = run_backward,
};
