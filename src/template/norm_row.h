/* One row of a norm job: where its elements are, and how they are loaded and stored.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_ROW_H
#define NRG_TEMPLATE_NORM_ROW_H

#include "../internal.h"

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
        .sum_from = job->y && !job->after ? NORM_FROM_XY : NORM_FROM_X,
    };
    opt.apply_from = opt.store_r && !opt.stream_r ? NORM_FROM_R : opt.sum_from;
    return opt;
}

/* ---- vectors of any dtype; D is a constant where it matters ---- */

NRG_INLINE vf load_whole(const char *p, size_t i, nrg_dtype D)
{
    if (D == NRG_F32)
        return v_ld_f32((const float *)p + i);
    return D == NRG_F16 ? v_ld_f16((const uint16_t *)p + i) : v_ld_bf16((const uint16_t *)p + i);
}

NRG_INLINE vf load_part(const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (D == NRG_F32)
        return v_ldn_f32((const float *)p + i, n);
    return D == NRG_F16 ? v_ldn_f16((const uint16_t *)p + i, n) : v_ldn_bf16((const uint16_t *)p + i, n);
}

NRG_INLINE void store_whole(char *p, size_t i, nrg_dtype D, vf a)
{
    if (D == NRG_F32)
        v_st_f32((float *)p + i, a);
    else if (D == NRG_F16)
        v_st_f16((uint16_t *)p + i, a);
    else
        v_st_bf16((uint16_t *)p + i, a);
}

NRG_INLINE void store_past_cache(char *p, size_t i, nrg_dtype D, vf a)
{
    if (D == NRG_F32)
        v_nt_f32((float *)p + i, a);
    else if (D == NRG_F16)
        v_nt_f16((uint16_t *)p + i, a);
    else
        v_nt_bf16((uint16_t *)p + i, a);
}

NRG_INLINE void store_part(char *p, size_t i, size_t n, nrg_dtype D, vf a)
{
    if (D == NRG_F32)
        v_stn_f32((float *)p + i, a, n);
    else if (D == NRG_F16)
        v_stn_f16((uint16_t *)p + i, a, n);
    else
        v_stn_bf16((uint16_t *)p + i, a, n);
}

/* ---- steps of G whole vectors (n = G·VN), or of the first n lanes of one (G = 1, n < VN) ---- */

NRG_INLINE void load_step(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (n < VN) {
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

NRG_INLINE void store_step(const vf *v, int G, char *p, size_t i, size_t n, nrg_dtype D, int stream)
{
    if (n < VN) {
        store_part(p, i, n, D, v[0]);
        return;
    }
    if (stream) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            store_past_cache(p, i + (size_t)j * VN, D, v[j]);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        store_whole(p, i + (size_t)j * VN, D, v[j]);
}

/* r, rounded to its dtype; lanes that do not exist are 0. */
NRG_INLINE void load_r(vf *v, int G, const norm_options *opt, norm_row row, norm_source from, size_t i, size_t n, nrg_dtype D)
{
    if (from == NORM_FROM_R) {
        load_step_or_f32(v, G, row.r, i, n, D, opt->r_f32);
        return;
    }
    load_step(v, G, row.x, i, n, D);
    if (from == NORM_FROM_X)
        return;
    vf y[V_SUM1 > V_APPLY ? V_SUM1 : V_APPLY];
    load_step_or_f32(y, G, row.y, i, n, D, opt->y_f32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], y[j]);
    if (D == NRG_F32 || opt->r_f32)
        return;
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = D == NRG_F16 ? v_round_f16(v[j]) : v_round_bf16(v[j]);
}

NRG_INLINE void store_r(const vf *v, int G, const norm_options *opt, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    if (D == NRG_F32 || opt->r_f32)
        store_step(v, G, row.r, i, n, NRG_F32, opt->stream_r);
    else
        store_step(v, G, row.r, i, n, D, opt->stream_r);
}

#endif
