/* A norm, a residual, and a norm of the sum: the two go through the kernels of norms in turn, some rows at a time, which the
 * second then finds in cache.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_SANDWICH_H
#define NRG_TEMPLATE_NORM_NORM_SANDWICH_H

#include "../../internal.h"
#include "../../job/norm.h"
#include "../vec.h"

/* By the norms of a dtype. bytes: the second norm's, NULL where it stores rows as the first one does. One job at a time: stacks
 * are small. */
static __attribute__((noinline)) void norm_sandwich(const nrg_norm_sandwich_job *job, nrg_norm_forward_kernel *plain,
                                                    nrg_norm_forward_kernel *gated, nrg_norm_forward_kernel *bytes)
{
    nrg_norm_job now;
    for (size_t row = job->row_begin, end; row < job->row_end; row = end) {
        end = job->row_end - row > job->turn ? row + job->turn : job->row_end;
        for (int second = 0; second < 2; second++) {
            now = second ? job->second : job->first;
            now.row_begin = row * now.groups;
            now.row_end = end * now.groups;
            if (second && bytes)
                bytes(&now);
            else if (nrg_norm_is_gated(&now))
                gated(&now);
            else
                plain(&now);
        }
    }
}

NRG_PATH_KERNEL(norm_sandwich, f32, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_f32), NRG_PATH_NAME(norm_gated_f32), NULL))
NRG_PATH_KERNEL(norm_sandwich, f16, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_f16), NRG_PATH_NAME(norm_gated_f16), NULL))
NRG_PATH_KERNEL(norm_sandwich, bf16, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_bf16), NRG_PATH_NAME(norm_gated_bf16), NULL))

#ifndef NRG_NO_QUANTIZE
NRG_PATH_KERNEL(norm_sandwich_quantized, f32, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_f32), NRG_PATH_NAME(norm_gated_f32),
                              NRG_PATH_NAME(norm_quantized_f32)))
NRG_PATH_KERNEL(norm_sandwich_quantized, f16, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_f16), NRG_PATH_NAME(norm_gated_f16),
                              NRG_PATH_NAME(norm_quantized_f16)))
NRG_PATH_KERNEL(norm_sandwich_quantized, bf16, norm_sandwich,
                norm_sandwich(job, NRG_PATH_NAME(norm_forward_bf16), NRG_PATH_NAME(norm_gated_bf16),
                              NRG_PATH_NAME(norm_quantized_bf16)))
#endif

#endif
