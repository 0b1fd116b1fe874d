/* A norm, a residual, and a norm of the sum: the reference is the reference of the norms twice, row by row.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/norm.h"
#include "kernels.h"

/* By the norms of a dtype. bytes: the second norm's, NULL where it stores rows as the first one does. */
static void norm_sandwich(const nrg_norm_sandwich_job *job, nrg_norm_forward_kernel *plain, nrg_norm_forward_kernel *gated,
                          nrg_norm_forward_kernel *bytes)
{
    nrg_norm_forward_kernel *const norm = nrg_norm_is_gated(&job->first) ? gated : plain;
    nrg_norm_forward_kernel *const norm2 = bytes ? bytes : nrg_norm_is_gated(&job->second) ? gated : plain;
    for (size_t row = job->row_begin; row < job->row_end; row++) {
        nrg_norm_job first = job->first, second = job->second;
        first.row_begin = row * first.groups;
        first.row_end = first.row_begin + first.groups;
        norm(&first);
        second.row_begin = row * second.groups;
        second.row_end = second.row_begin + second.groups;
        norm2(&second);
    }
}

SCALAR_KERNEL(norm_sandwich, f32, norm_sandwich, norm_sandwich(job, nrg_scalar_norm_forward_f32, nrg_scalar_norm_gated_f32, NULL))
SCALAR_KERNEL(norm_sandwich, f16, norm_sandwich, norm_sandwich(job, nrg_scalar_norm_forward_f16, nrg_scalar_norm_gated_f16, NULL))
SCALAR_KERNEL(norm_sandwich, bf16, norm_sandwich,
              norm_sandwich(job, nrg_scalar_norm_forward_bf16, nrg_scalar_norm_gated_bf16, NULL))

#ifndef NRG_NO_QUANTIZE
SCALAR_KERNEL(norm_sandwich_quantized, f32, norm_sandwich,
              norm_sandwich(job, nrg_scalar_norm_forward_f32, nrg_scalar_norm_gated_f32, nrg_scalar_norm_quantized_f32))
SCALAR_KERNEL(norm_sandwich_quantized, f16, norm_sandwich,
              norm_sandwich(job, nrg_scalar_norm_forward_f16, nrg_scalar_norm_gated_f16, nrg_scalar_norm_quantized_f16))
SCALAR_KERNEL(norm_sandwich_quantized, bf16, norm_sandwich,
              norm_sandwich(job, nrg_scalar_norm_forward_bf16, nrg_scalar_norm_gated_bf16, nrg_scalar_norm_quantized_bf16))
#endif
