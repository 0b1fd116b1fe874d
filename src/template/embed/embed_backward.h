/* The gradient of a table: rows of d_o added up by the ids of their tokens.
 *
 * A row's columns are taken in pieces, and its tokens in batches, so that a batch's rows of d_o are read side by side from left
 * to right, as memory likes it. Columns stay in registers over the tokens of a batch, and on the stack from one batch to the
 * next.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_EMBED_EMBED_BACKWARD_H
#define NRG_TEMPLATE_EMBED_EMBED_BACKWARD_H

#ifndef NRG_NO_BACKWARD
#include "embed.h"

enum {
    EMBED_BATCH = 8,   /* tokens: as many streams as the hardware follows */
    EMBED_PIECE = 512, /* columns */
    EMBED_STEP = (int)V_APPLY * VN
};

/* A batch of the tokens of a row of the table. */
typedef struct embed_batch {
    const char *from[EMBED_BATCH];
    const char *prefetch[EMBED_BATCH]; /* rows of d_o that are read after those of the batch */
    int tokens;
    int first, last; /* of the row's batches */
    int accumulate, table_f32, stream;
    double scale;
} embed_batch;

/* The vectors of a step as doubles, d[2j] and d[2j + 1] for vector j. */
NRG_INLINE void embed_load(vd *d, int G, const char *p, size_t i, size_t n, nrg_dtype D)
{
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        if (D == NRG_F32 && G > 1) {
            const float *at = (const float *)p + i + j * VN;
            d[2 * j] = vd_ld_f32(at);
            d[2 * j + 1] = vd_ld_f32(at + VN / 2);
        } else {
            const vf v = G > 1 ? load_whole(p, i + (size_t)j * VN, D) : load_part(p, i, n, D);
            d[2 * j] = vd_low(v);
            d[2 * j + 1] = vd_high(v);
        }
}

/* scale · sum, plus what is there, or nothing: -0 changes no number that it is added to, not even a zero. */
NRG_INLINE void embed_finish(const vd *sum, int G, const embed_batch *b, char *d_table, size_t i, size_t n, nrg_dtype D)
{
    const vd scale = vd_set1(b->scale);
    vf v[V_APPLY];
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_set1(-0.0f);
    if (b->accumulate)
        load_step_or_f32(v, G, d_table, i, n, D, b->table_f32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_from_vd(vd_fma(scale, sum[2 * j], vd_low(v[j])), vd_fma(scale, sum[2 * j + 1], vd_high(v[j])));
    if (D == NRG_F32 || b->table_f32)
        store_step(v, G, d_table, i, n, NRG_F32, b->stream);
    else
        store_step(v, G, d_table, i, n, D, b->stream);
}

/* Columns i to i + n; sums: theirs. */
NRG_INLINE void embed_batch_step(int G, const embed_batch *b, char *d_table, double *sums, size_t i, size_t n, nrg_dtype D)
{
    vd sum[2 * V_APPLY], d[2 * V_APPLY];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++)
        sum[j] = vd_set1(-0.0);
    if (!b->first) {
        NRG_UNROLL
        for (int j = 0; j < 2 * G; j++)
            sum[j] = vd_ld(sums + j * (VN / 2));
    }
    for (int token = 0; token < b->tokens; token++) {
        if (G > 1)
            embed_prefetch(b->prefetch[token] + bytes_of(i, D, 0), bytes_of(EMBED_STEP, D, 0));
        embed_load(d, G, b->from[token], i, n, D);
        NRG_UNROLL
        for (int j = 0; j < 2 * G; j++)
            sum[j] = vd_add(sum[j], d[j]);
    }
    if (b->last) {
        embed_finish(sum, G, b, d_table, i, n, D);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++)
        vd_st(sums + j * (VN / 2), sum[j]);
}

/* Zeros in columns begin to end of a row that has no token; size: bytes of an element. */
NRG_INLINE void embed_zero(char *d_table, size_t begin, size_t end, size_t size, int stream)
{
    const vf zero = v_zero();
    float *p = (float *)(void *)(d_table + begin * size);
    size_t bytes = (end - begin) * size;
    for (; stream && bytes >= VN * sizeof *p; bytes -= VN * sizeof *p, p += VN)
        v_nt_f32(p, zero);
    if (stream) {
        const float zeros[VN] = {0};
        stream_lanes((char *)p, (const char *)zeros, bytes);
    } else
        memset(p, 0, bytes);
}

/* The tokens of a row of the table. */
typedef struct embed_tokens {
    size_t count;
    const uint32_t *at, *end; /* count of them from at; end: after the last token of the last row. NULL: there are no ids */
    size_t only;              /* without ids, the first, from which the others are periods away */
} embed_tokens;

