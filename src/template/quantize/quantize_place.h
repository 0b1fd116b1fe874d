/* Where blocks, scales and bytes of a row lie among those of the rows that lie together with it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_QUANTIZE_PLACE_H
#define NRG_TEMPLATE_QUANTIZE_PLACE_H

#include "../../job/quantize.h"
#include "../vec.h"

typedef struct quant_place {
    char *q;       /* of the group of rows */
    float *scales; /* NULL where blocks have theirs */
    size_t block;  /* elements; 0: the row */
    size_t bytes;  /* from block to block, of all rows together */
    size_t rows;   /* together */
    size_t row;    /* of them */
    size_t chunk;  /* elements of a row that lie together */
    size_t scale;  /* bytes of a scale in front of a block */
    int has_sums, away, far;
} quant_place;

NRG_INLINE quant_place quant_place_of(const nrg_quant_row *to)
{
    const nrg_quant_format f = to->format;
    const int is_k = f >= NRG_QUANT_Q8_K && f <= NRG_QUANT_Q8_K_8X8;
    const unsigned number = is_k ? f - NRG_QUANT_Q8_K : f - NRG_QUANT_Q8_0;
    quant_place p = {
        .q = to->q, .scales = to->scales, .row = to->row, .away = to->rounding == NRG_QUANT_ROUND_AWAY, .far = to->far};
    p.block = nrg_format_block(f);
    p.rows = nrg_format_rows(f);
    p.bytes = nrg_format_bytes(f, p.block);
    p.chunk = number % 2 ? 4 : 8;
    p.has_sums = is_k;
    p.scale = to->scales ? 0 : is_k ? 4 : 2;
    return p;
}

NRG_INLINE char *place_scale(const quant_place *p, size_t number) { return p->q + number * p->bytes + p->row * p->scale; }

/* A block's bytes, the row's among them. */
NRG_INLINE char *place_block(const quant_place *p, size_t number) { return p->q + number * p->bytes + p->rows * p->scale; }

NRG_INLINE char *place_sum(const quant_place *p, size_t number, size_t sum)
{
    return place_block(p, number) + p->rows * 256 + 2 * (sum / 4 * 4 * p->rows + p->row * 4 + sum % 4);
}

/* 32 bytes to and from chunks. */
NRG_INLINE void spread_chunks(const quant_place *p, char *to, const int8_t *q)
{
    if (p->chunk == 4)
        for (size_t c = 0; c < 32; c += 4)
            memcpy(to + c * p->rows + p->row * 4, q + c, 4);
    else
        for (size_t c = 0; c < 32; c += 8)
            memcpy(to + c * p->rows + p->row * 8, q + c, 8);
}

typedef int32_t four_chunks __attribute__((vector_size(16)));
typedef int64_t two_chunks __attribute__((vector_size(16)));

NRG_INLINE int32_t chunk_of_4(const char *from)
{
    int32_t chunk;
    memcpy(&chunk, from, sizeof chunk);
    return chunk;
}

NRG_INLINE int64_t chunk_of_8(const char *from)
{
    int64_t chunk;
    memcpy(&chunk, from, sizeof chunk);
    return chunk;
}

/* Stores of 16 bytes, as long as the longest load that follows: a load that spans several stores waits until they reach the
 * cache. */
NRG_INLINE void gather_chunks(const quant_place *p, int8_t *q, const char *from)
{
    const size_t step = p->rows * p->chunk;
    from += p->row * p->chunk;
    for (size_t i = 0; i < 32; i += 16, from += 16 * p->rows)
        if (p->chunk == 4) {
            const four_chunks c = {chunk_of_4(from), chunk_of_4(from + step), chunk_of_4(from + 2 * step),
                                   chunk_of_4(from + 3 * step)};
            memcpy(q + i, &c, sizeof c);
        } else {
            const two_chunks c = {chunk_of_8(from), chunk_of_8(from + step)};
            memcpy(q + i, &c, sizeof c);
        }
}

/* n of 32 elements, number i on of a block: fewer of int8 only. */
NRG_INLINE void place_bytes(const quant_place *p, char *to, size_t i, size_t n, const vf v[V_BYTES])
{
    int8_t part[32];
    if (p->rows == 1 && n == 32) {
        v_st_bytes((int8_t *)to + i, v);
        return;
    }
    v_st_bytes(part, v);
    if (p->rows == 1)
        memcpy(to + i, part, n);
    else
        spread_chunks(p, to + i * p->rows, part);
}

/* 256 bytes of q8_K, of rows that lie together. */
NRG_INLINE void place_all(const quant_place *p, char *to, const int8_t *q)
{
    for (size_t i = 0; i < 256; i += 32)
        spread_chunks(p, to + i * p->rows, q + i);
}

#endif
