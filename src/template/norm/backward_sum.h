/* Sums of the backward pass, of q = p - mean: Σq and Σq² for 1/s, in double; Σdh and Σdh·q, where dh = do1·(w + weight_offset),
 * whose lanes add four elements in f32 and go on in double. A norm without a mean needs no Σq and no Σdh.
 *
 * Element i belongs to lane i mod 32, and a segment of 4096 elements folds by halves (docs/numerics.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_SUM_H
#define NRG_TEMPLATE_NORM_BACKWARD_SUM_H

#include "backward_source.h"

enum {
    GRADIENT_BLOCK = 4 * EXACT_LANES,
    GRADIENT_TURN = 8 * GRADIENT_BLOCK, /* elements that stay in L1 for the next lanes, where registers do not hold all */
    GRADIENT_VECTORS = EXACT_VECTORS
};

/* A chunk of a row that is summed: floats, or 16-bit elements where they are. */
typedef struct gradient_chunk {
    const char *d, *p; /* do1 and p */
    run_weights w;
    float mean;
    int prefetch, is_first; /* is_first: of a segment, so that the lanes begin with 0 */
} gradient_chunk;

/* The lanes of the present segment, and the segments before it. */
typedef struct gradient_sums {
    vd q[EXACT_LANE_VDS], qq[EXACT_LANE_VDS], d[EXACT_LANE_VDS], dq[EXACT_LANE_VDS];
    norm_total total_q, total_qq, total_d, total_dq;
} gradient_sums;

/* Four elements of each lane. */
typedef struct four_elements {
    vf d, dq;
} four_elements;

NRG_INLINE void add_square(vd *q, vd *qq, vd p, vd mean, int has_mean)
{
    const vd exact = has_mean ? vd_sub(p, mean) : p;
    *qq = vd_fma(exact, exact, *qq);
    if (has_mean)
        *q = vd_add(*q, exact);
}

NRG_INLINE void add_cross(four_elements *four, vf p, vf d, vf mean, int is_first, int has_mean)
{
    const vf q = has_mean ? v_sub(p, mean) : p;
    four->dq = is_first ? v_mul(d, q) : v_fma(d, q, four->dq);
    if (has_mean)
        four->d = is_first ? d : v_add(four->d, d);
}

NRG_INLINE void add_four(gradient_sums *s, size_t at, const four_elements *four, int has_mean)
{
    s->dq[at] = vd_add(s->dq[at], vd_low(four->dq));
    s->dq[at + 1] = vd_add(s->dq[at + 1], vd_high(four->dq));
    if (has_mean) {
        s->d[at] = vd_add(s->d[at], vd_low(four->d));
        s->d[at + 1] = vd_add(s->d[at + 1], vd_high(four->d));
    }
}

/* p of elements i to i + VN in double. */
NRG_INLINE void doubles_of_p(vd both[2], const gradient_chunk *c, vf p, size_t i, norm_policy P)
{
    if (P.dtype == NRG_F32) { /* from memory, without a shuffle */
        both[0] = vd_ld_f32((const float *)c->p + i);
        both[1] = vd_ld_f32((const float *)c->p + i + VN / 2);
    } else if (P.dtype == NRG_F16 && !is_centred(P)) {
        both[0] = vd_low(p);
        both[1] = vd_high(p);
    } else /* AVX2, through memory: bf16 512x4096 0.94 of the time, f16 RMSNorm 1.02 */
        vd_both(p, &both[0], &both[1]);
}

/* What a loop over a chunk holds: the lanes of G vectors, and the mean. */
typedef struct gradient_group {
    gradient_sums s;
    four_elements four[GRADIENT_VECTORS];
    gradient_chunk c;
    vf mean;
    vd exact_mean;
} gradient_group;

/* Elements i to i + VN, to vector j of the group. w: their weights. */
NRG_INLINE void sum_gradient_vector(gradient_group *g, int j, size_t i, const float *w, int is_first, norm_policy P)
{
    const vf d = v_mul(load_whole(g->c.d, i, P.dtype), v_ld_f32(w)), p = load_whole(g->c.p, i, P.dtype);
    vd exact[2];
    add_cross(&g->four[j], p, d, g->mean, is_first, is_centred(P));
    doubles_of_p(exact, &g->c, p, i, P);
    add_square(&g->s.q[2 * j], &g->s.qq[2 * j], exact[0], g->exact_mean, is_centred(P));
    add_square(&g->s.q[2 * j + 1], &g->s.qq[2 * j + 1], exact[1], g->exact_mean, is_centred(P));
}