NRG_INLINE embed_tokens embed_tokens_of(const nrg_embed_backward_job *job, size_t k)
{
    embed_tokens t = {.count = 0};
    if (job->start) {
        t.count = job->start[k + 1] - job->start[k];
        t.at = job->order + job->start[k];
        t.end = job->order + job->tokens;
    } else if (k >= job->first && k - job->first < job->tokens && k - job->first < job->period) {
        t.only = k - job->first;
        t.count = 1;
        if (job->period < job->tokens - t.only)
            t.count += (job->tokens - t.only - 1) / job->period;
    }
    return t;
}

/* The token that is n after the row's first, in the order in which rows of d_o are read: NULL after the last. */
NRG_INLINE const char *embed_token(const nrg_embed_backward_job *job, embed_tokens t, size_t n)
{
    if (!t.at)
        return n < t.count ? job->d_o + (t.only + n * job->period) * job->d_o_stride : NULL;
    return n < (size_t)(t.end - t.at) ? job->d_o + t.at[n] * job->d_o_stride : NULL;
}

/* One batch, columns piece to end. */
NRG_INLINE void embed_sum_batch_of(const embed_batch *b, char *d_table, double *sums, size_t piece, size_t end, nrg_dtype D)
{
    size_t i = piece;
    for (; i + EMBED_STEP <= end; i += EMBED_STEP)
        embed_batch_step(V_APPLY, b, d_table, sums + (i - piece), i, EMBED_STEP, D);
    for (; i < end; i += VN)
        embed_batch_step(1, b, d_table, sums + (i - piece), i, lanes_at(i, end), D);
}

NRG_BY_DTYPE(embed_sum_batch, (b, d_table, sums, piece, end), const embed_batch *b, char *d_table, double *sums, size_t piece,
             size_t end)

/* Columns begin to end of a row with tokens. */
static void embed_add_tokens(const nrg_embed_backward_job *job, embed_batch *b, char *d_table, embed_tokens t, size_t begin,
                             size_t end, nrg_dtype dtype)
{
    double sums[EMBED_PIECE]; /* from one batch to the next */
    for (size_t piece = begin, piece_end; piece < end; piece = piece_end) {
        piece_end = end - piece > EMBED_PIECE ? piece + EMBED_PIECE : end;
        for (size_t done = 0; done < t.count; done += (size_t)b->tokens) {
            b->tokens = t.count - done < EMBED_BATCH ? (int)(t.count - done) : EMBED_BATCH;
            b->first = done == 0;
            b->last = done + (size_t)b->tokens == t.count;
            for (int token = 0; token < b->tokens; token++) {
                const char *prefetch = embed_token(job, t, done + (size_t)(token + b->tokens) + job->prefetch);
                b->from[token] = embed_token(job, t, done + (size_t)token);
                b->prefetch[token] = prefetch ? prefetch : b->from[token];
            }
            embed_sum_batch(b, d_table, sums, piece, piece_end, dtype);
        }
    }
}

/* size and table_size: bytes of an element of d_o, and of the table. */
static __attribute__((noinline)) void embed_backward(const nrg_embed_backward_job *job, nrg_dtype dtype)
{
    const int accumulate = job->accumulate;
    const size_t size = bytes_of(1, dtype, 0), table_size = bytes_of(1, dtype, job->table_f32), dim = job->dim;
    const int stream = job->stream && !accumulate && rows_stream(job->d_table, job->d_table_stride, dim * table_size, 0);
    const size_t row_begin = job->row_begin, row_end = job->row_end;
    embed_batch b = {.accumulate = accumulate, .table_f32 = job->table_f32, .stream = stream, .scale = job->scale};
    for (size_t k = row_begin; k <= row_end; k++) {
        const size_t begin = k == row_begin ? job->column_begin : 0, end = k == row_end ? job->column_end : dim;
        if (begin >= end)
            continue;
        const embed_tokens t = embed_tokens_of(job, k);
        char *d_table = job->d_table + k * job->d_table_stride;
        if (!t.count && !accumulate)
            embed_zero(d_table, begin, end, table_size, stream);
        else if (t.count == 1 && !accumulate && b.scale == 1 && table_size == size) {
            const char *prefetch = embed_token(job, t, 1 + job->prefetch);
            embed_copy(embed_token(job, t, 0) + begin * size, d_table + begin * size, end - begin,
                       prefetch ? prefetch + begin * size : NULL, stream, dtype);
        } else if (t.count)
            embed_add_tokens(job, &b, d_table, t, begin, end, dtype);
    }
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(embed_backward, embed_backward, embed_backward)
#endif

#endif
