/* nrg/sinusoidal.h: the sinusoidal table of positions.
 *
 *     p[k, 2i]     = sin(k · base^(-2i/dim))        Vaswani et al., arXiv:1706.03762, with base = 10000
 *     p[k, 2i + 1] = cos(k · base^(-2i/dim))
 *
 * Programs differ in the order of a row, and in the power of the base that the last pair has. Each variant in use has a
 * constructor:
 *
 *     nrg_sinusoidal_spec_vaswani         sin, cos, sin, cos, …       base^(-i / (dim/2))
 *     nrg_sinusoidal_spec_tensor2tensor   all sines, all cosines      base^(-i / (dim/2 - 1))
 *     nrg_sinusoidal_spec_split           all sines, all cosines      base^(-i / (dim/2))
 *     nrg_sinusoidal_spec_musicgen        all cosines, all sines      base^(-i / (dim/2 - 1))
 *
 * To add rows of the table to x, call nrg_embed_forward, or nrg_embed_norm_forward to fuse that with a norm (nrg/embed.h).
 *
 * Error bound of every entry: 0.501 ulp of f32, for every int32_t position. A 16-bit entry is the f32 entry rounded once more.
 * Entries are bit-identical on every path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SINUSOIDAL_H
#define NRG_SINUSOIDAL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order of the entries of a row. */
typedef enum nrg_sinusoidal_layout {
    NRG_SINUSOIDAL_INTERLEAVED = 0,  /* sin, cos, sin, cos: the paper. With an odd dim, the last entry is a sine */
    NRG_SINUSOIDAL_CONCATENATED = 1, /* dim/2 sines, then dim/2 cosines */
    NRG_SINUSOIDAL_COSINES_FIRST = 2 /* dim/2 cosines, then dim/2 sines */
} nrg_sinusoidal_layout;

/* The exponent e in the angle of pair i at position k, which is k · base^(-e). */
typedef enum nrg_sinusoidal_spread {
    NRG_SINUSOIDAL_BELOW_BASE = 0, /* e = 2i/dim: the paper. It never reaches 1 */
    NRG_SINUSOIDAL_TO_BASE = 1     /* e = i/(dim/2 - 1), from 0 to 1; 0 with dim 2 */
} nrg_sinusoidal_spread;

/* The variant of the table. Make one with a constructor below. */
typedef struct nrg_sinusoidal_spec {
    size_t size;                  /* sizeof(nrg_sinusoidal_spec) */
    size_t dim;                   /* elements of a row, at least 1; even, except in the paper's variant */
    double base;                  /* Default: 10000. */
    nrg_sinusoidal_spread spread; /* the angles of the pairs */
    nrg_sinusoidal_layout layout; /* the order of a row */
} nrg_sinusoidal_spec;

/* Returns the spec of the paper, section 3.5. It is also the table of XLM, the relative of BERT with sinusoids.
 *
 * Parameters:
 * - dim: the field of the same name. */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_vaswani(size_t dim)
{
    nrg_sinusoidal_spec spec;
    spec.size = sizeof spec;
    spec.dim = dim;
    spec.base = 10000;
    spec.spread = NRG_SINUSOIDAL_BELOW_BASE;
    spec.layout = NRG_SINUSOIDAL_INTERLEAVED;
    return spec;
}

/* Returns the spec of tensor2tensor, the code of the paper's authors; dim is even.
 *
 * Sources:
 * - get_timing_signal_1d of tensor2tensor (layers/common_attention.py), with a min_timescale of 1 and base as max_timescale.
 * - MarianNMT: sinusoidalPositionEmbeddings (src/graph/node_initializers.cpp).
 * - fairseq: modules/sinusoidal_positional_embedding.py, and models that come from it. The first token has position padding_idx +
 *   1, mostly 2.
 * - Whisper's encoder: sinusoids (whisper/model.py).
 *
 * For an odd dim, tensor2tensor and MarianNMT append a 0; nrg returns an error.
 *
 * Parameters:
 * - dim: the field of the same name. */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_tensor2tensor(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(dim);
    spec.spread = NRG_SINUSOIDAL_TO_BASE;
    spec.layout = NRG_SINUSOIDAL_CONCATENATED;
    return spec;
}

