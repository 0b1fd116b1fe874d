/* Σ(x - a) and Σ(x - a)² of elements that lie together, in floats: plainly for a few additions, then in double. The order is the
 * one that every path keeps (docs/ops/channel_norm.md, "Fast sums").
 *
 * Columns stay in double: in floats the sums of 16 to 256 of them took 0.83 to 1.0 of the time in cache, a twentieth of a call.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_FAST_SUM_H
#define NRG_TEMPLATE_CHANNEL_FAST_SUM_H

#include "../../exact/channel_sums.h"
#include "sum.h"

enum {
    SET_LEAST = 2048, /* elements of a segment that floats are worth it for */
    SET_PILOT = 64,   /* of which the first so many, which lie together, say where its mean may be */
    SET_LANES = 32,   /* that a step fills */
    SET_FOLDED = 16,  /* that they fold to */
    SET_STEPS = 8,    /* that a lane adds plainly: a quarter of a block */
    SET_QUARTERS = 4,
    SET_VECTORS = SET_LANES / VN,
    SET_BLOCK = SET_QUARTERS * SET_STEPS * SET_LANES,   /* elements */
    SET_SIDE_BY_SIDE = SET_QUARTERS * SET_VECTORS <= 8, /* whether registers hold the two sums of all quarters */
    SET_PREFETCH = 4096                                 /* bytes ahead */
};

typedef struct fast_lanes {
    float u[SET_QUARTERS][SET_LANES], v[SET_QUARTERS][SET_LANES];
    double folded_u[SET_FOLDED], folded_v[SET_FOLDED];
    float a[VN];  /* the pilot, in every lane */
    size_t steps; /* of the present block; a quarter without a step holds nothing */
} fast_lanes;

/* steps: of the block. */
NRG_INLINE void fold_block(double *folded, float quarters[SET_QUARTERS][SET_LANES], size_t steps)
{
    vf lanes[SET_VECTORS];
    NRG_UNROLL
    for (int j = 0; j < SET_VECTORS; j++) {
        lanes[j] = v_ld_f32(quarters[0] + j * VN);
        if (steps > SET_STEPS)
            lanes[j] = v_add(lanes[j], v_ld_f32(quarters[1] + j * VN));
        if (steps > 3 * SET_STEPS)
            lanes[j] = v_add(lanes[j], v_add(v_ld_f32(quarters[2] + j * VN), v_ld_f32(quarters[3] + j * VN)));
        else if (steps > 2 * SET_STEPS)
            lanes[j] = v_add(lanes[j], v_ld_f32(quarters[2] + j * VN));
    }
    NRG_UNROLL
    for (int j = 0; j < SET_VECTORS / 2; j++) {
        double *low = folded + j * VN, *high = low + VN / 2;
        const vf both = v_add(lanes[j], lanes[j + SET_VECTORS / 2]);
        vd_st(low, vd_add(vd_ld(low), vd_low(both)));
        vd_st(high, vd_add(vd_ld(high), vd_high(both)));
    }
}

/* Of a whole block, or of what there is of one. */
static __attribute__((noinline)) void fold_steps(fast_lanes *l)
{
    fold_block(l->folded_u, l->u, l->steps);
    fold_block(l->folded_v, l->v, l->steps);
    l->steps = 0;
}

