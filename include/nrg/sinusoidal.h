/* nrg/sinusoidal.h: the sinusoidal table of positions.
 *
 *     p[k, 2i]     = sin(k · base^(-2i/dim))        Vaswani et al., arXiv:1706.03762, with base = 10000
 *     p[k, 2i + 1] = cos(k · base^(-2i/dim))
 *
 * To add it to x, gather rows of it: nrg_embed_forward in nrg/embed.h, also fused with a norm.
 *
 * Every entry is within 0.501 ulp of f32 for every position an int32_t holds, and the same on every path; 16-bit entries are that
 * rounded again.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SINUSOIDAL_H
#define NRG_SINUSOIDAL_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_sinusoidal_layout {
    NRG_SINUSOIDAL_INTERLEAVED = 0, /* sin, cos, sin, cos: the paper. With an odd dim the last entry is a sine */
    NRG_SINUSOIDAL_CONCATENATED = 1 /* dim/2 sines, then dim/2 cosines */
} nrg_sinusoidal_layout;

/* frequencies [2][⌈dim/2⌉], as nrg_rope_frequencies (nrg/rope.h) makes them, from dim and base alone.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL       frequencies
 *   NRG_ERR_DIM        dim is 0 or beyond 2^31
 *   NRG_ERR_CONSTANT   base is not between 2^-400 and 2^400, or a pair turns more than 2^18 times from one position to the next
 *   NRG_ERR_ALIGNMENT  frequencies is no multiple of 8
 *   NRG_ERR_OVERFLOW   frequencies would wrap around the end of memory */
NRG_API nrg_status nrg_sinusoidal_frequencies(size_t dim, double base, double *frequencies);

typedef struct nrg_sinusoidal_args {
    size_t size; /* sizeof(nrg_sinusoidal_args) */
    size_t rows; /* positions; 0 is fine */
    size_t dim;  /* elements of a row */
    nrg_dtype dtype;
    nrg_sinusoidal_layout layout;
    const double *frequencies; /* of nrg_sinusoidal_frequencies */
    const int32_t *positions;  /* [rows]; NULL: row k is position first + k */
    int32_t first;
    uint32_t reserved;   /* 0 */
    void *table;         /* [rows, dim] output */
    size_t table_stride; /* bytes; 0: dense */
} nrg_sinusoidal_args;

static inline nrg_sinusoidal_args nrg_sinusoidal_args_init(size_t rows, size_t dim, const double *frequencies, void *table)
{
    nrg_sinusoidal_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = NRG_F32;
    args.frequencies = frequencies;
    args.table = table;
    return args;
}

/* Rows of share ith of nth.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args; with rows, frequencies or table
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          dim is 0, or odd with NRG_SINUSOIDAL_CONCATENATED
 *   NRG_ERR_ENUM         dtype or layout unknown
 *   NRG_ERR_POSITION     first + rows beyond what an int32_t holds
 *   NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h: the table shares no
 *                        byte with anything */
NRG_API nrg_status nrg_sinusoidal_table(const nrg_sinusoidal_args *args, int ith, int nth);

/* What nrg_sinusoidal_table would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_sinusoidal_table_check(const nrg_sinusoidal_args *args);

#ifdef __cplusplus
}
#endif
#endif
