/* Row normalization, forward: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx2
#include "vec.h"

#include "../template/norm/norm.h"

void nrg_avx2_norm_forward_f32(const nrg_norm_job *job) { norm_forward_f32(job); }
void nrg_avx2_norm_forward_f16(const nrg_norm_job *job) { norm_forward_f16(job); }
void nrg_avx2_norm_forward_bf16(const nrg_norm_job *job) { norm_forward_bf16(job); }
