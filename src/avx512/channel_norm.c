/* Channel normalization, forward: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx512
#include "vec.h"

#include "../template/channel/channel_norm.h"

void nrg_avx512_channel_norm_forward_f32(const nrg_channel_norm_job *job) { channel_norm(job, NRG_F32); }
void nrg_avx512_channel_norm_forward_f16(const nrg_channel_norm_job *job) { channel_norm(job, NRG_F16); }
void nrg_avx512_channel_norm_forward_bf16(const nrg_channel_norm_job *job) { channel_norm(job, NRG_BF16); }

void nrg_avx512_channel_statistics(const nrg_channel_norm_job *job, nrg_dtype dtype) { channel_statistics(job, dtype); }
