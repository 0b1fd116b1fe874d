/* The sums of a set and the statistics that follow from them, for the reference kernels: docs/ops/channel_norm.md, "Statistics",
 * in C.
 *
 * A set's segments are added exactly, in the integers of nrg/channel_norm.h. How a number lies in them is what all who add parts
 * agree on, and so the same as in src/exact/channel_sums.c, which the vector paths and the public layer use; how a double gets
 * there and back is written anew here, so that the paths are compared with something that is not themselves.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_CHANNEL_SUMS_H
#define NRG_SCALAR_CHANNEL_SUMS_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "../internal.h"

/* A record: the count of elements, that of segments which were not finite, and two numbers. */
enum { SUMS_COUNT = 0, SUMS_POISON = 1 };

/* A number in a record: Σ digit[i] · 2^(exponent + 32·i). A digit has 64 bits, and may be negative. */
typedef struct sums_number {
    int first, digits, exponent;
} sums_number;

static const sums_number sums_t = {2, 10, -160}, sums_q = {12, 19, -320};

/* Adds a double, from the highest digit down. Every operation is exact. */
static inline void add_to_number(int64_t *record, sums_number n, double value)
{
    double unit = ldexp(1, n.exponent + 32 * (n.digits - 1));
    for (int i = n.digits - 1; i >= 0; i--) {
        if (fabs(value) >= unit) {
            const int64_t digit = (int64_t)(value / unit);
            record[n.first + i] += digit;
            value -= (double)digit * unit;
        }
        unit *= 0x1p-32;
    }
}

/* Makes every digit but the highest one of 32 bits, and not negative. */
static inline void carry_number(int64_t *record, sums_number n)
{
    int64_t *digit = record + n.first;
    for (int i = 0; i + 1 < n.digits; i++) {
        const int64_t low = digit[i] & 0xffffffff;
        digit[i + 1] += (digit[i] - low) / ((int64_t)1 << 32);
        digit[i] = low;
    }
}

/* Takes the nearest double from a number, ties to even, which leaves the rest there. */
static inline double take_nearest(int64_t *record, sums_number n)
{
    int64_t positive[NRG_CHANNEL_NORM_SUMS_WORDS], *digit = positive + n.first;
    carry_number(record, n);
    memcpy(positive, record, sizeof positive);
    const int negative = digit[n.digits - 1] < 0;
    for (int i = 0; i < n.digits && negative; i++)
        digit[i] = -digit[i];
    carry_number(positive, n);

    /* The highest bits as an integer of 64, whose last bit stands for all that are lower, too: it is rounded to a double as the
     * number would be. */
    int i = n.digits - 1;
    while (i > 0 && digit[i] == 0)
        i--;
    uint64_t bits = (uint64_t)digit[i];
    int exponent = n.exponent + 32 * i;
    if (i > 0 && bits >> 32 == 0) {
        bits = bits << 32 | (uint64_t)digit[--i];
        exponent -= 32;
    }
    if (i > 0) {
        int room = 0; /* less than 32 */
        while (!(bits >> (63 - room) & 1))
            room++;
        const uint64_t next = (uint64_t)digit[--i];
        bits = bits << room | next >> (32 - room);
        exponent -= room;
        int rest = (next << room & 0xffffffff) != 0;
        while (i > 0)
            rest |= digit[--i] != 0;
        bits |= (uint64_t)rest;
    }
    const double value = ldexp(negative ? -(double)bits : (double)bits, exponent);
    add_to_number(record, n, -value);
    return value;
}

/* ---- segments ---- */

static inline int are_finite(double a, double b) { return fabs(a) <= DBL_MAX && fabs(b) <= DBL_MAX; }

/* Adds a segment of `count` elements. */
static inline void add_segment(int64_t *record, double count, double t, double q)
{
    record[SUMS_COUNT] += (int64_t)count;
    if (!are_finite(t, q)) {
        record[SUMS_POISON]++;
        return;
    }
    add_to_number(record, sums_t, t);
    add_to_number(record, sums_q, q);
}

