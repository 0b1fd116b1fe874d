/* nrg_sinusoidal_table: cosines and sines of positions. nrg_rope_table is the same kernel, in the concatenated layout.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/sinusoidal.h"
#include "../family.h"

/* 64 pairs a position, as heads of 128 have. */
static const bench_shape shapes[] = {BENCH_ROWS(1, 128), BENCH_ROWS(64, 128), BENCH_ROWS(8192, 128), BENCH_ROWS(1, 64)};

/* option: the layout */
static const bench_op ops[] = {
    {"concatenated", NULL, BENCH_SHAPES(shapes), .option = NRG_SINUSOIDAL_CONCATENATED},
    {"interleaved", NULL, BENCH_SHAPES(shapes), .option = NRG_SINUSOIDAL_INTERLEAVED},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_ARGS];
    nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_SPEC];
    *spec = nrg_sinusoidal_spec_vaswani(c->shape.dim);
    spec->layout = (nrg_sinusoidal_layout)c->op->option;
    *args = nrg_sinusoidal_args_init(c->dtype, c->shape.rows, NULL, NULL);
    args->first_position = 1000;
}

static void ready(const bench_case *c, void *const *part)
{
    const nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_ARGS];
    const nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(c->shape.dim);
    bench_require(nrg_sinusoidal_frequencies(&spec, own_memory(args->frequencies)));
}

static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    (void)op;
    *row += *row % 2; /* pairs */
    return (bench_shape)BENCH_ROWS(*rows, *row);
}

BENCH_FUNCTION(table, nrg_call_sinusoidal_table,
               nrg_sinusoidal_table(part[NRG_SINUSOIDAL_SPEC], part[NRG_SINUSOIDAL_ARGS], ith, nth))

const bench_family bench_position_table = {
    .kernel = "position_table",
    BENCH_OPS(ops),
    .quick_ops = "concatenated",
    .quick_shapes = "64x128",
    .function = &table,
    .prepare = prepare,
    .scan_shape = scan_shape,
    .ready = ready,
    .aside = "frequencies",
};
