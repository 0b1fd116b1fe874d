/* From the sums of a row to the few numbers its elements are multiplied with. All in double, rounded once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_SCALARS_H
#define NRG_TEMPLATE_NORM_NORM_SCALARS_H

#include <math.h>

#include "../../job/norm.h"
#include "../vec.h"

enum { NORM_BATCH = 8 };

/* The scalars of up to NORM_BATCH rows, as arrays: the square roots and divisions of a batch then run side by side in vectors,
 * which IEEE 754 makes safe for the bits. One row's chain of folds, root and division is about 100 cycles of latency, and eight
 * rows' little more. */
typedef struct norm_scalars {
    double mean[NORM_BATCH], inverse[NORM_BATCH]; /* m and 1/s */
    float hi[NORM_BATCH], lo[NORM_BATCH];         /* (c/√d)/s as two floats */
    float minus_mean[NORM_BATCH];                 /* -m · (c/√d)/s */
    double needs_fallback[NORM_BATCH];            /* 0: as computed; not 0: this row needs the fallback (fallback.h) */
} norm_scalars;

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

/* The mean may be taken out of the sum of squares afterwards while it is at most 1000 σ: 2^20 of double's 2^53 are lost. */
NRG_INLINE int variance_is_sound(double mean, double variance) { return mean * mean <= 0x1p20 * variance; }

/* Floats serve where the mean is small beside s, so that o = r·factor - mean·factor cancels nothing, and where r and the factor
 * leave r·w and its error room on both sides. */
NRG_INLINE int floats_serve(double square, double mean, double inverse, double factor)
{
    return (fabs(mean) * inverse <= 0.5) & (fabs(factor) >= 0x1p-40) & (fabs(factor) <= 0x1p40) & (square <= 0x1p80) &
           ((square >= 0x1p-80) | (square == 0));
}

/* The first count scalars, of one divisor; count is a constant. t is 0 where the norm is not centred. */
NRG_INLINE void scalars_for(norm_scalars *s, const nrg_norm_job *job, enum nrg_divisor divisor, const double *t, const double *tt,
                            int count)
{
    const double inv_dim = job->formula.inv_dim, eps = job->formula.eps, k = job->formula.k;
    for (int i = 0; i < count; i++)
        s->mean[i] = 0;
    if (job->formula.centred)
        for (int i = 0; i < count; i++)
            s->mean[i] = t[i] / job->formula.d;
    for (int i = 0; i < count; i++) {
        double mean = s->mean[i], square = tt[i] * inv_dim, variance = square - mean * mean;
        double inverse = inverse_divisor(divisor, eps, variance), factor = k * inverse;
        int sound = variance_is_sound(mean, variance) & floats_serve(square, mean, inverse, factor);
        s->inverse[i] = inverse;
        s->hi[i] = (float)factor;
        s->lo[i] = (float)(factor - (double)(float)factor);
        s->minus_mean[i] = (float)(-mean * factor);
        s->needs_fallback[i] = sound ? 0 : 1;
    }
}

/* Sums of floats serve where no square overflowed, where s is so large that what squares lost to underflow is nothing beside it
 * (so with an eps rows of zeros, which are padding, need no fallback), where the pilot was so near the mean that little cancels,
 * and where the factor leaves products room on both sides. */
NRG_INLINE int fast_sums_serve(double square, double offset, double variance, double inverse, double factor)
{
    return (inverse <= 0x1p40) & (square <= 0x1p80) & (4 * (offset * offset) <= variance) & (factor * factor >= 0x1p-80) &
           (factor * factor <= 0x1p80);
}

NRG_INLINE void scalars_of(norm_scalars *s, const nrg_norm_job *job, const double *t, const double *tt, int count)
{
    if (job->formula.divisor == NRG_DIV_ROOT)
        scalars_for(s, job, NRG_DIV_ROOT, t, tt, count);
    else if (job->formula.divisor == NRG_DIV_SIGMA)
        scalars_for(s, job, NRG_DIV_SIGMA, t, tt, count);
    else
        scalars_for(s, job, NRG_DIV_MAX, t, tt, count);
}

#endif
