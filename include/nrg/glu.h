/* nrg/glu.h: gated linear units, between the two matrix multiplications of most feed-forward layers:
 *
 *     o = g(a) ⊙ b
 *
 * g is an activation of nrg/activation.h: SwiGLU with silu, GEGLU with gelu or gelu_tanh, ReGLU with relu, the bilinear form
 * with identity. GEGLU quick (ggml's geglu_quick) has gelu_quick, with CLIP's alpha of 1.702.
 *
 * The inputs have one of three layouts:
 * - a and b are two tensors.
 * - a and b are halves of the rows of one tensor, in either order: two views of it (nrg_glu_args_halves).
 * - x holds rows of pairs, a0 b0 a1 b1 ….
 *
 * A limit and an offset make it the unit of gpt-oss:
 *
 *     SwiGLU-OAI: g = gelu_quick, alpha = 1.702, limit = 7, b_offset = 1
 *     a' = min(a, limit)    b' = max(-limit, min(b, limit)) + b_offset    o = g(a') ⊙ b'
 *
 * Sources:
 * - Shazeer, arXiv:2002.05202.
 * - openai/gpt-oss, gpt_oss/torch/model.py: swiglu; ggml: swiglu_oai.
 *
 * Guarantee: results are bit-identical on every path, and for every (ith, nth), stride and alignment. Each of these is rounded
 * to f32: g(a'), b + b_offset if the offset is not 0, and their product. For every dtype, g(a') is bit-identical to
 * nrg_activation_forward in f32. A 16-bit o is rounded once more. A NaN in any input element makes its result NaN.
 * docs/ops/glu.md has the measured errors.
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

/* Points to the data: rows in up to four dimensions (nrg/base.h). Make one with a constructor below, then change fields. Set
 * either a and b, or x. The gradients are da and db with a and b, or dx with x. */
typedef struct nrg_glu_args {
    size_t size;             /* sizeof(nrg_glu_args) */
    size_t rows;             /* rows of a plane. If this or one of the next two is 0, the call only validates */
    size_t rows2;            /* planes of a volume. Default: 1. */
    size_t rows3;            /* volumes. Default: 1. */
    size_t dim;              /* elements of a row of o, at least 1 */
    nrg_dtype dtype;         /* of all tensors except packed and scales */
    nrg_quant_format format; /* forward: if not NONE, the output is packed and scales (nrg/quantize.h) instead of o */
    const void *a;           /* [rows3, rows2, rows, dim] input; NULL with x */
    size_t a_stride[3];
    const void *b; /* [rows3, rows2, rows, dim] input; NULL with x */
    size_t b_stride[3];
    const void *x; /* [rows3, rows2, rows, dim, 2] input: a and b of each element are adjacent; NULL with a and b */
    size_t x_stride[3];
    const void *d_o; /* backward: [rows3, rows2, rows, dim] gradient of o; forward: NULL */
    size_t d_o_stride[3];
    nrg_activation activation;   /* g */
    float alpha;                 /* of g, as in nrg_activation_args. Default: nrg_activation_alpha(activation). */
    float limit;                 /* at least 0; FLT_MAX and INFINITY disable it. Default: FLT_MAX. */
    float b_offset;              /* added to b: 1 in gpt-oss */
    nrg_quant_rounding rounding; /* of ties, with a format; else NRG_QUANT_ROUND_TO_EVEN */
    uint32_t reserved;           /* 0 */
    void *o;                     /* forward without a format: [rows3, rows2, rows, dim] output; else NULL */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output of a format: R rows are packed together */
    size_t packed_stride[3];
    float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8 formats; else NULL */
    size_t scales_stride[3];
    void *da; /* backward: as a, output; forward: NULL */
    size_t da_stride[3];
    void *db; /* backward: as b, output; forward: NULL */
    size_t db_stride[3];
    void *dx; /* backward: as x, output; forward: NULL */
    size_t dx_stride[3];
} nrg_glu_args;