/* Some whole steps of a quarter. */
NRG_INLINE void add_steps(fast_lanes *l, const char *x, size_t steps, int prefetch, nrg_dtype D)
{
    const vf a = v_ld_f32(l->a);
    const int fresh = l->steps % SET_STEPS == 0;
    float *to_u = l->u[l->steps / SET_STEPS], *to_v = l->v[l->steps / SET_STEPS];
    vf u[SET_VECTORS], v[SET_VECTORS];
    NRG_UNROLL
    for (int j = 0; j < SET_VECTORS; j++) {
        u[j] = fresh ? v_zero() : v_ld_f32(to_u + j * VN);
        v[j] = fresh ? v_zero() : v_ld_f32(to_v + j * VN);
    }
    l->steps += steps;
    for (const char *end = x + bytes_of(steps * SET_LANES, D, 0); x < end; x += bytes_of(SET_LANES, D, 0)) {
        if (prefetch) {
            NRG_UNROLL
            for (size_t b = 0; b < bytes_of(SET_LANES, D, 0); b += 64)
                __builtin_prefetch((const void *)((uintptr_t)x + b + SET_PREFETCH));
        }
        NRG_UNROLL
        for (int j = 0; j < SET_VECTORS; j++) {
            const vf t = v_sub(load_whole(x, (size_t)j * VN, D), a);
            u[j] = v_add(u[j], t);
            v[j] = v_fma(t, t, v[j]);
        }
    }
    NRG_UNROLL
    for (int j = 0; j < SET_VECTORS; j++) {
        v_st_f32(to_u + j * VN, u[j]);
        v_st_f32(to_v + j * VN, v[j]);
    }
}

/* The first n elements of a step, which are all that is left of a run. */
NRG_INLINE void add_part_of_step(fast_lanes *l, const char *x, size_t n, nrg_dtype D)
{
    float *u = l->u[l->steps / SET_STEPS], *v = l->v[l->steps / SET_STEPS];
    if (l->steps++ % SET_STEPS == 0) {
        memset(u, 0, sizeof l->u[0]);
        memset(v, 0, sizeof l->v[0]);
    }
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf t = v_sub(load_part(x, i, lanes, D), load_lanes(l->a, lanes));
        v_st_f32(u + i, v_add(v_ld_f32(u + i), t));
        v_st_f32(v + i, v_fma(t, t, v_ld_f32(v + i)));
    }
}

/* A whole block, its quarters side by side: one after the other, an addition waits for the one before, and AVX-512 has but
 * four chains of them. */
NRG_INLINE void add_fast_block(fast_lanes *l, const char *x, int prefetch, nrg_dtype D)
{
    const size_t quarter = (size_t)SET_STEPS * SET_LANES;
    const vf a = v_ld_f32(l->a);
    vf u[SET_QUARTERS][SET_VECTORS], v[SET_QUARTERS][SET_VECTORS];
    NRG_UNROLL
    for (int i = 0; i < SET_QUARTERS * SET_VECTORS; i++)
        u[i / SET_VECTORS][i % SET_VECTORS] = v[i / SET_VECTORS][i % SET_VECTORS] = v_zero();
    for (const char *end = x + bytes_of(quarter, D, 0); x < end; x += bytes_of(SET_LANES, D, 0)) {
        NRG_UNROLL
        for (int q = 0; q < SET_QUARTERS; q++) {
            const char *at = x + bytes_of((size_t)q * quarter, D, 0);
            if (prefetch) {
                NRG_UNROLL
                for (size_t b = 0; b < bytes_of(SET_LANES, D, 0); b += 64)
                    __builtin_prefetch((const void *)((uintptr_t)at + b + SET_PREFETCH));
            }
            NRG_UNROLL
            for (int j = 0; j < SET_VECTORS; j++) {
                const vf t = v_sub(load_whole(at, (size_t)j * VN, D), a);
                u[q][j] = v_add(u[q][j], t);
                v[q][j] = v_fma(t, t, v[q][j]);
            }
        }
    }
    NRG_UNROLL
    for (int i = 0; i < SET_QUARTERS * SET_VECTORS; i++) {
        v_st_f32(l->u[i / SET_VECTORS] + i % SET_VECTORS * VN, u[i / SET_VECTORS][i % SET_VECTORS]);
        v_st_f32(l->v[i / SET_VECTORS] + i % SET_VECTORS * VN, v[i / SET_VECTORS][i % SET_VECTORS]);
    }
    l->steps = SET_QUARTERS * SET_STEPS;
}

