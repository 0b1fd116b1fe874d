/* nrg_norm_forward with bytes instead of o.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

#define SHAPES(smallest)                                                                                                         \
    {                                                                                                                            \
        BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(1, smallest)                              \
    }
static const bench_shape shapes[] = SHAPES(64), super_blocks[] = SHAPES(256);

#define OP(name, there, to, where)                                                                                               \
    {                                                                                                                            \
        name, there, BENCH_SHAPES(where), .format = NRG_QUANT_##to                                                               \
    }

static const bench_op ops[] = {OP("rms-q8_0", "w,packed", Q8_0, shapes), OP("add+rms-q8_0", "y,w,r,packed", Q8_0, shapes),
                               OP("add+rms-q8_k", "y,w,r,packed", Q8_K, super_blocks),
                               OP("add+rms-int8", "y,w,r,packed,scales", INT8, shapes)};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_norm_args *args = part[NRG_NORM_ARGS];
    *(nrg_norm_spec *)part[NRG_NORM_SPEC] = bench_norm_spec(c);
    *args = nrg_norm_args_init(c->shape.rows, NULL, NULL, NULL);
    args->store = c->store;
}

const bench_family bench_norm_quantized = {
    BENCH_OPS(ops),
    BENCH_QUICK("add+rms-q8_0", "1x4096,512x4096"),
    .function = &call_norm_forward,
    .prepare = prepare,
    .rival = "x,y,w,r,q=packed,scales",
};
