/* A row of the exact grade alone: as norm_fast_alone.h, which says which rows these are. 1x4096 rms 1.09 × as fast as by the
 * walks of norm_rows.h (AVX-512) and 1.13 (AVX2), layer 1.05 and 1.16, 1x64 rms 1.35 (Granite Rapids).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_EXACT_ALONE_H
#define NRG_TEMPLATE_NORM_NORM_EXACT_ALONE_H

#include "norm_apply.h"
#include "norm_fast_alone.h"
#include "norm_sum_rows.h"

/* A row's only segment as norm_total would have it: what is not finite becomes a NaN. */
NRG_INLINE double exact_alone_total(const vd *lanes)
{
    const vd8 eight = fold_lanes(lanes);
    const double sum = vd8_sum(&eight);
    return sum + (sum - sum);
}

NRG_INLINE void exact_alone_sums(double *t, double *tt, const norm_options *opt, const norm_row *row, unsigned may, int centred)
{
    vd lanes_t[NORM_LANE_REGISTERS], lanes_tt[NORM_LANE_REGISTERS];
    clear_lanes(lanes_t, lanes_tt, centred);
    sum_whole(lanes_t, lanes_tt, opt->how, may, *row, 0, opt->dim, NRG_F32, centred);
    if (centred)
        *t = exact_alone_total(lanes_t);
    *tt = exact_alone_total(lanes_tt);
}

static __attribute__((noinline)) void exact_alone_rms(double *tt, const norm_options *opt, const norm_row *row)
{
    if (opt->how & NORM_FIRST)
        exact_alone_sums(NULL, tt, opt, row, ALONE_RESIDUAL, 0);
    else
        exact_alone_sums(NULL, tt, opt, row, 0, 0);
}

static __attribute__((noinline)) void exact_alone_centred(double *t, double *tt, const norm_options *opt, const norm_row *row)
{
    exact_alone_sums(t, tt, opt, row, ALONE_RESIDUAL, 1);
}

NRG_INLINE void exact_alone_elements(const norm_options *opt, norm_row row, const norm_factors *f)
{
    const size_t piece = 2 * NORM_BLOCK, step = (size_t)V_APPLY * VN;
    unsigned how = opt->how;
    if (how & NORM_READ_R) { /* nothing but another x */
        row.x = row.r;
        how &= ~(unsigned)NORM_ADD_Y;
    }
    for (size_t end = opt->dim, begin; end != 0; end = begin) {
        begin = (end - 1) / piece * piece;
        for (size_t i = begin; i < end; i += step)
            apply_step(V_APPLY, options_in_register(how, NORM_CENTRED | NORM_ADD_Y), NULL, row, f, i, step, NRG_F32, 0);
    }
}

static __attribute__((noinline)) void exact_alone_row(const nrg_norm_job *job, const norm_options *opt)
{
    const size_t n = job->row_begin;
    const norm_row row = row_at(job, n, NRG_F32);
    double t = 0, tt;
    norm_scalars s;
    if (opt->how & NORM_CENTRED)
        exact_alone_centred(&t, &tt, opt, &row);
    else
        exact_alone_rms(&tt, opt, &row);
    scalars_of(&s, job, &t, &tt, 1);
    if (!NRG_RARELY(s.needs_fallback[0] != 0)) {
        const norm_factors f = factors_of(&s, 0);
        exact_alone_elements(opt, row, &f);
    }
    if (NRG_RARELY(job->mean || job->rstd || s.needs_fallback[0] != 0))
        exact_row_finish(job, &s, t, tt, 0, n, NRG_F32);
}

#endif
