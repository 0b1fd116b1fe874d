/* Short rows of the fast grade without gate and groups: many at a time. Their sums come first, then
 * their scalars side by side, then their elements, still in L1; and before these the sums of the next rows, so that the scalars
 * are there when they are wanted.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_SHORT_H
#define NRG_TEMPLATE_NORM_NORM_FAST_SHORT_H

#include "norm_fallback.h"
#include "norm_fast_apply.h"
#include "norm_fast_rows.h"

enum {
    FAST_SHORT_ELEMENTS = 2048, /* at a time */
    FAST_SHORT_STAGE = 1024,    /* where r is staged */
    FAST_SHORT_WIDENED = 1536   /* of rows that are made floats first, on the stack */
};

/* Whether there are loops. */
NRG_INLINE int fast_short_knows(const norm_options *opt) { return opt->dim <= FAST_BLOCK; }

NRG_INLINE int fast_short_serves(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    return !V_SMALL && opt->fast && fast_short_knows(opt) && !(opt->how & (D == NRG_F32 ? NORM_LAST : NORM_FIRST | NORM_LAST)) &&
           job->groups == 1 && job->row_end - job->row_begin > 1;
}

/* Some rows, as many as one set of scalars holds, and those. */
typedef struct fast_some {
    size_t n;
    int count;
    const char *x; /* what is normalized: x, or r, or where r is staged */
    size_t x_stride;
    const struct norm_half_loops *half; /* of 16-bit rows: norm_loops.h */
    fast_scalars s;
} fast_some;

NRG_INLINE int fast_short_count(const nrg_norm_job *job, size_t n, size_t most)
{
    return job->row_end - n < most ? (int)(job->row_end - n) : (int)most;
}

/* Asks for the row that lies 2 KB further on, where rows are streamed: 4096 rows of 128 1.02 to 1.06 × as fast (Granite Rapids),
 * with a residual 1.01. */
NRG_INLINE void prefetch_short(const char *row, size_t stride, size_t bytes)
{
    const uintptr_t ahead = (uintptr_t)row + (2048 + bytes - 1) / bytes * stride;
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(ahead + b));
}

/* r of some rows, stored where it is asked for, and the rows to read it from. stage: NULL where that is r itself. */
static __attribute__((noinline)) void fast_short_residual(fast_some *b, const nrg_norm_job *job, const norm_options *opt,
                                                          size_t n, size_t most, float *stage)
{
    enum { G = FAST_VECTORS, STEP = FAST_LANES };
    const size_t dim = opt->dim;
    const int count = fast_short_count(job, n, most);
    norm_row row = row_at(job, n, NRG_F32);
    b->x = stage ? (const char *)stage : row.r;
    b->x_stride = stage ? dim * sizeof *stage : job->r_stride;
    for (int k = 0; k < count; k++) {
        const unsigned how = options_in_register(opt->how, NORM_ADD_Y | NORM_STORE_R | NORM_STREAM_R);
        vf v[G];
        size_t i = 0;
        if (job->stream) {
            prefetch_short(row.x, job->x_stride, dim * sizeof(float));
            if (how & NORM_ADD_Y)
                prefetch_short(row.y, job->y_stride, dim * sizeof(float));
        }
        for (; i + STEP <= dim; i += STEP) {
            load_first(v, G, how, row, i, STEP, NRG_F32);
            if (stage)
                store_f32_step(v, G, stage + i, STEP, 0);
        }
        for (; i + VN <= dim; i += VN) {
            load_first(v, 1, how, row, i, VN, NRG_F32);
            if (stage)
                store_f32_step(v, 1, stage + i, VN, 0);
        }
        if (i < dim) {
            load_first(v, 1, how, row, i, dim - i, NRG_F32);
            if (stage)
                store_f32_step(v, 1, stage + i, dim - i, 0);
        }
        if (stage)
            stage += dim;
        row.x += job->x_stride;
        if (how & NORM_ADD_Y)
            row.y += job->y_stride;
        if (how & NORM_STORE_R)
            row.r += job->r_stride;
    }
}

/* The pilots of up to FAST_ROWS rows, several side by side. All of them before the sums: a row's own would have to be waited
 * for. */
NRG_INLINE void fast_short_pilots(float *pilot, const char *x, size_t stride, size_t dim, int count, nrg_dtype D)
{
    const vf scale = v_set1(fast_pilot_scale(dim));
    for (int k = 0; k < count; k += VN) {
        vf rows[VN];
        NRG_UNROLL
        for (int i = 0; i < (int)VN; i++) {
            const norm_row row = {.x = x};
            rows[i] = fast_pilot_lanes(&row, 0, 0, dim, D);
            x += k + i + 1 < count ? stride : 0; /* the last one, again */
        }
        v_st_f32(pilot + k, v_mul(v_fold_rows(rows), scale));
    }
}

