/* nrg/quantize.h: quantizes rows of f32, f16 or bf16 to bytes with scales, and dequantizes them. Integer matrix
 * multiplications read such activations.
 *
 * A row consists of blocks. Each block has a scale d, and x ≈ d·q with q from -127 to 127. The formats and their bytes:
 * - q8_0: blocks of 32. d in f16, then 32 q: 34 bytes, the layout of ggml's block_q8_0 (ggml-common.h).
 * - q8_K: blocks of 256. d in f32, 256 q, then 16 sums of 16 q each in int16: 292 bytes, the layout of ggml's block_q8_K.
 * - q8_0_RxC, q8_K_RxC: the same blocks, with R rows interleaved (R is 4 or 8) in chunks of C elements (C is 4 or 8). Repacked
 *   matrix multiplications read them: ggml's block_q8_0x4 and block_q8_Kx4 (ggml-cpu/repack.h, repack.cpp). ggml's functions
 *   ggml_quantize_mat_q8_0_4x4, _4x8, q8_K_4x4 and _4x8 write them. Formats of 8 rows follow the same rule.
 * - int8 of rows, or of groups of 32, 64 or 128 elements: only q in one tensor, d in f32 in another one; symmetric.
 *
 * Interleaved, block k of R rows has R scales, one for each row; then R·32 (R·256) q; and with q8_K R·16 sums.
 *
 *     element i of row r        is q   number (i / C)·C·R + r·C + i % C
 *     sum s (elements 16·s …)   is sum number (s / 4)·4·R + r·4 + s % 4
 *
 * The last block of a row of int8 may be shorter. Rows of q8_0 are multiples of 32 elements, rows of q8_K of 256. Numbers of
 * several bytes are little-endian, as on every machine that nrg's SIMD paths support. They need no alignment.
 *
 * The call computes this in f32, where amax is the largest magnitude of a block:
 *
 *     q8_0, int8    d = amax / 127      q = round(x·(1 / d))      each of /, /, · rounded; q8_0 then stores d in f16
 *     q8_K          e = -127 / x[m]     q = round(x·e)            d = 1 / e; x[m] is the first element of magnitude amax
 *
 * round is to nearest, ties to even, on every path. NRG_QUANT_ROUND_AWAY rounds ties away from zero.
 *
 * Source: ggml-cpu. The bytes are bit-identical to those of its functions:
 *
 *     q8_0, q8_0_4xC    NRG_QUANT_ROUND_TO_EVEN: NEON code      NRG_QUANT_ROUND_AWAY: reference and generic code (roundf)
 *     q8_K, q8_K_4xC    NRG_QUANT_ROUND_TO_EVEN: reference and generic code, which x86 and NEON use (nearest_int)
 *
 * ggml's AVX code computes q8_0 differently. It multiplies by 127 / amax, which is one rounding instead of two. Next to a tie
 * its byte may differ. The 58 of {116, 58, 0, ...} becomes 63 there, and 64 here and in ggml's reference. For ggml's
 * functions, and the differences of its AVX2 code for q8_K_4x8, see docs/ops/quantize.md.
 *
 * Error bound: |x - d·q| is at most d/2·(1 + 2^-15), for finite x. For q8_0, the rounding of d to f16 adds 127·|d - f16(d)|.
 * That is at most 2^-11·amax where d is at least 2^-14 (amax at least 0.00776).
 *
 * Special blocks:
 * - A block of zeros: d = 0, q = 0, sums 0.
 * - A NaN or an infinity in a block: d = NaN (0x7e00, 0x7fc00000), q = 0, sums 0. Dequantized, the full block is NaN, which
 *   makes the error visible; a clipped number would hide it. Other blocks are not affected.
 * - 1 / d or e overflows (amax below about 2^-121): d = 0, q = 0, sums 0, as for zeros. C does not define ggml's bytes there.
 * - d is below the range of f16 (q8_0, amax below 3.8e-6): d is rounded as usual, to a subnormal or to 0. The q belong to the
 *   f32 d. These are ggml's bytes. Dequantized they are 0 if d is 0.
 * - d is above the range of f16 (q8_0, amax above 8.3e6): d = infinity, and q belong to the f32 d. These are ggml's bytes.
 *
 * For calls from an engine, see docs/ops/quantize.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_QUANTIZE_H
#define NRG_QUANTIZE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats: those above, by name. */
typedef enum nrg_quant_format {
    NRG_QUANT_NONE = 0,
    NRG_QUANT_Q8_0 = 1,
    NRG_QUANT_Q8_0_4X4 = 2, /* 4 rows, chunks of 4 */
    NRG_QUANT_Q8_0_4X8 = 3, /* 4 rows, chunks of 8 */
    NRG_QUANT_Q8_0_8X4 = 4, /* 8 rows, chunks of 4 */
    NRG_QUANT_Q8_0_8X8 = 5, /* 8 rows, chunks of 8 */
    NRG_QUANT_Q8_K = 6,
    NRG_QUANT_Q8_K_4X4 = 7,
    NRG_QUANT_Q8_K_4X8 = 8,
    NRG_QUANT_Q8_K_8X4 = 9,
    NRG_QUANT_Q8_K_8X8 = 10,
    NRG_QUANT_INT8 = 11,    /* one scale per row */
    NRG_QUANT_INT8_32 = 12, /* one scale per 32 elements of a row */
    NRG_QUANT_INT8_64 = 13, /* one scale per 64 elements of a row */
    NRG_QUANT_INT8_128 = 14 /* one scale per 128 elements of a row */
} nrg_quant_format;

