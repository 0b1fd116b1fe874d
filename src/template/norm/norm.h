/* Row normalization, forward, over the vectors of a path's vec.h. The order of all arithmetic is that of src/scalar/norm.c.
 *
 * Read norm_rows.h first: it is the walk over the rows; norm_sum.h, norm_scalars.h and norm_apply.h are its three steps.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_H
#define NRG_TEMPLATE_NORM_NORM_H

#include "norm_apply.h"
#include "norm_fallback.h"
#include "norm_scalars.h"
#include "norm_sum_rows.h"

#define NORM_DTYPE f32
#define NORM_D NRG_F32
#include "norm_loops.h"
#define NORM_DTYPE f16
#define NORM_D NRG_F16
#include "norm_loops.h"
#define NORM_DTYPE bf16
#define NORM_D NRG_BF16
#include "norm_loops.h"

#include "norm_rows.h"

#include "norm_gated.h"

static void norm_forward(const nrg_norm_job *job, nrg_dtype D)
{
    const norm_options opt = options_of(job, D);
    if (job->gate != NRG_GATE_NONE || job->activation != NRG_ACT_IDENTITY)
        gated_rows(job, &opt, D);
    else if (opt.dim <= NORM_SEGMENT && job->row_end - job->row_begin == 1)
        one_row(job, &opt, D);
    else if (opt.dim <= NORM_BLOCK)
        short_rows(job, &opt, D);
    else
        long_rows(job, &opt, D);
    if (opt.how & (NORM_STREAM_R | NORM_STREAM_O))
        v_nt_fence();
}

NRG_PATH_KERNELS(norm_forward, norm, norm_forward)

#endif