/* Returns the spec with the paper's frequencies, and separate halves.
 *
 * Sources:
 * - Transformer-XL: PositionalEmbedding (pytorch/mem_transformer.py).
 * - Hugging Face's Marian: MarianSinusoidalPositionalEmbedding, whose tables differ from those of MarianNMT.
 *
 * Parameters:
 * - dim: the field of the same name. */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_split(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(dim);
    spec.layout = NRG_SINUSOIDAL_CONCATENATED;
    return spec;
}

/* Returns the spec of tensor2tensor with the halves exchanged. Source: MusicGen (Hugging Face's
 * MusicgenSinusoidalPositionalEmbedding).
 *
 * Parameters:
 * - dim: the field of the same name. */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_musicgen(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_tensor2tensor(dim);
    spec.layout = NRG_SINUSOIDAL_COSINES_FIRST;
    return spec;
}

/* Computes the frequency of each pair, to some 90 bits, as nrg_rope_frequencies does (nrg/rope.h).
 *
 * Parameters:
 * - spec: the variant of the table.
 * - frequencies: [2][⌈dim/2⌉] output: the turns of each pair from one position to the next. Each is the sum of two doubles: all
 *   the higher parts come first, then all the lower parts.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or frequencies is NULL.
 * - NRG_ERR_STRUCT_SIZE: spec->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0 or above 2^31, or odd with a layout or spread other than the paper's.
 * - NRG_ERR_ENUM: spread or layout has an unknown value.
 * - NRG_ERR_CONSTANT: base is not between 2^-400 and 2^400, or a pair turns more than 2^18 times from one position to the next.
 * - NRG_ERR_ALIGNMENT: frequencies is no multiple of 8.
 * - NRG_ERR_OVERFLOW: frequencies passes the end of memory. */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_frequencies(const nrg_sinusoidal_spec *spec, double *frequencies);

/* Operands of nrg_sinusoidal_table. Make one with nrg_sinusoidal_args_init, then change fields. */
typedef struct nrg_sinusoidal_args {
    size_t size;               /* sizeof(nrg_sinusoidal_args) */
    size_t rows;               /* positions; may be 0 */
    nrg_dtype dtype;           /* of the table */
    int32_t first_position;    /* the position of row 0; 0 with positions */
    const double *frequencies; /* [2, ⌈dim/2⌉] input, as nrg_sinusoidal_frequencies computes it */
    const int32_t *positions;  /* [rows] input; NULL: row k has position first_position + k */
    void *table;               /* [rows, dim] output */
    size_t table_stride;       /* bytes from one row to the next; 0 is dense */
} nrg_sinusoidal_args;

/* Returns args for a dense table of the positions 0 to rows - 1.
 *
 * Parameters:
 * - dtype, rows, frequencies, table: the fields of the same names. */
static inline nrg_sinusoidal_args nrg_sinusoidal_args_init(nrg_dtype dtype, size_t rows, const double *frequencies, void *table)
{
    nrg_sinusoidal_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dtype = dtype;
    args.first_position = 0;
    args.frequencies = frequencies;
    args.positions = NULL;
    args.table = table;
    args.table_stride = 0;
    return args;
}

/* Computes the table: sines and cosines of every row's position.
 *
 * Parameters:
 * - spec: the call reads only dim and layout.
 * - args: operands, described at their fields. Unless rows is 0, frequencies and table must not be NULL.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: the table shares no byte with another operand.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL; or rows is not 0, and frequencies or table is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0, or odd with a layout other than NRG_SINUSOIDAL_INTERLEAVED.
 * - NRG_ERR_ENUM: dtype or layout has an unknown value.
 * - NRG_ERR_COMBINATION: positions are set, and first_position is not 0.
 * - NRG_ERR_POSITION: first_position + rows is beyond the range of an int32_t.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: table_stride is shorter than a row.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: the table shares a byte with another operand.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_table(const nrg_sinusoidal_spec *spec, const nrg_sinusoidal_args *args, int ith,
                                                      int nth);

/* Validates the arguments of nrg_sinusoidal_table. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_table_check(const nrg_sinusoidal_spec *spec, const nrg_sinusoidal_args *args);

#ifdef __cplusplus
}
#endif
#endif
