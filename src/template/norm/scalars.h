/* Scalars: from the sums of a row to the numbers that its elements are multiplied with. In double, rounded once; of one row, or
 * of the rows of a tile side by side.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_SCALARS_H
#define NRG_TEMPLATE_NORM_SCALARS_H

#include <math.h>

#include "exact_sum.h"
#include "norm_scalars.h"

enum { TILE = 16 }; /* rows */

typedef struct row_scalars {
    float factor, low, centre, shift; /* apply.h; centre is the mean in either grade */
    float rstd;
    int in_range; /* 0: the row needs the fallback */
} row_scalars;

NRG_INLINE row_scalars scalars_by(const nrg_norm_job *job, float pilot, row_totals sum, enum nrg_divisor divisor, norm_policy P)
{
    const nrg_norm_formula *f = &job->formula;
    const double square = sum.tt * f->inv_dim;
    const double offset = !is_centred(P) ? 0 : is_exact(P) ? sum.t / f->d : sum.t * f->inv_dim;
    const double variance = square - offset * offset, inverse = inverse_divisor(divisor, f->eps, variance),
                 factor = f->k * inverse;
    row_scalars s = {.factor = (float)factor, .rstd = (float)inverse};
    if (is_exact(P)) {
        s.low = (float)(factor - (double)s.factor);
        s.centre = (float)offset;
        s.shift = (float)(-offset * factor);
        s.in_range = variance_is_sound(offset, variance) & floats_serve(square, offset, inverse, factor);
    } else {
        s.centre = (float)((double)pilot + offset);
        s.shift = (float)((((double)s.centre - (double)pilot) - offset) * factor);
        s.in_range = fast_sums_serve(square, offset, variance, inverse, factor);
    }
    return s;
}

static __attribute__((noinline)) row_scalars scalars_by_divisor(const nrg_norm_job *job, float pilot, row_totals sum, int exact)
{
    const norm_policy fast = {.must = OPT_CENTRED}, by_exact = {.must = OPT_EXACT | OPT_CENTRED}; /* without a mean sum.t is 0 */
    return exact ? scalars_by(job, 0, sum, job->formula.divisor, by_exact)
                 : scalars_by(job, pilot, sum, job->formula.divisor, fast);
}

NRG_INLINE row_scalars scalars_of_row(const nrg_norm_job *job, float pilot, row_totals sum, norm_policy P)
{
    if (P.may & OPT_DIVISOR && NRG_RARELY(job->formula.divisor != NRG_DIV_ROOT))
        return scalars_by_divisor(job, pilot, sum, is_exact(P));
    return scalars_by(job, pilot, sum, NRG_DIV_ROOT, P);
}

static __attribute__((noinline)) void store_statistics(const nrg_norm_job *job, float mean, float rstd, size_t n)
{
    if (job->mean)
        job->mean[n] = mean;
    if (job->rstd)
        job->rstd[n] = rstd;
}

NRG_INLINE void store_row_statistics(const nrg_norm_job *job, const row_scalars *s, size_t n, norm_policy P)
{
    if (NRG_RARELY(job->mean || job->rstd))
        store_statistics(job, is_centred(P) ? s->centre : 0, s->rstd, n);
}

NRG_INLINE row_outputs outputs_of_row(row_operands row, const row_scalars *s, const nrg_norm_job *job)
{
    const row_factors f = {v_set1(s->factor), v_set1(s->low), v_set1(s->centre), v_set1(s->shift)};
    return (row_outputs){row, f, &job->formula.w_offset};
}

/* ---- tiles. One row's chain of folds, root and division is about 100 cycles of latency; sixteen rows' little more ---- */

typedef struct tile_sums {
    _Alignas(64) float pilot[TILE];
    _Alignas(64) double t[TILE], tt[TILE];
} tile_sums;

typedef struct tile_scalars {
    _Alignas(64) float factor[TILE]; /* a vector in two cache lines takes twice as long */
    float low[TILE], centre[TILE], shift[TILE], rstd[TILE];
    unsigned fallback; /* a bit a row */
} tile_scalars;

/* Of VN rows from k on. Returns 0 if s² of each row is near 1: with c/√d near 1 what remains of fast_sums_serve, or of the
 * conditions of the exact grade, is about the mean and about tiny rows, and that is tested. */
