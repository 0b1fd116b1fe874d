/* The sums of a gradient: Σd and Σd·(x - μ) in double, of elements that lie together, in 32 lanes, and of columns.
 *
 * d is floats: d_o as it is, or what has been staged of it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_SUM_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_SUM_H

#include "sum.h"

NRG_INLINE void add_gradient(vd *a, vd *b, vd d, vd x, vd centre)
{
    *a = vd_add(*a, d);
    *b = vd_fma(d, vd_sub(x, centre), *b);
}

/* G vectors of d and x, or the first n lanes of one, to the lanes of the first. */
NRG_INLINE void backward_sum_step(vd *a, vd *b, int G, const float *d, const char *x, vd centre, size_t i, size_t n, nrg_dtype D)
{
    vf dv[NORM_STEP], xv[NORM_STEP];
    const int direct = G > 1 && D == NRG_F32;
    if (!direct)
        load_step(xv, G, x, i, n, D);
    if (G == 1)
        load_step(dv, 1, (const char *)d, i, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const float *at = d + i + j * VN, *xs = (const float *)x + i + j * VN;
        const vd d_low = G > 1 ? vd_ld_f32(at) : vd_low(dv[j]), d_high = G > 1 ? vd_ld_f32(at + VN / 2) : vd_high(dv[j]);
        add_gradient(&a[2 * j], &b[2 * j], d_low, direct ? vd_ld_f32(xs) : vd_low(xv[j]), centre);
        add_gradient(&a[2 * j + 1], &b[2 * j + 1], d_high, direct ? vd_ld_f32(xs + VN / 2) : vd_high(xv[j]), centre);
    }
}

/* The lanes of G vectors from `lane` on, of whole rounds of all lanes up to `whole`. */
NRG_INLINE void backward_sum_group(channel_lanes *lanes, int G, size_t lane, size_t whole, const float *d, const char *x,
                                   vd centre, nrg_dtype D)
{
    const size_t first = lane / (VN / 2);
    vd a[2 * NORM_STEP], b[2 * NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        a[j] = lanes->t[first + (size_t)j];
        b[j] = lanes->q[first + (size_t)j];
    }
    for (size_t i = lane; i < whole; i += EXACT_LANES)
        backward_sum_step(a, b, G, d, x, centre, i, (size_t)G * VN, D);
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        lanes->t[first + (size_t)j] = a[j];
        lanes->q[first + (size_t)j] = b[j];
    }
}

/* Adds n elements from the first lane on. */
NRG_INLINE void add_gradients_of(channel_lanes *lanes, const float *d, const char *x, float mean, size_t n, nrg_dtype D)
{
    enum { G = (int)V_SUM2 < (int)EXACT_VECTORS ? (int)V_SUM2 : (int)EXACT_VECTORS };
    const vd centre = vd_set1((double)mean);
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = n - begin > EXACT_CHUNK ? begin + EXACT_CHUNK : n;
        const char *at = x + bytes_of(begin, D, 0);
        const size_t count = end - begin, whole = count / EXACT_LANES * EXACT_LANES;
        for (size_t lane = 0; lane < EXACT_LANES; lane += (size_t)G * VN)
            backward_sum_group(lanes, G, lane, whole, d + begin, at, centre, D);
        for (size_t i = whole, lane = 0; i < count; i += VN, lane += 2)
            backward_sum_step(lanes->t + lane, lanes->q + lane, 1, d + begin, at, centre, i, lanes_at(i, count), D);
    }
}

NRG_BY_DTYPE(add_gradients, (lanes, d, x, mean, n), channel_lanes *lanes, const float *d, const char *x, float mean, size_t n)

/* ---- columns ---- */

enum {
    BACKWARD_COLUMNS = 64,                 /* at once: half of the forward pass's, since stacks are small */
    BACKWARD_ROOM = BACKWARD_COLUMNS + VN, /* for their sums: a vector may begin with the last of them */
    BACKWARD_PREFETCH =
        16 /* rows that are prefetched: the pieces of a row are too short for the hardware to see where they lead */
};

/* Rows of at most BACKWARD_COLUMNS columns. */
typedef struct backward_columns {
    const float *d;
    const char *x;
    size_t d_stride, x_stride, rows, width; /* strides in bytes */
    int prefetch;
} backward_columns;

NRG_INLINE void backward_strip(const backward_columns *c, size_t k, size_t row, size_t rows, const float *centre, double *a,
                               double *b, int G, size_t n, nrg_dtype D)
{
    vd kept_a[2 * NORM_STEP], kept_b[2 * NORM_STEP], mean[2 * NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        kept_a[j] = vd_ld(a + k + j * (VN / 2));
        kept_b[j] = vd_ld(b + k + j * (VN / 2));
        mean[j] = vd_ld_f32(centre + k + j * (VN / 2));
    }
    for (size_t i = row; i < row + rows; i++) {
        const float *d = (const float *)((const char *)c->d + i * c->d_stride) + k;
        const char *x = c->x + i * c->x_stride;
        vf dv[NORM_STEP], xv[NORM_STEP];
        if (c->prefetch) {
            NRG_UNROLL
            for (size_t at = 0; at < (size_t)G * VN * sizeof(float); at += 64) {
                __builtin_prefetch((const void *)((uintptr_t)d + BACKWARD_PREFETCH * c->d_stride + at));
                __builtin_prefetch((const void *)((uintptr_t)x + bytes_of(k, D, 0) + BACKWARD_PREFETCH * c->x_stride + at));
            }
        }
        load_step(dv, G, (const char *)d, 0, n, NRG_F32);
        load_step(xv, G, x, k, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            add_gradient(&kept_a[2 * j], &kept_b[2 * j], vd_low(dv[j]), vd_low(xv[j]), mean[2 * j]);
            add_gradient(&kept_a[2 * j + 1], &kept_b[2 * j + 1], vd_high(dv[j]), vd_high(xv[j]), mean[2 * j + 1]);
        }
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        vd_st(a + k + j * (VN / 2), kept_a[j]);
        vd_st(b + k + j * (VN / 2), kept_b[j]);
    }
}

/* Adds rows to the sums of every column. centre, a and b have room for whole vectors. */
NRG_INLINE void add_columns_of(const backward_columns *c, const float *centre, double *a, double *b, nrg_dtype D)
{
    enum { STRIP = V_SUM4 * VN };
    const size_t most = CHANNEL_ROW_BYTES / (c->width * sizeof(float) * 2) + 1;
    for (size_t row = 0; row < c->rows; row += most) {
        const size_t rows = c->rows - row < most ? c->rows - row : most;
        size_t k = 0;
        if (V_SUM4 > 1)
            for (; k + STRIP <= c->width; k += STRIP)
                backward_strip(c, k, row, rows, centre, a, b, V_SUM4, STRIP, D);
        for (; k < c->width; k += VN)
            backward_strip(c, k, row, rows, centre, a, b, 1, lanes_at(k, c->width), D);
    }
}

static __attribute__((noinline)) void add_columns(const backward_columns *c, const float *centre, double *a, double *b,
                                                  nrg_dtype D)
{
    NRG_CALL_BY_DTYPE(D, add_columns_of, c, centre, a, b);
}

#endif
