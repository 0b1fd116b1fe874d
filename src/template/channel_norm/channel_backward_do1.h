/* do1 = d_o · g′(o1 + y) in one loop, from the tensors to where it is kept or staged: for floats of the fast grade and the
 * activations that channel norms have most, ReLU and SiLU.
 *
 * By stages of 192 elements, with a call each for o1, for the slopes and for the product, a backward pass took 1.3 to 2 times as
 * long.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_DO1_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_DO1_H

#include "../activation/activation_functions.h"
#include "channel_elements.h"

enum {
    DO1_STEP = (int)V_ACT * VN,
    DO1_PREFETCH = 16 /* rows: as BACKWARD_PREFETCH */
};

/* Rows of columns, or one row of elements that lie together. */
typedef struct do1_run {
    const char *x, *y, *d; /* y: NULL where absent */
    char *to;
    size_t x_stride, y_stride, d_stride, to_stride; /* bytes */
    size_t rows, width;
    int prefetch;
    const float *lo, *hi, *shift; /* of every column, or of all elements */
} do1_run;

/* The first n floats of a step; the others are 0. */
NRG_INLINE void do1_load(vf *v, const float *from, size_t n)
{
    if (!NRG_RARELY(n < DO1_STEP))
        load_step(v, V_ACT, (const char *)from, 0, DO1_STEP, NRG_F32);
    else
        ACT_EACH v[j] = (size_t)j * VN < n ? load_lanes(from + j * VN, lanes_at((size_t)j * VN, n)) : v_zero();
}

/* One for all of a row, where columns is 0. Those beyond the columns count as 0: what lies there may be those of others, or
 * subnormal. (Group norm with SiLU, NHWC, 1x320x64x64, took 6.9 ms instead of 3.3 then, AVX-512.) */
NRG_INLINE void do1_factors(vf *v, const float *of, size_t k, size_t n, int columns)
{
    if (columns)
        do1_load(v, of + k, n);
    else
        ACT_EACH v[j] = v_set1(*of);
}

NRG_INLINE void do1_prefetch(const char *p)
{
    NRG_UNROLL
    for (size_t b = 0; b < DO1_STEP * sizeof(float); b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + b));
}

NRG_INLINE void do1_rows_of(const do1_run *at, nrg_activation g, int columns)
{
    const do1_run run = *at;
    for (size_t row = 0; row < run.rows; row++)
        for (size_t k = 0, n; k < run.width; k += n) {
            const size_t left = run.width - k;
            const float *x = (const float *)(run.x + row * run.x_stride) + k,
                        *d = (const float *)(run.d + row * run.d_stride) + k;
            float *to = (float *)(run.to + row * run.to_stride) + k;
            vf v[V_ACT], more[V_ACT], mean[V_ACT], factor[V_ACT], out[V_ACT], slope[V_ACT];
            n = left < DO1_STEP ? left : DO1_STEP;
            if (columns && run.prefetch) {
                do1_prefetch((const char *)((uintptr_t)x + DO1_PREFETCH * run.x_stride));
                do1_prefetch((const char *)((uintptr_t)d + DO1_PREFETCH * run.d_stride));
            }
            do1_load(v, x, n);
            do1_factors(mean, run.lo, k, n, columns);
            do1_factors(factor, run.hi, k, n, columns);
            do1_factors(more, run.shift, k, n, columns);
            ACT_EACH v[j] = normalized_fast(v[j], mean[j], factor[j], more[j]);
            if (run.y) {
                do1_load(more, (const float *)(run.y + row * run.y_stride) + k, n);
                ACT_EACH v[j] = v_add(v[j], more[j]);
            }
            act_apply(g, v, out, slope);
            do1_load(more, d, n);
            ACT_EACH v[j] = v_mul(more[j], slope[j]);
            if (!NRG_RARELY(n < DO1_STEP))
                store_f32_step(v, V_ACT, to, DO1_STEP, 0);
            else
                ACT_EACH if ((size_t)j * VN < n) store_lanes(to + j * VN, v[j], lanes_at((size_t)j * VN, n));
        }
}

static __attribute__((noinline)) void do1_columns_relu(const do1_run *run) { do1_rows_of(run, NRG_ACT_RELU, 1); }
static __attribute__((noinline)) void do1_columns_silu(const do1_run *run) { do1_rows_of(run, NRG_ACT_SILU, 1); }
static __attribute__((noinline)) void do1_plane_relu(const do1_run *run) { do1_rows_of(run, NRG_ACT_RELU, 0); }
static __attribute__((noinline)) void do1_plane_silu(const do1_run *run) { do1_rows_of(run, NRG_ACT_SILU, 0); }

/* Whether there are loops for a job's do1, where its channels are plain. */
static inline int do1_has_loop(const nrg_channel_norm_backward_job *job, nrg_dtype D)
{
    return D == NRG_F32 && job->fast && (job->activation == NRG_ACT_RELU || job->activation == NRG_ACT_SILU);
}

static inline void make_do1_columns(nrg_activation g, const do1_run *run)
{
    if (g == NRG_ACT_RELU)
        do1_columns_relu(run);
    else
        do1_columns_silu(run);
}

static inline void make_do1_plane(nrg_activation g, const do1_run *run)
{
    if (g == NRG_ACT_RELU)
        do1_plane_relu(run);
    else
        do1_plane_silu(run);
}

#endif
