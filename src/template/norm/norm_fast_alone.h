/* A row of the fast grade alone, f32, of one segment and with few options: what a decoder normalizes for a token. The walks of
 * norm_rows.h would do the same; a call of 1x64 takes 1.35 times as long with them (Zen 4).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_ALONE_H
#define NRG_TEMPLATE_NORM_NORM_FAST_ALONE_H

#include "norm_fallback.h"
#include "norm_fast_apply.h"
#include "norm_fast_rows.h"

NRG_INLINE int alone_serves(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    return !V_SMALL && job->row_end - job->row_begin == 1 && D == NRG_F32 && opt->fast && opt->dim % FAST_LANES == 0 &&
           opt->dim <= NORM_SEGMENT && job->groups == 1 && !(opt->how & (NORM_PREFETCH | NORM_W_OFFSET | NORM_LAST));
}

NRG_INLINE void alone_sums(double *t, double *tt, float *pilot, const norm_options *opt, const norm_row *row, int centred)
{
    vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
    *pilot = centred ? fast_pilot(row, opt->how, NORM_RESIDUAL, opt->dim, NRG_F32) : 0;
    fast_source s = {.row = *row, .how = opt->how, .pilot = v_set1(*pilot)};
    vd8 eight;
    if (opt->dim <= FAST_BLOCK) {
        s.whole = opt->dim;
        fast_block(lanes_t, lanes_tt, &s, NULL, NORM_RESIDUAL, NRG_F32, centred, 0);
        if (centred) {
            fast_fold(lanes_t, 0);
            eight = fast_widen(lanes_t, NULL);
            *t = vd8_sum(&eight);
        }
        fast_fold(lanes_tt, 0);
        eight = fast_widen(lanes_tt, NULL);
        *tt = vd8_sum(&eight);
        return;
    }
    fast_blocks blocks;
    fast_clear(&blocks);
    for (; s.begin < opt->dim; s.begin = s.whole) {
        s.whole = opt->dim - s.begin > FAST_BLOCK ? s.begin + FAST_BLOCK : opt->dim;
        fast_block(lanes_t, lanes_tt, &s, NULL, NORM_RESIDUAL, NRG_F32, centred, 0);
        if (centred) {
            fast_fold(lanes_t, 0);
            fast_join(blocks.t, blocks.t_lost, lanes_t);
        }
        fast_fold(lanes_tt, 0);
        fast_join(blocks.tt, blocks.tt_lost, lanes_tt);
    }
    if (centred) {
        eight = fast_widen(blocks.t, blocks.t_lost);
        *t = vd8_sum(&eight);
    }
    eight = fast_widen(blocks.tt, blocks.tt_lost);
    *tt = vd8_sum(&eight);
}

static __attribute__((noinline)) void alone_rms(double *tt, const norm_options *opt, const norm_row *row)
{
    float pilot;
    alone_sums(NULL, tt, &pilot, opt, row, 0);
}

static __attribute__((noinline)) void alone_centred(double *t, double *tt, float *pilot, const norm_options *opt,
                                                    const norm_row *row)
{
    alone_sums(t, tt, pilot, opt, row, 1);
}

/* From the last piece to the first: what was read last is still in L1. */
NRG_INLINE void alone_elements(const norm_options *opt, norm_row row, const fast_factors *f)
{
    const size_t piece = 2 * NORM_BLOCK;
    unsigned how = opt->how;
    if (how & NORM_READ_R) { /* nothing but another x */
        row.x = row.r;
        how &= ~(unsigned)NORM_ADD_Y;
    }
    for (size_t end = opt->dim, begin; end != 0; end = begin) {
        begin = (end - 1) / piece * piece;
        for (size_t i = begin; i < end; i += FAST_LANES)
            fast_apply_step(FAST_VECTORS, options_in_register(how, NORM_CENTRED | NORM_ADD_Y), NULL, row, f, i, FAST_LANES,
                            NRG_F32);
    }
}

static __attribute__((noinline)) void alone_row(const nrg_norm_job *job, const norm_options *opt)
{
    const size_t n = job->row_begin;
    const norm_row row = row_at(job, n, NRG_F32);
    double t = 0, tt;
    float pilot = 0;
    fast_scalars s;
    if (opt->how & NORM_CENTRED)
        alone_centred(&t, &tt, &pilot, opt, &row);
    else
        alone_rms(&tt, opt, &row);
    fast_scalars_alone(&s, job, pilot, t, tt, 0);
    if (!NRG_RARELY(s.needs_fallback[0] != 0)) {
        const fast_factors f = fast_factors_of(&s, 0);
        alone_elements(opt, row, &f);
    }
    if (NRG_RARELY(job->mean || job->rstd || s.needs_fallback[0] != 0))
        fast_row_finish(job, &s, 0, n, NRG_F32);
}

#endif
