/* The sums of a row that its gradient needs, Σdh, Σdh·h and Σh, where dh = do1 · (w + weight_offset) and h is what came out of
 * the norm. Four elements of a lane add up in f32, everything else in double: with sums in double throughout, the conversions
 * alone took as long as everything else (AVX-512, 64×4096: 3.0 elements/ns for the whole backward pass).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_SUM_H
#define NRG_TEMPLATE_NORM_BACKWARD_SUM_H

#include "norm_sum.h"

enum { BACKWARD_BLOCK = 4 * NORM_LANES };

/* Floats of a chunk. */
typedef struct backward_chunk {
    const float *d, *p; /* do1 and p */
    const float *w;     /* with the weight offset; NULL: ones */
} backward_chunk;

/* What multiplies a row's elements, once h is known: dp = dh·a - h·b + c. */
typedef struct backward_factors {
    int careful;
    /* plain */
    float mean, rstd;
    float left; /* of the mean, in units of s: what its rounding to f32 left in h */
    float a, b, c;
    /* careful: the mean in two parts, 1/s */
    double pilot, shift, inverse, careful_a, careful_b, careful_c;
} backward_factors;

/* A row's sums so far: the lanes of the present segment, and the segments before it. */
typedef struct backward_sums {
    vd h[NORM_LANE_REGISTERS], d[NORM_LANE_REGISTERS], dh[NORM_LANE_REGISTERS];
    double total_h, total_d, total_dh;
} backward_sums;

/* Four elements of a lane, on their way. */
typedef struct backward_few {
    vf h, d, dh;
} backward_few;

NRG_INLINE void backward_add(backward_few *few, vf p, vf d, vf mean, vf rstd, int first, int centred)
{
    vf h = v_mul(centred ? v_sub(p, mean) : p, rstd);
    few->dh = first ? v_mul(d, h) : v_fma(d, h, few->dh);
    if (centred) {
        few->h = first ? h : v_add(few->h, h);
        few->d = first ? d : v_add(few->d, d);
    }
}

NRG_INLINE void backward_to_lanes(backward_sums *s, size_t at, const backward_few *few, int centred)
{
    s->dh[at] = vd_add(s->dh[at], vd_low(few->dh));
    s->dh[at + 1] = vd_add(s->dh[at + 1], vd_high(few->dh));
    if (centred) {
        s->h[at] = vd_add(s->h[at], vd_low(few->h));
        s->h[at + 1] = vd_add(s->h[at + 1], vd_high(few->h));
        s->d[at] = vd_add(s->d[at], vd_low(few->d));
        s->d[at + 1] = vd_add(s->d[at + 1], vd_high(few->d));
    }
}

/* The lanes from `lane` on, G vectors wide, of n elements, whole blocks. */
NRG_INLINE void backward_sum_group(backward_sums *sums, int G, const backward_chunk *chunk, const backward_factors *f,
                                   size_t lane, size_t n, int centred, int weighted, int prefetch)
{
    const size_t first = lane / (VN / 2);
    const backward_chunk c = *chunk;
    const vf mean = v_set1(f->mean), rstd = v_set1(f->rstd);
    backward_sums s; /* the group's lanes, in registers */
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        s.dh[j] = sums->dh[first + (size_t)j];
        s.h[j] = centred ? sums->h[first + (size_t)j] : vd_zero();
        s.d[j] = centred ? sums->d[first + (size_t)j] : vd_zero();
    }
    for (size_t i = lane; i < n; i += BACKWARD_BLOCK) {
        backward_few few[4];
        if (prefetch && lane == 0) {
            NRG_UNROLL
            for (size_t at = 0; at < BACKWARD_BLOCK; at += 64 / sizeof(float)) {
                __builtin_prefetch((const void *)((uintptr_t)(c.p + i + at) + 2048));
                __builtin_prefetch((const void *)((uintptr_t)(c.d + i + at) + 2048));
            }
        }
        NRG_UNROLL
        for (int step = 0; step < 4; step++) {
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                const size_t at = i + (size_t)step * NORM_LANES + (size_t)j * VN;
                vf d = v_ld_f32(c.d + at);
                if (weighted)
                    d = v_mul(d, v_ld_f32(c.w + at));
                backward_add(&few[j], v_ld_f32(c.p + at), d, mean, rstd, step == 0, centred);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            backward_to_lanes(&s, 2 * (size_t)j, &few[j], centred);
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        sums->dh[first + (size_t)j] = s.dh[j];
        if (centred) {
            sums->h[first + (size_t)j] = s.h[j];
            sums->d[first + (size_t)j] = s.d[j];
        }
    }
}

/* The first n lanes; the others become 0. */
NRG_INLINE vf first_lanes(vf v, size_t n)
{
    float part[VN];
    v_st_f32(part, v);
    return v_ldn_f32(part, n);
}

