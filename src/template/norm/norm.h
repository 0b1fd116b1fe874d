/* Row normalization, forward, over the vectors of a path's vec.h. The order of all arithmetic is that of src/scalar/norm.c.
 *
 * Read norm_rows.h and norm_long.h first: they are the walks over the rows. Each grade has its three steps: norm_fast_sum.h (and
 * norm_fast_rows.h), norm_fast_scalars.h and norm_fast_apply.h; norm_sum.h (and norm_sum_rows.h), norm_scalars.h and norm_apply.h
 * of the exact one, which is also what norm_fallback.h does for rows that floats do not serve. Some rows have walks of their own:
 * short ones (norm_fast_short.h), a row alone (norm_fast_usual.h, norm_fast_alone.h, norm_exact_alone.h), streamed ones
 * (norm_fast_along.h), and those with a gate: norm_gated.h of either grade, for short ones norm_fast_flat.h of floats and
 * norm_fast_gated.h of all else.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_H
#define NRG_TEMPLATE_NORM_NORM_H

#include "norm_exact_loops.h"
#include "norm_fallback.h"
#include "norm_loops.h"
#include "norm_long.h"

#include "norm_exact_alone.h"
#include "norm_fast_alone.h"
#include "norm_fast_usual.h"
#include "norm_fast_flat.h"
#include "norm_fast_gated.h"
#include "norm_fast_whole.h"
#include "norm_gated.h"
#include "norm_quantized.h"

/* Jobs without a gate. They name no loop of gated ones, which a program of them is linked without. */
NRG_INLINE void norm_forward_any_of(const nrg_norm_job *job, nrg_dtype D)
{
    norm_options opt = options_of(job, D);
    opt.half = half_loops(D);
    if (fast_short_serves(job, &opt, D)) {
        if (whole_serves(job, &opt, D))
            whole_rows(job, &opt);
        else if (opt.how & NORM_FIRST)
            short_residual_rows(job, &opt);
        else
            short_fast_rows(job, &opt, D);
    } else if (alone_serves(job, &opt, D)) {
        if (opt.fast)
            alone_row(job, &opt, D);
        else
            exact_alone_row(job, &opt);
    } else if (opt.dim <= NORM_SEGMENT && job->row_end - job->row_begin == 1)
        one_row(job, &opt, D);
    else if (opt.dim <= NORM_BLOCK)
        short_rows(job, &opt, D);
    else if (kept_serves(&opt, D))
        long_rows_kept(job, &opt, D);
    else if (walks_serve(job, &opt, D))
        long_rows_by_turns(job, &opt, D);
    else
        long_rows(job, &opt, D);
    if (opt.how & (NORM_STREAM_R | NORM_STREAM_O | NORM_LINES_O))
        v_nt_fence();
}

NRG_BY_DTYPE(norm_forward_any, (job), const nrg_norm_job *job)

static inline void norm_forward(const nrg_norm_job *job, nrg_dtype D)
{
    if (usual_serves(job, D))
        usual_row(job);
    else
        norm_forward_any(job, D);
}

NRG_PATH_KERNELS(norm_forward, norm, norm_forward)

/* Jobs with a gate or an activation, parts of a pass, and o in f32 beside 16 bits. */
static __attribute__((noinline)) void norm_gated_any(const nrg_norm_job *job, nrg_dtype D)
{
    norm_options opt = options_of(job, D);
    const int is_row = ((unsigned)job->part | (unsigned)job->from_r | (unsigned)job->o_f32) == 0;
    opt.half = half_loops(D);
    const int is_flat = is_row && flat_serves(job, &opt, D);
    if (is_flat || (is_row && gated_short_serves(job, &opt)))
        gated_short(job, &opt, D, is_flat);
    else
        gated_rows(job, &opt, D, job->row_begin, job->row_end, NULL);
    if (opt.how & (NORM_STREAM_R | NORM_STREAM_O | NORM_LINES_O))
        v_nt_fence();
}

NRG_PATH_KERNEL(norm_gated, f32, norm, norm_gated_any(job, NRG_F32))
NRG_PATH_KERNEL(norm_gated, f16, norm, norm_gated_any(job, NRG_F16))
NRG_PATH_KERNEL(norm_gated, bf16, norm, norm_gated_any(job, NRG_BF16))

#ifndef NRG_NO_QUANTIZE
/* Rows of the fast grade have a loop of their own; all others become bytes a chunk at a time, where norm_gated.h has them staged.
 */
static __attribute__((noinline)) void norm_quantized_any(const nrg_norm_job *job, nrg_dtype D)
{
    norm_options opt = options_of(job, D);
    gated_quant quant = {.from_r = 0};
    size_t n = job->row_begin, end = job->row_end;
    opt.half = half_loops(D);
    if (quantized_serves(job, &opt)) {
        /* what needs the fallback is done on the way */
        for (quant.from_r = job->r != NULL; (n = quantized_rows(job, &opt, n, D)) < job->row_end; n++)
            gated_rows(job, &opt, D, n, n + 1, &quant);
    } else
        gated_rows(job, &opt, D, n, end, &quant);
    if (opt.how & NORM_STREAM_R)
        v_nt_fence();
}

NRG_PATH_KERNEL(norm_quantized, f32, norm, norm_quantized_any(job, NRG_F32))
NRG_PATH_KERNEL(norm_quantized, f16, norm, norm_quantized_any(job, NRG_F16))
NRG_PATH_KERNEL(norm_quantized, bf16, norm, norm_quantized_any(job, NRG_BF16))
#endif

#endif
