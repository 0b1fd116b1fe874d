/* A norm of every head and its rotation: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx2
#include "vec.h"

#include "../template/rope/norm_rope.h"

void nrg_avx2_norm_rope_f32(const nrg_norm_rope_job *job) { norm_rope_f32(job); }
void nrg_avx2_norm_rope_f16(const nrg_norm_rope_job *job) { norm_rope_f16(job); }
void nrg_avx2_norm_rope_bf16(const nrg_norm_rope_job *job) { norm_rope_bf16(job); }
