/* Row normalization, forward: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH neon
#include "vec.h"

#include "../template/norm/norm.h"

void nrg_neon_norm_forward_f32(const nrg_norm_job *job) { norm_forward_f32(job); }
void nrg_neon_norm_forward_f16(const nrg_norm_job *job) { norm_forward_f16(job); }
void nrg_neon_norm_forward_bf16(const nrg_norm_job *job) { norm_forward_bf16(job); }
