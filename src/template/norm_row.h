/* One row of a norm job: where its elements are, and how they are loaded and stored.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_ROW_H
#define NRG_TEMPLATE_NORM_ROW_H

#include "../internal.h"

/* Vectors in the largest step. */
enum { NORM_STEP = (int)V_SUM1 > (int)V_APPLY ? (int)V_SUM1 : (int)V_APPLY };

/* Where r = x + y is read from. */
typedef enum norm_source {
    NORM_FROM_X,  /* there is no y (or it comes after the norm) */
    NORM_FROM_XY, /* add again: r is not stored, or was streamed out of the cache */
    NORM_FROM_R   /* r is stored, perhaps over x or y */
} norm_source;

/* What is the same for all rows of a job, by value: stores to rows could alias the job itself, and would make the compiler read
 * its options again after each. */
typedef struct norm_options {
    const char *w, *b;
    size_t dim;
    float w_offset;
    int y_f32, r_f32, w_f32;
    int centred, after, store_r, stream_r, stream_o;
    int prefetch; /* the job is streamed: its inputs are not in cache either */
    norm_source sum_from, apply_from;
} norm_options;

typedef struct norm_row {
    const char *x, *y;
    char *r, *o;
} norm_row;

NRG_INLINE norm_row row_at(const nrg_norm_job *job, size_t n)
{
    norm_row row = {job->x + n * job->x_stride, job->y ? job->y + n * job->y_stride : NULL,
                    job->r ? job->r + n * job->r_stride : NULL, job->o + n * job->o_stride};
    return row;
}

/* Streaming needs 16-byte alignment of every row, and does nothing for lines that are in cache because the row is in place. */
NRG_INLINE int can_stream(const nrg_norm_job *job, const char *out, size_t stride)
{
    return job->stream && (((uintptr_t)out | stride) & 15) == 0 && out != job->x && out != job->y;
}

NRG_INLINE norm_options options_of(const nrg_norm_job *job)
{
    norm_options opt = {
        .w = job->w,
        .b = job->b,
        .dim = job->dim,
        .w_offset = job->w_offset,
        .y_f32 = job->y_f32,
        .r_f32 = job->r_f32,
        .w_f32 = job->w_f32,
        .centred = job->centred,
        .after = job->after,
        .store_r = job->r != NULL,
        .stream_r = job->r && can_stream(job, job->r, job->r_stride),
        .stream_o = can_stream(job, job->o, job->o_stride),
        .prefetch = job->stream,
        .sum_from = job->y && !job->after ? NORM_FROM_XY : NORM_FROM_X,
    };
    opt.apply_from = opt.store_r && !opt.stream_r ? NORM_FROM_R : opt.sum_from;
    return opt;
}

/* ---- vectors of any dtype; D is a constant where it matters ---- */

NRG_INLINE vf from_half(vh h, nrg_dtype D) { return D == NRG_F16 ? v_from_f16(h) : v_from_bf16(h); }
NRG_INLINE vh to_half(vf a, nrg_dtype D) { return D == NRG_F16 ? v_to_f16(a) : v_to_bf16(a); }

NRG_INLINE vf load_whole(const char *p, size_t i, nrg_dtype D)
{
    return D == NRG_F32 ? v_ld_f32((const float *)p + i) : from_half(v_ld_half((const uint16_t *)p + i), D);
}

NRG_INLINE vf load_part(const char *p, size_t i, size_t n, nrg_dtype D)
{
    return D == NRG_F32 ? v_ldn_f32((const float *)p + i, n) : from_half(v_ldn_half((const uint16_t *)p + i, n), D);
}

/* ---- steps of G vectors, whole; or with G = 1 of the first n lanes of one, n from 1 to VN: one copy of the code for all that
 * does not fill a step ---- */

/* How many of the VN lanes from element i on exist. */
NRG_INLINE size_t lanes_at(size_t i, size_t end) { return end - i < VN ? end - i : VN; }

