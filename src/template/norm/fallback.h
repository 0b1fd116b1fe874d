/* Fallback: rows that the arithmetic of their grade cannot do. Their sums exceed what floats hold (fast grade), their mean is
 * large beside σ or s, their factor is near the ends of the range of floats, or they contain NaN or infinity. Elements are
 * computed in double.
 *
 * Rare, so that the dtype is a variable: one copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_FALLBACK_H
#define NRG_TEMPLATE_NORM_FALLBACK_H

#include "fallback_sum.h"

typedef struct fallback_factors {
    vd pilot, offset, factor;
    row_factors floats;
    int in_double; /* 0: the floats are enough */
} fallback_factors;

/* square: Σp²/d. */
static __attribute__((noinline, cold)) void factors_of_fallback(fallback_factors *to, const nrg_norm_job *job,
                                                                const fallback_statistics *stat, double square, size_t n)
{
    const nrg_norm_formula *f = &job->formula;
    const double mean = stat->pilot + stat->offset;
    const double inverse = inverse_of_variance(f, stat->variance);
    const double factor = f->k * inverse;
    const float high = (float)factor;
    *to = (fallback_factors){vd_set1(stat->pilot),
                             vd_set1(stat->offset),
                             vd_set1(factor),
                             {v_set1(high), v_set1((float)(factor - (double)high)), v_zero(), v_set1((float)(-mean * factor))},
                             !floats_serve(square, mean, inverse, factor)};
    store_statistics(job, (float)mean, (float)inverse, n);
    if (job->statistics)
        job->statistics[n] = (nrg_row_statistics){stat->pilot, stat->offset, stat->variance, inverse,
                                                  to->in_double ? NRG_NORM_DOUBLE : NRG_NORM_EXACT};
}

/* ---- statistics of rows as inputs and outputs (nrg/norm_parts.h) ---- */

typedef struct given_row {
    double pilot, offset, factor;
    enum nrg_norm_way way;
} given_row;

/* Of statistics from elsewhere nothing is known: the fast grade takes floats where these have room, the exact grade double. */
static __attribute__((noinline)) given_row given_of_row(const nrg_norm_job *job, size_t n, int exact)
{
    const nrg_norm_formula *f = &job->formula;
    const nrg_row_statistics *given = &job->statistics[n];
    const uint64_t way = given->opaque;
    given_row row = {f->centred ? given->mean : 0, f->centred ? given->mean_low : 0, f->k * given->rstd, NRG_NORM_DOUBLE};
    const double squared = row.factor * row.factor;
    if (way == NRG_NORM_EXACT || way == NRG_NORM_DOUBLE)
        row.way = (enum nrg_norm_way)way;
    else if (!exact && (way == NRG_NORM_FAST || ((given->rstd <= 0x1p40) & (squared >= 0x1p-80) & (squared <= 0x1p80))))
        row.way = NRG_NORM_FAST;
    return row;
}

static __attribute__((noinline)) row_scalars given_scalars(const nrg_norm_job *job, size_t n, int exact)
{
    const given_row given = given_of_row(job, n, exact);
    const double mean = given.pilot + given.offset, factor = given.factor;
    row_scalars s = {
        .factor = (float)factor, .centre = (float)mean, .in_range = given.way == (exact ? NRG_NORM_EXACT : NRG_NORM_FAST)};
    s.low = (float)(factor - (double)s.factor);
    s.shift = (float)(exact ? -mean * factor : (((double)s.centre - given.pilot) - given.offset) * factor);
    return s;
}

static __attribute__((noinline)) void given_to_fallback(fallback_factors *to, const nrg_norm_job *job, size_t n, nrg_dtype D)
{
    const given_row given = given_of_row(job, n, nrg_norm_is_exact(&job->formula, D));
    const row_scalars s = given_scalars(job, n, 1);
    *to = (fallback_factors){vd_set1(given.pilot),
                             vd_set1(given.offset),
                             vd_set1(given.factor),
                             {v_set1(s.factor), v_set1(s.low), v_zero(), v_set1(s.shift)},
                             given.way == NRG_NORM_DOUBLE};
}

