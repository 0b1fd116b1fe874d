/* One row of a norm job: where its elements are, and how they are loaded and stored.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_ROW_H
#define NRG_TEMPLATE_NORM_NORM_ROW_H

#include "../step.h"

/* Where r = x + y is read from. */
typedef enum norm_source {
    NORM_FROM_X,  /* there is no y (or it comes after the norm) */
    NORM_FROM_XY, /* add again: r is not stored, or was streamed out of the cache */
    NORM_FROM_R   /* r is stored, perhaps over x or y */
} norm_source;

/* What is the same for all rows of a job, by value: stores to rows could alias the job itself, and would make the compiler read
 * its options again after each. */
typedef struct norm_options {
    size_t dim;
    float w_offset;
    int y_f32, r_f32, w_f32;
    int centred, after, store_r, stream_r, stream_o;
    int gated;    /* rows have a staged gate, which the output is multiplied with; see norm_gated.h */
    int to_stage; /* the output goes, in f32, to the row's stage */
    int prefetch; /* the job is streamed: its inputs are not in cache either */
    norm_source sum_from, apply_from;
} norm_options;

typedef struct norm_row {
    const char *x, *y, *z, *w, *b;
    char *r, *o;
    float *stage; /* element 0 of what is staged for the chunk at hand */
} norm_row;

NRG_INLINE norm_row row_at(const nrg_norm_job *job, size_t n, nrg_dtype D)
{
    size_t at = 0; /* where the group begins in the row */
    size_t group = n;
    if (job->groups > 1) {
        n /= job->groups;
        at = (group - n * job->groups) * job->dim;
    }
    norm_row row = {
        .x = job->x + n * job->x_stride + bytes_of(at, D, 0),
        .y = job->y ? job->y + n * job->y_stride + bytes_of(at, D, job->y_f32) : NULL,
        .z = job->z ? job->z + n * job->z_stride + bytes_of(at, D, 0) : NULL,
        .w = job->w ? job->w + bytes_of(at, D, job->w_f32) : NULL,
        .b = job->b ? job->b + bytes_of(at, D, job->w_f32) : NULL,
        .r = job->r ? job->r + n * job->r_stride + bytes_of(at, D, job->r_f32) : NULL,
        .o = job->o + n * job->o_stride + bytes_of(at, D, 0),
        .stage = NULL,
    };
    return row;
}

/* Streaming needs 16-byte alignment of every row and group, and does nothing for lines that are in cache because the row is in
 * place. */
NRG_INLINE int can_stream(const nrg_norm_job *job, const char *out, size_t stride, size_t group_bytes)
{
    return job->stream && (((uintptr_t)out | stride | (job->groups > 1 ? group_bytes : 0)) & 15) == 0 && out != job->x &&
           out != job->y && out != job->z;
}

NRG_INLINE norm_options options_of(const nrg_norm_job *job, nrg_dtype D)
{
    norm_options opt = {
        .dim = job->dim,
        .w_offset = job->formula.w_offset,
        .y_f32 = job->y_f32,
        .r_f32 = job->r_f32,
        .w_f32 = job->w_f32,
        .centred = job->formula.centred,
        .after = job->after,
        .store_r = job->r != NULL,
        .stream_r = job->r && can_stream(job, job->r, job->r_stride, bytes_of(job->dim, D, job->r_f32)),
        .stream_o = can_stream(job, job->o, job->o_stride, bytes_of(job->dim, D, 0)),
        .prefetch = job->stream,
        .sum_from = job->y && !job->after ? NORM_FROM_XY : NORM_FROM_X,
    };
    opt.apply_from = opt.store_r && !opt.stream_r ? NORM_FROM_R : opt.sum_from;
    return opt;
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
