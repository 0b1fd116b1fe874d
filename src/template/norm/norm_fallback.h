/* The rows that the plain way does not serve: sums beyond what floats hold (the fast grade), a mean that is large beside σ or s,
 * results that need a factor near the ends of the floats' range, NaN and Inf. Their elements are done in double; their variance
 * again around the mean, where that was lost in it.
 *
 * Rare, so the dtype is looked up at run time: one small copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FALLBACK_H
#define NRG_TEMPLATE_NORM_NORM_FALLBACK_H

#include "norm_apply.h"
#include "norm_fast_scalars.h"
#include "norm_scalars.h"
#include "norm_sum_rows.h"

typedef struct norm_statistics {
    double pilot, offset; /* m in two parts */
    double variance;
} norm_statistics;

/* Σt and Σt² of t = p - pilot. */
typedef struct fallback_sums {
    norm_lanes lanes;
    norm_total t, tt;
} fallback_sums;

/* Adds elements begin to end, which is the row's end or a multiple of the lanes, like begin. A pilot of 0 gives the sums of the
 * exact grade. */
static __attribute__((noinline)) void sum_around(fallback_sums *sums, const norm_options *opt, const norm_row *row, double pilot,
                                                 size_t begin, size_t end, nrg_dtype D)
{
    const vd around = vd_set1(pilot);
    vd *const t = sums->lanes.t, *const tt = sums->lanes.tt;
    if (begin == 0)
        sums->t = sums->tt = (norm_total){0, 0};
    for (size_t i = begin; i < end; i += VN) {
        const size_t n = lanes_at(i, end), lane = i / VN * 2 % NORM_LANE_REGISTERS;
        vf v;
        if (i % NORM_SEGMENT == 0)
            clear_lanes(t, tt, 1);
        load_again(&v, 1, opt->how, *row, i, n, D);
        vd low = vd_sub(vd_low(v), around), high = vd_sub(vd_high(v), around);
        if (NRG_RARELY(n < VN)) { /* 0 where there is no element */
            double parts[VN];
            vd_st(parts, low);
            vd_st(parts + VN / 2, high);
            for (size_t l = n; l < VN; l++)
                parts[l] = 0;
            low = vd_ld(parts);
            high = vd_ld(parts + VN / 2);
        }
        /* not fma: around a pilot a square is not exact, and the reference rounds it */
        t[lane] = vd_add(t[lane], low);
        t[lane + 1] = vd_add(t[lane + 1], high);
        tt[lane] = vd_add(tt[lane], vd_mul(low, low));
        tt[lane + 1] = vd_add(tt[lane + 1], vd_mul(high, high));
        if (i + n != opt->dim && (i + n) % NORM_SEGMENT != 0)
            continue;
        const vd8 folded_t = fold_lanes(t), folded_tt = fold_lanes(tt);
        add_compensated(&sums->t, vd8_sum(&folded_t));
        add_compensated(&sums->tt, vd8_sum(&folded_tt));
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
    stat->offset = value_of(&sums->t) / f->d;
    stat->variance = value_of(&sums->tt) * f->inv_dim - stat->offset * stat->offset;
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

/* Row n from its stored or recomputed r to o, mean and rstd, given its plain sums; in the fast grade these do not serve, and the
 * row is done as the exact grade does it. */
static __attribute__((noinline)) void fallback_row(const nrg_norm_job *job, size_t n, double t, double tt, nrg_dtype D)
{
    const norm_options opt = options_of(job, D);
    norm_row row = row_at(job, n, D);
    fallback_sums sums;
    norm_factors f;
    if (opt.fast) {
        sum_around(&sums, &opt, &row, 0, 0, opt.dim, D);
        t = value_of(&sums.t);
        tt = value_of(&sums.tt);
    }
    norm_statistics stat = first_statistics(&job->formula, t, tt);
    if (needs_second(&job->formula, &stat)) {
        sum_around(&sums, &opt, &row, stat.pilot, 0, opt.dim, D);
        second_statistics(&stat, &job->formula, &sums);
    }
    const int fallback = fallback_factors(&f, job, &stat, tt, n);
    apply_rest(&opt, &row, &f, 0, opt.dim, D, fallback);
}

/* What a row's scalars have to say about it; rows that need the fallback are done here. */
static void row_finish(const nrg_norm_job *job, float mean, float rstd, int needs_fallback, double t, double tt, size_t n,
                       nrg_dtype D)
{
    if (NRG_RARELY(needs_fallback)) {
        fallback_row(job, n, t, tt, D);
        return;
    }
    if (job->mean)
        job->mean[n] = mean;
    if (job->rstd)
        job->rstd[n] = rstd;
}

NRG_INLINE void exact_row_finish(const nrg_norm_job *job, const norm_scalars *s, double t, double tt, int k, size_t n,
                                 nrg_dtype D)
{
    row_finish(job, (float)s->mean[k], (float)s->inverse[k], s->needs_fallback[k] != 0, t, tt, n, D);
}

/* Sums of floats are of no use to the fallback. */
NRG_INLINE void fast_row_finish(const nrg_norm_job *job, const fast_scalars *s, int k, size_t n, nrg_dtype D)
{
    row_finish(job, job->formula.centred ? s->centre[k] : 0, s->rstd[k], s->needs_fallback[k] != 0, 0, 0, n, D);
}

#endif
