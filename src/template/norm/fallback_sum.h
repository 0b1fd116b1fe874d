/* Sums of the fallback, in double, and the statistics that they give; with the variance around the mean where the first sums have
 * lost it. fallback.h says for which rows. Rare, so that the dtype is a variable: one copy of this code a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_FALLBACK_SUM_H
#define NRG_TEMPLATE_NORM_FALLBACK_SUM_H

#include "scalars.h"

/* m is pilot + offset. */
typedef struct fallback_statistics {
    double pilot, offset, variance;
} fallback_statistics;

/* Σt and Σt² of t = p - pilot. */
typedef struct fallback_sums {
    exact_lanes lanes;
    norm_total t, tt;
} fallback_sums;

/* Adds elements begin to end, of which begin is a multiple of the lanes, and end is too or is dim. A pilot of 0 gives the sums of
 * the exact grade. */
static __attribute__((noinline)) void fallback_sum(fallback_sums *sums, const row_operands *at, unsigned options, double pilot,
                                                   size_t begin, size_t end, size_t dim, nrg_dtype D)
{
    const row_operands row = *at;
    const vd around = vd_set1(pilot);
    exact_lanes *const lanes = &sums->lanes;
    if (begin == 0)
        sums->t = sums->tt = (norm_total){0, 0};
    for (size_t i = begin; i < end; i += VN) {
        const size_t n = lanes_at(i, end), lane = i / VN * 2 % EXACT_LANE_VDS;
        vf v;
        if (i % NORM_SEGMENT == 0)
            clear_exact_lanes(lanes);
        source_again(&v, 1, row, i, n, options, D);
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
        /* not fma: around a pilot a square is not exact, and the oracle rounds it */
        lanes->t[lane] = vd_add(lanes->t[lane], low);
        lanes->t[lane + 1] = vd_add(lanes->t[lane + 1], high);
        lanes->tt[lane] = vd_add(lanes->tt[lane], vd_mul(low, low));
        lanes->tt[lane + 1] = vd_add(lanes->tt[lane + 1], vd_mul(high, high));
        if (i + n != dim && (i + n) % NORM_SEGMENT != 0)
            continue;
        const vd8 t = fold_exact(lanes->t), tt = fold_exact(lanes->tt);
        add_compensated(&sums->t, vd8_sum(&t));
        add_compensated(&sums->tt, vd8_sum(&tt));
    }
}

/* From sums around 0. */
NRG_INLINE fallback_statistics first_statistics(const nrg_norm_formula *f, double t, double tt)
{
    fallback_statistics stat = {0, 0, tt * f->inv_dim};
    if (!(stat.variance <= DBL_MAX))
        stat.pilot = stat.variance = (double)NAN; /* finite floats cannot overflow the sum */
    else if (f->centred) {
        stat.pilot = t / f->d;
        stat.variance -= stat.pilot * stat.pilot;
    }
    return stat;
}

/* Whether the row has to be summed around the pilot for second_statistics. */
NRG_INLINE int needs_second_sum(const nrg_norm_formula *f, const fallback_statistics *stat)
{
    return f->centred && !isnan(stat->variance) && !variance_is_sound(stat->pilot, stat->variance);
}

/* The mean of a constant row is exact, and its variance is 0. */
NRG_INLINE void second_statistics(fallback_statistics *stat, const nrg_norm_formula *f, const fallback_sums *sums)
{
    stat->offset = value_of(&sums->t) / f->d;
    stat->variance = value_of(&sums->tt) * f->inv_dim - stat->offset * stat->offset;
    if (!(stat->variance > 0))
        stat->variance = 0;
}

#endif
