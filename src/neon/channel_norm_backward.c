/* Channel normalization, backward: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH neon
#include "vec.h"

#include "../template/channel/channel_norm_backward.h"

void nrg_neon_channel_norm_backward_f32(const nrg_channel_norm_backward_job *job) { channel_norm_backward(job, NRG_F32); }
void nrg_neon_channel_norm_backward_f16(const nrg_channel_norm_backward_job *job) { channel_norm_backward(job, NRG_F16); }
void nrg_neon_channel_norm_backward_bf16(const nrg_channel_norm_backward_job *job) { channel_norm_backward(job, NRG_BF16); }
