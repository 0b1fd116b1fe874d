/* nrg/quantize.h: rows of f32, f16 or bf16 as bytes with scales, the activations of integer matrix products; and back.
 *
 * A row is cut into blocks, each with a scale d, and x ≈ d·q with q from -127 to 127. Formats, and the bytes they have:
 *
 *   q8_0              blocks of 32: d in f16, then 32 q: the layout of ggml's block_q8_0 (ggml-common.h), 34 bytes
 *   q8_K              blocks of 256: d in f32, 256 q, then 16 sums of 16 q each in int16. ggml's block_q8_K, 292 bytes
 *   q8_0_RxC, q8_K_RxC   the same blocks of R rows together (R is 4 or 8), in chunks of C elements (C is 4 or 8), as repacked
 *                     matrix products read them: ggml's block_q8_0x4 and block_q8_Kx4 (ggml-cpu/repack.h, repack.cpp), which its
 *                     ggml_quantize_mat_q8_0_4x4, _4x8, q8_K_4x4 and _4x8 write. 8 rows by the same rule
 *   int8 of rows, and of groups of 32, 64 or 128   q alone in one tensor, d in f32 in another; symmetric
 *
 * Interleaved, block k of R rows is: R scales, one of each row; then R·32 (R·256) q; and of q8_K R·16 sums.
 *
 *     element i of row r        is q   number (i / C)·C·R + r·C + i % C
 *     sum s (elements 16·s …)   is sum number (s / 4)·4·R + r·4 + s % 4
 *
 * The last block of a row of int8 may be shorter; rows of q8_0 are multiples of 32, of q8_K of 256 elements. Numbers of more than
 * a byte are little-endian here as on any machine that nrg's vectors run on; none has to be aligned.
 *
 * What is computed, in f32, amax the largest magnitude of a block:
 *
 *     q8_0, int8    d = amax / 127      q = round(x·(1 / d))      each of /, /, · rounded; q8_0 then stores d in f16
 *     q8_K          e = -127 / x[m]     q = round(x·e)            d = 1 / e; x[m] is the first element of magnitude amax
 *
 * round is to nearest, ties to even, on every path; NRG_QUANT_ROUND_AWAY takes ties away from zero. The bytes are those of
 * ggml-cpu's
 *
 *     q8_0, q8_0_4xC    NRG_QUANT_ROUND_TO_EVEN: NEON code      NRG_QUANT_ROUND_AWAY: reference and generic code (roundf)
 *     q8_K, q8_K_4xC    NRG_QUANT_ROUND_TO_EVEN: reference and generic code, which x86 and NEON use (nearest_int)
 *
 * ggml's AVX code computes q8_0 otherwise: it multiplies by 127 / amax, which is one rounding instead of two. Next to a tie its
 * byte can be another one: the 58 of {116, 58, 0, ...} becomes 63 there, 64 here and in ggml's reference. docs/quantize.md has a
 * table of ggml's functions, and where its AVX2 code for q8_K_4x8 differs.
 *
 * |x - d·q| is at most d/2·(1 + 2^-15), for finite x; of q8_0 beside what rounding d to f16 moves, 127·|d - f16(d)|, which is at
 * most 2^-11·amax where d is at least 2^-14 (amax at least 0.00776).
 *
 * Where there is no such d:
 *
 * - A block of zeros: d = 0, q = 0, sums 0.
 * - A NaN or an infinity in a block: d = NaN (0x7e00, 0x7fc00000), q = 0, sums 0. Dequantized, all of the block is NaN, which
 *   shows where a clipped number would not. Other blocks are as ever.
 * - 1 / d or e overflows (amax below about 2^-121): d = 0, q = 0, sums 0, as zeros. ggml has bytes there that C does not define.
 * - d is below what f16 has (q8_0, amax below 3.8e-6): d is rounded like any other, to a subnormal or to 0, and q are those of
 *   the f32 d: ggml's bytes. Dequantized they are 0 where d is.
 * - d is above what f16 has (q8_0, amax above 8.3e6): d = infinity, q are those of the f32 d: ggml's bytes.
 *
 * docs/quantize.md has how an engine calls it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_QUANTIZE_H
#define NRG_QUANTIZE_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_quant_format {
    NRG_QUANT_NONE = 0,
    NRG_QUANT_Q8_0 = 1,
    NRG_QUANT_Q8_0_4X4 = 2, /* 4 rows, chunks of 4 */
    NRG_QUANT_Q8_0_4X8 = 3, /* 4 rows, chunks of 8 */
    NRG_QUANT_Q8_0_8X4 = 4,
    NRG_QUANT_Q8_0_8X8 = 5,
    NRG_QUANT_Q8_K = 6,
    NRG_QUANT_Q8_K_4X4 = 7,
    NRG_QUANT_Q8_K_4X8 = 8,
    NRG_QUANT_Q8_K_8X4 = 9,
    NRG_QUANT_Q8_K_8X8 = 10,
    NRG_QUANT_INT8 = 11,    /* a scale a row */
    NRG_QUANT_INT8_32 = 12, /* a scale for every 32 elements of a row, 64, 128 */
    NRG_QUANT_INT8_64 = 13,
    NRG_QUANT_INT8_128 = 14
} nrg_quant_format;

