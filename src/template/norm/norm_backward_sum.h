/* The sums of a row that its gradient needs, with q = p - mean: Σq and Σq², for 1/s, in double; Σdh and Σdh·q, where
 * dh = do1 · (w + weight_offset), of four elements of a lane in f32 and in double beyond.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_SUM_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_SUM_H

#include "norm_fast_rows.h"

enum {
    BACKWARD_BLOCK = 4 * NORM_LANES,
    BACKWARD_TURN = 8 * BACKWARD_BLOCK /* elements that stay in L1 for the next lanes, where a turn has not all of them */
};

/* A chunk of a row: floats, or 16-bit elements as they are in memory. */
typedef struct backward_chunk {
    const char *d, *p; /* do1 and p */
    const float *w;    /* with the weight offset; NULL, of floats only: ones */
} backward_chunk;

/* What multiplies a row's elements: h = q·rstd - left and dp = dh·a - q·b + c. */
typedef struct backward_plain {
    float mean, rstd, left;
    float a, b, c;
} backward_plain;

typedef struct backward_factors {
    int fallback;
    backward_plain plain;
    /* fallback: the mean in two parts, 1/s; dp = dh·a - h·b + c */
    double pilot, shift, inverse, fallback_a, fallback_b, fallback_c;
} backward_factors;

/* A row's sums so far: the lanes of the present segment, and the segments before it. */
typedef struct backward_sums {
    vd q[NORM_LANE_REGISTERS], qq[NORM_LANE_REGISTERS], d[NORM_LANE_REGISTERS], dq[NORM_LANE_REGISTERS];
    norm_total total_q, total_qq, total_d, total_dq;
} backward_sums;

/* Four elements of a lane, on their way. */
typedef struct backward_partial {
    vf d, dq;
} backward_partial;

/* Not centred, the mean is 0 and Σq and Σdh are of no interest. */
NRG_INLINE void backward_square(vd *q, vd *qq, vd p, vd mean, int centred)
{
    vd exact = centred ? vd_sub(p, mean) : p;
    *qq = vd_fma(exact, exact, *qq);
    if (centred)
        *q = vd_add(*q, exact);
}

NRG_INLINE void backward_cross(backward_partial *partial, vf p, vf d, vf mean, int first, int centred)
{
    vf q = centred ? v_sub(p, mean) : p;
    partial->dq = first ? v_mul(d, q) : v_fma(d, q, partial->dq);
    if (centred)
        partial->d = first ? d : v_add(partial->d, d);
}

NRG_INLINE void backward_to_lanes(backward_sums *s, size_t at, const backward_partial *partial, int centred)
{
    s->dq[at] = vd_add(s->dq[at], vd_low(partial->dq));
    s->dq[at + 1] = vd_add(s->dq[at + 1], vd_high(partial->dq));
    if (centred) {
        s->d[at] = vd_add(s->d[at], vd_low(partial->d));
        s->d[at + 1] = vd_add(s->d[at + 1], vd_high(partial->d));
    }
}

/* What the loops over a chunk hold: the lanes of a group of vectors, and the mean as floats and as doubles. */
typedef struct backward_group {
    backward_sums s;
    backward_partial partial[4];
    backward_chunk c;
    vf mean;
    vd exact_mean;
} backward_group;

/* p of elements at to at + VN, as doubles. */
NRG_INLINE void backward_doubles(vd both[2], const backward_chunk *c, vf p, size_t at, int centred, nrg_dtype D)
{
    if (D == NRG_F32) { /* straight from memory */
        both[0] = vd_ld_f32((const float *)c->p + at);
        both[1] = vd_ld_f32((const float *)c->p + at + VN / 2);
    } else if (D == NRG_F16 && !centred) {
        both[0] = vd_low(p);
        both[1] = vd_high(p);
    } else /* AVX2, by way of memory: bf16 0.94 of the time at 512x4096, rms of f16 1.02 */
        vd_both(p, &both[0], &both[1]);
}

