/* The sums of a segment in the fast grade: in floats, around a number that is near its elements. docs/ops/channel_norm.md, "Fast
 * sums", is this in words.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_CHANNEL_SEGMENT_FAST_H
#define NRG_SCALAR_CHANNEL_SEGMENT_FAST_H

#include "channel_place.h"
#include "channel_sums.h"
#include "lanes.h"

enum {
    SET_LEAST = 2048, /* elements of a segment that floats are worth it for */
    SET_PILOT = 64,   /* of which the first so many, which lie together, say where its mean may be */
    SET_LANES = 32,   /* that a step fills */
    SET_FOLDED = 16,  /* that they fold to */
    SET_STEPS = 8,    /* that a lane adds plainly: a quarter of a block */
    SET_QUARTERS = 4
};

/* Σ(x - a) and Σ(x - a)². */
typedef struct fast_sums {
    float a;
    double u, v;
} fast_sums;

/* The mean of a segment's first elements. */
static inline float pilot_of(const set_runs *runs, size_t begin, nrg_dtype dtype)
{
    float lanes[SET_PILOT];
    set_walk at = walk_from(runs, begin);
    for (int l = 0; l < SET_PILOT; l++)
        lanes[l] = next_x(&at, dtype);
    return fold_floats(lanes, SET_PILOT, 1) * (1.0f / SET_PILOT);
}

typedef struct fast_lanes {
    float quarter[SET_QUARTERS][SET_LANES];
    double folded[SET_FOLDED];
} fast_lanes;

static inline void fold_block(fast_lanes *sum)
{
    float lanes[SET_LANES];
    for (int l = 0; l < SET_LANES; l++)
        lanes[l] = (sum->quarter[0][l] + sum->quarter[1][l]) + (sum->quarter[2][l] + sum->quarter[3][l]);
    for (int l = 0; l < SET_FOLDED; l++)
        sum->folded[l] += (double)(lanes[l] + lanes[l + SET_FOLDED]);
    memset(sum->quarter, 0, sizeof sum->quarter);
}

static inline double fold_all(fast_lanes *sum)
{
    fold_block(sum);
    return fold_doubles(sum->folded, SET_FOLDED, 1);
}

static inline fast_sums sum_lanes_fast(const set_runs *runs, const channel_order *order, size_t begin, size_t end, int centred,
                                       nrg_dtype dtype)
{
    fast_lanes u = {.folded = {0}}, v = {.folded = {0}};
    fast_sums sums = {0, 0, 0};
    if (centred)
        sums.a = pilot_of(runs, begin, dtype);
    set_walk at = walk_from(runs, begin);
    for (size_t i = begin, in_period = 0, steps = 0; i < end; i++) {
        const size_t lane = in_period % SET_LANES;
        const float x = next_x(&at, dtype) - sums.a;
        if (lane == 0 && steps++ == SET_QUARTERS * SET_STEPS) {
            fold_block(&u);
            fold_block(&v);
            steps = 1;
        }
        const size_t quarter = (steps - 1) / SET_STEPS;
        u.quarter[quarter][lane] += x;
        v.quarter[quarter][lane] = fmaf(x, x, v.quarter[quarter][lane]);
        if (++in_period == order->period)
            in_period = 0;
    }
    sums.u = fold_all(&u);
    sums.v = fold_all(&v);
    return sums;
}

/* Adds elements begin to end of a set, which are a segment, to a record. Returns 0, and does nothing, where floats do not serve.
 */
static inline int add_segment_fast(const channel_tensor *t, const channel_set *set, size_t begin, size_t end, int centred,
                                   int64_t *record, nrg_dtype dtype)
{
    const double count = (double)(end - begin);
    const channel_order order = order_of(t, begin);
    if (end - begin < SET_LEAST || order.columns)
        return 0;
    const set_runs runs = runs_of(t, set);
    const fast_sums sums = sum_lanes_fast(&runs, &order, begin, end, centred, dtype);
    if (!(sums.v >= 0x1p-100 * count && sums.v <= 0x1p100))
        return 0;
    if (!centred) {
        add_segment(record, count, 0, sums.v);
        return 1;
    }
    const double a = (double)sums.a, delta = sums.u * (1 / count), variance = sums.v * (1 / count) - delta * delta,
                 mean = a + delta;
    if (!(delta * delta <= variance))
        return 0;
    if (variance_is_sound(mean, variance))
        add_segment(record, count, fma(count, a, sums.u), fma(count, a * a, fma(2 * a, sums.u, sums.v)));
    else
        add_segment_around(record, count, a, sums.u, sums.v);
    return 1;
}

#endif
