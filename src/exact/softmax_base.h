/* What the exponents of a row of softmax are taken from, and what is done once a row, in double (docs/ops/softmax.md).
 *
 * A row's base is the multiple of ln 2 next to its largest t. e^(t - base) is 2^n·e^r for t = n·ln 2 + r, where the base changes
 * nothing but n: so t - base is never computed, and never rounded. Beyond ±256, where n·ln 2 would need more bits, the largest t
 * itself is taken from every t, which is exact for all that is not 0 beside it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_SOFTMAX_BASE_H
#define NRG_EXACT_SOFTMAX_BASE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../compiler.h"

typedef struct nrg_softmax_base {
    float shift, n; /* one of them is 0 */
    float low;      /* t - shift from here down counts as this much, which no result shows */
} nrg_softmax_base;

#define NRG_SOFTMAX_LN2 0x1.62e42fefa39efp-1
#define NRG_SOFTMAX_LOWEST -110.0f

/* Powers are multiplied by this, so that the smallest of them is normal, and so are the two floats of an inverse, to the last bit
 * that it has as a double, while the sum is less than NRG_SOFTMAX_MOST: then a base may be any, and results are the same. */
#define NRG_SOFTMAX_UNIT 0x1p36f
#define NRG_SOFTMAX_MOST 0x1p96

static inline nrg_softmax_base nrg_softmax_base_of(float m)
{
    if (fabsf(m) <= 256) {
#ifdef FP_FAST_FMAF
        const float magic = 0x1.8p23f, n = fmaf(m, 0x1.715476p0f, magic) - magic;
        return (nrg_softmax_base){0, n, fmaf(n, 0x1.62e43p-1f, NRG_SOFTMAX_LOWEST)};
#else
        /* the same in double, which has the products exactly: where fmaf is a call, as in what is built for every CPU, it takes
         * longer than all else here */
        const double magic = 0x1.8p52, n = ((double)m * 0x1.715476p0 + magic) - magic;
        return (nrg_softmax_base){0, (float)n, (float)(n * 0x1.62e43p-1 + (double)NRG_SOFTMAX_LOWEST)};
#endif
    }
    return (nrg_softmax_base){fabsf(m) <= FLT_MAX ? m : 0, 0, NRG_SOFTMAX_LOWEST};
}

/* frexp, with a fraction about 1: 1/√2 to √2. */
static inline double nrg_softmax_split(double s, int *k)
{
    double f;
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (bits >> 52 > 0 && bits >> 52 < 0x7ff) { /* a normal number, without a call */
        *k = (int)(bits >> 52) - 1022;
        bits = (bits & 0xfffffffffffff) | (uint64_t)1022 << 52;
        memcpy(&f, &bits, sizeof f);
    } else {
        f = frexp(s, k);
    }
    if (f < 0x1.6a09e667f3bcdp-1) {
        f += f;
        *k -= 1;
    }
    return f;
}

/* artanh's series, from its end: every other coefficient, so that two chains of operations go side by side. */
enum { NRG_SOFTMAX_LOG_TERMS = 5 };
static const double nrg_softmax_log_even[NRG_SOFTMAX_LOG_TERMS + 1] = {1.0 / 23, 1.0 / 19, 1.0 / 15, 1.0 / 11, 1.0 / 7, 1.0 / 3};
static const double nrg_softmax_log_odd[NRG_SOFTMAX_LOG_TERMS] = {1.0 / 21, 1.0 / 17, 1.0 / 13, 1.0 / 9, 1.0 / 5};

/* log(2^k·f) = k·ln 2 + 2·artanh(z), z = less/(f + 1), less = f - 1, |z| ≤ 0.172. Nothing but + - · / and changes of the
 * exponent, here and below, so that it is the same everywhere. */
static inline double nrg_softmax_log_of(int k, double f, double less)
{
    const double z = less / (f + 1), zz = z * z, square = zz * zz;
    double even = nrg_softmax_log_even[0], odd = nrg_softmax_log_odd[0];
    for (int i = 1; i < NRG_SOFTMAX_LOG_TERMS; i++) {
        even = even * square + nrg_softmax_log_even[i];
        odd = odd * square + nrg_softmax_log_odd[i];
    }
    even = even * square + nrg_softmax_log_even[NRG_SOFTMAX_LOG_TERMS];
    return k * NRG_SOFTMAX_LN2 + 2 * (z + z * (zz * (even + zz * odd)));
}

/* log(s) of a normal number, to within 2^-50 of 1 or of itself. */
static inline double nrg_softmax_log(double s)
{
    int k;
    const double f = nrg_softmax_split(s, &k);
    return nrg_softmax_log_of(k, f, f - 1);
}

/* log(1 + q) of q ≥ 0, to within 2^-50 of itself. */
static inline double nrg_softmax_log1p(double q)
{
    int k;
    const double f = nrg_softmax_split(1 + q, &k);
    return nrg_softmax_log_of(k, f, k ? f - 1 : q);
}

/* 2^n of an integer from -126 to 127. */
static inline float nrg_softmax_two_to(float n)
{
    const uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The same from -1022 to 1023. */
static inline double nrg_softmax_two_to_double(double n)
{
    const uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* e^d to within 2^-45 of itself for d from -1000 to 700; 0 further down. ln 2 in two parts is fdlibm's. */
static inline double nrg_softmax_exp(double d)
{
    if (d < -1000)
        return 0;
    const double k = (d * 0x1.71547652b82fep0 + 0x1.8p52) - 0x1.8p52;
    const double r = (d - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33, rr = r * r;
    double even = 1.0 / 3628800, odd = 1.0 / 39916800;
    even = even * rr + 1.0 / 40320;
    odd = odd * rr + 1.0 / 362880;
    even = even * rr + 1.0 / 720;
    odd = odd * rr + 1.0 / 5040;
    even = even * rr + 1.0 / 24;
    odd = odd * rr + 1.0 / 120;
    even = even * rr + 1.0 / 2;
    odd = odd * rr + 1.0 / 6;
    const double series = 1 + (r + rr * (even + r * odd));
    return k > -1000 ? series * nrg_softmax_two_to_double(k) : ldexp(series, (int)k);
}

/* e^(from - to), exact where both are multiples of ln 2. */
static inline double nrg_softmax_factor(nrg_softmax_base from, nrg_softmax_base to)
{
    if (from.shift == 0 && to.shift == 0)
        return nrg_softmax_two_to_double((double)(from.n - to.n));
    const double a = (double)from.shift + (double)from.n * NRG_SOFTMAX_LN2;
    const double b = (double)to.shift + (double)to.n * NRG_SOFTMAX_LN2;
    return nrg_softmax_exp(a - b);
}

#endif
