/* Row normalization, forward, over the vectors of a path's vec.h. The order of all arithmetic is that of src/scalar/norm.c.
 *
 * Algorithm: source.h, sum.h (exact_sum.h), scalars.h, apply.h, and fallback.h for rows that their grade cannot do. Schedules:
 * one_row.h, tile.h, long.h. instances.def lists the instances; general.h has the loops that know all options. Gates (gated.h,
 * gated_tile.h) and bytes (bytes.h) are sources and sinks around them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_H
#define NRG_TEMPLATE_NORM_NORM_H

#include "bytes.h"
#include "gated_tile.h"

NRG_INLINE void norm_plain(const nrg_norm_job *job, nrg_dtype D)
{
    if (is_fast_rms(job, D))
        NRG_PATH_NAME(norm_rms_f32)(job);
    else
        norm_any(job, D);
}

NRG_PATH_KERNELS(norm_forward, norm, norm_plain)
NRG_PATH_KERNEL(norm_rms, f32, norm, norm_rms(job))
NRG_PATH_KERNEL(norm_rms, f16, norm, norm_any(job, NRG_F16))
NRG_PATH_KERNEL(norm_rms, bf16, norm, norm_any(job, NRG_BF16))
NRG_PATH_KERNELS(norm_gated, norm, norm_gated)

#ifndef NRG_NO_QUANTIZE
NRG_PATH_KERNELS(norm_quantized, norm, norm_bytes)
#endif

#endif
