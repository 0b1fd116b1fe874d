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

enum { AROUND_STEP = 2, AROUND_PART = 4096 };

static inline int part_is_near(double a, double v) { return v <= 0.125 * (a * a); }
static inline int around_is_exact(const channel_around *sums, double a) { return sums->exact && sums->v <= 4 * (a * a); }

NRG_INLINE void add_around(vd *u, vd *v, vd x, vd a)
{
    const vd t = vd_sub(x, a);
    *u = vd_add(*u, t);
    *v = vd_fma(t, t, *v);
}

NRG_INLINE double lanes_of(vd sums[2 * AROUND_STEP])
{
    double lanes[VN / 2], total = 0;
    vd_st(lanes, vd_add(vd_add(sums[0], sums[1]), vd_add(sums[2], sums[3])));
    for (int l = 0; l < VN / 2; l++)
        total += lanes[l];
    return total;
}

/* n elements that lie together, at most a part. */
static __attribute__((noinline)) void add_part_around(channel_around *sums, const char *x, size_t n, double a, nrg_dtype D)
{
    enum { STEP = AROUND_STEP * VN };
    const vd centre = vd_set1(a);
    vd u[2 * AROUND_STEP], v[2 * AROUND_STEP];
    vf e[AROUND_STEP];
    size_t i = 0;
    NRG_UNROLL
    for (int j = 0; j < 2 * AROUND_STEP; j++)
        u[j] = v[j] = vd_zero();
    for (; i + STEP <= n; i += STEP) {
        load_step(e, AROUND_STEP, x, i, STEP, D);
        NRG_UNROLL
        for (int j = 0; j < AROUND_STEP; j++) {
            add_around(&u[2 * j], &v[2 * j], vd_low(e[j]), centre);
            add_around(&u[2 * j + 1], &v[2 * j + 1], vd_high(e[j]), centre);
        }
    }
    for (; i < n; i += VN) { /* lanes without an element hold a */
        const size_t lanes = lanes_at(i, n);
        float rest[VN];
        load_step(e, 1, x, i, lanes, D);
        v_st_f32(rest, e[0]);
        for (size_t l = lanes; l < VN; l++)
            rest[l] = (float)a;
        e[0] = v_ld_f32(rest);
        add_around(&u[0], &v[0], vd_low(e[0]), centre);
        add_around(&u[1], &v[1], vd_high(e[0]), centre);
    }
    const double part = lanes_of(v);
    sums->u += lanes_of(u);
    sums->v += part;
    sums->exact &= part_is_near(a, part);
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

/* ---- columns, each around a number of its own ---- */

enum { AROUND_COLUMNS = 16, AROUND_VECTORS = AROUND_COLUMNS / VN };

NRG_INLINE void add_rows_around(const char *x, size_t stride, size_t rows, const double *a, double *u, double *v, int G, size_t n,
                                nrg_dtype D)
{
    vd centre[2 * AROUND_VECTORS], kept_u[2 * AROUND_VECTORS], kept_v[2 * AROUND_VECTORS];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        centre[j] = vd_ld(a + j * (VN / 2));
        kept_u[j] = kept_v[j] = vd_zero();
    }
    for (size_t row = 0; row < rows; row++) {
        vf e[AROUND_VECTORS];
        if (n == (size_t)G * VN) {
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                e[j] = load_whole(x + row * stride, (size_t)j * VN, D);
        } else
            e[0] = load_part(x + row * stride, 0, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            add_around(&kept_u[2 * j], &kept_v[2 * j], vd_low(e[j]), centre[2 * j]);
            add_around(&kept_u[2 * j + 1], &kept_v[2 * j + 1], vd_high(e[j]), centre[2 * j + 1]);
        }
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        vd_st(u + j * (VN / 2), kept_u[j]);
        vd_st(v + j * (VN / 2), kept_v[j]);
    }
}

/* Rows of at most AROUND_COLUMNS columns, for which a, u and v have room. */
static __attribute__((noinline)) void around_columns(const char *x, size_t stride, size_t rows, size_t width, const double *a,
                                                     double *u, double *v, nrg_dtype D)
{
    if (width == AROUND_COLUMNS) {
        add_rows_around(x, stride, rows, a, u, v, AROUND_VECTORS, AROUND_COLUMNS, D);
        return;
    }
    for (size_t k = 0; k < width; k += VN)
        add_rows_around(x + bytes_of(k, D, 0), stride, rows, a + k, u + k, v + k, 1, lanes_at(k, width), D);
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
