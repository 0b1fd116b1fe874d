/* From the sums of a row to the few numbers its elements are multiplied with. All in double, rounded once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_SCALARS_H
#define NRG_TEMPLATE_NORM_NORM_SCALARS_H

#include <math.h>

#include "../../job/norm.h"
#include "../vec.h"

enum { NORM_BATCH = 8 }; /* rows whose lanes are folded together (vd8_sum_rows) */

/* 1/s; 0 where s is 0. The root and the reciprocal do not wait for each other: by their latencies, about 22 cycles instead of 32.
 */
NRG_INLINE double inverse_divisor(enum nrg_divisor divisor, double eps, double variance)
{
    if (divisor == NRG_DIV_ROOT) {
        double square = variance + eps, inverse = __builtin_sqrt(square) * (1 / square);
        return square > 0 ? inverse : 0;
    }
    double sigma = __builtin_sqrt(variance), s = divisor == NRG_DIV_SIGMA ? sigma + eps : sigma > eps ? sigma : eps;
    return s > 0 ? 1 / s : 0;
}

/* The same; NaN for a row with an Inf or a NaN, which comparisons leave out. */
NRG_INLINE double inverse_of_variance(const nrg_norm_formula *f, double variance)
{
    return isnan(variance) ? (double)NAN : inverse_divisor(f->divisor, f->eps, variance);
}

/* The mean may be taken out of the sum of squares afterwards while it is at most 1000 σ: 2^20 of double's 2^53 are lost. */
NRG_INLINE int variance_is_sound(double mean, double variance) { return mean * mean <= 0x1p20 * variance; }

/* Floats serve where the mean is small beside s, so that o = r·factor - mean·factor cancels nothing, and where r and the factor
 * leave r·w and its error room on both sides. */
NRG_INLINE int floats_serve(double square, double mean, double inverse, double factor)
{
    return (fabs(mean) * inverse <= 0.5) & (fabs(factor) >= 0x1p-40) & (fabs(factor) <= 0x1p40) & (square <= 0x1p80) &
           ((square >= 0x1p-80) | (square == 0));
}

/* Sums of floats serve where no square overflowed, where s is so large that what squares lost to underflow is nothing beside it
 * (so with an eps rows of zeros, which are padding, need no fallback), where the pilot was so near the mean that little cancels,
 * and where the factor leaves products room on both sides. */
NRG_INLINE int fast_sums_serve(double square, double offset, double variance, double inverse, double factor)
{
    return (inverse <= 0x1p40) & (square <= 0x1p80) & (4 * (offset * offset) <= variance) & (factor * factor >= 0x1p-80) &
           (factor * factor <= 0x1p80);
}

#endif
