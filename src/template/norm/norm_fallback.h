/* The rows that the plain way does not serve: a mean that is large beside σ or s, results that need a factor near the ends of the
 * floats' range, NaN and Inf. Their elements are done in double; their variance again around the mean, where that was lost in it.
 *
 * Rare, so the dtype is looked up at run time: one small copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FALLBACK_H
#define NRG_TEMPLATE_NORM_NORM_FALLBACK_H

#include "norm_apply.h"
#include "norm_scalars.h"
#include "norm_sum.h"

typedef struct norm_statistics {
    double pilot, offset; /* m in two parts */
    double variance;
} norm_statistics;

/* Σt and Σt² of t = p - pilot, lane by lane in memory. */
typedef struct fallback_sums {
    double t[NORM_LANES], tt[NORM_LANES];
    double total_t, total_tt;
} fallback_sums;

/* Adds elements begin to end, which is the row's end or a multiple of the lanes, like begin. */
static __attribute__((noinline)) void sum_around(fallback_sums *sums, const norm_options *opt, const norm_row *row, double pilot,
                                                 size_t begin, size_t end, nrg_dtype D)
{
    if (begin == 0)
        memset(sums, 0, sizeof *sums);
    for (size_t i = begin; i < end; i += VN) {
        vf v[1];
        float p[VN];
        const size_t n = lanes_at(i, end);
        load_again(v, 1, opt->how, *row, i, n, D);
        v_st_f32(p, v[0]);
        for (size_t l = 0; l < n; l++) {
            double t = (double)p[l] - pilot;
            sums->t[(i + l) % NORM_LANES] += t;
            sums->tt[(i + l) % NORM_LANES] += t * t;
        }
        if (i + n != opt->dim && (i + n) % NORM_SEGMENT != 0)
            continue;
        for (int half = NORM_LANES / 2; half; half /= 2)
            for (int l = 0; l < half; l++) {
                sums->t[l] += sums->t[l + half];
                sums->tt[l] += sums->tt[l + half];
            }
        sums->total_t += sums->t[0];
        sums->total_tt += sums->tt[0];
        memset(sums->t, 0, sizeof sums->t);
        memset(sums->tt, 0, sizeof sums->tt);
    }
}

/* What the plain sums of a row say. */
NRG_INLINE norm_statistics first_statistics(const nrg_norm_formula *f, double t, double tt)
{
    norm_statistics stat = {0, 0, tt * f->inv_dim};
    if (!(stat.variance <= DBL_MAX))
        stat.pilot = stat.variance = (double)NAN; /* finite floats cannot overflow the sum */
    else if (f->centred) {
        stat.pilot = t / f->d;
        stat.variance -= stat.pilot * stat.pilot;
    }
    return stat;
}

/* Whether the row has to be summed around the pilot; then the sums are for second_statistics. */
NRG_INLINE int needs_second(const nrg_norm_formula *f, const norm_statistics *stat)
{
    return f->centred && !isnan(stat->variance) && !variance_is_sound(stat->pilot, stat->variance);
}

/* A constant row's mean is exact, and what is left of the row is 0. */
NRG_INLINE void second_statistics(norm_statistics *stat, const nrg_norm_formula *f, const fallback_sums *sums)
{
    stat->offset = sums->total_t / f->d;
    stat->variance = sums->total_tt * f->inv_dim - stat->offset * stat->offset;
    if (!(stat->variance > 0))
        stat->variance = 0;
}

/* The multipliers of row n, whose mean and rstd are stored. Returns whether its elements are to be done in double. */
static __attribute__((noinline)) int fallback_factors(norm_factors *f, const nrg_norm_job *job, const norm_statistics *stat,
                                                      double tt, size_t n)
{
    const nrg_norm_formula *formula = &job->formula;
    const double mean = stat->pilot + stat->offset;
    const double inverse = isnan(stat->variance) ? (double)NAN : inverse_divisor(formula->divisor, formula->eps, stat->variance);
    const double factor = formula->k * inverse;
    float hi = (float)factor;
    *f = (norm_factors){
        .hi = v_set1(hi),
        .lo = v_set1((float)(factor - (double)hi)),
        .minus_mean = v_set1((float)(-mean * factor)),
        .pilot = vd_set1(stat->pilot),
        .offset = vd_set1(stat->offset),
        .factor = vd_set1(factor),
    };
    if (job->mean)
        job->mean[n] = (float)mean;
    if (job->rstd)
        job->rstd[n] = (float)inverse;
    return !floats_serve(tt * formula->inv_dim, mean, inverse, factor);
}

/* Row n from its stored or recomputed r to o, mean and rstd, given its plain sums. */
static __attribute__((noinline)) void fallback_row(const nrg_norm_job *job, size_t n, double t, double tt, nrg_dtype D)
{
    const norm_options opt = options_of(job, D);
    norm_row row = row_at(job, n, D);
    norm_statistics stat = first_statistics(&job->formula, t, tt);
    fallback_sums sums;
    norm_factors f;
    if (needs_second(&job->formula, &stat)) {
        sum_around(&sums, &opt, &row, stat.pilot, 0, opt.dim, D);
        second_statistics(&stat, &job->formula, &sums);
    }
    const int fallback = fallback_factors(&f, job, &stat, tt, n);
    apply_rest(&opt, &row, &f, 0, opt.dim, D, fallback);
}

#endif
