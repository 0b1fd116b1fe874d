/* A row of the fast grade alone, of one segment and with few options: what a decoder normalizes for a token. The walks of
 * norm_rows.h would do the same; a call of 1x64 takes 1.35 times as long with them (Zen 4), and one of bf16 1.55 times (Granite
 * Rapids).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_ALONE_H
#define NRG_TEMPLATE_NORM_NORM_FAST_ALONE_H

#include "norm_fallback.h"
#include "norm_fast_apply.h"
#include "norm_fast_rows.h"

NRG_INLINE int alone_serves(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    return !V_SMALL && job->row_end - job->row_begin == 1 && opt->dim % FAST_LANES == 0 && opt->dim <= NORM_SEGMENT &&
           job->groups == 1 && !(opt->how & (NORM_PREFETCH | NORM_W_OFFSET | NORM_LAST)) &&
           (D == NRG_F32 || !(opt->how & (NORM_Y_F32 | NORM_R_F32) || (opt->how & (NORM_ADD_Y | NORM_READ_R)) == NORM_ADD_Y));
}

enum {
    ALONE_WIDE = 2048,                         /* elements that there is stack for */
    ALONE_RESIDUAL = NORM_ADD_Y | NORM_STORE_R /* nothing is streamed */
};

/* f16 takes two instructions a vector to widen, so what is summed is kept as floats: with AVX-512 1x4096 rms 1.08 ×,
 * add+rms 1.05, layer 1.04, 1x2048 rms 1.18; with AVX2 1x4096 rms 1.01, 1x2048 1.12, but others 0.95 to 1.0 (Granite Rapids).
 * bf16 takes one. */
NRG_INLINE unsigned alone_widens(unsigned how, nrg_dtype D)
{
    return D == NRG_F16 && (VN >= 16 || !(how & (NORM_FIRST | NORM_CENTRED))) ? NORM_KEEP_WIDE : 0;
}

/* Where those begin, which are the last ones: with a piece of the elements, and so with a block. */
NRG_INLINE size_t alone_wide_from(size_t dim)
{
    const size_t piece = 2 * NORM_BLOCK;
    return dim > ALONE_WIDE ? (dim - ALONE_WIDE + piece - 1) / piece * piece : 0;
}

NRG_INLINE void alone_sums(double *t, double *tt, float *pilot, const norm_options *opt, const norm_row *row, unsigned may,
                           int centred, nrg_dtype D)
{
    const int pairs = norm_pairs(FAST_VECTORS, D) != 0;
    vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
    *pilot = centred ? fast_pilot(row, opt->how, may, opt->dim, D) : 0;
    fast_source s = {.row = *row, .how = opt->how, .pilot = v_set1(*pilot)};
    vd8 eight;
    const size_t wide_from = alone_wide_from(opt->dim);
    const int one = opt->dim <= FAST_BLOCK;
    fast_blocks blocks;
    fast_clear(&blocks);
    do {
        s.begin = s.whole;
        s.whole = opt->dim - s.begin > FAST_BLOCK ? s.begin + FAST_BLOCK : opt->dim;
        if (s.begin == wide_from)
            s.how |= alone_widens(opt->how, D);
        fast_block(lanes_t, lanes_tt, &s, NULL, may, D, centred, 0);
        if (centred)
            fast_fold(lanes_t, pairs);
        fast_fold(lanes_tt, pairs);
        if (one)
            break;
        if (centred)
            fast_join(blocks.t, blocks.t_lost, lanes_t);
        fast_join(blocks.tt, blocks.tt_lost, lanes_tt);
    } while (s.whole < opt->dim);
    if (centred) {
        eight = one ? fast_widen(lanes_t, NULL) : fast_widen(blocks.t, blocks.t_lost);
        *t = vd8_sum(&eight);
    }
    eight = one ? fast_widen(lanes_tt, NULL) : fast_widen(blocks.tt, blocks.tt_lost);
    *tt = vd8_sum(&eight);
}

NRG_INLINE void alone_rms_of(double *tt, const norm_options *opt, const norm_row *row, nrg_dtype D)
{
    float pilot;
    if (D == NRG_F32 || opt->how & NORM_FIRST)
        alone_sums(NULL, tt, &pilot, opt, row, ALONE_RESIDUAL | alone_widens(NORM_FIRST, D), 0, D);
    else
        alone_sums(NULL, tt, &pilot, opt, row, alone_widens(0, D), 0, D);
}

NRG_BY_DTYPE(alone_rms, (tt, opt, row), double *tt, const norm_options *opt, const norm_row *row)

/* One loop, with a residual or without: two are 10 KB more, and 1x4096 of bf16 with AVX2 takes 0.93 of the time with them,
 * nothing else less. */
NRG_INLINE void alone_centred_of(double *t, double *tt, float *pilot, const norm_options *opt, const norm_row *row, nrg_dtype D)
{
    alone_sums(t, tt, pilot, opt, row, ALONE_RESIDUAL | alone_widens(NORM_FIRST | NORM_CENTRED, D), 1, D);
}

NRG_BY_DTYPE(alone_centred, (t, tt, pilot, opt, row), double *t, double *tt, float *pilot, const norm_options *opt,
             const norm_row *row)

/* From the last piece to the first: what was read last is still in L1. */
NRG_INLINE void alone_elements(const norm_options *opt, norm_row row, const fast_factors *f, nrg_dtype D)
{
    const int G = fast_apply_vectors(D);
    const unsigned may = NORM_CENTRED | (D == NRG_F32 ? NORM_ADD_Y : NORM_W_F32) | alone_widens(0, D);
    const size_t piece = 2 * NORM_BLOCK;
    unsigned how = opt->how;
    if (how & NORM_READ_R) { /* nothing but another x */
        row.x = row.r;
        how &= ~(unsigned)NORM_ADD_Y;
    }
    for (size_t end = opt->dim, begin; end != 0; end = begin) {
        begin = (end - 1) / piece * piece;
        const unsigned wide = begin >= alone_wide_from(opt->dim) ? alone_widens(opt->how, D) : 0;
        for (size_t i = begin; i < end; i += (size_t)G * VN)
            fast_apply_step(G, options_in_register(how | wide, may) | norm_pairs(G, D) | NORM_CALM, NULL, row, f, i,
                            (size_t)G * VN, D);
    }
}

NRG_INLINE void alone_row_of(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t n = job->row_begin;
    _Alignas(64) float stage[ALONE_WIDE];
    norm_row row = row_at(job, n, D);
    if (alone_widens(0, D))
        row.stage = (float *)((uintptr_t)stage - alone_wide_from(opt->dim) * sizeof *stage);
    double t = 0, tt;
    float pilot = 0;
    fast_scalars s;
    if (opt->how & NORM_CENTRED)
        alone_centred(&t, &tt, &pilot, opt, &row, D);
    else
        alone_rms(&tt, opt, &row, D);
    fast_scalars_alone(&s, job, pilot, t, tt, 0);
    if (!NRG_RARELY(s.needs_fallback[0] != 0)) {
        const fast_factors f = fast_factors_of(&s, 0);
        alone_elements(opt, row, &f, D);
    }
    if (NRG_RARELY(job->mean || job->rstd || s.needs_fallback[0] != 0))
        fast_row_finish(job, &s, 0, n, D);
}

NRG_BY_DTYPE(alone_row, (job, opt), const nrg_norm_job *job, const norm_options *opt)

#endif
