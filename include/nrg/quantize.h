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
 * byte can be another one: the 58 of {116, 58, 0, ...} becomes 63 there, 64 here and in ggml's reference. docs/ops/quantize.md
 * has a table of ggml's functions, and where its AVX2 code for q8_K_4x8 differs.
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
 * docs/ops/quantize.md has how an engine calls it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_QUANTIZE_H
#define NRG_QUANTIZE_H

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

/* Returns "none", "q8_0", "q8_0_4x4", ..., "int8_128", or NULL for any other value: iterate from 0 until NULL. */
NRG_API const char *nrg_quant_format_name(nrg_quant_format format);

/* The functions below return 0 for NRG_QUANT_NONE and for values that are no format. */

/* Returns 1 if scales are a tensor beside the bytes, as those of int8 are. */
NRG_API int nrg_quant_has_scales(nrg_quant_format format);

/* Returns R, the number of rows that lie together: 4 or 8 of the interleaved formats, else 1. */
NRG_API size_t nrg_quant_rows(nrg_quant_format format);

/* Returns the number of elements of a block; of NRG_QUANT_INT8, whose block is a whole row, 0. */
NRG_API size_t nrg_quant_block(nrg_quant_format format);

/* Returns the bytes that dim elements take in packed, of all R rows that lie together. dim is a multiple of the block if
 * that has its scale. The result is at most 16 · dim, which has to fit. */
NRG_API size_t nrg_quant_bytes(nrg_quant_format format, size_t dim);

/* Returns the number of scales of a row, if they are a tensor; else 0. */
NRG_API size_t nrg_quant_scales(nrg_quant_format format, size_t dim);

/* Returns the bytes of a dense packed tensor [rows, dim], without the scales of int8. 0 also if dim is no multiple of a block
 * that has its scale, if rows is no multiple of R, or if the bytes do not fit. */
NRG_API size_t nrg_quant_size(nrg_quant_format format, size_t rows, size_t dim);

/* Where the data is: rows in up to four dimensions (nrg/base.h), with strides in bytes from row to row, from plane to plane and
 * from volume to volume; 0 is dense. A row of packed is R rows of x: packed_stride[0] leads from R rows to the next R, and
 * `rows` is a multiple of R. Make one with nrg_quantize_args_init, then change fields. */
typedef struct nrg_quantize_args {
    size_t size;             /* sizeof(nrg_quantize_args) */
    size_t rows;             /* rows of a plane; 0 of any of these three is none */
    size_t rows2;            /* planes of a volume. Default: 1. */
    size_t rows3;            /* volumes. Default: 1. */
    size_t dim;              /* elements of a row */
    nrg_dtype dtype;         /* of x */
    nrg_quant_format format; /* of packed */
    const void *x;           /* [rows3, rows2, rows, dim] input */
    size_t x_stride[3];
    nrg_quant_rounding rounding; /* of ties */
    uint32_t reserved;           /* 0 */
    void *packed;                /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes */
    size_t packed_stride[3];
    float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t scales_stride[3];
} nrg_quantize_args;

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

/* Quantizes x to packed and scales. Outputs share no byte with an input or each other:
 *
 *                x     packed
 *        packed  no
 *        scales  no    no
 *
 * Share ith of nth: rows, or so many as lie together, in the order in which they lie. Returns NRG_OK, or says what is wrong and
 * writes nothing:
 *   NRG_ERR_ENUM         format, rounding or dtype unknown (NRG_QUANT_NONE and NRG_DTYPE_SAME included)
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, x, packed, or scales of int8
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward; reserved is not 0
 *   NRG_ERR_DIM          dim is 0, or no multiple of the block of q8_0 or q8_K; rows no multiple of those that lie together
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    x, scales or one of their strides is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      an output overlaps another operand
 *   NRG_ERR_COMBINATION  scales beside a format that has them in its blocks */
NRG_NODISCARD NRG_API nrg_status nrg_quantize(const nrg_quantize_args *args, int ith, int nth);

/* Validates the arguments of nrg_quantize. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_quantize_check(const nrg_quantize_args *args);

/* The way back, with the fields of nrg_quantize_args. */
typedef struct nrg_dequantize_args {
    size_t size; /* sizeof(nrg_dequantize_args) */
    size_t rows;
    size_t rows2; /* Default: 1. */
    size_t rows3; /* Default: 1. */
    size_t dim;
    nrg_dtype dtype;         /* of o */
    nrg_quant_format format; /* of packed */
    const void *packed;      /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] input: bytes */
    size_t packed_stride[3];
    const float *scales; /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] input of int8; else NULL */
    size_t scales_stride[3];
    void *o; /* [rows3, rows2, rows, dim] output */
    size_t o_stride[3];
} nrg_dequantize_args;

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

/* o = d·q, rounded to f32, and then to a dtype of 16 bits. Bytes may be any; sums of q8_K are not looked at. o shares no byte
 * with an input:
 *
 *                packed scales
 *        o       no     no
 *
 * Share ith of nth: as in nrg_quantize. Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         format or dtype unknown (NRG_QUANT_NONE and NRG_DTYPE_SAME included)
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args; with something to do, packed, o, or scales of int8
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          as in nrg_quantize
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    o, scales or one of their strides is no multiple of the element size
 *   NRG_ERR_OVERFLOW     a tensor does not fit between its pointer and the end of memory
 *   NRG_ERR_OVERLAP      o overlaps an input
 *   NRG_ERR_COMBINATION  scales beside a format that has them in its blocks */
NRG_NODISCARD NRG_API nrg_status nrg_dequantize(const nrg_dequantize_args *args, int ith, int nth);

/* Validates the arguments of nrg_dequantize. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_dequantize_check(const nrg_dequantize_args *args);

#ifdef __cplusplus
}
#endif
#endif
