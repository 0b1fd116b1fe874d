/* nrg_sinusoidal_table: cosines and sines of positions. nrg_rope_table is the same kernel, in the concatenated layout.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/rope.h"
#include "../family.h"

/* 64 pairs a position, as heads of 128 have. */
static const bench_shape shapes[] = {BENCH_ROWS(1, 128), BENCH_ROWS(64, 128), BENCH_ROWS(8192, 128), BENCH_ROWS(1, 64)};

/* option: the layout. A row is of pairs. */
static const bench_op ops[] = {
    {"concatenated", NULL, BENCH_SHAPES(shapes), .option = NRG_SINUSOIDAL_CONCATENATED, .row_step = 2},
    {"interleaved", NULL, BENCH_SHAPES(shapes), .option = NRG_SINUSOIDAL_INTERLEAVED, .row_step = 2},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_TABLE_ARGS];
    nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_TABLE_SPEC];
    *spec = nrg_sinusoidal_spec_vaswani(c->shape.dim);
    spec->layout = (nrg_sinusoidal_layout)c->op->option;
    *args = nrg_sinusoidal_args_init(c->dtype, c->shape.rows, NULL, NULL);
    args->first_position = 1000;
}

static void ready(const bench_case *c, void *const *part)
{
    const nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_TABLE_ARGS];
    const nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(c->shape.dim);
    bench_require(nrg_sinusoidal_frequencies(&spec, own_memory(args->frequencies)));
}

const bench_family bench_position_table = {
    BENCH_OPS(ops, call_sinusoidal_table, prepare),
    BENCH_QUICK("concatenated", "64x128"),
    .ready = ready,
    .aside = "frequencies",
};