typedef enum nrg_quant_rounding {
    NRG_QUANT_ROUND_TO_EVEN = 0,
    NRG_QUANT_ROUND_AWAY = 1 /* ties go away from zero */
} nrg_quant_rounding;

/* Whether scales are a tensor of their own. */
static inline int nrg_quant_has_scales(nrg_quant_format format) { return format >= NRG_QUANT_INT8; }

/* Rows that lie together: 4 and 8 of the interleaved formats, or 1. */
static inline size_t nrg_quant_rows(nrg_quant_format format)
{
    const int of_five = format >= NRG_QUANT_Q8_K ? (int)format - NRG_QUANT_Q8_K : (int)format - NRG_QUANT_Q8_0;
    return nrg_quant_has_scales(format) || of_five <= 0 ? 1 : of_five <= 2 ? 4 : 8;
}

/* Elements of a block; 0 where that is a whole row. */
static inline size_t nrg_quant_block(nrg_quant_format format)
{
    if (nrg_quant_has_scales(format))
        return format == NRG_QUANT_INT8 ? 0 : (size_t)32 << (format - NRG_QUANT_INT8_32);
    return format >= NRG_QUANT_Q8_K ? 256 : 32;
}

/* Bytes that so many elements of a row take in q, a multiple of the block where that has its scale; of all rows that lie
 * together. dim·8 + dim/32·16 at most, which has to fit. */
static inline size_t nrg_quant_bytes(nrg_quant_format format, size_t dim)
{
    if (nrg_quant_has_scales(format))
        return dim;
    return nrg_quant_rows(format) * (format >= NRG_QUANT_Q8_K ? dim / 256 * 292 : dim / 32 * 34);
}

/* Scales of a row, where they are a tensor. */
static inline size_t nrg_quant_scales(nrg_quant_format format, size_t dim)
{
    const size_t block = nrg_quant_block(format);
    return !nrg_quant_has_scales(format) ? 0 : block ? dim / block + (dim % block != 0) : 1;
}

/* Where the data is, rows in up to four dimensions (nrg/base.h), each tensor with strides of its own, in bytes, where 0 stands
 * for dense. A row of q is R rows of x where R lie together: q_stride leads from R rows to the next R, and `rows` is a multiple
 * of R. Zero everything, set size (nrg_quantize_args_init does), then what there is. */