/* Direction in which ties are rounded. */
typedef enum nrg_quant_rounding {
    NRG_QUANT_ROUND_TO_EVEN = 0,
    NRG_QUANT_ROUND_AWAY = 1 /* away from zero */
} nrg_quant_rounding;

/* Returns the name of a format: "none", "q8_0", "q8_0_4x4", ..., "int8_128". Returns NULL for other values, so a loop from 0
 * ends there.
 *
 * Parameters:
 * - format: any value. */
NRG_API const char *nrg_quant_format_name(nrg_quant_format format);

/* The functions below return 0 for NRG_QUANT_NONE and for unknown values of format. */

/* Returns 1 if scales are a separate tensor, as with int8 formats, else 0.
 *
 * Parameters:
 * - format: the format. */
NRG_API int nrg_quant_has_scales(nrg_quant_format format);

/* Returns R, the number of rows that are packed together: 4 or 8 for interleaved formats, else 1.
 *
 * Parameters:
 * - format: the format. */
NRG_API size_t nrg_quant_rows(nrg_quant_format format);

/* Returns the number of elements of a block. Returns 0 for NRG_QUANT_INT8, whose block is a full row.
 *
 * Parameters:
 * - format: the format. */
NRG_API size_t nrg_quant_block(nrg_quant_format format);

/* Returns the bytes of packed for the R rows that are packed together.
 *
 * Parameters:
 * - format: the format.
 * - dim: elements of a row; a multiple of the block if the block stores its scale. The result is at most 16 · dim, which must
 *   fit a size_t. */
NRG_API size_t nrg_quant_bytes(nrg_quant_format format, size_t dim);

/* Returns the number of scales of a row if scales are a separate tensor, else 0.
 *
 * Parameters:
 * - format: the format.
 * - dim: elements of a row. */
NRG_API size_t nrg_quant_scales(nrg_quant_format format, size_t dim);

/* Returns the bytes of a dense packed tensor [rows, dim], without the scales of int8 formats. Returns 0 if the bytes do not
 * fit a size_t.
 *
 * Parameters:
 * - format: the format.
 * - rows: number of rows. The function returns 0 if it is no multiple of R.
 * - dim: elements of a row. The function returns 0 if blocks store their scales, and dim is no multiple of the block. */
NRG_API size_t nrg_quant_size(nrg_quant_format format, size_t rows, size_t dim);

/* Points to the data: rows in up to four dimensions (nrg/base.h). A row of packed is R rows of x: packed_stride[0] steps over R
 * rows, and `rows` is a multiple of R. Make one with nrg_quantize_args_init, then change fields. */
typedef struct nrg_quantize_args {
    size_t size;             /* sizeof(nrg_quantize_args) */
    size_t rows;             /* rows of a plane, a multiple of R. If this or one of the next two is 0, the call only validates */
    size_t rows2;            /* planes of a volume. Default: 1. */
    size_t rows3;            /* volumes. Default: 1. */
    size_t dim;              /* elements of a row, at least 1 */
    nrg_dtype dtype;         /* of x */
    nrg_quant_format format; /* of packed */
    const void *x;           /* [rows3, rows2, rows, dim] input */
    size_t x_stride[3];
    nrg_quant_rounding rounding; /* of ties */
    uint32_t reserved;           /* 0 */
    void *packed;                /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes */
    size_t packed_stride[3];
    float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8 formats; else NULL */
    size_t scales_stride[3];
} nrg_quantize_args;

/* Returns args for a dense matrix of rows, with ties to even.
 *
 * Parameters:
 * - format, dtype, rows, dim, x, packed, scales: the fields of the same names. */
