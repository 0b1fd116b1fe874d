/* What the forward and the backward reference make of a row's sums.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_NORM_STATISTICS_H
#define NRG_SCALAR_NORM_STATISTICS_H

#include <math.h>

#include "../internal.h"
#include "../job/norm.h"

/* Element i belongs to lane i mod LANES; the lanes fold after every SEGMENT elements, and at the row's end. */
enum { LANES = 32, SEGMENT = 4096 };

/* A segment's lanes, folded by halves. */
static inline double fold(double lanes[LANES])
{
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* A sum of segments, with what its additions have lost: so that no bound depends on how many there are. */
typedef struct compensated {
    double sum, lost;
} compensated;

static inline void add_compensated(compensated *total, double segment)
{
    double sum = total->sum + segment, part = sum - total->sum;
    total->lost += (total->sum - (sum - part)) + (segment - part);
    total->sum = sum;
}

/* 1/s; 0 where s is 0, NaN for a poisoned row. */
static inline double inverse_divisor(const nrg_norm_formula *f, double variance)
{
    if (isnan(variance))
        return (double)NAN;
    if (f->divisor == NRG_DIV_ROOT) {
        double square = variance + f->eps;
        return square > 0 ? sqrt(square) * (1 / square) : 0;
    }
    double sigma = sqrt(variance), s = f->divisor == NRG_DIV_SIGMA ? sigma + f->eps : sigma > f->eps ? sigma : f->eps;
    return s > 0 ? 1 / s : 0;
}

#endif
