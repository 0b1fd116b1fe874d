/* nrg_quantize and nrg_dequantize.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"
#include "../family.h"

/* Blocks of 32 elements, or of 256; rows that lie together in fours. */
#define SHAPES(smallest)                                                                                                         \
    {                                                                                                                            \
        BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(1, smallest)                              \
    }
#define GROUPS(rows, smallest)                                                                                                   \
    {                                                                                                                            \
        BENCH_ROWS(512, 4096), BENCH_ROWS(rows, smallest)                                                                        \
    }
static const bench_shape shapes[] = SHAPES(64), super_blocks[] = SHAPES(256), groups[] = GROUPS(1, 64), fours[] = GROUPS(4, 64),
                         super_fours[] = GROUPS(4, 256);

#define OP(name, there, to, where)                                                                                               \
    {                                                                                                                            \
        name, there, BENCH_SHAPES(where), .format = NRG_QUANT_##to                                                               \
    }
#define OPS                                                                                                                      \
    OP("q8_0", NULL, Q8_0, shapes), OP("q8_k", NULL, Q8_K, super_blocks), OP("q8_0-4x4", NULL, Q8_0_4X4, fours),                 \
        OP("q8_0-4x8", NULL, Q8_0_4X8, fours), OP("q8_k-4x8", NULL, Q8_K_4X8, super_fours), OP("int8", "scales", INT8, shapes),  \
        OP("int8-32", "scales", INT8_32, groups), OP("int8-128", "scales", INT8_128, groups)

static const bench_op ops[] = {OPS};

static void prepare(const bench_case *c, void *const *part)
{
    *(nrg_quantize_args *)part[0] =
        nrg_quantize_args_init(c->op->format, c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL);
}

static void prepare_back(const bench_case *c, void *const *part)
{
    *(nrg_dequantize_args *)part[0] =
        nrg_dequantize_args_init(c->op->format, c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL);
}

/* Bytes of what lies where o will be: any others would be infinities, and no numbers. */
static void ready_back(const bench_case *c, void *const *part)
{
    const nrg_dequantize_args *a = part[0];
    nrg_quantize_args args =
        nrg_quantize_args_init(a->format, c->dtype, a->rows, a->dim, a->o, own_memory(a->packed), own_memory(a->scales));
    args.x_stride[0] = a->o_stride[0];
    args.packed_stride[0] = a->packed_stride[0];
    args.scales_stride[0] = a->scales_stride[0];
    bench_require(nrg_quantize(&args, 0, 1));
}

const bench_family bench_quantize = {
    BENCH_OPS(ops),     BENCH_QUICK("q8_0", "1x4096,512x4096"), .function = &call_quantize,
    .prepare = prepare, .rival = "x,q=packed,scales",
};

const bench_family bench_dequantize = {
    BENCH_OPS(ops),      BENCH_QUICK("q8_0", "1x4096,512x4096"), .function = &call_dequantize, .prepare = prepare_back,
    .ready = ready_back, .rival = "o,q=packed,scales",
};
