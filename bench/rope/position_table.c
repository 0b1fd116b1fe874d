/* nrg_sinusoidal_table: cosines and sines of positions. nrg_rope_table is the same kernel, in the concatenated layout.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { O, FREQUENCIES };

/* 64 pairs a position, as heads of 128 have. */
static const bench_shape shapes[] = {BENCH_ROWS(1, 128), BENCH_ROWS(64, 128), BENCH_ROWS(8192, 128)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op ops[] = {
    {"concatenated", 1 << O | 1 << FREQUENCIES, SHAPES, .groups = NRG_SINUSOIDAL_CONCATENATED},
    {"interleaved", 1 << O | 1 << FREQUENCIES, SHAPES, .groups = NRG_SINUSOIDAL_INTERLEAVED},
};

static size_t scratch(const bench_case *c) { return (c->shape.dim + 1) * sizeof(double); }

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t bytes)
{
    (void)bytes;
    double *frequencies = (double *)(void *)operand[FREQUENCIES];
    nrg_sinusoidal_frequencies(c->shape.dim, 10000, frequencies);
    nrg_sinusoidal_args *a = bound;
    *a = nrg_sinusoidal_args_init(c->shape.rows, c->shape.dim, frequencies, operand[O]);
    a->dtype = c->dtype;
    a->layout = (nrg_sinusoidal_layout)c->op->groups;
    a->first = 1000;
}

static nrg_status share(const void *bound, int ith, int nth) { return nrg_sinusoidal_table(bound, ith, nth); }

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        share(bound, 0, 1);
}

const bench_family bench_position_table = {
    .kernel = "position_table",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "concatenated",
    .quick_shapes = "64x128",
    .operand = {[O] = {"table", BENCH_OUT, BENCH_EVEN}, [FREQUENCIES] = {"frequencies", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch,
    .bound_size = sizeof(nrg_sinusoidal_args),
    .bind = bind,
    .phase = {share},
    .run = run,
};