/* G vectors of lanes from `lane` on, of elements begin to end: blocks, and whole vectors of one more. */
NRG_INLINE void sum_gradient_lanes(gradient_sums *sums, int G, const gradient_chunk *chunk, size_t lane, size_t begin, size_t end,
                                   norm_policy P)
{
    const size_t first = lane / (VN / 2), whole = end - (end - begin) % GRADIENT_BLOCK;
    const int is_first = chunk->is_first && begin == 0;
    gradient_group g = {.c = *chunk, .mean = v_set1(chunk->mean), .exact_mean = vd_set1((double)chunk->mean)};
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        g.s.qq[j] = is_first ? vd_zero() : sums->qq[first + (size_t)j];
        g.s.dq[j] = is_first ? vd_zero() : sums->dq[first + (size_t)j];
        g.s.q[j] = is_first || !is_centred(P) ? vd_zero() : sums->q[first + (size_t)j];
        g.s.d[j] = is_first || !is_centred(P) ? vd_zero() : sums->d[first + (size_t)j];
    }
    for (size_t i = begin + lane; i < whole; i += GRADIENT_BLOCK) {
        const float *const w = g.c.w.at + (i & g.c.w.mask);
        if (g.c.prefetch && lane == 0) {
            prefetch_ahead(g.c.p + bytes_of(i, P.dtype, 0), bytes_of(GRADIENT_BLOCK, P.dtype, 0), 4096);
            prefetch_ahead(g.c.d + bytes_of(i, P.dtype, 0), bytes_of(GRADIENT_BLOCK, P.dtype, 0), 4096);
        }
        NRG_UNROLL
        for (int step = 0; step < 4; step++) {
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                const size_t at = (size_t)step * EXACT_LANES + (size_t)j * VN;
                sum_gradient_vector(&g, j, i + at, w + at, step == 0, P);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            add_four(&g.s, 2 * (size_t)j, &g.four[j], is_centred(P));
    }
    if (whole < end) {
        const float *const w = g.c.w.at + ((whole + lane) & g.c.w.mask);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            g.four[j].d = g.four[j].dq = v_zero();
        NRG_UNROLL
        for (int step = 0; step < 4; step++) {
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                const size_t at = (size_t)step * EXACT_LANES + (size_t)j * VN;
                if (whole + lane + at < end)
                    sum_gradient_vector(&g, j, whole + lane + at, w + at, 0, P);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            add_four(&g.s, 2 * (size_t)j, &g.four[j], is_centred(P));
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        sums->qq[first + (size_t)j] = g.s.qq[j];
        sums->dq[first + (size_t)j] = g.s.dq[j];
        if (is_centred(P)) {
            sums->q[first + (size_t)j] = g.s.q[j];
            sums->d[first + (size_t)j] = g.s.d[j];
        }
    }
}

/* The tail of a row, less than a block, whose last vector is a part. */
NRG_INLINE void sum_gradient_tail(gradient_sums *s, const gradient_chunk *chunk, size_t begin, size_t end, norm_policy P)
{
    const gradient_chunk c = *chunk;
    const vf mean = v_set1(c.mean);
    const vd exact_mean = vd_set1((double)c.mean);
    four_elements four[GRADIENT_VECTORS];
    for (int j = 0; j < (int)GRADIENT_VECTORS; j++)
        four[j].d = four[j].dq = v_zero();
    for (size_t i = begin; i < end; i += VN) {
        const size_t n = lanes_at(i, end), at = (i - begin) / VN % GRADIENT_VECTORS;
        const vf d = v_mul(load_part(c.d, i, n, P.dtype), v_ldn_f32(c.w.at + (i & c.w.mask), n));
        vf p = load_part(c.p, i, n, P.dtype);
        if (is_centred(P) && n < VN)
            p = first_lanes(p, n, mean); /* so that q is 0 where there is no element */
        add_cross(&four[at], p, d, mean, 0, is_centred(P));
        add_square(&s->q[2 * at], &s->qq[2 * at], vd_low(p), exact_mean, is_centred(P));
        add_square(&s->q[2 * at + 1], &s->qq[2 * at + 1], vd_high(p), exact_mean, is_centred(P));
    }
    for (size_t j = 0; j < GRADIENT_VECTORS; j++)
        add_four(s, 2 * j, &four[j], is_centred(P));
}

NRG_INLINE norm_policy gradient_policy(nrg_dtype D, int has_mean)
{
    return (norm_policy){.dtype = D, .must = has_mean ? OPT_CENTRED : 0};
}

/* Adds n elements to the lanes, from the first lane on; less than a block only at the end of a row. */
NRG_INLINE void add_gradient_of(gradient_sums *s, const gradient_chunk *c, size_t n, norm_policy P)
{
    const int most = is_centred(P) ? V_SUM4 : V_SUM2, G = most < GRADIENT_VECTORS ? most : GRADIENT_VECTORS;
    const size_t whole = n % VN == 0 ? n : n - n % GRADIENT_BLOCK;
    if (G == GRADIENT_VECTORS)
        sum_gradient_lanes(s, G, c, 0, 0, whole, P);
    else
        for (size_t begin = 0, end; begin < whole || (begin == 0 && c->is_first); begin = end) {
            end = lesser(begin + GRADIENT_TURN, whole);
            for (size_t lane = 0; lane < EXACT_LANES; lane += (size_t)G * VN)
                sum_gradient_lanes(s, G, c, lane, begin, end, P);
            if (whole == 0)
                break;
        }
    if (NRG_RARELY(whole < n))
        sum_gradient_tail(s, c, whole, n, P);
}

/* The lanes of eight rows, folded to eight. */
typedef struct folded_gradients {
    vd8 q[8], qq[8], d[8], dq[8];
} folded_gradients;

NRG_INLINE void fold_gradient(folded_gradients *to, int k, const gradient_sums *sums, int has_mean)
{
    to->qq[k] = fold_exact(sums->qq);
    to->dq[k] = fold_exact(sums->dq);
    if (has_mean) {
        to->q[k] = fold_exact(sums->q);
        to->d[k] = fold_exact(sums->d);
    }
}

/* n elements of each of `count` rows. to: where the lanes of whole rows are folded; NULL: they stay where they are. */
NRG_INLINE void add_gradient_rows_of(gradient_sums *s, folded_gradients *to, const gradient_chunk *c, int count, size_t n,
                                     norm_policy P)
{
    for (int k = 0; k < count; k++) {
        add_gradient_of(s, c + k, n, P);
        if (to)
            fold_gradient(to, k, s, is_centred(P));
    }
}

NRG_INLINE void add_gradient_rows_rms_of(gradient_sums *s, folded_gradients *to, const gradient_chunk *c, int count, size_t n,
                                         nrg_dtype D)
{
    add_gradient_rows_of(s, to, c, count, n, gradient_policy(D, 0));
}
NRG_BY_DTYPE(add_gradient_rows_rms, (s, to, c, count, n), gradient_sums *s, folded_gradients *to, const gradient_chunk *c,
             int count, size_t n)

NRG_INLINE void add_gradient_rows_layer_of(gradient_sums *s, folded_gradients *to, const gradient_chunk *c, int count, size_t n,
                                           nrg_dtype D)
{
    add_gradient_rows_of(s, to, c, count, n, gradient_policy(D, 1));
}
NRG_BY_DTYPE(add_gradient_rows_layer, (s, to, c, count, n), gradient_sums *s, folded_gradients *to, const gradient_chunk *c,
             int count, size_t n)

NRG_INLINE void add_gradient_rows(gradient_sums *s, folded_gradients *to, const gradient_chunk *c, int count, size_t n,
                                  int has_mean, nrg_dtype D)
{
    if (NORM_IS_SMALL || has_mean) /* a mean of 0 changes nothing */
        add_gradient_rows_layer(s, to, c, count, n, D);
    else
        add_gradient_rows_rms(s, to, c, count, n, D);
}

NRG_INLINE void end_segment(norm_total *total, const vd *lanes)
{
    const vd8 folded = fold_exact(lanes);
    add_compensated(total, vd8_sum(&folded));
}

/* Adds elements begin to end of a row of dim elements. begin is a multiple of a block, and a segment ends at `end` or later. */
static __attribute__((noinline)) void sum_gradient(gradient_sums *s, const gradient_chunk *c, size_t begin, size_t end,
                                                   size_t dim, int has_mean, nrg_dtype D)
{
    gradient_chunk chunk = *c;
    chunk.is_first = begin % NORM_SEGMENT == 0;
    if (begin == 0)
        s->total_q = s->total_qq = s->total_d = s->total_dq = (norm_total){0, 0};
    add_gradient_rows(s, NULL, &chunk, 1, end - begin, has_mean, D);
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    end_segment(&s->total_qq, s->qq);
    end_segment(&s->total_dq, s->dq);
    if (has_mean) {
        end_segment(&s->total_q, s->q);
        end_segment(&s->total_d, s->d);
    }
}

/* The lanes of a row of n elements, whole steps and one block at most. 4096x64 with AVX2 in 0.66 to 0.76 of the time of the loops
 * above, with AVX-512 in 0.84 to 0.98. */
NRG_INLINE void sum_short_gradient(gradient_sums *s, const gradient_chunk *chunk, size_t n, norm_policy P)
{
    const gradient_chunk c = *chunk;
    const vf mean = v_set1(c.mean);
    const vd exact_mean = vd_set1((double)c.mean);
    NRG_UNROLL
    for (int j = 0; j < (int)GRADIENT_VECTORS; j++) {
        four_elements four = {v_zero(), v_zero()};
        vd q[2] = {vd_zero(), vd_zero()}, qq[2] = {vd_zero(), vd_zero()};
        for (size_t at = (size_t)j * VN; at < n; at += EXACT_LANES) {
            const vf p = load_whole(c.p, at, P.dtype), d = v_mul(load_whole(c.d, at, P.dtype), v_ld_f32(c.w.at + at));
            vd exact[2];
            add_cross(&four, p, d, mean, 0, is_centred(P));
            doubles_of_p(exact, &c, p, at, P);
            add_square(&q[0], &qq[0], exact[0], exact_mean, is_centred(P));
            add_square(&q[1], &qq[1], exact[1], exact_mean, is_centred(P));
        }
        s->qq[2 * j] = qq[0];
        s->qq[2 * j + 1] = qq[1];
        s->dq[2 * j] = vd_low(four.dq);
        s->dq[2 * j + 1] = vd_high(four.dq);
        if (is_centred(P)) {
            s->q[2 * j] = q[0];
            s->q[2 * j + 1] = q[1];
            s->d[2 * j] = vd_low(four.d);
            s->d[2 * j + 1] = vd_high(four.d);
        }
    }
}

/* ---- rows that need the fallback: rare, so lane by lane in memory, in double ---- */

/* Σdh and Σdh·t of t = p - pilot. */
typedef struct fallback_gradient {
    double d[EXACT_LANES], dt[EXACT_LANES];
    norm_total total_d, total_dt;
} fallback_gradient;

NRG_INLINE double take_lanes(double *lanes)
{
    for (int half = EXACT_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    const double sum = lanes[0];
    memset(lanes, 0, EXACT_LANES * sizeof *lanes);
    return sum;
}

/* A chunk of floats. */
static __attribute__((noinline)) void sum_fallback_gradient(fallback_gradient *s, const gradient_chunk *c, double pilot,
                                                            size_t begin, size_t end, size_t dim)
{
    const float *p = (const float *)c->p, *d = (const float *)c->d;
    if (begin == 0)
        memset(s, 0, sizeof *s);
    for (size_t i = 0; i < end - begin; i++) {
        const size_t lane = i % EXACT_LANES;
        const double dh = (double)d[i] * (double)c->w.at[i & c->w.mask];
        s->d[lane] += dh;
        s->dt[lane] = fma(dh, (double)p[i] - pilot, s->dt[lane]);
    }
    if (end != dim && end % NORM_SEGMENT != 0)
        return;
    add_compensated(&s->total_d, take_lanes(s->d));
    add_compensated(&s->total_dt, take_lanes(s->dt));
}

#endif
