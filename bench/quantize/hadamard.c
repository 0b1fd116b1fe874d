/* nrg_hadamard_forward: heads, activations, and one row. The backward pass is the same kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"
#include "../family.h"

static const bench_shape shapes[] = {BENCH_ROWS(1, 64),   BENCH_ROWS(1, 128),  BENCH_ROWS(64, 64),    BENCH_ROWS(64, 128),
                                     BENCH_ROWS(64, 256), BENCH_ROWS(64, 512), BENCH_ROWS(65536, 128)};
static const bench_op ops[] = {{"hadamard", NULL, BENCH_SHAPES(shapes)}};

static void prepare(const bench_case *c, void *const *part)
{
    *(nrg_hadamard_args *)part[0] = nrg_hadamard_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL, NULL);
}

/* The longest row it has that is not longer; 64 for shorter ones. */
static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    size_t dim = 64;
    (void)op;
    while (dim < 512 && 2 * dim <= *row)
        dim *= 2;
    *row = dim;
    return (bench_shape)BENCH_ROWS(*rows, dim);
}

const bench_family bench_hadamard = {
    BENCH_OPS(ops, call_hadamard_forward, prepare),
    BENCH_QUICK("hadamard", "64x64,64x128,64x256,64x512"),
    .rival = "x,o",
    .scan_shape = scan_shape,
};
