/* The rows that plain sums do not serve: squares that overflow or underflow, a mean that is large beside σ, NaN and Inf, all
 * zeros. They are done again by themselves, on every path alike.
 *
 * Rare, so the dtype is looked up at run time: one copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_CAREFUL_H
#define NRG_TEMPLATE_NORM_CAREFUL_H

#include "norm_apply.h"
#include "norm_scalars.h"
#include "norm_sum.h"

NRG_INLINE uint32_t largest_magnitude(const norm_options *opt, norm_row row, nrg_dtype D)
{
    vf largest = v_zero(), v[1];
    for (size_t i = 0; i < opt->dim; i += VN) {
        load_r(v, 1, opt, row, opt->apply_from, i, opt->dim - i < VN ? opt->dim - i : VN, D);
        largest = v_max_magnitude(largest, v[0]);
    }
    return v_max_lane(largest);
}

/* The statistics of r·2^shift, from a pilot that is improved until the mean of r·2^shift - pilot is small beside σ, or the pilot
 * is the float nearest to the mean. */
typedef struct norm_careful {
    int shift;
    double mean, variance;
} norm_careful;

NRG_INLINE norm_careful careful_statistics(const nrg_norm_job *job, const norm_options *opt, norm_row row, double first_mean,
                                           nrg_dtype D)
{
    norm_careful c = {0, 0, 0};
    uint32_t largest = largest_magnitude(opt, row, D);
    if (largest == 0)
        return c;
    if (largest >= 0x7f800000u) {
        c.mean = c.variance = NAN;
        return c;
    }
    /* the largest element goes to [2^20, 2^21): differences of elements are 2^-4 or more then, or 0 */
    float magnitude;
    int exponent;
    memcpy(&magnitude, &largest, sizeof magnitude);
    frexp((double)magnitude, &exponent);
    c.shift = 21 - exponent < 126 ? 21 - exponent : 126;
    float pilot = 0;
    if (job->centred && fabs(first_mean) <= 0x1p128)
        pilot = (float)ldexp(first_mean, c.shift);
    for (int pass = 0; pass < 4; pass++) {
        norm_sums sums;
        norm_pass again = {1, opt->apply_from, v_set1((float)ldexp(1, c.shift)), v_set1(pilot)};
        sums_begin(&sums);
        sum_range(&sums, opt, row, again, 0, opt->dim, D, 1);
        double offset = job->centred ? sums.total_t * job->inv_dim : 0;
        c.mean = (double)pilot + offset;
        c.variance = sums.total_tt * job->inv_dim - offset * offset;
        if (!(c.variance > 0))
            c.variance = 0;
        float better = (float)c.mean;
        if (!job->centred || 4 * offset * offset <= c.variance || better == pilot)
            break;
        pilot = better;
    }
    return c;
}

/* Row n from its stored or recomputed r to o, mean and rstd. */
static __attribute__((noinline)) void careful_row(const nrg_norm_job *job, size_t n, double first_mean, nrg_dtype D)
{
    norm_options opt = options_of(job);
    norm_row row = row_at(job, n);
    norm_careful c = careful_statistics(job, &opt, row, first_mean, D);
    double inverse = isnan(c.variance) ? NAN : inverse_divisor(job->divisor, job->eps, ldexp(c.variance, -2 * c.shift));
    double factor = ldexp(job->k * inverse, -c.shift);
    float hi = (float)factor, mean_hi = (float)c.mean;
    norm_factors f = {
        .hi = v_set1(hi),
        .lo = v_set1((float)(factor - (double)hi)),
        .minus_mean = v_zero(),
        .scale = v_set1((float)ldexp(1, c.shift)),
        .mean_hi = v_set1(mean_hi),
        .mean_lo = v_set1((float)(c.mean - (double)mean_hi)),
    };
    if (job->mean)
        job->mean[n] = (float)ldexp(c.mean, -c.shift);
    if (job->rstd)
        job->rstd[n] = (float)inverse;
    apply_range(&opt, row, f, 0, opt.dim, D, 1, 1);
}

#endif
