/* The statistics of a row in the fast grade: Kahan-style sums of floats, and whether they are good enough. A segment's blocks are
 * block_sums (lanes.h), whose 16 lanes go on in double; segments are added compensated.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_NORM_FAST_H
#define NRG_SCALAR_NORM_FAST_H

#include <math.h>

#include "norm_statistics.h"

typedef struct fast_statistics {
    int serve;            /* 0: floats are not good enough, and the rest is not to be used */
    double mean, inverse; /* m, 1/s */
    double pilot, offset; /* m in two parts */
    double variance;
    float factor;        /* (c/√d)/s */
    float centre, shift; /* m rounded, and what that leaves of it, times -(c/√d)/s */
} fast_statistics;

/* An estimate of the mean from the row's beginning, so that what is squared is about as large as σ. */
static inline float fast_pilot(row_element *element, const void *row, size_t dim)
{
    float lanes[BLOCK_LANES] = {0};
    size_t n = dim < BLOCK_LANES ? dim : BLOCK_LANES;
    for (size_t i = 0; i < n; i++)
        lanes[i] = element(row, i);
    return fold_floats(lanes, BLOCK_LANES, 1) * (1 / (float)n);
}

static inline fast_statistics fast_statistics_of(const nrg_norm_formula *f, row_element *element, const void *row, size_t dim)
{
    const float pilot = f->centred ? fast_pilot(element, row, dim) : 0;
    compensated total_t = {0, 0}, total_tt = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        block_sums t = {{0}, {0}}, tt = {{0}, {0}};
        for (size_t block = segment; block < dim && block < segment + SEGMENT; block += BLOCK_ELEMENTS) {
            float block_t[BLOCK_LANES] = {0}, block_tt[BLOCK_LANES] = {0};
            for (size_t i = block; i < dim && i < block + BLOCK_ELEMENTS; i++) {
                float v = f->centred ? element(row, i) - pilot : element(row, i);
                block_t[i % BLOCK_LANES] += v;
                block_tt[i % BLOCK_LANES] = fmaf(v, v, block_tt[i % BLOCK_LANES]);
            }
            add_block(&t, block_t);
            add_block(&tt, block_tt);
        }
        add_compensated(&total_t, fold_blocks(&t));
        add_compensated(&total_tt, fold_blocks(&tt));
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