/* (p - m)·(w + offset)·factor in double */
NRG_INLINE void multiply_in_double(vf *v, const row_outputs *to, const fallback_factors *f, size_t i, size_t n, unsigned options,
                                   nrg_dtype D)
{
    vd low = vd_sub(vd_sub(vd_low(*v), f->pilot), f->offset), high = vd_sub(vd_sub(vd_high(*v), f->pilot), f->offset);
    if (options & OPT_WEIGHT) {
        const vd offset = vd_set1((double)*to->w_offset);
        vf w;
        load_weights_step(&w, 1, to->row.w, i, n, options, D);
        low = vd_mul(low, vd_add(vd_low(w), offset));
        high = vd_mul(high, vd_add(vd_high(w), offset));
    }
    *v = v_from_vd(vd_mul(low, f->factor), vd_mul(high, f->factor));
}

static __attribute__((noinline)) void output_fallback(const nrg_norm_job *job, const row_operands *at, const fallback_factors *f,
                                                      size_t begin, size_t end, unsigned options, nrg_dtype D)
{
    const row_outputs to = {*at, f->floats, &job->formula.w_offset};
    options &= (OPT_CENTRED | OPT_ALL) & ~(unsigned)(OPT_STREAM_O | OPT_LINES_O); /* nothing that a schedule chooses */
    for (size_t i = begin; i < end; i += VN) {
        const size_t n = lanes_at(i, end);
        vf v;
        source_again(&v, 1, to.row, i, n, options, D);
        if (f->in_double)
            multiply_in_double(&v, &to, f, i, n, options, D);
        else
            multiply_exact(&v, 1, &to, i, n, options, D);
        finish_step(&v, 1, to.row, i, n, options, D);
    }
}

/* The options of a job that may be a part of a pass, or read r, or store o in f32. */
static __attribute__((noinline)) unsigned options_of_part(const nrg_norm_job *job, nrg_dtype D)
{
    unsigned options = options_of_job(job, D);
    if (!(job->from_r | job->o_f32))
        return options;
    if (job->from_r)
        options = (options & ~(unsigned)OPT_RESIDUAL) | (D != NRG_F32 && job->r_f32 ? OPT_X_F32 : 0);
    return options | (D != NRG_F32 && job->o_f32 ? OPT_O_F32 : 0);
}

/* operands_of_row where time counts less than code. */
static __attribute__((noinline)) void find_row(row_operands *row, const nrg_norm_job *job, size_t n, unsigned options,
                                               nrg_dtype D)
{
    *row = operands_of_row(job, n, options, D);
}

/* From the operands of row n for the second pass to its factors, mean and rstd. */
static __attribute__((noinline)) void sum_by_fallback(fallback_factors *f, const nrg_norm_job *job, const row_operands *row,
                                                      unsigned options, size_t n, nrg_dtype D)
{
    fallback_sums sums;
    fallback_sum(&sums, row, options, 0, 0, job->dim, job->dim, D);
    const double tt = value_of(&sums.tt);
    fallback_statistics stat = first_statistics(&job->formula, value_of(&sums.t), tt);
    if (needs_second_sum(&job->formula, &stat)) {
        fallback_sum(&sums, row, options, stat.pilot, 0, job->dim, job->dim, D);
        second_statistics(&stat, &job->formula, &sums);
    }
    factors_of_fallback(f, job, &stat, tt * job->formula.inv_dim, n);
}

/* Row n to o, mean and rstd. */
static __attribute__((noinline)) void fallback_of(const nrg_norm_job *job, const row_operands *row, unsigned options, size_t n,
                                                  nrg_dtype D)
{
    fallback_factors f;
    if (job->part == NRG_NORM_APPLY)
        given_to_fallback(&f, job, n, D);
    else
        sum_by_fallback(&f, job, row, options, n, D);
    if (job->part != NRG_NORM_SUMS)
        output_fallback(job, row, &f, 0, job->dim, options, D);
}

/* Row n from its stored or recomputed r. */
static __attribute__((noinline)) void fallback_row(const nrg_norm_job *job, size_t n, nrg_dtype D)
{
    const unsigned options = options_of_part(job, D);
    row_operands row;
    find_row(&row, job, n, options, D);
    fallback_of(job, &row, options, n, D);
}

#endif