/* Elements at to at + VN, of the group's vector j. */
NRG_INLINE void backward_sum_vector(backward_group *g, int j, size_t at, int first, int centred, int weighted, nrg_dtype D)
{
    vf d = load_whole(g->c.d, at, D), p = load_whole(g->c.p, at, D);
    if (weighted)
        d = v_mul(d, v_ld_f32(g->c.w + at));
    backward_cross(&g->partial[j], p, d, g->mean, first, centred);
    vd exact[2];
    backward_doubles(exact, &g->c, p, at, centred, D);
    backward_square(&g->s.q[2 * j], &g->s.qq[2 * j], exact[0], g->exact_mean, centred);
    backward_square(&g->s.q[2 * j + 1], &g->s.qq[2 * j + 1], exact[1], g->exact_mean, centred);
}

/* The lanes from `lane` on, G vectors wide, of elements begin to end: whole blocks, and after them whole vectors of one. */
NRG_INLINE void backward_sum_group(backward_sums *sums, int G, const backward_chunk *chunk, float row_mean, size_t lane,
                                   size_t begin, size_t end, int centred, int weighted, int prefetch, nrg_dtype D)
{
    const size_t first = lane / (VN / 2), whole = end - (end - begin) % BACKWARD_BLOCK;
    backward_group g = {.c = *chunk, .mean = v_set1(row_mean), .exact_mean = vd_set1((double)row_mean)};
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        g.s.qq[j] = sums->qq[first + (size_t)j];
        g.s.dq[j] = sums->dq[first + (size_t)j];
        g.s.q[j] = centred ? sums->q[first + (size_t)j] : vd_zero();
        g.s.d[j] = centred ? sums->d[first + (size_t)j] : vd_zero();
    }
    for (size_t i = begin + lane; i < whole; i += BACKWARD_BLOCK) {
        if (prefetch && lane == 0) {
            NRG_UNROLL
            for (size_t at = 0; at < bytes_of(BACKWARD_BLOCK, D, 0); at += 64) {
                __builtin_prefetch((const void *)((uintptr_t)g.c.p + bytes_of(i, D, 0) + at + 4096));
                __builtin_prefetch((const void *)((uintptr_t)g.c.d + bytes_of(i, D, 0) + at + 4096));
            }
        }
        NRG_UNROLL
        for (int step = 0; step < 4; step++) {
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                backward_sum_vector(&g, j, i + (size_t)step * NORM_LANES + (size_t)j * VN, step == 0, centred, weighted, D);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            backward_to_lanes(&g.s, 2 * (size_t)j, &g.partial[j], centred);
    }
    if (whole < end) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            g.partial[j].d = g.partial[j].dq = v_zero();
        NRG_UNROLL
        for (int step = 0; step < 4; step++) {
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                const size_t at = whole + lane + (size_t)step * NORM_LANES + (size_t)j * VN;
                if (at < end)
                    backward_sum_vector(&g, j, at, 0, centred, weighted, D);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            backward_to_lanes(&g.s, 2 * (size_t)j, &g.partial[j], centred);
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        sums->qq[first + (size_t)j] = g.s.qq[j];
        sums->dq[first + (size_t)j] = g.s.dq[j];
        if (centred) {
            sums->q[first + (size_t)j] = g.s.q[j];
            sums->d[first + (size_t)j] = g.s.d[j];
        }
    }
}

