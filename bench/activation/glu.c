/* nrg_glu_forward and nrg_glu_backward.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/activation.h"
#include "../family.h"

/* A token of a small model, a prompt of a 7B one, many tokens of an expert. */
#define SHAPES                                                                                                                   \
    BENCH_ROWS(1, 4096), BENCH_ROWS(512, 2816), BENCH_ROWS(512, 11008), BENCH_ROWS(4096, 2816), BENCH_ROWS(512, 4096),           \
        BENCH_ROWS(1, 64)
static const bench_shape shapes[] = {SHAPES}, llama_shapes[] = {SHAPES, BENCH_ROWS(1, 14336)};

enum { SPLIT, LIMITED };

#define OP(name, there, g, how)                                                                                                  \
    {                                                                                                                            \
        name, there, BENCH_SHAPES(shapes), .option = how, .activation = NRG_ACT_##g                                              \
    }

static const bench_op forward_ops[] = {
    {"swiglu", "a,b,o", BENCH_SHAPES(llama_shapes), .option = SPLIT, .activation = NRG_ACT_SILU},
    OP("geglu", "a,b,o", GELU, SPLIT),
    OP("geglu_tanh", "a,b,o", GELU_TANH, SPLIT),
    OP("reglu", "a,b,o", RELU, SPLIT),
    OP("geglu_quick", "a,b,o", GELU_QUICK, SPLIT),
    OP("swiglu-limited", "a,b,o", SILU, LIMITED),
    OP("swiglu_oai", "a,b,o", GELU_QUICK, LIMITED),
    OP("swiglu-pairs", "x,o", SILU, SPLIT),
};

static const bench_op backward_ops[] = {OP("swiglu", "a,b,da,db", SILU, SPLIT), OP("geglu", "a,b,da,db", GELU, SPLIT),
                                        OP("geglu_quick", "a,b,da,db", GELU_QUICK, SPLIT)};

static const bench_op quantized_ops[] = {{"swiglu-q8_0", "a,b,packed", BENCH_TO(Q8_0, shapes), .activation = NRG_ACT_SILU}};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_glu_args *args = part[0];
    *args = nrg_glu_args_init(c->op->activation, c->dtype, c->shape.rows, c->shape.dim, NULL, NULL, NULL);
    args->format = c->op->format;
    if (c->op->option == LIMITED) {
        args->limit = 7;
        args->b_offset = 1;
    }
}

#define GLU .rival = "x,x=a,b,d_o,o,dx=da,dz=db,q=packed", .wide = "a,x"

const bench_family bench_glu = {
    BENCH_OPS(forward_ops, call_glu_forward, prepare),
    BENCH_QUICK("swiglu", "1x4096,512x2816"),
    GLU,
};

const bench_family bench_glu_quantized = {
    BENCH_OPS(quantized_ops, call_glu_forward, prepare),
    BENCH_QUICK(NULL, "1x4096,512x2816"),
    GLU,
};

const bench_family bench_glu_backward = {
    BENCH_OPS(backward_ops, call_glu_backward, prepare),
    BENCH_QUICK("swiglu", "1x4096,512x2816"),
    GLU,
};