NRG_INLINE void load_step(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (G == 1) {
        v[0] = load_part(p, i, n, D);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = load_whole(p, i + (size_t)j * VN, D);
}

NRG_INLINE void load_step_or_f32(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D, int is_f32)
{
    if (D == NRG_F32 || is_f32)
        load_step(v, G, p, i, n, NRG_F32);
    else
        load_step(v, G, p, i, n, D);
}

NRG_INLINE void store_f32_step(const vf *v, int G, float *p, size_t n, int stream)
{
    if (G == 1) {
        v_stn_f32(p, v[0], n);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        if (stream)
            v_nt_f32(p + j * VN, v[j]);
        else
            v_st_f32(p + j * VN, v[j]);
}

NRG_INLINE void store_half_step(const vh *h, int G, uint16_t *p, size_t n, int stream)
{
    if (G == 1) {
        v_stn_half(p, h[0], n);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        if (stream)
            v_nt_half(p + j * VN, h[j]);
        else
            v_st_half(p + j * VN, h[j]);
}

NRG_INLINE void store_step(const vf *v, int G, char *p, size_t i, size_t n, nrg_dtype D, int stream)
{
    if (D == NRG_F32) {
        store_f32_step(v, G, (float *)p + i, n, stream);
        return;
    }
    vh h[NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        h[j] = to_half(v[j], D);
    store_half_step(h, G, (uint16_t *)p + i, n, stream);
}

/* Asks for what a step of G vectors reads 2 KB further on, in the next row where a row ends: further than the hardware looks past
 * a page. Worth 1.2 × out of cache; at 1 or 4 KB a little less, and two distances at once nothing more. */
NRG_INLINE void prefetch_step(int G, const norm_options *opt, norm_row row, size_t i, nrg_dtype D)
{
    const size_t size = D == NRG_F32 ? 4 : 2, y_size = D == NRG_F32 || opt->y_f32 ? 4 : 2;
    NRG_UNROLL
    for (size_t b = 0; b < (size_t)G * VN * size; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)row.x + i * size + b + 2048));
    if (opt->sum_from == NORM_FROM_XY) {
        NRG_UNROLL
        for (size_t b = 0; b < (size_t)G * VN * 4; b += 64)
            if (b < (size_t)G * VN * y_size)
                __builtin_prefetch((const void *)((uintptr_t)row.y + i * y_size + b + 2048));
    }
}

/* x, or x + y; lanes that do not exist are 0. */
NRG_INLINE void load_sum(vf *v, int G, const norm_options *opt, norm_row row, norm_source from, size_t i, size_t n, nrg_dtype D)
{
    load_step(v, G, row.x, i, n, D);
    if (from == NORM_FROM_X)
        return;
    vf y[NORM_STEP];
    load_step_or_f32(y, G, row.y, i, n, D, opt->y_f32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], y[j]);
}

/* r, rounded to its dtype. */
NRG_INLINE void load_r(vf *v, int G, const norm_options *opt, norm_row row, norm_source from, size_t i, size_t n, nrg_dtype D)
{
    if (from == NORM_FROM_R) {
        load_step_or_f32(v, G, row.r, i, n, D, opt->r_f32);
        return;
    }
    load_sum(v, G, opt, row, from, i, n, D);
    if (D == NRG_F32 || opt->r_f32 || from == NORM_FROM_X)
        return;
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = from_half(to_half(v[j], D), D);
}

/* The same for the first pass over a row, which stores r where it is asked for. The rounding to 16 bits is done once for both. */
NRG_INLINE void load_and_store_r(vf *v, int G, const norm_options *opt, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    if (!opt->store_r) {
        load_r(v, G, opt, row, opt->sum_from, i, n, D);
        return;
    }
    load_sum(v, G, opt, row, opt->sum_from, i, n, D);
    if (D == NRG_F32 || opt->r_f32) {
        store_f32_step(v, G, (float *)row.r + i, n, opt->stream_r);
        return;
    }
    vh h[NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        h[j] = to_half(v[j], D);
        v[j] = from_half(h[j], D);
    }
    store_half_step(h, G, (uint16_t *)row.r + i, n, opt->stream_r);
}

#endif
