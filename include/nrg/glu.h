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
 * Then, once, to a 16-bit dtype. docs/ops/glu.md has the measured errors. A NaN comes through from wherever it is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_GLU_H
#define NRG_GLU_H

#include <float.h>

#include "activation.h"
#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is: rows in up to four dimensions (nrg/base.h), with strides in bytes from row to row, from plane to plane and
 * from volume to volume; 0 is dense. Make one with a constructor below, then change fields: set a and b, or x; and of the
 * gradients da and db with the first, dx with the second. */
typedef struct nrg_glu_args {
    size_t size;             /* sizeof(nrg_glu_args) */
    size_t rows;             /* rows of a plane; 0 of any of these three is none */
    size_t rows2;            /* planes of a volume. Default: 1. */
    size_t rows3;            /* volumes. Default: 1. */
    size_t dim;              /* elements of a row of o, at least 1 */
    nrg_dtype dtype;         /* of all tensors but packed and scales */
    nrg_quant_format format; /* forward: not NONE: bytes with scales (nrg/quantize.h) instead of o */
    const void *a;           /* [rows3, rows2, rows, dim] input */
    size_t a_stride[3];
    const void *b; /* [rows3, rows2, rows, dim] input */
    size_t b_stride[3];
    const void *x; /* [rows3, rows2, rows, dim, 2] input: a and b of every element are adjacent */
    size_t x_stride[3];
    const void *d_o; /* backward: [rows3, rows2, rows, dim] gradient of o; forward: NULL */
    size_t d_o_stride[3];
    nrg_activation activation;   /* g */
    float alpha;                 /* of g, as in nrg_activation_args. Default: nrg_activation_alpha(activation). */
    float limit;                 /* at least 0; FLT_MAX or infinity: none. Default: FLT_MAX. */
    float b_offset;              /* added to b: 1 in gpt-oss */
    nrg_quant_rounding rounding; /* with a format; else NRG_QUANT_ROUND_TO_EVEN */
    uint32_t reserved;           /* 0 */
    void *o;                     /* forward, without a format: [rows3, rows2, rows, dim] output; else NULL */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes. R rows lie together */
    size_t packed_stride[3];
    float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t scales_stride[3];
    void *da; /* backward: outputs like a, b and x; forward: NULL */
    size_t da_stride[3];
    void *db;
    size_t db_stride[3];
    void *dx;
    size_t dx_stride[3];
} nrg_glu_args;

/* Forward of two tensors. For the backward pass o is NULL; d_o, da and db are set. */
static inline nrg_glu_args nrg_glu_args_init(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim, const void *a,
                                             const void *b, void *o)
{
    nrg_glu_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.dim = dim;
    args.dtype = dtype;
    args.format = NRG_QUANT_NONE;
    args.a = a;
    args.a_stride[0] = args.a_stride[1] = args.a_stride[2] = 0;
    args.b = b;
    args.b_stride[0] = args.b_stride[1] = args.b_stride[2] = 0;
    args.x = NULL;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.d_o = NULL;
    args.d_o_stride[0] = args.d_o_stride[1] = args.d_o_stride[2] = 0;
    args.activation = g;
    args.alpha = nrg_activation_alpha(g);
    args.limit = FLT_MAX;
    args.b_offset = 0;
    args.rounding = NRG_QUANT_ROUND_TO_EVEN;
    args.reserved = 0;
    args.o = o;
    args.o_stride[0] = args.o_stride[1] = args.o_stride[2] = 0;
    args.packed = NULL;
    args.packed_stride[0] = args.packed_stride[1] = args.packed_stride[2] = 0;
    args.scales = NULL;
    args.scales_stride[0] = args.scales_stride[1] = args.scales_stride[2] = 0;
    args.da = args.db = args.dx = NULL;
    args.da_stride[0] = args.da_stride[1] = args.da_stride[2] = 0;
    args.db_stride[0] = args.db_stride[1] = args.db_stride[2] = 0;
    args.dx_stride[0] = args.dx_stride[1] = args.dx_stride[2] = 0;
    return args;
}

/* Forward of dense rows of 2·dim elements, whose first half is a and whose second half is b; swapped: the other way round, as in
 * torch's glu and ggml's `swapped`. Rows with gaps: set a_stride[0] and b_stride[0] to their stride. */
static inline nrg_glu_args nrg_glu_args_halves(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim, const void *x,
                                               int swapped, void *o)
{
    const size_t half = dim * nrg_dtype_size(dtype);
    const char *first = (const char *)x, *second = x == NRG_UNALLOCATED ? first : first + half;
    nrg_glu_args args = nrg_glu_args_init(g, dtype, rows, dim, swapped ? second : first, swapped ? first : second, o);
    args.a_stride[0] = args.b_stride[0] = 2 * half;
    return args;
}

/* o = g(a') ⊙ b'. o may be a or b, with its strides, as halves of a row are; otherwise it shares no byte with an input:
 *
 *               a     b     x
 *         o     yes   yes   no
 *
 * With a format, what would be o becomes bytes with scales, in packed and, of int8, in scales. Neither shares a byte with any
 * operand. o is NULL then.
 * What is quantized is o in f32, also where dtype is one of 16 bits.
 *
 * Share ith of nth: elements, in the order in which rows lie in o; with a format rows, or so many as lie together. Returns
 * NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         activation, dtype (NRG_DTYPE_SAME included), format or rounding unknown
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, o (with a format packed, or scales of int8), or x and one of a and b
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward; reserved is not 0
 *   NRG_ERR_DIM          dim is 0; with a format, as in nrg_quantize
 *   NRG_ERR_CONSTANT     limit negative or NaN; b_offset infinite or NaN; alpha infinite, NaN or out of its range
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      o, packed or scales overlap an operand in a way that is not allowed
 *   NRG_ERR_COMBINATION  x with a or b; d_o or a gradient is there; alpha is not 0, and g has none; o with a format; packed,
 *                        scales or a rounding without one, or scales with one that has them in its blocks */
NRG_NODISCARD NRG_API nrg_status nrg_glu_forward(const nrg_glu_args *args, int ith, int nth);

/* Validates the arguments of nrg_glu_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_forward_check(const nrg_glu_args *args);

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
 * Returns the statuses of nrg_glu_forward; NRG_ERR_COMBINATION where o, a format, a rounding, packed or scales is there, da
 * or db with x, or dx with a and b. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_backward(const nrg_glu_args *args, int ith, int nth);

/* Validates the arguments of nrg_glu_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_backward_check(const nrg_glu_args *args);

#ifdef __cplusplus
}
#endif
#endif
