/* Row normalization, forward, over the vectors of a path's vec.h. The order of all arithmetic is that of src/scalar/norm.c.
 *
 * Read norm_rows.h first: it is the walk over the rows; norm_sum.h, norm_scalars.h and norm_apply.h are its three steps.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_H
#define NRG_TEMPLATE_NORM_NORM_H

#include "norm_apply.h"
#include "norm_careful.h"
#include "norm_scalars.h"
#include "norm_sum.h"

NRG_INLINE norm_factors factors_of(const norm_scalars *s, int i)
{
    norm_factors f = {.hi = v_set1(s->hi[i]), .lo = v_set1(s->lo[i]), .minus_mean = v_set1(s->minus_mean[i])};
    f.pilot = f.offset = f.factor = vd_zero();
    return f;
}

NRG_INLINE void store_statistics(const nrg_norm_job *job, const norm_scalars *s, int i, size_t n)
{
    if (job->mean)
        job->mean[n] = (float)s->mean[i];
    if (job->rstd)
        job->rstd[n] = (float)s->inverse[i];
}

/* A long row is walked in pieces of two blocks. */
NRG_INLINE size_t piece_end(size_t begin, size_t dim) { return dim - begin > 2 * NORM_BLOCK ? begin + 2 * NORM_BLOCK : dim; }

#define NORM_DTYPE f32
#define NORM_D NRG_F32
#define NORM_HAS_RMS 1
#include "norm_rows.h"
#define NORM_DTYPE f16
#define NORM_D NRG_F16
#define NORM_HAS_RMS 0
#include "norm_rows.h"
#define NORM_DTYPE bf16
#define NORM_D NRG_BF16
#define NORM_HAS_RMS 0
#include "norm_rows.h"

NRG_PATH_KERNEL(norm_forward, f32, norm, norm_forward_f32(job))
NRG_PATH_KERNEL(norm_forward, f16, norm, norm_forward_f16(job))
NRG_PATH_KERNEL(norm_forward, bf16, norm, norm_forward_bf16(job))

#endif