/* A product, exactly: rounded, and what that leaves. */
static inline void add_product(int64_t *record, sums_number n, double a, double b)
{
    const double product = a * b;
    add_to_number(record, n, product);
    add_to_number(record, n, fma(a, b, -product));
}

/* The same from sums around a, a float: T = count·a + u, Q = v + 2a·u + count·a². */
static inline void add_segment_around(int64_t *record, double count, double a, double u, double v)
{
    record[SUMS_COUNT] += (int64_t)count;
    add_product(record, sums_t, count, a);
    add_to_number(record, sums_t, u);
    add_to_number(record, sums_q, v);
    add_product(record, sums_q, 2 * a, u);
    add_product(record, sums_q, count, a * a);
}

static inline void carry_sums(int64_t *record)
{
    carry_number(record, sums_t);
    carry_number(record, sums_q);
}

/* ---- a set ---- */

/* Σx and Σx², each as the nearest double and the nearest to what that leaves. NaN where a segment was not finite. */
typedef struct set_sums {
    double count, t, t_rest, q, q_rest;
} set_sums;

static inline set_sums sums_of(const int64_t *record)
{
    int64_t left[NRG_CHANNEL_NORM_SUMS_WORDS];
    set_sums sums = {(double)record[SUMS_COUNT], (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (record[SUMS_POISON])
        return sums;
    memcpy(left, record, sizeof left);
    sums.t = take_nearest(left, sums_t);
    sums.t_rest = take_nearest(left, sums_t);
    sums.q = take_nearest(left, sums_q);
    sums.q_rest = take_nearest(left, sums_q);
    return sums;
}

/* Whether E[x²] - E[x]² kept enough bits: a mean of at most 256 σ. Not with NaN. */
static inline int variance_is_sound(double mean, double variance) { return mean * mean <= 0x1p16 * variance; }

/* 1/s. */
static inline double inverse_root(double variance, double eps)
{
    const double square = variance + eps;
    if (!(square >= 0))
        return (double)NAN;
    return square > 0 && square <= DBL_MAX ? sqrt(square) * (1 / square) : 0;
}

static inline nrg_channel_statistics statistics_of(const set_sums *sums, int centred, double eps)
{
    const double d = sums->count, t = sums->t, q = sums->q;
    nrg_channel_statistics stat = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, d};
    if (isnan(q))
        return stat;
    stat.mean = centred ? t / d : 0;
    stat.mean_low = 0;
    stat.variance = q * (1 / d) - stat.mean * stat.mean;
    if (centred && !variance_is_sound(stat.mean, stat.variance)) {
        const double dq = d * q, dq_rest = fma(d, q, -dq), tt = t * t, tt_rest = fma(t, t, -tt);
        stat.mean_low = (fma(-stat.mean, d, t) + sums->t_rest) / d;
        stat.variance = ((dq - tt) + ((dq_rest - tt_rest) + (d * sums->q_rest - 2 * t * sums->t_rest))) / d / d;
        if (!(stat.variance > 0))
            stat.variance = 0;
    }
    stat.rstd = inverse_root(stat.variance, eps);
    return stat;
}

/* Running statistics: the set is what one batch, or one sample of it, has. */
static inline nrg_channel_statistics fixed_statistics(float mean, float variance, double eps)
{
    return (nrg_channel_statistics){(double)mean, 0, (double)variance, inverse_root((double)variance, eps), 0};
}

/* What running statistics are updated with: of the sets of one channel, the sums of means and of unbiased variances. */
typedef struct running_sums {
    double mean, variance;
} running_sums;

static inline void add_to_running(running_sums *sums, const nrg_channel_statistics *stat)
{
    sums->mean += stat->mean + stat->mean_low;
    sums->variance += stat->variance * (stat->count / (stat->count - 1));
}

static inline void update_running(float *mean, float *variance, const running_sums *sums, size_t sets, double momentum)
{
    *mean = (float)((1 - momentum) * (double)*mean + momentum * (sums->mean / (double)sets));
    *variance = (float)((1 - momentum) * (double)*variance + momentum * (sums->variance / (double)sets));
}

#endif