/* n elements of a run, from a step's beginning on. */
NRG_INLINE void add_fast_of(fast_lanes *l, const char *x, size_t n, int prefetch, nrg_dtype D)
{
    while (n) {
        size_t done = n;
        if (SET_SIDE_BY_SIDE && l->steps == 0 && n >= SET_BLOCK) {
            add_fast_block(l, x, prefetch, D);
            done = SET_BLOCK;
        } else if (n >= SET_LANES) {
            const size_t room = SET_STEPS - l->steps % SET_STEPS, whole = n / SET_LANES, steps = whole < room ? whole : room;
            add_steps(l, x, steps, prefetch, D);
            done = steps * SET_LANES;
        } else
            add_part_of_step(l, x, n, D);
        if (l->steps == SET_QUARTERS * SET_STEPS)
            fold_steps(l);
        x += bytes_of(done, D, 0);
        n -= done;
    }
}

NRG_BY_DTYPE(add_fast, (l, x, n, prefetch), fast_lanes *l, const char *x, size_t n, int prefetch)

/* Begins a segment. Once for thousands of elements, so the dtype is looked up at run time. */
static __attribute__((noinline)) void start_fast(fast_lanes *l, const char *x, int centred, nrg_dtype D)
{
    l->steps = 0;
    memset(l->folded_u, 0, sizeof l->folded_u);
    memset(l->folded_v, 0, sizeof l->folded_v);
    memset(l->a, 0, sizeof l->a);
    if (!centred)
        return;
    enum { VECTORS = SET_PILOT / VN };
    float lanes[VN];
    vf v[VECTORS];
    for (size_t j = 0; j < VECTORS; j++)
        v[j] = load_whole(x, j * VN, D);
    NRG_UNROLL
    for (int half = VECTORS / 2; half; half /= 2) {
        NRG_UNROLL
        for (int j = 0; j < half; j++)
            v[j] = v_add(v[j], v[j + half]);
    }
    v_st_f32(lanes, v[0]);
    NRG_UNROLL
    for (int half = VN / 2; half; half /= 2) {
        NRG_UNROLL
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    }
    v_st_f32(l->a, v_set1(lanes[0] * (1.0f / SET_PILOT)));
}

NRG_INLINE double folded_sum(const double *folded)
{
    enum { HALF = SET_FOLDED / 2, COUNT = 2 * HALF / VN };
    vd8 sum;
    NRG_UNROLL
    for (int j = 0; j < COUNT; j++)
        sum.v[j] = vd_add(vd_ld(folded + j * (VN / 2)), vd_ld(folded + HALF + j * (VN / 2)));
    return vd8_sum(&sum);
}

NRG_INLINE void end_fast(fast_lanes *l, double *u, double *v)
{
    if (l->steps)
        fold_steps(l);
    *u = folded_sum(l->folded_u);
    *v = folded_sum(l->folded_v);
}

/* ---- what the sums are worth ---- */

/* What a segment's sums in floats are good for. */
typedef enum fast_use {
    FAST_UNFIT, /* nothing: the segment is summed in double */
    FAST_PLAIN, /* Σx and Σx² */
    FAST_AROUND /* sums around the pilot: Σx² would lose too much */
} fast_use;

/* u, v: around a; where they are plain, they become Σx and Σx². */
static inline fast_use use_of_fast(double count, double a, double *u, double *v, int centred)
{
    if (!((*v >= 0x1p-100 * count) & (*v <= 0x1p100)))
        return FAST_UNFIT;
    if (!centred) {
        *u = 0;
        return FAST_PLAIN;
    }
    const double delta = *u * (1 / count), variance = *v * (1 / count) - delta * delta, mean = a + delta;
    if (!(delta * delta <= variance))
        return FAST_UNFIT;
    if (!nrg_variance_is_sound(mean, variance))
        return FAST_AROUND;
    *v = fma(count, a * a, fma(2 * a, *u, *v));
    *u = fma(count, a, *u);
    return FAST_PLAIN;
}

#endif