typedef struct nrg_quantize_args {
    size_t size; /* sizeof(nrg_quantize_args) */
    nrg_quant_format format;
    nrg_quant_rounding rounding;
    nrg_dtype dtype;   /* of x */
    uint32_t reserved; /* 0 */
    size_t dim;        /* elements of a row */
    size_t rows;       /* 0 is fine */
    size_t rows2;      /* planes of rows, and volumes of planes; 0 stands for 1 */
    size_t rows3;
    const void *x; /* [rows3, rows2, rows, dim] input */
    void *q;       /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes */
    float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t x_stride;
    size_t x_stride2;
    size_t x_stride3;
    size_t q_stride;
    size_t q_stride2;
    size_t q_stride3;
    size_t scales_stride;
    size_t scales_stride2;
    size_t scales_stride3;
} nrg_quantize_args;

static inline nrg_quantize_args nrg_quantize_args_init(nrg_quant_format format, nrg_dtype dtype, size_t rows, size_t dim,
                                                       const void *x, void *q, float *scales)
{
    nrg_quantize_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.format = format;
    args.dtype = dtype;
    args.rows = rows;
    args.dim = dim;
    args.x = x;
    args.q = q;
    args.scales = scales;
    return args;
}

/* q, and scales, of x. Outputs share no byte with an input or each other:
 *
 *                x     q
 *        q       no
 *        scales  no    no
 *
 * Share ith of nth: rows, or so many as lie together, in the order in which they lie. Returns NRG_OK, or says what is wrong and
 * writes nothing:
 *   NRG_ERR_ENUM         format, rounding or dtype unknown (NRG_QUANT_NONE and NRG_DTYPE_SAME included)
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, x, q, or scales of int8
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          dim is 0, or no multiple of the block of q8_0 or q8_K; rows no multiple of those that lie together
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    x, scales or one of their strides is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      an output overlaps another operand
 *   NRG_ERR_COMBINATION  scales beside a format that has them in its blocks */
NRG_API nrg_status nrg_quantize(const nrg_quantize_args *args, int ith, int nth);

/* What nrg_quantize would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_quantize_check(const nrg_quantize_args *args);

/* The way back. */
typedef struct nrg_dequantize_args {
    size_t size; /* sizeof(nrg_dequantize_args) */
    nrg_quant_format format;
    nrg_dtype dtype; /* of o */
    size_t dim;
    size_t rows;
    size_t rows2;
    size_t rows3;
    const void *q;       /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] input: bytes */
    const float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] input of int8; else NULL */
    void *o;             /* [rows3, rows2, rows, dim] output */
    size_t q_stride;
    size_t q_stride2;
    size_t q_stride3;
    size_t scales_stride;
    size_t scales_stride2;
    size_t scales_stride3;
    size_t o_stride;
    size_t o_stride2;
    size_t o_stride3;
} nrg_dequantize_args;

static inline nrg_dequantize_args nrg_dequantize_args_init(nrg_quant_format format, nrg_dtype dtype, size_t rows, size_t dim,
                                                           const void *q, const float *scales, void *o)
{
    nrg_dequantize_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.format = format;
    args.dtype = dtype;
    args.rows = rows;
    args.dim = dim;
    args.q = q;
    args.scales = scales;
    args.o = o;
    return args;
}

/* o = d·q, rounded to f32, and then to a dtype of 16 bits. Bytes may be any; sums of q8_K are not looked at. o shares no byte
 * with an input:
 *
 *                q     scales
 *        o       no    no
 *
 * Share ith of nth: as in nrg_quantize. Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         format or dtype unknown (NRG_QUANT_NONE and NRG_DTYPE_SAME included)
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, q, o, or scales of int8
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          as in nrg_quantize
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    o, scales or one of their strides is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      o overlaps an input
 *   NRG_ERR_COMBINATION  scales beside a format that has them in its blocks */
NRG_API nrg_status nrg_dequantize(const nrg_dequantize_args *args, int ith, int nth);

/* What nrg_dequantize would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_dequantize_check(const nrg_dequantize_args *args);

#ifdef __cplusplus
}
#endif
#endif
