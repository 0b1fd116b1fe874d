/* Rotation of pairs: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/rope.h"

void nrg_avx2_rope_f32(const nrg_rope_job *job) { rope(job, NRG_F32); }
void nrg_avx2_rope_f16(const nrg_rope_job *job) { rope(job, NRG_F16); }
void nrg_avx2_rope_bf16(const nrg_rope_job *job) { rope(job, NRG_BF16); }
