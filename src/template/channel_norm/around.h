/* Σ(x - a) and Σ(x - a)² of a segment whose mean is large beside its σ; a is the mean in f32. The definition adds one element
 * after the other (docs/ops/channel_norm.md, "Statistics", 3), and so does the last function here. The others do not have to:
 * where Σ(x - a)² ≤ a²/8 for every part of a segment, no x is further from a than |a|/2. All x - a are then multiples of half of
 * a's last place, all squares multiples of its square, and while the sum of these is at most 4a², it and all sums on the way have
 * no more than 53 bits. They are exact, in whatever order. A segment of up to 8192 elements that gets here meets both conditions,
 * since its σ is at most |a|/256.
 *
 * Seldom, so the dtype is looked up at run time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_AROUND_H
#define NRG_TEMPLATE_CHANNEL_AROUND_H

#include "sum.h"
#include "total.h"

/* A segment's elements, in the order of their set: runs that lie together, the last of which may be cut short. */
typedef struct channel_runs {
    const char *x;
    size_t length, stride, count; /* of a run; bytes from run to run; elements of all */
} channel_runs;

/* Their sums. */
typedef struct channel_around {
    double u, v;
    int exact; /* so far */
} channel_around;

enum { AROUND_COLUMNS = 16, AROUND_PART = 4096 };

static inline int part_is_near(double a, double v) { return v <= 0.125 * (a * a); }
static inline int around_is_exact(const channel_around *sums, double a) { return sums->exact && sums->v <= 4 * (a * a); }

/* n elements that lie together, at most a part. */
static __attribute__((noinline)) void add_part_around(channel_around *sums, const char *x, size_t n, double a, nrg_dtype D)
{
    vd centre[2 * NORM_STEP];
    channel_lanes lanes;
    double u, v;
    clear_lanes(&lanes);
    fill_centre(centre, a);
    for (size_t i = 0; i < n; i += VN) {
        const size_t count = lanes_at(i, n), lane = i % EXACT_LANES / (VN / 2);
        float e[VN];
        const sum_source from = {SUM_AROUND, (const char *)e, NULL, centre};
        v_st_f32(e, load_part(x, i, count, D));
        for (size_t l = count; l < VN; l++) /* which adds nothing */
            e[l] = (float)a;
        sum_step(lanes.t + lane, lanes.q + lane, &from, 0, 1, VN, NRG_F32);
    }
    fold_sums(&lanes, &u, &v);
    sums->u += u;
    sums->v += v;
    sums->exact &= part_is_near(a, v);
}

/* One element after the other. */
static __attribute__((noinline)) channel_around around_in_order(const channel_runs *runs, double a, nrg_dtype D)
{
    channel_around sums = {0, 0, 1};
    const char *x = runs->x;
    for (size_t left = runs->count, n; left; left -= n, x += runs->stride) {
        n = left < runs->length ? left : runs->length;
        for (size_t i = 0; i < n; i += VN) {
            const size_t lanes = lanes_at(i, n);
            float e[VN];
            v_st_f32(e, load_part(x, i, lanes, D));
            for (size_t l = 0; l < lanes; l++) {
                const double t = (double)e[l] - a;
                sums.u += t;
                sums.v = fma(t, t, sums.v);
            }
        }
    }
    return sums;
}

/* The sums of long runs, one run after the other. */
static __attribute__((noinline)) channel_around around_runs(const channel_runs *runs, double a, nrg_dtype D)
{
    channel_around sums = {0, 0, 1};
    const char *x = runs->x;
    for (size_t left = runs->count, n; left; left -= n, x += runs->stride) {
        n = left < runs->length ? left : runs->length;
        for (size_t i = 0, part; i < n; i += part) {
            part = n - i < AROUND_PART ? n - i : AROUND_PART;
            add_part_around(&sums, x + bytes_of(i, D, 0), part, a, D);
        }
    }
    return around_is_exact(&sums, a) ? sums : around_in_order(runs, a, D);
}

/* Rows of at most AROUND_COLUMNS columns, each around its centre; u and v have room for full vectors. */
static __attribute__((noinline)) void around_columns(const channel_columns *c, double *u, double *v, nrg_dtype D)
{
    for (size_t k = 0; k < AROUND_COLUMNS; k++)
        u[k] = v[k] = 0;
    sum_rows_of(c, u, v, SUM_AROUND, D);
}

/* ---- what the sums are for ---- */

/* Whether a segment of finite elements has to be summed around its mean. */
static inline int segment_needs_centring(double count, double t, double q)
{
    const double mean = t / count;
    return q <= DBL_MAX && !nrg_variance_is_sound(mean, q * (1 / count) - mean * mean);
}

/* add_segment with sums around a. Elements that are nearly alike leave the two doubles room for it. */
static __attribute__((noinline)) void add_segment_around(channel_total *total, int64_t *record, double count, double a, double u,
                                                         double v)
{
    double t[NRG_AROUND_T], q[NRG_AROUND_Q];
    total->count += count;
    if (record) {
        nrg_sums_segment_around(record, count, a, u, v);
        return;
    }
    nrg_around_terms(count, a, u, v, t, q);
    for (int i = 0; i < NRG_AROUND_T; i++)
        if (!add_exactly(&total->t, &total->t_low, t[i]))
            total->state |= CHANNEL_OVERFLOWED;
    for (int i = 0; i < NRG_AROUND_Q; i++)
        if (!add_exactly(&total->q, &total->q_low, q[i]))
            total->state |= CHANNEL_OVERFLOWED;
}

#endif
