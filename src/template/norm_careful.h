/* The rows that the plain way does not serve: a mean that is large beside σ or s, results that need a factor near the ends of the
 * floats' range, NaN and Inf. Their elements are done in double; their variance again around the mean, where that was lost in it.
 *
 * Rare, so the dtype is looked up at run time: one small copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_CAREFUL_H
#define NRG_TEMPLATE_NORM_CAREFUL_H

#include "norm_apply.h"
#include "norm_scalars.h"
#include "norm_sum.h"

typedef struct norm_statistics {
    double pilot, offset; /* m in two parts */
    double variance;
} norm_statistics;

/* Σt and Σt² of t = r - pilot, lane by lane in memory. */
static void sum_around(const norm_options *opt, const norm_row *row, double pilot, nrg_dtype D, double *total_t, double *total_tt)
{
    *total_t = *total_tt = 0;
    for (size_t begin = 0, end; begin < opt->dim; begin = end) {
        double lanes_t[NORM_LANES] = {0}, lanes_tt[NORM_LANES] = {0};
        end = opt->dim - begin > NORM_SEGMENT ? begin + NORM_SEGMENT : opt->dim;
        for (size_t i = begin; i < end; i += VN) {
            vf v[1];
            float r[VN];
            load_r(v, 1, opt, *row, opt->apply_from, i, lanes_at(i, end), D);
            v_st_f32(r, v[0]);
            for (size_t l = 0; l < lanes_at(i, end); l++) {
                double t = (double)r[l] - pilot;
                lanes_t[(i + l) % NORM_LANES] += t;
                lanes_tt[(i + l) % NORM_LANES] += t * t;
            }
        }
        for (int half = NORM_LANES / 2; half; half /= 2)
            for (int l = 0; l < half; l++) {
                lanes_t[l] += lanes_t[l + half];
                lanes_tt[l] += lanes_tt[l + half];
            }
        *total_t += lanes_t[0];
        *total_tt += lanes_tt[0];
    }
}

static norm_statistics careful_statistics(const nrg_norm_job *job, const norm_options *opt, const norm_row *row, double t,
                                          double tt, nrg_dtype D)
{
    norm_statistics stat = {0, 0, tt * job->inv_dim};
    if (!(stat.variance <= DBL_MAX)) {
        stat.pilot = stat.variance = NAN; /* finite floats cannot overflow the sum */
        return stat;
    }
    if (!job->centred)
        return stat;
    stat.pilot = t / job->d;
    stat.variance -= stat.pilot * stat.pilot;
    if (variance_is_sound(stat.pilot, stat.variance))
        return stat;
    /* a constant row's mean is exact, and what is left of the row is 0 */
    sum_around(opt, row, stat.pilot, D, &t, &tt);
    stat.offset = t / job->d;
    stat.variance = tt * job->inv_dim - stat.offset * stat.offset;
    if (!(stat.variance > 0))
        stat.variance = 0;
    return stat;
}

/* Row n from its stored or recomputed r to o, mean and rstd, given its plain sums. */
static __attribute__((noinline)) void careful_row(const nrg_norm_job *job, size_t n, double t, double tt, nrg_dtype D)
{
    const norm_options opt = options_of(job);
    norm_row row = row_at(job, n);
    norm_statistics stat = careful_statistics(job, &opt, &row, t, tt, D);
    double inverse = isnan(stat.variance) ? NAN : inverse_divisor(job->divisor, job->eps, stat.variance),
           factor = job->k * inverse;
    const double mean = stat.pilot + stat.offset;
    float hi = (float)factor;
    norm_factors f = {
        .hi = v_set1(hi),
        .lo = v_set1((float)(factor - (double)hi)),
        .minus_mean = v_set1((float)(-mean * factor)),
        .pilot = vd_set1(stat.pilot),
        .offset = vd_set1(stat.offset),
        .factor = vd_set1(factor),
    };
    const int careful = !floats_serve(tt * job->inv_dim, mean, inverse, factor);
    if (job->mean)
        job->mean[n] = (float)mean;
    if (job->rstd)
        job->rstd[n] = (float)inverse;
    for (size_t i = 0; i < opt.dim; i += VN)
        apply_step(1, &opt, row, &f, i, lanes_at(i, opt.dim), D, opt.centred, careful);
}

#endif
