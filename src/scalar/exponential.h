/* The exponential of the reference: its numbers, and what is done with them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_EXPONENTIAL_H
#define NRG_SCALAR_EXPONENTIAL_H

#include <math.h>

/* ---- e^-t = 2^n·e^-r, n = -t/ln 2 rounded, r = t + n·ln 2, |r| ≤ 0.3467. What is small carries a factor of NRG_UNIT:
 * 2^64, so that nothing underflows, and 1.6875, for which the errors were least. ---- */

#define NRG_UNIT 0x1.bp64f
#define NRG_EXP_MAGIC 0x1.8p23f /* added to a small number it leaves the nearest integer in the lower bits */
#define NRG_LOG2_E 0x1.715476p0f
#define NRG_LN2_HI 0x1.62e43p-1f
#define NRG_LN2_LO -0x1.05c61p-29f
static const float nrg_exp_c[7] = {1, -1, 0x1.fffffcp-2f, -0x1.55548cp-3f, 0x1.555858p-5f, -0x1.123da8p-7f, 0x1.6ac174p-10f};

/* A NaN in x comes through both: c is none. Nor is c +0: see positive_part in activation.c. */
static inline float at_most(float c, float x) { return c < x ? c : x; }
static inline float at_least(float c, float x) { return c > x ? c : x; }

/* c[0] + x·(c[1] + x·(... c[degree])) */
static inline float polynomial(const float *c, int degree, float x)
{
    float sum = c[degree];
    for (int i = degree - 1; i >= 0; i--)
        sum = fmaf(sum, x, c[i]);
    return sum;
}

/* s·2^n. For n = NaN anything: s, or what it is multiplied with, is NaN as well. */
static inline float power(float s, float n) { return isnan(n) ? s : ldexpf(s, (int)n); }

#endif
