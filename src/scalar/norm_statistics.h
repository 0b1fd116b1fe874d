/* What the forward and the backward reference make of a row's sums.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_NORM_STATISTICS_H
#define NRG_SCALAR_NORM_STATISTICS_H

#include <float.h>
#include <math.h>

#include "../internal.h"
#include "../job/norm.h"
#include "lanes.h"

/* Element i belongs to lane i mod LANES; the lanes fold after every SEGMENT elements, and at the row's end. */
enum { LANES = 32, SEGMENT = 4096 };

/* Element i of what is normalized; row is the caller's. */
typedef float row_element(const void *row, size_t i);

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

/* Σt and Σt² of t = p - pilot. Squares of floats are exact in double, so that a multiplication and an addition round once, as an
 * fma would; nothing overflows, nothing underflows. */
typedef struct row_sums {
    double t, tt;
} row_sums;

static inline row_sums sum_row(row_element *element, const void *row, size_t dim, double pilot)
{
    compensated total_t = {0, 0}, total_tt = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        double t[LANES] = {0}, tt[LANES] = {0};
        for (size_t i = segment; i < dim && i < segment + SEGMENT; i++) {
            double v = (double)element(row, i) - pilot;
            t[i % LANES] += v;
            tt[i % LANES] += v * v;
        }
        add_compensated(&total_t, fold_doubles(t, LANES, 1));
        add_compensated(&total_tt, fold_doubles(tt, LANES, 1));
    }
    return (row_sums){total_t.sum + total_t.lost, total_tt.sum + total_tt.lost};
}

typedef struct row_statistics {
    double square, variance; /* Σp²/d, σ² */
    double pilot, offset;    /* m in two parts: the first is enough except where m is more than 1000 σ */
} row_statistics;

static inline row_statistics row_statistics_of(const nrg_norm_formula *f, row_element *element, const void *row, size_t dim)
{
    row_sums first = sum_row(element, row, dim, 0);
    double square = first.tt * f->inv_dim;
    row_statistics stat = {square, square, 0, 0};
    if (!(stat.variance <= DBL_MAX)) {
        stat.pilot = stat.variance = (double)NAN; /* an Inf or a NaN in the row: finite floats cannot overflow the sum */
        return stat;
    }
    if (!f->centred)
        return stat;
    stat.pilot = first.t / f->d;
    stat.variance -= stat.pilot * stat.pilot;
    if (stat.pilot * stat.pilot <= 0x1p20 * stat.variance)
        return stat;
    /* taken out before squaring. In a constant row it is exact, and what is left is 0. */
    row_sums again = sum_row(element, row, dim, stat.pilot);
    stat.offset = again.t / f->d;
    stat.variance = again.tt * f->inv_dim - stat.offset * stat.offset;
    if (!(stat.variance > 0))
        stat.variance = 0;
    return stat;
}

#endif
