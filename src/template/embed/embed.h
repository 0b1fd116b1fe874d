/* The embedding layer, forward: rows picked from tables, added up. embed_backward.h has the gradients.
 *
 * The terms are a loop within a step of vectors: with their number a constant, the code of this file took three times as much,
 * for 1.2 × to 1.4 × in L1 and nothing out of it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_EMBED_EMBED_H
#define NRG_TEMPLATE_EMBED_EMBED_H

#include "../../job/embed.h"
#include "../step.h"

/* A token's terms, by value: stores to o could alias the job. */
typedef struct embed_row {
    const char *from[NRG_EMBED_TERMS];
    float scale[NRG_EMBED_TERMS];
    int f32[NRG_EMBED_TERMS];
    int terms, scaled, stream;
    const char *prefetch; /* what a later token picks from a table that is not in cache; NULL: nothing */
    int prefetch_f32;
} embed_row;

/* at: the token's place in the term's period. */
NRG_INLINE const char *embed_pick(const nrg_embed_term *term, size_t at)
{
    return term->from + (term->ids ? (size_t)term->ids[at] : at) * term->stride;
}

/* What a later token picks, whose place in its term's period follows from this one's: the hardware sees a row coming only when a
 * part of it has been read. Worth 1.4 × (AVX-512) and 2 × (AVX2) for tokens of 768 f32 from a table of 94 MB. */
NRG_INLINE const char *embed_prefetch_row(const nrg_embed_job *job, size_t token, const size_t *at)
{
    if (job->far < 0 || job->prefetch >= job->prefetch_end - token)
        return NULL;
    const nrg_embed_term *term = &job->term[job->far];
    const size_t later = at[job->far] + job->prefetch;
    return embed_pick(term, later < term->period ? later : later % term->period);
}

NRG_INLINE void embed_prefetch(const char *p, size_t bytes)
{
    NRG_UNROLL
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch(p + b);
}

