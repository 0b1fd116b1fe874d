/* nrg_activation_forward and nrg_activation_backward.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/activation.h"
#include "../family.h"

/* In L1, in L2, from memory; 512 rows of 4096; the cost of a call. */
static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(1, 65536), BENCH_ROWS(1, 33554432),
                                     BENCH_ROWS(1, 512 * 4096), BENCH_ROWS(1, 64)};

#define OP(name, g)                                                                                                              \
    {                                                                                                                            \
        name, NULL, BENCH_SHAPES(shapes), .activation = NRG_ACT_##g                                                              \
    }

static const bench_op forward_ops[] = {
#define ACTIVATION(g, name, ...) OP(#name, g),
#include "../../src/template/activation/activations.def"
};

static const bench_op backward_ops[] = {
    OP("silu", SILU), OP("gelu", GELU), OP("tanh", TANH), OP("gelu_quick", GELU_QUICK), OP("hard_swish", HARD_SWISH),
    OP("elu", ELU),   OP("mish", MISH)};

static void prepare(const bench_case *c, void *const *part)
{
    *(nrg_activation_flat *)part[0] =
        (nrg_activation_flat){.dtype = c->dtype, .g = c->op->activation, .count = bench_shape_elements(c->shape)};
}

const bench_family bench_activation = {
    .ulp = bench_activation_ulp,
    .flat = 1,
    BENCH_OPS(forward_ops, call_activation_forward, prepare),
    BENCH_QUICK("silu,gelu", "4096,33554432"),
    .rival = "x,o",
    .wide = "x",
};

const bench_family bench_activation_backward = {
    .flat = 1,
    BENCH_OPS(backward_ops, call_activation_backward, prepare),
    BENCH_QUICK("silu,gelu", "4096,33554432"),
    .rival = "x,d_o,dx",
    .wide = "x",
};
