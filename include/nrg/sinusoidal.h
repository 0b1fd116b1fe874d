/* nrg/sinusoidal.h: the sinusoidal table of positions.
 *
 *     p[k, 2i]     = sin(k · base^(-2i/dim))        Vaswani et al., arXiv:1706.03762, with base = 10000
 *     p[k, 2i + 1] = cos(k · base^(-2i/dim))
 *
 * Programs differ in the order of a row, and in what power of the base the last pair has. Those in use have names:
 *
 *     nrg_sinusoidal_spec_vaswani         sin, cos, sin, cos, …       base^(-i / (dim/2))
 *     nrg_sinusoidal_spec_tensor2tensor   all sines, all cosines      base^(-i / (dim/2 - 1))
 *     nrg_sinusoidal_spec_split           all sines, all cosines      base^(-i / (dim/2))
 *     nrg_sinusoidal_spec_musicgen        all cosines, all sines      base^(-i / (dim/2 - 1))
 *
 * To add it to x, gather rows of it: nrg_embed_forward in nrg/embed.h, also fused with a norm.
 *
 * Every entry is within 0.501 ulp of f32 for every position an int32_t holds, and the same on every path; 16-bit entries are that
 * rounded again.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SINUSOIDAL_H
#define NRG_SINUSOIDAL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_sinusoidal_layout {
    NRG_SINUSOIDAL_INTERLEAVED = 0,  /* sin, cos, sin, cos: the paper. With an odd dim the last entry is a sine */
    NRG_SINUSOIDAL_CONCATENATED = 1, /* dim/2 sines, then dim/2 cosines */
    NRG_SINUSOIDAL_COSINES_FIRST = 2 /* dim/2 cosines, then dim/2 sines */
} nrg_sinusoidal_layout;

/* The angle of pair i at position k is k · base^(-e). */
typedef enum nrg_sinusoidal_spread {
    NRG_SINUSOIDAL_BELOW_BASE = 0, /* e = 2i/dim: the paper. It never reaches 1 */
    NRG_SINUSOIDAL_TO_BASE = 1     /* e = i/(dim/2 - 1), from 0 to 1; 0 with dim 2 */
} nrg_sinusoidal_spread;

/* Which table; make one with a constructor below. */
typedef struct nrg_sinusoidal_spec {
    size_t size; /* sizeof(nrg_sinusoidal_spec) */
    size_t dim;  /* elements of a row */
    double base; /* Default: 10000. */
    nrg_sinusoidal_spread spread;
    nrg_sinusoidal_layout layout;
} nrg_sinusoidal_spec;

/* The paper's, section 3.5; and that of BERT's relatives that have sinusoids (XLM). */
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

/* tensor2tensor's, the authors' own code: get_timing_signal_1d of layers/common_attention.py, with its min_timescale of 1 and
 * base its max_timescale. MarianNMT has it (sinusoidalPositionEmbeddings of src/graph/node_initializers.cpp), fairseq
 * (modules/sinusoidal_positional_embedding.py, where the first token is at position padding_idx + 1, mostly 2) with the models
 * that come from it, and Whisper's encoder (sinusoids of whisper/model.py). dim is even: the first two append a 0 to an odd one.
 */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_tensor2tensor(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(dim);
    spec.spread = NRG_SINUSOIDAL_TO_BASE;
    spec.layout = NRG_SINUSOIDAL_CONCATENATED;
    return spec;
}

/* The paper's frequencies, halves apart: Transformer-XL (PositionalEmbedding of pytorch/mem_transformer.py), and Hugging Face's
 * Marian (MarianSinusoidalPositionalEmbedding), whose tables are thus not those of MarianNMT. */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_split(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(dim);
    spec.layout = NRG_SINUSOIDAL_CONCATENATED;
    return spec;
}

/* tensor2tensor's with the halves exchanged: MusicGen (Hugging Face's MusicgenSinusoidalPositionalEmbedding). */
static inline nrg_sinusoidal_spec nrg_sinusoidal_spec_musicgen(size_t dim)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_tensor2tensor(dim);
    spec.layout = NRG_SINUSOIDAL_COSINES_FIRST;
    return spec;
}

/* frequencies [2][⌈dim/2⌉]: the turns of each pair from one position to the next, as nrg_rope_frequencies (nrg/rope.h) makes
 * them, to some 90 bits.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec or frequencies
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          dim is 0 or beyond 2^31, or odd with another layout or spread than the paper's
 *   NRG_ERR_ENUM         spread or layout unknown
 *   NRG_ERR_CONSTANT     base is not between 2^-400 and 2^400, or a pair turns more than 2^18 times from one position to the next
 *   NRG_ERR_ALIGNMENT    frequencies is no multiple of 8
 *   NRG_ERR_OVERFLOW     frequencies would wrap around the end of memory */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_frequencies(const nrg_sinusoidal_spec *spec, double *frequencies);

typedef struct nrg_sinusoidal_args {
    size_t size;               /* sizeof(nrg_sinusoidal_args) */
    size_t rows;               /* positions; 0 is fine */
    nrg_dtype dtype;           /* of the table */
    int32_t first_position;    /* without positions */
    const double *frequencies; /* [2, ⌈dim/2⌉], of nrg_sinusoidal_frequencies */
    const int32_t *positions;  /* [rows]; NULL: row k is position first_position + k */
    void *table;               /* [rows, dim] output */
    size_t table_stride;       /* bytes; 0: dense */
} nrg_sinusoidal_args;

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

/* Computes the rows of share ith of nth. Of the spec it reads only dim and layout.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec or args; with rows, frequencies or table
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          dim is 0, or odd with another layout than NRG_SINUSOIDAL_INTERLEAVED
 *   NRG_ERR_ENUM         dtype or layout unknown
 *   NRG_ERR_POSITION     first_position + rows beyond what an int32_t holds
 *   NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h: the table shares no
 *                        byte with anything */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_table(const nrg_sinusoidal_spec *spec, const nrg_sinusoidal_args *args, int ith,
                                                      int nth);

/* Validates the arguments of nrg_sinusoidal_table. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_sinusoidal_table_check(const nrg_sinusoidal_spec *spec, const nrg_sinusoidal_args *args);

#ifdef __cplusplus
}
#endif
#endif
