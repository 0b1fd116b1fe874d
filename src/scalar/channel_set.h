/* The sets of a tensor with channels, for the reference kernels: their sums, and what their elements are normalized with.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_CHANNEL_SET_H
#define NRG_SCALAR_CHANNEL_SET_H

#include "channel_segment_fast.h"
#include "norm_statistics.h"

enum { COLUMN_LANES = 8 }; /* that columns fold to */

/* T and Q of elements begin to end of a set, which are a segment. */
static inline void sum_segment(const channel_tensor *t, const channel_set *set, size_t begin, size_t end, double *total_t,
                               double *total_q, nrg_dtype dtype)
{
    const channel_order order = order_of(t, begin);
    const set_runs runs = runs_of(t, set);
    if (order.columns) {
        double lanes_t[COLUMN_LANES] = {0}, lanes_q[COLUMN_LANES] = {0};
        for (size_t k = 0; k < order.columns; k++) {
            double column_t = 0, column_q = 0;
            /* a segment of columns begins with the first of them, but where it is a part of a channel's positions: then there is
             * one */
            set_walk at = walk_from(&runs, begin + k);
            for (size_t i = begin + k; i < end; i += order.columns, at.run++) { /* runs are as long as there are columns */
                const double x = (double)load(at.runs.first, at.run * at.runs.stride + at.i, dtype);
                column_t += x;
                column_q += x * x;
            }
            lanes_t[k % COLUMN_LANES] += column_t;
            lanes_q[k % COLUMN_LANES] += column_q;
        }
        *total_t = fold_doubles(lanes_t, COLUMN_LANES, 1);
        *total_q = fold_doubles(lanes_q, COLUMN_LANES, 1);
        return;
    }
    double lanes_t[LANES] = {0}, lanes_q[LANES] = {0};
    set_walk at = walk_from(&runs, begin);
    for (size_t i = begin, in_period = 0; i < end; i++) {
        const double x = (double)next_x(&at, dtype);
        lanes_t[in_period % LANES] += x;
        lanes_q[in_period % LANES] += x * x;
        if (++in_period == order.period)
            in_period = 0;
    }
    *total_t = fold_doubles(lanes_t, LANES, 1);
    *total_q = fold_doubles(lanes_q, LANES, 1);
}

/* One element after the other, since it is seldom. */
static inline void sum_segment_around(const channel_tensor *t, const channel_set *set, size_t begin, size_t end, float a,
                                      double *total_u, double *total_v, nrg_dtype dtype)
{
    const set_runs runs = runs_of(t, set);
    set_walk at = walk_from(&runs, begin);
    *total_u = *total_v = 0;
    for (size_t i = begin; i < end; i++) {
        const double x = (double)next_x(&at, dtype) - (double)a;
        *total_u += x;
        *total_v = fma(x, x, *total_v);
    }
}

/* Adds elements begin to end of a set, which are a segment, to a record: in floats, where these serve; otherwise as they are, or,
 * where the mean is large beside σ, around it. */
static inline void sum_one(const channel_tensor *t, const channel_set *set, size_t begin, size_t end, int centred,
                           int64_t *record, nrg_dtype dtype)
{
    if (t->fast && add_segment_fast(t, set, begin, end, centred, record, dtype))
        return;
    const double count = (double)(end - begin);
    double total_t, total_q;
    sum_segment(t, set, begin, end, &total_t, &total_q, dtype);
    if (!centred) {
        add_segment(record, count, 0, total_q);
        return;
    }
    const double mean = total_t / count, variance = total_q * (1 / count) - mean * mean;
    if (!are_finite(total_t, total_q) || variance_is_sound(mean, variance)) {
        add_segment(record, count, total_t, total_q);
        return;
    }
    double u, v;
    sum_segment_around(t, set, begin, end, (float)mean, &u, &v, dtype);
    add_segment_around(record, count, (double)(float)mean, u, v);
}

