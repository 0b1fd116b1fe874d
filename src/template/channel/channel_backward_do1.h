/* do1 = d_o · g′(o1 + y) in one loop, from the tensors to where it is kept or staged: for floats of the fast grade and the
 * activations that channel norms have most, ReLU and SiLU.
 *
 * By stages of 192 elements, with a call each for o1, for the slopes and for the product, the sums of a gradient took two to four
 * times as long.
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
    const float *lo, *hi, *shift; /* of every column, or of all */
} do1_run;

/* Of the first n lanes of a vector: what lies beyond the columns may be subnormal, which takes a hundred times as long. One for
 * all of a row, where columns is 0. */
NRG_INLINE vf do1_factor(const float *of, size_t k, size_t n, int columns)
{
    return columns ? load_lanes(of + k, n) : v_set1(*of);
}

/* g′ of a step. */
NRG_INLINE void do1_slopes(nrg_activation g, const vf *v, vf *slope)
{
    vf out[V_ACT];
    act_apply(g, v, out, slope);
}

/* n: columns of the step; the constant DO1_STEP where it is whole. */
NRG_INLINE void do1_step(const do1_run *run, nrg_activation g, int columns, size_t row, size_t k, size_t n)
{
    const int whole = __builtin_constant_p(n == DO1_STEP) && n == DO1_STEP;
    const char *x = run->x + row * run->x_stride, *d = run->d + row * run->d_stride;
    float *to = (float *)(run->to + row * run->to_stride) + k;
    vf v[V_ACT], slope[V_ACT];
    if (columns && run->prefetch) {
        NRG_UNROLL
        for (size_t b = 0; b < DO1_STEP * sizeof(float); b += 64) {
            __builtin_prefetch((const void *)((uintptr_t)x + DO1_PREFETCH * run->x_stride + k * sizeof(float) + b));
            __builtin_prefetch((const void *)((uintptr_t)d + DO1_PREFETCH * run->d_stride + k * sizeof(float) + b));
        }
    }
    ACT_EACH
    {
        const size_t at = (size_t)j * VN;
        v[j] = v_zero();
        if (whole)
            v[j] = load_whole(x, k + at, NRG_F32);
        else if (at < n)
            v[j] = load_part(x, k + at, lanes_at(at, n), NRG_F32);
        if (whole || at < n) {
            const size_t lanes = whole ? (size_t)VN : lanes_at(at, n);
            v[j] = normalized_fast(v[j], do1_factor(run->lo, k + at, lanes, columns), do1_factor(run->hi, k + at, lanes, columns),
                                   do1_factor(run->shift, k + at, lanes, columns));
        }
    }
    if (run->y)
        ACT_EACH
        {
            const size_t at = (size_t)j * VN;
            const char *y = run->y + row * run->y_stride;
            if (whole || at < n)
                v[j] = v_add(v[j], whole ? load_whole(y, k + at, NRG_F32) : load_part(y, k + at, lanes_at(at, n), NRG_F32));
        }
    do1_slopes(g, v, slope);
    ACT_EACH
    {
        const size_t at = (size_t)j * VN;
        if (whole)
            v_st_f32(to + at, v_mul(load_whole(d, k + at, NRG_F32), slope[j]));
        else if (at < n) {
            const size_t lanes = lanes_at(at, n);
            store_lanes(to + at, v_mul(load_part(d, k + at, lanes, NRG_F32), slope[j]), lanes);
        }
    }
}

static __attribute__((noinline)) void do1_part_relu(const do1_run *run, int columns, size_t row, size_t k, size_t n)
{
    if (columns)
        do1_step(run, NRG_ACT_RELU, 1, row, k, n);
    else
        do1_step(run, NRG_ACT_RELU, 0, row, k, n);
}

static __attribute__((noinline)) void do1_part_silu(const do1_run *run, int columns, size_t row, size_t k, size_t n)
{
    if (columns)
        do1_step(run, NRG_ACT_SILU, 1, row, k, n);
    else
        do1_step(run, NRG_ACT_SILU, 0, row, k, n);
}

NRG_INLINE void do1_rows_of(const do1_run *at, nrg_activation g, int columns)
{
    const do1_run run = *at;
    for (size_t row = 0; row < run.rows; row++) {
        size_t k = 0;
        for (; k + DO1_STEP <= run.width; k += DO1_STEP)
            do1_step(&run, g, columns, row, k, DO1_STEP);
        if (k < run.width)
            (g == NRG_ACT_RELU ? do1_part_relu : do1_part_silu)(&run, columns, row, k, run.width - k);
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
