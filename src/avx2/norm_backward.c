/* Row normalization, backward: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx2
#include "vec.h"

#include "../template/norm/norm_backward.h"

void nrg_avx2_norm_backward_f32(const nrg_norm_backward_job *job) { norm_backward(job, NRG_F32); }
void nrg_avx2_norm_backward_f16(const nrg_norm_backward_job *job) { norm_backward(job, NRG_F16); }
void nrg_avx2_norm_backward_bf16(const nrg_norm_backward_job *job) { norm_backward(job, NRG_BF16); }