/* n elements, the first in lane 0; less than a block is the end of a row. */
NRG_INLINE void backward_sum_chunk(backward_sums *s, const backward_chunk *c, const backward_factors *f, size_t n, int centred,
                                   int weighted, int prefetch)
{
    const int most = centred ? V_SUM4 : V_SUM2, G = most < NORM_LANE_VECTORS ? most : NORM_LANE_VECTORS;
    const size_t whole = n - n % BACKWARD_BLOCK;
    if (whole)
        for (size_t lane = 0; lane < NORM_LANES; lane += (size_t)G * VN)
            backward_sum_group(s, G, c, f, lane, whole, centred, weighted, prefetch);
    if (whole == n)
        return;
    const vf mean = v_set1(f->mean), rstd = v_set1(f->rstd);
    backward_few few[NORM_LANE_VECTORS];
    memset(few, 0, sizeof few);
    for (size_t i = whole; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        backward_few *to = &few[(i - whole) / VN % NORM_LANE_VECTORS];
        vf p = v_ldn_f32(c->p + i, lanes), d = v_ldn_f32(c->d + i, lanes);
        if (weighted)
            d = v_mul(d, v_ldn_f32(c->w + i, lanes));
        if (lanes == VN) {
            backward_add(to, p, d, mean, rstd, 0, centred);
            continue;
        }
        /* beyond the end p is 0, and h is not; it may be infinite */
        vf h = first_lanes(v_mul(centred ? v_sub(p, mean) : p, rstd), lanes);
        to->dh = v_fma(d, h, to->dh);
        if (centred) {
            to->h = v_add(to->h, h);
            to->d = v_add(to->d, d);
        }
    }
    for (size_t j = 0; j < NORM_LANE_VECTORS; j++)
        backward_to_lanes(s, 2 * j, &few[j], centred);
}

NRG_INLINE double lanes_sum(const vd *lanes)
{
    vd8 folded = fold_lanes(lanes);
    return vd8_sum(&folded);
}

NRG_INLINE void backward_clear(backward_sums *s)
{
    NRG_UNROLL
    for (int j = 0; j < NORM_LANE_REGISTERS; j++)
        s->h[j] = s->d[j] = s->dh[j] = vd_zero();
}

/* Adds elements begin to end of a row of dim elements; begin is a multiple of a block and no segment's end lies between. */
static __attribute__((noinline)) void backward_sum(backward_sums *s, const backward_chunk *c, const backward_factors *f,
                                                   size_t begin, size_t end, size_t dim, int centred, int prefetch)
{
    if (begin == 0) {
        s->total_h = s->total_d = s->total_dh = 0;
        backward_clear(s);
    }
    if (centred && c->w)
        backward_sum_chunk(s, c, f, end - begin, 1, 1, prefetch);
    else if (centred)
        backward_sum_chunk(s, c, f, end - begin, 1, 0, prefetch);
    else if (c->w)
        backward_sum_chunk(s, c, f, end - begin, 0, 1, prefetch);
    else
        backward_sum_chunk(s, c, f, end - begin, 0, 0, prefetch);
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    s->total_dh += lanes_sum(s->dh);
    if (centred) {
        s->total_h += lanes_sum(s->h);
        s->total_d += lanes_sum(s->d);
    }
    backward_clear(s);
}

/* ---- rows that need care: rare, so lane by lane in memory, in double ---- */

typedef struct careful_sums {
    double t[NORM_LANES], tt[NORM_LANES], d[NORM_LANES], dt[NORM_LANES];
    double total_t, total_tt, total_d, total_dt;
} careful_sums;

NRG_INLINE double memory_lanes_sum(double *lanes)
{
    for (int half = NORM_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    double sum = lanes[0];
    memset(lanes, 0, NORM_LANES * sizeof *lanes);
    return sum;
}

/* Σt, Σt², Σdh and Σdh·t of t = p - pilot. */
static __attribute__((noinline)) void backward_sum_around(careful_sums *s, const backward_chunk *c, double pilot, size_t begin,
                                                          size_t end, size_t dim)
{
    if (begin == 0)
        memset(s, 0, sizeof *s);
    for (size_t i = 0; i < end - begin; i++) {
        const size_t lane = i % NORM_LANES;
        double t = (double)c->p[i] - pilot, dh = (double)c->d[i];
        if (c->w)
            dh *= (double)c->w[i];
        s->t[lane] += t;
        s->tt[lane] += t * t;
        s->d[lane] += dh;
        s->dt[lane] = __builtin_fma(dh, t, s->dt[lane]);
    }
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    s->total_t += memory_lanes_sum(s->t);
    s->total_tt += memory_lanes_sum(s->tt);
    s->total_d += memory_lanes_sum(s->d);
    s->total_dt += memory_lanes_sum(s->dt);
}

#endif