NRG_INLINE vd scalars_side_by_side(tile_scalars *to, const nrg_norm_job *job, const tile_sums *sums, int k, int has_rstd,
                                   norm_policy P)
{
    const vd inv_dim = vd_set1(job->formula.inv_dim), eps = vd_set1(job->formula.eps), c = vd_set1(job->formula.k);
    const vf start = is_centred(P) && !is_exact(P) ? v_ld_f32(sums->pilot + k) : v_zero();
    vd factor[2], inverse[2], pilot[2], offset[2], mean[2], wrong = vd_zero();
    NRG_UNROLL
    for (int half = 0; half < 2; half++) {
        const int at = k + half * (int)(VN / 2);
        vd variance = vd_mul(vd_ld(sums->tt + at), inv_dim);
        if (is_exact(P))
            wrong = vd_or(wrong, vd_unless_le(vd_set1(0x1p-80), variance));
        if (is_centred(P)) {
            const vd t = vd_ld(sums->t + at);
            pilot[half] = half ? vd_high(start) : vd_low(start);
            offset[half] = is_exact(P) ? vd_div(t, vd_set1(job->formula.d)) : vd_mul(t, inv_dim);
            mean[half] = is_exact(P) ? offset[half] : vd_add(pilot[half], offset[half]);
            const vd lost = vd_mul(offset[half], offset[half]);
            variance = vd_sub(variance, lost);
            /* exact: |mean| is then below s/2, however floats_serve rounds */
            wrong = vd_or(wrong, vd_unless_le(vd_mul(vd_set1(is_exact(P) ? 5 : 4), lost), variance));
        }
        const vd square = vd_add(variance, eps);
        wrong = vd_or(wrong, vd_or(vd_unless_le(square, vd_set1(0x1p60)), vd_unless_le(vd_set1(0x1p-60), square)));
        inverse[half] = vd_mul(vd_sqrt(square), vd_div(vd_set1(1), square));
        factor[half] = vd_mul(c, inverse[half]);
    }
    const vf high = v_from_vd(factor[0], factor[1]);
    if (NRG_RARELY(has_rstd))
        v_st_f32(to->rstd + k, v_from_vd(inverse[0], inverse[1]));
    v_st_f32(to->factor + k, high);
    if (is_exact(P))
        v_st_f32(to->low + k, v_from_vd(vd_sub(factor[0], vd_low(high)), vd_sub(factor[1], vd_high(high))));
    if (!is_centred(P)) {
        v_st_f32(to->centre + k, v_zero());
        v_st_f32(to->shift + k, v_zero());
        return wrong;
    }
    const vf centre = v_from_vd(mean[0], mean[1]);
    v_st_f32(to->centre + k, centre);
    if (is_exact(P)) {
        const vd minus = vd_set1(-1);
        v_st_f32(to->shift + k,
                 v_from_vd(vd_mul(offset[0], vd_mul(minus, factor[0])), vd_mul(offset[1], vd_mul(minus, factor[1]))));
        return wrong;
    }
    v_st_f32(to->shift + k, v_from_vd(vd_mul(vd_sub(vd_sub(vd_low(centre), pilot[0]), offset[0]), factor[0]),
                                      vd_mul(vd_sub(vd_sub(vd_high(centre), pilot[1]), offset[1]), factor[1])));
    return wrong;
}

static __attribute__((noinline, cold)) unsigned fallback_of_tile(const nrg_norm_job *job, const tile_sums *sums, int count,
                                                                 int exact)
{
    unsigned bits = 0;
    for (int k = 0; k < count; k++) {
        const int has_mean = job->formula.centred;
        const row_totals sum = {has_mean ? sums->t[k] : 0, sums->tt[k]};
        bits |= (unsigned)!scalars_by_divisor(job, has_mean && !exact ? sums->pilot[k] : 0, sum, exact).in_range << k;
    }
    return bits;
}

NRG_INLINE void scalars_of_tile(tile_scalars *to, const nrg_norm_job *job, const tile_sums *sums, int count, unsigned options,
                                norm_policy P)
{
    vd wrong = vd_zero();
    for (int k = 0; k < count; k += VN)
        wrong = vd_or(wrong, scalars_side_by_side(to, job, sums, k, (options & OPT_STATISTICS) != 0, P));
    to->fallback = NRG_RARELY(vd_any(wrong)) ? fallback_of_tile(job, sums, count, is_exact(P)) : 0;
}

#endif