static inline nrg_quantize_args nrg_quantize_args_init(nrg_quant_format format, nrg_dtype dtype, size_t rows, size_t dim,
                                                       const void *x, void *packed, float *scales)
{
    nrg_quantize_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.dim = dim;
    args.dtype = dtype;
    args.format = format;
    args.x = x;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.rounding = NRG_QUANT_ROUND_TO_EVEN;
    args.reserved = 0;
    args.packed = packed;
    args.packed_stride[0] = args.packed_stride[1] = args.packed_stride[2] = 0;
    args.scales = scales;
    args.scales_stride[0] = args.scales_stride[1] = args.scales_stride[2] = 0;
    return args;
}

/* Quantizes x to packed and scales.
 *
 * Parameters:
 * - args: the data. Required are x and packed, and scales with int8 formats.
 * - ith, nth: the share, a range of rows. A share never splits rows that are packed together.
 *
 * Aliasing: an output shares no byte with another operand.
 *
 *                x     packed
 *        packed  no
 *        scales  no    no
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_ENUM: format, rounding or dtype has an unknown value, or is NRG_QUANT_NONE or NRG_DTYPE_SAME.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_NULL: args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, a field of a later version is not 0 (nrg/base.h), or reserved is not 0.
 * - NRG_ERR_DIM: dim is 0, or no multiple of the block of q8_0 or q8_K; or rows is no multiple of R.
 * - NRG_ERR_STRIDE: a stride is shorter than a row, or than the data inside its level.
 * - NRG_ERR_ALIGNMENT: x, scales or one of their strides is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: an output overlaps another operand.
 * - NRG_ERR_COMBINATION: scales is set, and blocks of the format store their scales. */
NRG_NODISCARD NRG_API nrg_status nrg_quantize(const nrg_quantize_args *args, int ith, int nth);

/* Validates the arguments of nrg_quantize. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_quantize_check(const nrg_quantize_args *args);

/* Points to the data of nrg_dequantize. Strides are those of nrg_quantize_args. */
typedef struct nrg_dequantize_args {
    size_t size;             /* sizeof(nrg_dequantize_args) */
    size_t rows;             /* rows of a plane, a multiple of R. If this or one of the next two is 0, the call only validates */
    size_t rows2;            /* planes of a volume. Default: 1. */
    size_t rows3;            /* volumes. Default: 1. */
    size_t dim;              /* elements of a row, at least 1 */
    nrg_dtype dtype;         /* of o */
    nrg_quant_format format; /* of packed */
    const void *packed;      /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] input: bytes */
    size_t packed_stride[3];
    const float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] input of int8 formats; else NULL */
    size_t scales_stride[3];
    void *o; /* [rows3, rows2, rows, dim] output */
    size_t o_stride[3];
} nrg_dequantize_args;

/* Returns args for a dense matrix of rows.
 *
 * Parameters:
 * - format, dtype, rows, dim, packed, scales, o: the fields of the same names. */
static inline nrg_dequantize_args nrg_dequantize_args_init(nrg_quant_format format, nrg_dtype dtype, size_t rows, size_t dim,
                                                           const void *packed, const float *scales, void *o)
{
    nrg_dequantize_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.dim = dim;
    args.dtype = dtype;
    args.format = format;
    args.packed = packed;
    args.packed_stride[0] = args.packed_stride[1] = args.packed_stride[2] = 0;
    args.scales = scales;
    args.scales_stride[0] = args.scales_stride[1] = args.scales_stride[2] = 0;
    args.o = o;
    args.o_stride[0] = args.o_stride[1] = args.o_stride[2] = 0;
    return args;
}

/* Computes o = d·q, rounded to f32, and then to a 16-bit dtype.
 *
 * Parameters:
 * - args: the data. Required are packed and o, and scales with int8 formats. Packed may hold any bytes. The call ignores the
 *   sums of q8_K.
 * - ith, nth: the share, as in nrg_quantize.
 *
 * Aliasing: o shares no byte with an input.
 *
 *                packed scales
 *        o       no     no
 *
 * Returns the statuses of nrg_quantize. On error, writes nothing. Differences:
 * - NRG_ERR_ENUM: format or dtype has an unknown value, or is NRG_QUANT_NONE or NRG_DTYPE_SAME.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0.
 * - NRG_ERR_ALIGNMENT: o, scales or one of their strides is no multiple of the element size.
 * - NRG_ERR_OVERLAP: o overlaps an input. */
NRG_NODISCARD NRG_API nrg_status nrg_dequantize(const nrg_dequantize_args *args, int ith, int nth);

/* Validates the arguments of nrg_dequantize. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_dequantize_check(const nrg_dequantize_args *args);

#ifdef __cplusplus
}
#endif
#endif