/* Returns args for the forward pass of two dense tensors. For the backward pass, pass NULL for o, and set d_o, da and db.
 *
 * Parameters:
 * - g: the field activation.
 * - dtype, rows, dim, a, b, o: the fields of the same names. */
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

/* Returns args for the forward pass of dense rows of 2·dim elements, whose halves are a and b. For rows with gaps, set
 * a_stride[0] and b_stride[0] to their stride.
 *
 * Parameters:
 * - g: the field activation.
 * - dtype, rows, dim, o: the fields of the same names.
 * - x: [rows, 2·dim] input.
 * - swapped: 0 if a is the first half; not 0 if b is, as in torch's glu and ggml's `swapped`. */
static inline nrg_glu_args nrg_glu_args_halves(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim, const void *x,
                                               int swapped, void *o)
{
    const size_t half = dim * nrg_dtype_size(dtype);
    const char *first = (const char *)x, *second = !x || x == NRG_UNALLOCATED ? first : first + half;
    nrg_glu_args args = nrg_glu_args_init(g, dtype, rows, dim, swapped ? second : first, swapped ? first : second, o);
    args.a_stride[0] = args.b_stride[0] = 2 * half;
    return args;
}

/* Computes o = g(a') ⊙ b'. With a format, it quantizes o in f32, also if dtype has 16 bits.
 *
 * Parameters:
 * - args: the data. Required are a and b, or x; and o, or with a format packed, and scales of int8.
 * - ith, nth: the share, a range of elements in the order of o. With a format it is a range of rows, and never splits rows
 *   that are packed together.
 *
 * Aliasing: o may be a or b, with the same strides, as halves of a row have. No other output shares a byte with an operand.
 *
 *               a     b     x
 *         o     yes   yes   no
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_ENUM: activation, dtype, format or rounding has an unknown value, or dtype is NRG_DTYPE_SAME. Or format is set in a
 *   build without the family quantize.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_NULL: args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, a field of a later version is not 0 (nrg/base.h), or reserved is not 0.
 * - NRG_ERR_DIM: dim is 0. With a format, also as in nrg_quantize.
 * - NRG_ERR_CONSTANT: limit is negative or NaN; b_offset is infinite or NaN; or alpha is infinite, NaN or out of its range.
 * - NRG_ERR_STRIDE: a stride is shorter than a row, or than the data inside its level.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: an output overlaps another operand in a way that the table does not allow.
 * - NRG_ERR_COMBINATION: x is set with a or b. Or d_o or a gradient is set. Or alpha is set, and g has no alpha. Or o is set
 *   with a format. Or packed, scales or rounding is set without a format. Or scales is set, and blocks of the format store
 *   their scales. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_forward(const nrg_glu_args *args, int ith, int nth);

/* Validates the arguments of nrg_glu_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_forward_check(const nrg_glu_args *args);

/* Computes the gradients of a and b from d_o and the inputs. It recomputes g.
 *
 *     da = (d_o ⊙ b') ⊙ g′(a')    0 where a > limit
 *     db = d_o ⊙ g(a')            0 where |b| > limit
 *
 * Each product is rounded to f32, and so are g and g′.
 *
 * Parameters:
 * - args: the data. Required are d_o; and a, b, da and db, or x and dx.
 * - ith, nth: the share, a range of elements.
 *
 * Aliasing: gradients may alias inputs as in this table, with the same strides, but not each other.
 *
 *               a     b     x     d_o   da
 *        da     yes   yes   no    yes
 *        db     yes   yes   no    yes   no
 *        dx     no    no    yes   no    no
 *
 * Returns the statuses of nrg_glu_forward. On error, writes nothing. Differences:
 * - NRG_ERR_COMBINATION: o, a format, a rounding, packed or scales is set. Or a, b, da or db is set with x, or dx without x.
 *   Or alpha is set, and g has no alpha. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_backward(const nrg_glu_args *args, int ith, int nth);

/* Validates the arguments of nrg_glu_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_glu_backward_check(const nrg_glu_args *args);

#ifdef __cplusplus
}
#endif
#endif