NRG_INLINE void fast_short_sums(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D, int centred)
{
    const size_t dim = job->dim, x_stride = b->x_stride;
    const char *const x = b->x;
    const int count = fast_short_count(job, n, most);
    _Alignas(64) float pilot[FAST_ROWS];
    vd8 t[FAST_ROWS], tt[FAST_ROWS];
    double total_t[FAST_ROWS], total_tt[FAST_ROWS];
    b->n = n;
    b->count = count;
    if (centred)
        fast_short_pilots(pilot, x, x_stride, dim, count, D);
    for (int k = 0; k < count; k++) {
        if (job->stream && x == job->x + n * job->x_stride)
            prefetch_short(x + (size_t)k * x_stride, x_stride, dim * (D == NRG_F32 ? 4 : 2));
        tt[k] = fast_short_sum(&t[k], x + (size_t)k * x_stride, dim, FAST_BLOCK, 0, centred ? v_set1(pilot[k]) : v_zero(), D,
                               centred);
    }
    for (int k = count; k < FAST_ROWS; k++) {
        tt[k] = tt[0];
        if (centred) {
            t[k] = t[0];
            pilot[k] = pilot[0];
        }
    }
    for (int k = 0; k < (VN > 8 ? (int)FAST_ROWS : count); k += 8) {
        vd8_sum_rows(tt + k, total_tt + k);
        if (centred)
            vd8_sum_rows(t + k, total_t + k);
    }
    fast_scalars_of(&b->s, job, pilot, total_t, total_tt, count, centred);
}

/* w + weight_offset and b as the loops want them, of bf16 rows in the order of pairs as far as steps go: once for all rows. */
typedef struct fast_short_weights {
    const char *w, *b; /* f32; NULL where absent */
} fast_short_weights;

static __attribute__((noinline)) const char *fast_short_floats(float *to, const char *from, const norm_options *opt, float offset,
                                                               nrg_dtype D)
{
    const size_t step = (size_t)fast_apply_vectors(D) * VN;
    if (!from || (offset == 0 && (D == NRG_F32 || (D == NRG_F16 && opt->how & NORM_W_F32))))
        return from;
    for (size_t i = 0; i < opt->dim; i += VN) {
        vf w;
        const size_t n = lanes_at(i, opt->dim);
        load_step_or_f32(&w, 1, from, i, n, D, opt->how & NORM_W_F32);
        if (D == NRG_BF16)
            w = v_calm(w);
        store_lanes(to + i, offset != 0 ? v_add(w, v_set1(offset)) : w, n);
    }
    for (size_t i = 0; D == NRG_BF16 && i + 2 * VN <= opt->dim / step * step; i += 2 * VN) {
        vf w[2] = {v_ld_f32(to + i), v_ld_f32(to + i + VN)};
        order_to_pairs(w, 2);
        v_st_f32(to + i, w[0]);
        v_st_f32(to + i + VN, w[1]);
    }
    return (const char *)to;
}

NRG_INLINE void fast_short_elements_of(const fast_some *b, const nrg_norm_job *job, const norm_options *opt,
                                       const fast_short_weights *weights, nrg_dtype D)
{
    const size_t dim = opt->dim, x_stride = b->x_stride, o_stride = job->o_stride;
    const unsigned how = opt->how, may = NORM_STREAM_O | NORM_CENTRED, pairs = norm_pairs(fast_apply_vectors(D), D),
                   in_step = NORM_W_F32 | pairs | (pairs ? NORM_W_PAIRS | NORM_CALM : 0);
    const int any = b->s.any, G = fast_apply_vectors(D);
    const size_t step = (size_t)G * VN;
    norm_row row = {.x = b->x, .w = weights->w, .b = weights->b, .o = job->o + b->n * o_stride};
    for (int k = 0; k < b->count; k++) {
        const fast_factors f = fast_factors_of(&b->s, k);
        if (!NRG_RARELY(any && b->s.needs_fallback[k] != 0)) {
            size_t i = 0;
            for (; i + step <= dim; i += step)
                fast_apply_step(G, options_in_register(how, may) | in_step, NULL, row, &f, i, step, D);
            for (; i + VN <= dim; i += VN)
                fast_apply_step(1, options_in_register(how, may) | NORM_W_F32, NULL, row, &f, i, VN, D);
            if (i < dim)
                fast_apply_step(1, options_in_register(how, may) | NORM_W_F32, NULL, row, &f, i, dim - i, D);
        }
        row.x += x_stride;
        row.o += o_stride;
    }
    if (NRG_RARELY(job->mean || job->rstd || any))
        for (int k = 0; k < b->count; k++)
            fast_row_finish(job, &b->s, k, b->n + (size_t)k, D);
}

#endif
