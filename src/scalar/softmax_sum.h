/* What rows of softmax are made of, in the reference: e^t beside a base, sums in the one order (docs/ops/softmax.md), a
 * logarithm.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_SOFTMAX_SUM_H
#define NRG_SCALAR_SOFTMAX_SUM_H

#include "element.h"
#include "exponential.h"
#include "lanes.h"

/* ---- e^t as 2^n·e^(t - shift - n·ln 2), less the base's own power of two ---- */

/* What is taken from all exponents of a row: shift + n·ln 2. One of the two is 0. */
typedef struct softmax_base {
    float shift, n;
    float low; /* everything from here down counts as this, which no result shows */
} softmax_base;

/* The base of a row whose largest t is m. Beyond ±256 m itself is taken from t, which is exact where it matters. */
static inline softmax_base softmax_base_of(float m)
{
    softmax_base base = {0, 0, -110};
    if (isnan(m) || isinf(m))
        return base;
    if (fabsf(m) > 256) {
        base.shift = m;
        return base;
    }
    base.n = fmaf(m, NRG_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC;
    base.low = fmaf(base.n, 0x1.62e43p-1f, -110);
    return base;
}

/* SOFTMAX_UNIT·e^(t - base): so that the smallest is normal, and 1/Σ as two floats, too. */
#define SOFTMAX_UNIT 36

static inline float softmax_power(const softmax_base *base, float t)
{
    const float u = at_least(base->low, t - base->shift), offset = NRG_EXP_MAGIC - base->n;
    if (!(u <= 1000)) /* beyond the largest t: the row is NaN */
        return NAN;
    const float n = fmaf(u, NRG_LOG2_E, offset) - offset;
    const float r = fmaf(n, NRG_LN2_LO, fmaf(n, NRG_LN2_HI, -u));
    return ldexpf(polynomial(nrg_exp_c, 6, r), SOFTMAX_UNIT + (int)(n - base->n));
}

/* ---- sums ---- */

enum { SOFTMAX_LANES = 64, SOFTMAX_BLOCK = 256, SOFTMAX_SEGMENT = 4096, SOFTMAX_POWERS = 8 };

/* Powers: added in ascending order from a block's first on, a multiple of 64 of them, which fold to eight lanes. */
typedef struct softmax_powers {
    double some[SOFTMAX_LANES], lanes[SOFTMAX_POWERS];
    compensated total;
} softmax_powers;

static inline void softmax_end_powers(softmax_powers *s)
{
    add_compensated(&s->total, fold_doubles(s->lanes, SOFTMAX_POWERS, 1));
    for (int l = 0; l < SOFTMAX_POWERS; l++)
        s->lanes[l] = 0;
}

static inline void softmax_add_power(softmax_powers *s, size_t j, float e)
{
    s->some[j % SOFTMAX_LANES] = (double)e;
    if (j % SOFTMAX_LANES < SOFTMAX_LANES - 1)
        return;
    fold_doubles(s->some, SOFTMAX_LANES, SOFTMAX_POWERS);
    for (int l = 0; l < SOFTMAX_POWERS; l++)
        s->lanes[l] += s->some[l];
    if (j % SOFTMAX_SEGMENT == SOFTMAX_SEGMENT - 1)
        softmax_end_powers(s);
}

/* Numbers are added in ascending order; what is left out counts as 0. */
typedef struct softmax_sum {
    size_t at; /* the block */
    float lanes[BLOCK_LANES];
    block_sums blocks;
    compensated total;
} softmax_sum;

static inline void softmax_end_block(softmax_sum *s)
{
    add_block(&s->blocks, s->lanes);
    memset(s->lanes, 0, sizeof s->lanes);
}

static inline void softmax_end_blocks(softmax_sum *s)
{
    add_compensated(&s->total, fold_blocks(&s->blocks));
    memset(&s->blocks, 0, sizeof s->blocks);
}

/* Ends the blocks and segments before element j. */
static inline void softmax_reach(softmax_sum *s, size_t j)
{
    const size_t block = j / SOFTMAX_BLOCK, each = SOFTMAX_SEGMENT / SOFTMAX_BLOCK;
    if (block == s->at)
        return;
    softmax_end_block(s);
    if (block / each != s->at / each)
        softmax_end_blocks(s);
    s->at = block;
}

static inline void softmax_add(softmax_sum *s, size_t j, float a)
{
    softmax_reach(s, j);
    s->lanes[j % BLOCK_LANES] += a;
}

static inline void softmax_add_product(softmax_sum *s, size_t j, float a, float b)
{
    softmax_reach(s, j);
    s->lanes[j % BLOCK_LANES] = fmaf(a, b, s->lanes[j % BLOCK_LANES]);
}

static inline double softmax_total(softmax_sum *s)
{
    softmax_end_block(s);
    softmax_end_blocks(s);
    return s->total.sum + s->total.lost;
}

/* ---- numbers of a row, in double ---- */

#define SOFTMAX_LN2 0x1.62e42fefa39efp-1

/* log(1 + q) for q ≥ 0: 1 + q = 2^k·f with f about 1, log(f) = 2·artanh(z), z = (f - 1)/(f + 1), by its series. */
static inline double softmax_log1p(double q)
{
    int k = 0;
    double f = frexp(1 + q, &k);
    if (f < 0x1.6a09e667f3bcdp-1) {
        f *= 2;
        k--;
    }
    const double z = (k == 0 ? q : f - 1) / (f + 1), zz = z * z, square = zz * zz;
    double even = 1.0 / 23, odd = 1.0 / 21;
    for (int i = 19; i > 0; i -= 4)
        even = even * square + 1.0 / i;
    for (int i = 17; i > 1; i -= 4)
        odd = odd * square + 1.0 / i;
    return k * SOFTMAX_LN2 + 2 * (z + z * (zz * (even + zz * odd)));
}

/* 1/k! + rr/(k + 2)! + ... of five terms. */
static inline double softmax_factorials(int k, double rr)
{
    double sum = 0;
    for (int i = k + 8; i >= k; i -= 2) {
        double factorial = 1;
        for (int j = 2; j <= i; j++)
            factorial *= j;
        sum = sum * rr + 1 / factorial;
    }
    return sum;
}

/* e^d for d ≤ 0 or little above, by its series around a multiple of ln 2, which has two parts. */
static inline double softmax_exp(double d)
{
    if (d < -1000)
        return 0;
    const double k = rint(d * 0x1.71547652b82fep0), r = (d - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33, rr = r * r;
    return ldexp(1 + (r + rr * (softmax_factorials(2, rr) + r * softmax_factorials(3, rr))), (int)k);
}

static inline double softmax_base_value(const softmax_base *b) { return (double)b->shift + (double)b->n * SOFTMAX_LN2; }

/* e^(from - to) of two bases. */
static inline double softmax_factor(const softmax_base *from, const softmax_base *to)
{
    if (from->shift == 0 && to->shift == 0)
        return ldexp(1, (int)(from->n - to->n));
    return softmax_exp(softmax_base_value(from) - softmax_base_value(to));
}

/* What makes results: e·(high + low), or with log (t - shift - high) - low. */
typedef struct softmax_end {
    float high, low;
} softmax_end;

/* The end of a row whose largest t is m, from the sum of its powers. */
static inline softmax_end softmax_end_of(const softmax_base *base, float m, double total, int log)
{
    if (isnan(total) || isnan(m) || m > FLT_MAX)
        return (softmax_end){NAN, 0};
    if (m < -FLT_MAX)
        return (softmax_end){log ? INFINITY : 0, 0};
    if (log) {
        const double top = (double)softmax_power(base, m), others = total - top;
        return (softmax_end){m - base->shift, (float)softmax_log1p((others > 0 ? others : 0) / top)};
    }
    const double inverse = 1 / total;
    const float high = (float)inverse;
    return (softmax_end){high, (float)(inverse - (double)high)};
}

static inline float softmax_result(const softmax_base *base, softmax_end end, float t, int log)
{
    if (log)
        return ((t - base->shift) - end.high) - end.low;
    const float e = softmax_power(base, t);
    return fmaf(e, end.high, e * end.low);
}

#endif
