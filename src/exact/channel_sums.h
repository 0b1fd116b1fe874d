/* Sums of a set: of one segment as they are, of several exactly, in integers that anyone may add (nrg/channel_norm.h); and the
 * statistics that follow from them. docs/ops/channel_norm.md, "Statistics", is this in words. For the public layer and the vector
 * paths; the reference has its own, in src/scalar/channel_sums.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_CHANNEL_SUMS_H
#define NRG_EXACT_CHANNEL_SUMS_H

#include <float.h>
#include <math.h>

#include "../internal.h"

/* Σx and Σx² of a set of `count` elements, each as the nearest double and the nearest to what that leaves. */
typedef struct nrg_set_sums {
    double count, t, t_low, q, q_low;
} nrg_set_sums;

/* record: the NRG_CHANNEL_NORM_SUMS_WORDS integers of one set. */
void nrg_sums_clear(int64_t *record);

/* Adds a segment of `count` elements. A q that is not finite poisons the record. */
void nrg_sums_segment(int64_t *record, double count, double t, double q);

/* The same from sums around a, which is a float's value: u = Σ(x - a), v = Σ(x - a)². */
void nrg_sums_segment_around(int64_t *record, double count, double a, double u, double v);

/* The doubles whose sums are that segment's Σx and Σx², exactly: count·a + u, and v + 2a·u + count·a², products with what their
 * rounding left. */
enum { NRG_AROUND_T = 2, NRG_AROUND_Q = 5 };
static inline void nrg_around_terms(double count, double a, double u, double v, double t[NRG_AROUND_T], double q[NRG_AROUND_Q])
{
    const double cross = 2 * a * u, square = a * a, squares = count * square;
    t[0] = count * a;
    t[1] = u;
    q[0] = v;
    q[1] = cross;
    q[2] = fma(2 * a, u, -cross);
    q[3] = squares;
    q[4] = fma(count, square, -squares);
}

/* Carries: so that this record can be added to 2^30 others. */
void nrg_sums_carry(int64_t *record);

/* The record of finite sums. */
void nrg_sums_put(int64_t *record, const nrg_set_sums *sums);

nrg_set_sums nrg_sums_value(const int64_t *record);

/* Whether σ² = square - mean² kept enough of its 53 bits: a column of 4096 like elements may have lost ten before. False for NaN.
 */
static inline int nrg_variance_is_sound(double mean, double variance) { return mean * mean <= 0x1p16 * variance; }

/* 1/s. */
static inline double nrg_channel_rstd(double variance, double eps)
{
    const double square = variance + eps;
    if (square > DBL_MAX)
        return 0;
    if (square > 0)
        return __builtin_sqrt(square) * (1 / square);
    return square == square && square == 0 ? 0 : (double)NAN;
}

/* Where the plain formula lost too much: a mean of more than 256 σ, or a poisoned set. */
static inline nrg_channel_statistics nrg_statistics_exact(const nrg_set_sums *sums, double eps)
{
    const double d = sums->count, t = sums->t, q = sums->q;
    nrg_channel_statistics stat = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, d};
    if (!(q <= DBL_MAX))
        return stat;
    stat.mean = t / d;
    stat.mean_low = (fma(-stat.mean, d, t) + sums->t_low) / d;
    const double dq = d * q, tt = t * t;
    const double rest = fma(d, q, -dq) - fma(t, t, -tt);
    stat.variance = ((dq - tt) + (rest + (d * sums->q_low - 2 * t * sums->t_low))) / d / d;
    if (!(stat.variance > 0))
        stat.variance = 0;
    stat.rstd = nrg_channel_rstd(stat.variance, eps);
    return stat;
}

static inline nrg_channel_statistics nrg_statistics_of(const nrg_set_sums *sums, int centred, double eps)
{
    const double inverse = 1 / sums->count;
    nrg_channel_statistics stat = {0, 0, sums->q * inverse, 0, sums->count};
    if (!(stat.variance <= DBL_MAX))
        return nrg_statistics_exact(sums, eps);
    if (centred) {
        stat.mean = sums->t / sums->count;
        stat.variance -= stat.mean * stat.mean;
        if (!nrg_variance_is_sound(stat.mean, stat.variance))
            return nrg_statistics_exact(sums, eps);
    }
    stat.rstd = nrg_channel_rstd(stat.variance, eps);
    return stat;
}

/* Running statistics: the set is what one batch, or one sample of it, has. */
static inline nrg_channel_statistics nrg_statistics_fixed(float mean, float variance, double eps)
{
    nrg_channel_statistics stat = {(double)mean, 0, (double)variance, nrg_channel_rstd((double)variance, eps), 0};
    return stat;
}

/* Running statistics, updated with those of the sets of one channel: one of batch norm, or one of every sample. */
typedef struct nrg_running_sums {
    double mean, variance;
} nrg_running_sums;

static inline void nrg_running_add(nrg_running_sums *sums, const nrg_channel_statistics *stat)
{
    sums->mean += stat->mean + stat->mean_low;
    sums->variance += stat->variance * (stat->count / (stat->count - 1));
}

static inline void nrg_running_update(float *mean, float *variance, const nrg_running_sums *sums, size_t sets, double momentum)
{
    *mean = (float)((1 - momentum) * (double)*mean + momentum * (sums->mean / (double)sets));
    *variance = (float)((1 - momentum) * (double)*variance + momentum * (sums->variance / (double)sets));
}

/* Where a set is cut (docs/ops/channel_norm.md): elements of a segment, in the order of the set; a batch set with s > segment is
 * cut in each sample anew, and `period` is then s, otherwise all of the set. */
typedef struct nrg_segments {
    size_t length, period;
} nrg_segments;

static inline nrg_segments nrg_segments_of(size_t n, size_t s, size_t groups, size_t group_channels, int nhwc, size_t segment)
{
    nrg_segments cut;
    if (groups == 0) {
        cut.length = s > segment ? segment : segment / s * s;
        cut.period = s > segment ? s : n * s;
    } else if (!nhwc || s == 1) {
        cut.length = segment;
        cut.period = group_channels * s;
    } else {
        const size_t positions = segment / (group_channels < 64 ? group_channels : 64);
        cut.length = (positions ? positions : 1) * group_channels;
        cut.period = group_channels * s;
    }
    return cut;
}

#endif
