/* nrg/glu.h: gated linear units, what stands between the two matrix products of most feed-forward layers (Shazeer,
 * arXiv:2002.05202):
 *
 *     o = g(a) ⊙ b
 *
 * where g is an activation of nrg/activation.h: SwiGLU with silu, GEGLU with gelu or gelu_tanh, ReGLU with relu, the bilinear
 * form with identity. a and b are two tensors, or halves of the rows of one, in either order: then they are two views of it
 * (nrg_glu_args_halves). Or a row holds pairs, a0 b0 a1 b1 …, and is x.
 *
 * With gelu_quick (and its alpha, CLIP's 1.702) it is GEGLU quick, ggml's geglu_quick.
 *
 * With that, a limit and an offset it is the unit of gpt-oss (openai/gpt-oss, gpt_oss/torch/model.py: swiglu; ggml: swiglu_oai):
 *
 *     SwiGLU-OAI: g = gelu_quick, alpha = 1.702, limit = 7, b_offset = 1
 *     a' = min(a, limit)    b' = max(-limit, min(b, limit)) + b_offset    o = g(a') ⊙ b'
 *
 * The bits are the same on every path, and for any (ith, nth), stride and alignment. What is rounded, each to f32: g(a'), which
 * has the bits that nrg_activation_forward gives it in f32 whatever the dtype; b + b_offset, where there is one; their product.
 * Then, once, to a 16-bit dtype. docs/activations.md has the measured errors. A NaN comes through from wherever it is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_GLU_H
#define NRG_GLU_H

#include <float.h>
#include <string.h>

#include "activation.h"
#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is, rows in up to four dimensions (nrg/base.h), each tensor with strides of its own, in bytes, where 0 stands
 * for dense. Make one with a constructor below, then change fields: a and b are there, or x; and of the gradients da and db
 * beside the first, dx beside the second. */
typedef struct nrg_glu_args {
    size_t size;               /* sizeof(nrg_glu_args) */
    nrg_activation activation; /* g */
    nrg_dtype dtype;           /* of all tensors */
    size_t dim;                /* elements of a row of o, at least 1 */
    size_t rows;               /* 0 is fine */
    size_t rows2;              /* planes of rows, and volumes of planes; 0 stands for 1 */
    size_t rows3;
    float limit;     /* at least 0; FLT_MAX or infinity: none. Default: FLT_MAX. */
    float b_offset;  /* of b: 0, or a number, as gpt-oss has 1 */
    const void *a;   /* [rows3, rows2, rows, dim] input */
    const void *b;   /* [rows3, rows2, rows, dim] input */
    const void *x;   /* [rows3, rows2, rows, dim, 2] input: a and b of every element beside each other */
    const void *d_o; /* backward: [rows3, rows2, rows, dim] gradient of o; forward: NULL */
    void *o;         /* forward: [rows3, rows2, rows, dim] output; backward: NULL */
    void *da;        /* backward: outputs like a, b and x; forward: NULL */
    void *db;
    void *dx;
    size_t a_stride; /* bytes from row to row, from plane to plane, from volume to volume; likewise below */
    size_t a_stride2;
    size_t a_stride3;
    size_t b_stride;
    size_t b_stride2;
    size_t b_stride3;
    size_t x_stride;
    size_t x_stride2;
    size_t x_stride3;
    size_t d_o_stride;
    size_t d_o_stride2;
    size_t d_o_stride3;
    size_t o_stride;
    size_t o_stride2;
    size_t o_stride3;
    size_t da_stride;
    size_t da_stride2;
    size_t da_stride3;
    size_t db_stride;
    size_t db_stride2;
    size_t db_stride3;
    size_t dx_stride;
    size_t dx_stride2;
    size_t dx_stride3;
    float alpha;             /* of g, as in nrg_activation_args. Default: nrg_activation_alpha(activation). */
    nrg_quant_format format; /* forward: not NONE: bytes with scales (nrg/quantize.h) instead of o, which is not looked at */
    nrg_quant_rounding rounding;
    uint32_t reserved; /* 0 */
    void *q;           /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes. R rows lie together */
    float *scales;     /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t q_stride;
    size_t q_stride2;
    size_t q_stride3;
    size_t scales_stride;
    size_t scales_stride2;
    size_t scales_stride3;
} nrg_glu_args;

/* Forward of two tensors. For the backward pass o is NULL; d_o, da and db are set. */
static inline nrg_glu_args nrg_glu_args_init(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim, const void *a,
                                             const void *b, void *o)
{
    nrg_glu_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.activation = g;
    args.alpha = nrg_activation_alpha(g);
    args.limit = FLT_MAX;
    args.dtype = dtype;
    args.dim = dim;
    args.rows = rows;
    args.a = a;
    args.b = b;
    args.o = o;
    return args;
}

/* Forward of dense rows of 2·dim elements, whose first half is a and whose second half is b; swapped: the other way round, as in
 * torch's glu and ggml's `swapped`. Rows with gaps: set a_stride and b_stride to their stride. */
static inline nrg_glu_args nrg_glu_args_halves(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim, const void *x,
                                               int swapped, void *o)
{
    const size_t half = dim * nrg_dtype_size(dtype);
    const char *first = (const char *)x, *second = first + half;
    nrg_glu_args args = nrg_glu_args_init(g, dtype, rows, dim, swapped ? second : first, swapped ? first : second, o);
    args.a_stride = args.b_stride = 2 * half;
    return args;
}

/* o = g(a') ⊙ b'. o may be a or b, with its strides, as halves of a row are; otherwise it shares no byte with an input:
 *
 *               a     b     x
 *         o     yes   yes   no
 *
 * With a format, what would be o becomes bytes with scales: in q, and in scales those of int8, which share no byte with anything.
 * What is quantized is o in f32, also where dtype is one of 16 bits.
 *
 * Share ith of nth: elements, in the order in which rows lie in o; with a format rows, or so many as lie together. Returns
 * NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         activation, dtype (NRG_DTYPE_SAME included), format or rounding unknown
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, o (with a format q, or scales of int8), or none of x and both of a and b
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          dim is 0; with a format, as in nrg_quantize
 *   NRG_ERR_CONSTANT     limit negative or NaN; b_offset infinite or NaN; alpha infinite, NaN or out of its range
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      o, q or scales overlap an operand in a way that is not allowed
 *   NRG_ERR_COMBINATION  x beside a or b; d_o or a gradient is there; alpha is not 0, and g has none; q or scales, no format */
NRG_API nrg_status nrg_glu_forward(const nrg_glu_args *args, int ith, int nth);

/* What nrg_glu_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_glu_forward_check(const nrg_glu_args *args);

/* The gradients of a and b, from d_o and the inputs; g is computed anew:
 *
 *     da = (d_o ⊙ b') ⊙ g′(a')    0 where a > limit
 *     db = d_o ⊙ g(a')            0 where |b| > limit
 *
 * each product and each of g and g′ rounded to f32. Gradients may lie over inputs, but not over each other:
 *
 *               a     b     x     d_o   da
 *        da     yes   yes   no    yes
 *        db     yes   yes   no    yes   no
 *        dx     no    no    yes   no    no
 *
 * Returns the statuses of nrg_glu_forward; NRG_ERR_COMBINATION where o, a format or q is there, da or db beside x, or dx beside a
 * and b. */
NRG_API nrg_status nrg_glu_backward(const nrg_glu_args *args, int ith, int nth);

/* What nrg_glu_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_glu_backward_check(const nrg_glu_args *args);

#ifdef __cplusplus
}
#endif
#endif