/* The end of a row, less than a block and with part of a vector. */
NRG_INLINE void backward_sum_end(backward_sums *s, const backward_chunk *c, float row_mean, size_t begin, size_t n, int centred,
                                 int weighted, nrg_dtype D)
{
    const vf mean = v_set1(row_mean);
    const vd exact_mean = vd_set1((double)row_mean);
    backward_partial partial[NORM_LANE_VECTORS];
    memset(partial, 0, sizeof partial);
    for (size_t i = begin; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n), at = (i - begin) / VN % NORM_LANE_VECTORS;
        vf p = load_part(c->p, i, lanes, D), d = load_part(c->d, i, lanes, D);
        if (lanes < VN && centred) {
            /* beyond the end p has to be the mean, so that q is 0 */
            float part[VN];
            v_st_f32(part, p);
            for (size_t l = lanes; l < VN; l++)
                part[l] = row_mean;
            p = v_ld_f32(part);
        }
        if (weighted)
            d = v_mul(d, v_ldn_f32(c->w + i, lanes));
        backward_cross(&partial[at], p, d, mean, 0, centred);
        backward_square(&s->q[2 * at], &s->qq[2 * at], vd_low(p), exact_mean, centred);
        backward_square(&s->q[2 * at + 1], &s->qq[2 * at + 1], vd_high(p), exact_mean, centred);
    }
    for (size_t j = 0; j < NORM_LANE_VECTORS; j++)
        backward_to_lanes(s, 2 * j, &partial[j], centred);
}

/* n elements, the first in lane 0; less than a block is the end of a row. */
NRG_INLINE void backward_sum_chunk(backward_sums *s, const backward_chunk *c, float row_mean, size_t n, int centred, int weighted,
                                   int prefetch, nrg_dtype D)
{
    const int most = centred ? V_SUM4 : V_SUM2, G = most < NORM_LANE_VECTORS ? most : NORM_LANE_VECTORS;
    const size_t vectors = n % VN == 0 ? n : n - n % BACKWARD_BLOCK;
    if (G == NORM_LANE_VECTORS)
        backward_sum_group(s, G, c, row_mean, 0, 0, vectors, centred, weighted, prefetch, D);
    else
        for (size_t begin = 0, end; begin < vectors; begin = end) {
            end = vectors - begin > BACKWARD_TURN ? begin + BACKWARD_TURN : vectors;
            for (size_t lane = 0; lane < NORM_LANES; lane += (size_t)G * VN)
                backward_sum_group(s, G, c, row_mean, lane, begin, end, centred, weighted, prefetch, D);
        }
    if (NRG_RARELY(vectors < n))
        backward_sum_end(s, c, row_mean, vectors, n, centred, weighted, D);
}

/* The lanes of a whole row of `steps` times NORM_LANES elements, one block at most, with weights: nothing is added to lanes of 0,
 * and nothing is looked at but a constant number of elements. 4096x64 with AVX2 in 0.66 to 0.76 of the time of the loops above,
 * with AVX-512 in 0.84 to 0.98. A sum may be -0 here, where 0 + (-0) is 0. */
NRG_INLINE void backward_sum_short(backward_sums *s, const backward_chunk *chunk, float row_mean, int steps, int centred,
                                   nrg_dtype D)
{
    const backward_chunk c = *chunk;
    const vf mean = v_set1(row_mean);
    const vd exact_mean = vd_set1((double)row_mean);
    NRG_UNROLL
    for (int j = 0; j < NORM_LANE_VECTORS; j++) {
        backward_partial partial;
        vd q[2], qq[2];
        NRG_UNROLL
        for (int step = 0; step < steps; step++) {
            const size_t at = (size_t)step * NORM_LANES + (size_t)j * VN;
            vf p = load_whole(c.p, at, D), d = v_mul(load_whole(c.d, at, D), v_ld_f32(c.w + at));
            vd exact[2];
            backward_cross(&partial, p, d, mean, step == 0, centred);
            backward_doubles(exact, &c, p, at, centred, D);
            NRG_UNROLL
            for (int half = 0; half < 2; half++) {
                if (centred)
                    exact[half] = vd_sub(exact[half], exact_mean);
                qq[half] = step ? vd_fma(exact[half], exact[half], qq[half]) : vd_mul(exact[half], exact[half]);
                q[half] = step ? vd_add(q[half], exact[half]) : exact[half];
            }
        }
        s->qq[2 * j] = qq[0];
        s->qq[2 * j + 1] = qq[1];
        s->dq[2 * j] = vd_low(partial.dq);
        s->dq[2 * j + 1] = vd_high(partial.dq);
        if (centred) {
            s->q[2 * j] = q[0];
            s->q[2 * j + 1] = q[1];
            s->d[2 * j] = vd_low(partial.d);
            s->d[2 * j + 1] = vd_high(partial.d);
        }
    }
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
        s->q[j] = s->qq[j] = s->d[j] = s->dq[j] = vd_zero();
}

