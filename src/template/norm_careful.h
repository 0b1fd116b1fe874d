/* The rows that plain sums do not serve: squares that overflow or underflow, a mean that is large beside σ, NaN and Inf, all
 * zeros. They are done again by themselves, on every path alike.
 *
 * Rare, so one vector at a time, and the dtype is looked up at run time: one small copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_CAREFUL_H
#define NRG_TEMPLATE_NORM_CAREFUL_H

#include "norm_apply.h"
#include "norm_scalars.h"
#include "norm_sum.h"

/* The dtype is looked up here, a call a vector. */
static __attribute__((noinline)) vf careful_load(const norm_options *opt, const norm_row *row, size_t i, nrg_dtype D)
{
    vf v[1];
    load_r(v, 1, opt, *row, opt->apply_from, i, lanes_at(i, opt->dim), D);
    return v[0];
}

static uint32_t largest_magnitude(const norm_options *opt, const norm_row *row, nrg_dtype D)
{
    vf largest = v_zero();
    for (size_t i = 0; i < opt->dim; i += VN)
        largest = v_max_magnitude(largest, careful_load(opt, row, i, D));
    return v_max_lane(largest);
}

/* Σt and Σt² of t = r·scale - pilot. */
static void careful_sums(norm_sums *sums, const norm_options *opt, const norm_row *row, float scale, float pilot, nrg_dtype D)
{
    enum { ALL = NORM_LANES / VN };
    sums_begin(sums);
    for (size_t begin = 0, end; begin < opt->dim; begin = end) {
        vf t[ALL], tt[ALL];
        for (int j = 0; j < ALL; j++)
            t[j] = tt[j] = v_zero();
        end = opt->dim - begin > NORM_BLOCK ? begin + NORM_BLOCK : opt->dim;
        for (size_t i = begin, j = 0; i < end; i += VN, j = (j + 1) % ALL) {
            vf v = v_sub(v_mul(careful_load(opt, row, i, D), v_set1(scale)), v_set1(pilot));
            v = v_first(v, lanes_at(i, end));
            t[j] = v_add(t[j], v);
            tt[j] = v_fma(v, v, tt[j]);
        }
        norm_block block = {fold_lanes(t), fold_lanes(tt)};
        sums_add_block(sums, &block, end, opt->dim, 1);
    }
}

/* The statistics of r·2^shift, from a pilot that is improved until the mean of r·2^shift - pilot is small beside σ, or the pilot
 * is the float nearest to the mean. */
typedef struct norm_careful {
    int shift;
    double mean, variance;
} norm_careful;

static norm_careful careful_statistics(const nrg_norm_job *job, const norm_options *opt, const norm_row *row, double first_mean,
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
        careful_sums(&sums, opt, row, (float)ldexp(1, c.shift), pilot, D);
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
    norm_careful c = careful_statistics(job, &opt, &row, first_mean, D);
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
    for (size_t i = 0; i < opt.dim; i += VN)
        apply_step(1, &opt, row, f, i, lanes_at(i, opt.dim), D, 1, 1);
}

#endif
