/* The statistics of a row in the fast grade: Kahan-style sums of floats, and whether they are good enough.
 *
 * Element i belongs to lane i mod 64. A block of 256 elements is added up plainly; its lanes fold to 16, and those are joined to
 * the blocks before them by compensated addition. A segment's 16 lanes go on in double, and segments are added compensated.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_NORM_FAST_H
#define NRG_SCALAR_NORM_FAST_H

#include <math.h>

#include "norm_statistics.h"

enum { FAST_LANES = 64, FAST_FOLDED = 16, FAST_BLOCK = 256 };

/* Element i of what is normalized; row is the caller's. */
typedef float fast_element(const void *row, size_t i);

typedef struct fast_statistics {
    int serve;            /* 0: floats are not good enough, and the rest is not to be used */
    double mean, inverse; /* m, 1/s */
    double pilot, offset; /* m in two parts */
    double variance;
    float factor;        /* (c/√d)/s */
    float centre, shift; /* m rounded, and what that leaves of it, times -(c/√d)/s */
} fast_statistics;

static inline void fold_halves(float *lanes, int from, int to)
{
    for (int half = from / 2; half >= to; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
}

/* An estimate of the mean from the row's beginning, so that what is squared is about as large as σ. */
static inline float fast_pilot(fast_element *element, const void *row, size_t dim)
{
    float lanes[FAST_LANES] = {0};
    size_t n = dim < FAST_LANES ? dim : FAST_LANES;
    for (size_t i = 0; i < n; i++)
        lanes[i] = element(row, i);
    fold_halves(lanes, FAST_LANES, 1);
    return lanes[0] * (1 / (float)n);
}

/* One sum's 16 lanes, with what their additions have lost. */
typedef struct fast_lanes {
    float sum[FAST_FOLDED], lost[FAST_FOLDED];
} fast_lanes;

static inline void add_block(fast_lanes *total, float lanes[FAST_LANES])
{
    fold_halves(lanes, FAST_LANES, FAST_FOLDED);
    for (int l = 0; l < FAST_FOLDED; l++) {
        float sum = total->sum[l] + lanes[l], part = sum - total->sum[l];
        total->lost[l] += (total->sum[l] - (sum - part)) + (lanes[l] - part);
        total->sum[l] = sum;
    }
}

static inline double fold_segment(const fast_lanes *total)
{
    double lanes[FAST_FOLDED];
    for (int l = 0; l < FAST_FOLDED; l++)
        lanes[l] = (double)total->sum[l] + (double)total->lost[l];
    for (int half = FAST_FOLDED / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static inline fast_statistics fast_statistics_of(const nrg_norm_formula *f, fast_element *element, const void *row, size_t dim)
{
    const float pilot = f->centred ? fast_pilot(element, row, dim) : 0;
    compensated total_t = {0, 0}, total_tt = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        fast_lanes t = {{0}, {0}}, tt = {{0}, {0}};
        for (size_t block = segment; block < dim && block < segment + SEGMENT; block += FAST_BLOCK) {
            float block_t[FAST_LANES] = {0}, block_tt[FAST_LANES] = {0};
            for (size_t i = block; i < dim && i < block + FAST_BLOCK; i++) {
                float v = f->centred ? element(row, i) - pilot : element(row, i);
                block_t[i % FAST_LANES] += v;
                block_tt[i % FAST_LANES] = fmaf(v, v, block_tt[i % FAST_LANES]);
            }
            add_block(&t, block_t);
            add_block(&tt, block_tt);
        }
        add_compensated(&total_t, fold_segment(&t));
        add_compensated(&total_tt, fold_segment(&tt));
    }
    fast_statistics stat = {0};
    double offset = f->centred ? (total_t.sum + total_t.lost) * f->inv_dim : 0;
    double square = (total_tt.sum + total_tt.lost) * f->inv_dim, variance = square - offset * offset;
    stat.inverse = inverse_divisor(f, variance);
    stat.mean = (double)pilot + offset;
    stat.pilot = (double)pilot;
    stat.offset = offset;
    stat.variance = variance;
    double factor = f->k * stat.inverse;
    /* Squares that did not overflow, and an s beside which what they lost to underflow is nothing; a pilot so near the mean that
     * little cancels; and a factor that leaves products room on both sides. Nothing of this holds where there is a NaN. */
    stat.serve = stat.inverse <= 0x1p40 && square <= 0x1p80 && 4 * (offset * offset) <= variance && factor * factor >= 0x1p-80 &&
                 factor * factor <= 0x1p80;
    stat.factor = (float)factor;
    stat.centre = (float)stat.mean;
    /* not by way of the mean: of a mean of 2^30 σ a double has little left to tell */
    stat.shift = (float)((((double)stat.centre - (double)pilot) - offset) * factor);
    return stat;
}

#endif
