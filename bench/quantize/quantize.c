/* nrg_quantize and nrg_dequantize.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"
#include "../family.h"

/* Blocks of 32 elements, or of 256; rows that lie together in fours. */
static const bench_shape blocks[] = BENCH_BLOCKS(64), super_blocks[] = BENCH_BLOCKS(256),
                         groups[] = {BENCH_ROWS(512, 4096), BENCH_ROWS(1, 64)},
                         fours[] = {BENCH_ROWS(512, 4096), BENCH_ROWS(4, 64)},
                         super_fours[] = {BENCH_ROWS(512, 4096), BENCH_ROWS(4, 256)};

static const bench_op ops[] = {
    {"q8_0", NULL, BENCH_TO(Q8_0, blocks)},
    {"q8_k", NULL, BENCH_TO(Q8_K, super_blocks)},
    {"q8_0-4x4", NULL, BENCH_TO(Q8_0_4X4, fours)},
    {"q8_0-4x8", NULL, BENCH_TO(Q8_0_4X8, fours)},
    {"q8_k-4x8", NULL, BENCH_TO(Q8_K_4X8, super_fours)},
    {"int8", "scales", BENCH_TO(INT8, blocks)},
    {"int8-32", "scales", BENCH_TO(INT8_32, groups)},
    {"int8-128", "scales", BENCH_TO(INT8_128, groups)},
};

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
    BENCH_OPS(ops, call_quantize, prepare),
    BENCH_QUICK("q8_0", "1x4096,512x4096"),
    .rival = "x,q=packed,scales",
};

const bench_family bench_dequantize = {
    BENCH_OPS(ops, call_dequantize, prepare_back),
    BENCH_QUICK("q8_0", "1x4096,512x4096"),
    .rival = "o,q=packed,scales",
    .ready = ready_back,
};