/* Where the segment ends that begins with element `begin` of a set of `count`. */
static inline size_t segment_end(const channel_tensor *t, size_t count, size_t segment, size_t begin)
{
    const size_t left = count - begin;
    size_t length = segment;
    if (!t->groups && t->s <= segment) /* whole samples */
        length = segment / t->s * t->s;
    else if (!t->groups) /* a part of one */
        length = t->s - begin % t->s < segment ? t->s - begin % t->s : segment;
    else if (t->nhwc && t->s > 1) { /* some positions */
        const size_t channels = t->group_channels < 64 ? t->group_channels : 64;
        length = (segment > channels ? segment / channels : 1) * t->group_channels;
    }
    return begin + (length < left ? length : left);
}

/* All segments of a set. */
static inline void sum_segments(const channel_tensor *t, const channel_set *set, size_t segment, int centred, int64_t *record,
                                nrg_dtype dtype)
{
    const size_t count = (set->n_end - set->n) * (set->c_end - set->c) * t->s;
    memset(record, 0, NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *record);
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = segment_end(t, count, segment, begin);
        sum_one(t, set, begin, end, centred, record, dtype);
    }
    carry_sums(record);
}

static inline nrg_channel_statistics set_statistics(const channel_tensor *t, const channel_set *set, size_t segment, int centred,
                                                    double eps, nrg_dtype dtype)
{
    int64_t record[NRG_CHANNEL_NORM_SUMS_WORDS];
    sum_segments(t, set, segment, centred, record, dtype);
    const set_sums sums = sums_of(record);
    return statistics_of(&sums, centred, eps);
}

/* ---- elements ---- */

/* Element c of w or b as f32; `absent` where there is none. */
static inline float parameter(const char *p, size_t c, int is_f32, nrg_dtype dtype, float absent)
{
    return p ? load(p, c, is_f32 ? NRG_F32 : dtype) : absent;
}

/* What a channel's elements are normalized with. */
typedef struct channel_factors {
    int plain, fast;
    float w, b, hi, lo, shift, shift_lo;
    float centre; /* fast: the mean as f32 */
    double mean, mean_low, rstd;
} channel_factors;

static inline int between(double magnitude, double least, double most)
{
    return magnitude == 0 || (magnitude >= least && magnitude <= most);
}

static inline channel_factors factors_of(const nrg_channel_statistics *stat, int fast, const char *w, const char *b, size_t c,
                                         int w_f32, nrg_dtype dtype)
{
    const double mean = stat->mean + stat->mean_low, rstd = stat->rstd;
    channel_factors f = {.fast = fast, .w = parameter(w, c, w_f32, dtype, 1), .b = parameter(b, c, w_f32, dtype, 0)};
    f.mean = stat->mean;
    f.mean_low = stat->mean_low;
    f.rstd = rstd;
    f.plain = between(rstd, 0x1p-40, 0x1p40) && between(fabs((double)f.w), 0x1p-40, 0x1p40);
    if (fast) {
        const double factor = rstd * (double)f.w;
        f.centre = (float)mean;
        f.hi = (float)factor;
        f.shift = (float)fma((double)f.centre - mean, factor, (double)f.b);
        f.plain = f.plain && fabs(mean) * rstd <= 0x1p20 && fabs(mean) <= 0x1p100;
        return f;
    }
    const float high = (float)rstd, low = (float)(rstd - (double)high);
    f.hi = f.w * high;
    f.lo = fmaf(f.w, low, fmaf(f.w, high, -f.hi));
    const double shift = fma(-(mean * rstd), (double)f.w, (double)f.b);
    f.shift = (float)shift;
    f.shift_lo = (float)(shift - (double)f.shift);
    f.plain = f.plain && fabs(mean) * rstd <= 1024;
    return f;
}

/* o1. */
static inline float normalized(const channel_factors *f, float x)
{
    if (f->plain && f->fast)
        return fmaf(x - f->centre, f->hi, f->shift);
    if (f->plain)
        return fmaf(x, f->hi, f->shift) + fmaf(x, f->lo, f->shift_lo);
    return (float)fma(((double)x - f->mean) - f->mean_low, f->rstd * (double)f->w, (double)f->b);
}

#endif
