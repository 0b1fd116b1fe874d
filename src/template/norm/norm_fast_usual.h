/* A row of floats alone with the options that most have: nothing to look at on the way. 1x64 takes 30 ns as a call where it takes
 * 45 by norm_fast_alone.h, whose loops serve whatever is left (Granite Rapids).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_USUAL_H
#define NRG_TEMPLATE_NORM_NORM_FAST_USUAL_H

#include "norm_fallback.h"
#include "norm_fast_apply.h"
#include "norm_fast_rows.h"

enum { USUAL_MOST = 2 * NORM_BLOCK }; /* elements: one piece */

NRG_INLINE int usual_serves(const nrg_norm_job *job, nrg_dtype D)
{
    const unsigned options = (unsigned)job->gate | (unsigned)job->activation | (unsigned)job->formula.divisor |
                             (unsigned)job->formula.exact | (unsigned)job->stream | (unsigned)job->after | (unsigned)job->part;
    return !V_SMALL && D == NRG_F32 && job->row_end - job->row_begin == 1 &&
           ((job->dim % FAST_LANES) | options | (job->groups - 1) | (uintptr_t)job->mean | (uintptr_t)job->rstd) == 0 &&
           job->dim <= USUAL_MOST && job->w && !job->y == !job->r && job->formula.w_offset == 0;
}

/* A block's lanes, folded. residual: r = x + y, stored on the way. */
NRG_INLINE void usual_block(vf *t, vf *tt, const norm_row *row, size_t begin, size_t end, vf pilot, int centred, int residual)
{
    enum { G1 = V_FAST1, G2 = V_FAST2 };
    const int G = centred ? G2 : G1;
    NRG_UNROLL
    for (int first = 0; first < (int)FAST_VECTORS; first += G) {
        vf sum_t[FAST_VECTORS], sum_tt[FAST_VECTORS];
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            sum_t[j] = sum_tt[j] = v_zero();
        for (size_t i = begin + (size_t)first * VN; i < end; i += FAST_LANES) {
            vf v[FAST_VECTORS];
            load_first(v, G, residual ? NORM_ADD_Y | NORM_STORE_R : 0, *row, i, (size_t)G * VN, NRG_F32);
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                fast_add(&sum_t[j], &sum_tt[j], v[j], pilot, centred);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            t[first + j] = sum_t[j];
            tt[first + j] = sum_tt[j];
        }
    }
    if (centred)
        fast_fold(t, 0);
    fast_fold(tt, 0);
}

NRG_INLINE void usual_row_of(const nrg_norm_job *job, int centred, int residual)
{
    const size_t n = job->row_begin, dim = job->dim;
    const norm_row row = {.x = job->x + n * job->x_stride,
                          .y = residual ? job->y + n * job->y_stride : NULL,
                          .r = residual ? job->r + n * job->r_stride : NULL,
                          .w = job->w,
                          .b = job->b,
                          .o = job->o + n * job->o_stride};
    const float pilot = centred ? fast_pilot(&row, residual ? NORM_ADD_Y : 0, NORM_RESIDUAL, dim, NRG_F32) : 0;
    const vf from = v_set1(pilot);
    vf t[FAST_VECTORS], tt[FAST_VECTORS];
    vd8 eight_t, eight_tt;
    if (dim <= FAST_BLOCK) {
        usual_block(t, tt, &row, 0, dim, from, centred, residual);
        if (centred)
            eight_t = fast_widen(t, NULL);
        eight_tt = fast_widen(tt, NULL);
    } else {
        fast_blocks blocks;
        fast_clear(&blocks);
        for (size_t i = 0; i < dim; i += FAST_BLOCK) {
            usual_block(t, tt, &row, i, dim - i > FAST_BLOCK ? i + FAST_BLOCK : dim, from, centred, residual);
            if (centred)
                fast_join(blocks.t, blocks.t_lost, t);
            fast_join(blocks.tt, blocks.tt_lost, tt);
        }
        if (centred)
            eight_t = fast_widen(blocks.t, blocks.t_lost);
        eight_tt = fast_widen(blocks.tt, blocks.tt_lost);
    }
    const double inv_dim = job->formula.inv_dim, offset = centred ? vd8_sum(&eight_t) * inv_dim : 0;
    const double square = vd8_sum(&eight_tt) * inv_dim, variance = square - offset * offset;
    const double inverse = inverse_divisor(NRG_DIV_ROOT, job->formula.eps, variance), factor = job->formula.k * inverse;
    if (NRG_RARELY(!fast_sums_serve(square, offset, variance, inverse, factor))) {
        fallback_row(job, n, 0, 0, NRG_F32);
        return;
    }
    const float centre = (float)((double)pilot + offset);
    const fast_factors f = {v_set1((float)factor), v_set1(centre),
                            v_set1((float)((((double)centre - (double)pilot) - offset) * factor))};
    norm_row again = row;
    if (residual)
        again.x = row.r;
    for (size_t i = 0; i < dim; i += FAST_LANES)
        fast_apply_step(FAST_VECTORS, centred ? NORM_CENTRED : 0, NULL, again, &f, i, FAST_LANES, NRG_F32);
}

static __attribute__((noinline)) void usual_rms(const nrg_norm_job *job) { usual_row_of(job, 0, 0); }
static __attribute__((noinline)) void usual_add_rms(const nrg_norm_job *job) { usual_row_of(job, 0, 1); }
static __attribute__((noinline)) void usual_centred(const nrg_norm_job *job) { usual_row_of(job, 1, 0); }
static __attribute__((noinline)) void usual_add_centred(const nrg_norm_job *job) { usual_row_of(job, 1, 1); }

static inline void usual_row(const nrg_norm_job *job)
{
    if (job->formula.centred) {
        if (job->y)
            usual_add_centred(job);
        else
            usual_centred(job);
    } else if (job->y)
        usual_add_rms(job);
    else
        usual_rms(job);
}

#endif