NRG_INLINE void backward_sum_any(backward_sums *s, const backward_chunk *c, float mean, size_t n, int centred, int prefetch,
                                 nrg_dtype D)
{
    const int weighted = D != NRG_F32 || c->w; /* 16-bit rows without weights are given ones: half the code */
    if (V_SMALL)
        backward_sum_chunk(s, c, mean, n, centred, weighted, prefetch, D);
    else if (centred && weighted)
        backward_sum_chunk(s, c, mean, n, 1, 1, prefetch, D);
    else if (weighted)
        backward_sum_chunk(s, c, mean, n, 0, 1, prefetch, D);
    else if (centred)
        backward_sum_chunk(s, c, mean, n, 1, 0, prefetch, D);
    else
        backward_sum_chunk(s, c, mean, n, 0, 0, prefetch, D);
}

/* Adds elements begin to end of a row of dim elements of dtype D; begin is a multiple of a block and no segment's end lies
 * between. */
static __attribute__((noinline)) void backward_sum(backward_sums *s, const backward_chunk *c, float mean, size_t begin,
                                                   size_t end, size_t dim, int centred, int prefetch, nrg_dtype D)
{
    if (begin == 0) {
        s->total_q = s->total_qq = s->total_d = s->total_dq = (norm_total){0, 0};
        backward_clear(s);
    }
    NRG_CALL_BY_DTYPE(D, backward_sum_any, s, c, mean, end - begin, centred, prefetch);
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    add_compensated(&s->total_qq, lanes_sum(s->qq));
    add_compensated(&s->total_dq, lanes_sum(s->dq));
    if (centred) {
        add_compensated(&s->total_q, lanes_sum(s->q));
        add_compensated(&s->total_d, lanes_sum(s->d));
    }
    backward_clear(s);
}

/* ---- rows that need the fallback: rare, so lane by lane in memory, in double ---- */

typedef struct fallback_sums {
    double t[NORM_LANES], tt[NORM_LANES], d[NORM_LANES], dt[NORM_LANES];
    norm_total total_t, total_tt, total_d, total_dt;
} fallback_sums;

NRG_INLINE double memory_lanes_sum(double *lanes)
{
    for (int half = NORM_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    double sum = lanes[0];
    memset(lanes, 0, NORM_LANES * sizeof *lanes);
    return sum;
}

/* Σt, Σt², Σdh and Σdh·t of t = p - pilot; floats. */
static __attribute__((noinline)) void backward_sum_around(fallback_sums *s, const backward_chunk *c, double pilot, size_t begin,
                                                          size_t end, size_t dim)
{
    const float *p = (const float *)c->p, *d = (const float *)c->d;
    if (begin == 0)
        memset(s, 0, sizeof *s);
    for (size_t i = 0; i < end - begin; i++) {
        const size_t lane = i % NORM_LANES;
        double t = (double)p[i] - pilot, dh = (double)d[i];
        if (c->w)
            dh *= (double)c->w[i];
        s->t[lane] += t;
        s->tt[lane] += t * t;
        s->d[lane] += dh;
        s->dt[lane] = fma(dh, t, s->dt[lane]);
    }
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    add_compensated(&s->total_t, memory_lanes_sum(s->t));
    add_compensated(&s->total_tt, memory_lanes_sum(s->tt));
    add_compensated(&s->total_d, memory_lanes_sum(s->d));
    add_compensated(&s->total_dt, memory_lanes_sum(s->dt));
}

#endif