NRG_INLINE void embed_step(int G, const embed_row *row, char *o, size_t i, size_t n, int stream, nrg_dtype D)
{
    vf sum[V_APPLY], v[V_APPLY];
    const vf nothing = v_set1(-0.0f); /* which changes no number that it is added to, not even a zero */
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        sum[j] = nothing;
    if (!is_part(G, n) && row->prefetch) {
        embed_prefetch(row->prefetch + bytes_of(i, D, row->prefetch_f32), bytes_of((size_t)G * VN, D, 0));
        if (D != NRG_F32 && row->prefetch_f32)
            embed_prefetch(row->prefetch + bytes_of(i + (size_t)G * VN / 2, D, 1), bytes_of((size_t)G * VN, D, 0));
    }
    for (int k = 0; k < row->terms; k++) {
        load_step_or_f32(v, G, row->from[k], i, n, D, row->f32[k]);
        if (row->scaled) {
            const vf scale = v_set1(row->scale[k]);
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                v[j] = v_mul(v[j], scale);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            sum[j] = v_add(sum[j], v[j]);
    }
    store_step(sum, G, o, i, n, D, stream);
}

NRG_INLINE void embed_sum_of(const embed_row *row, char *o, size_t dim, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, lines = row->stream == STREAM_LINES ? before_line(o, dim, D) : 0;
    const int rest = row->stream == STREAM_ROWS;
    size_t i = 0;
    for (; i < lines; i += lanes_at(i, lines))
        embed_step(1, row, o, i, lanes_at(i, lines), 0, D);
    for (; i + step <= dim; i += step)
        embed_step(V_APPLY, row, o, i, step, row->stream, D);
    for (; i + VN <= dim; i += VN)
        embed_step(1, row, o, i, VN, rest, D);
    if (i < dim)
        embed_step(1, row, o, i, dim - i, rest, D);
}

/* n elements as they are; D: NRG_F32, or any of 16 bits. */
NRG_INLINE void embed_copy_step(int G, const char *from, char *to, size_t i, size_t n, int stream, nrg_dtype D)
{
    vf v[V_APPLY];
    vh h[V_APPLY];
    if (D == NRG_F32) {
        load_step(v, G, from, i, n, D);
        store_f32_step(v, G, (float *)(void *)to + i, n, stream);
        return;
    }
    const uint16_t *p = (const uint16_t *)(const void *)from + i;
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        h[j] = is_part(G, n) ? v_ldn_half(p, n) : v_ld_half(p + j * VN);
    store_half_step(h, G, (uint16_t *)(void *)to + i, n, stream);
}

NRG_INLINE void embed_copy_row(const char *from, char *to, size_t n, const char *prefetch, int stream, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, lines = stream == STREAM_LINES ? before_line(to, n, D) : 0;
    size_t i = 0;
    for (; i < lines; i += lanes_at(i, lines))
        embed_copy_step(1, from, to, i, lanes_at(i, lines), 0, D);
    for (; i + step <= n; i += step) {
        if (prefetch)
            embed_prefetch(prefetch + bytes_of(i, D, 0), bytes_of(step, D, 0));
        embed_copy_step(V_APPLY, from, to, i, step, stream, D);
    }
    for (; i + VN <= n; i += VN) {
        if (prefetch)
            embed_prefetch(prefetch + bytes_of(i, D, 0), bytes_of(VN, D, 0));
        embed_copy_step(1, from, to, i, VN, stream == STREAM_ROWS, D);
    }
    if (i < n)
        embed_copy_step(1, from, to, i, n - i, stream == STREAM_ROWS, D);
}

/* ---- rows of any dtype by functions of their own, so that the walks over rows and tables are there once and not three times
 * ---- */

NRG_BY_DTYPE(embed_sum, (row, o, dim), const embed_row *row, char *o, size_t dim)

static __attribute__((noinline)) void embed_copy_f32(const char *from, char *to, size_t n, const char *prefetch, int stream)
{
    embed_copy_row(from, to, n, prefetch, stream, NRG_F32);
}

static __attribute__((noinline)) void embed_copy_half(const char *from, char *to, size_t n, const char *prefetch, int stream)
{
    embed_copy_row(from, to, n, prefetch, stream, NRG_F16);
}

NRG_INLINE void embed_copy(const char *from, char *to, size_t n, const char *prefetch, int stream, nrg_dtype dtype)
{
    if (dtype == NRG_F32)
        embed_copy_f32(from, to, n, prefetch, stream);
    else
        embed_copy_half(from, to, n, prefetch, stream);
}

static __attribute__((noinline)) void embed_forward(const nrg_embed_job *job, nrg_dtype dtype)
{
    const size_t dim = job->dim;
    const size_t bytes = bytes_of(dim, dtype, 0);
    /* short rows that share lines gain nothing by streaming: 60000x40 bf16 takes 0.56 of the time without, AVX-512 */
    const int streams = job->stream && (bytes % 64 == 0 || bytes >= STREAM_PART / 2);
    const int terms = job->terms, stream = streams ? rows_stream(job->o, job->o_stride, bytes, 1) : 0;
    embed_row row = {.terms = terms, .scaled = job->scaled, .stream = stream};
    size_t at[NRG_EMBED_TERMS]; /* counted, as a division a token would cost a short row its time */
    for (int k = 0; k < terms; k++) {
        at[k] = job->row_begin % job->term[k].period;
        row.scale[k] = job->term[k].scale;
        row.f32[k] = job->term[k].f32;
    }
    row.prefetch_f32 = job->far >= 0 && row.f32[job->far];
    for (size_t token = job->row_begin, end = job->row_end; token < end; token++) {
        char *o = job->o + token * job->o_stride;
        row.prefetch = embed_prefetch_row(job, token, at);
        for (int k = 0; k < terms; k++) {
            row.from[k] = embed_pick(&job->term[k], at[k]);
            at[k] = at[k] + 1 == job->term[k].period ? 0 : at[k] + 1;
        }
        if (job->is_copy)
            embed_copy(row.from[0], o, dim, row.prefetch, stream, dtype);
        else
            embed_sum(&row, o, dim, dtype);
    }
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(embed, embed, embed_forward)

#endif
