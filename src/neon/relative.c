/* Relative position representations: the templates over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/relative/relative_backward.h"
#include "../template/relative/relative_scores.h"
#include "../template/relative/relative_values.h"

void nrg_neon_relative_scores_f32(const nrg_relative_job *job) { relative_scores(job, NRG_F32); }
void nrg_neon_relative_scores_f16(const nrg_relative_job *job) { relative_scores(job, NRG_F16); }
void nrg_neon_relative_scores_bf16(const nrg_relative_job *job) { relative_scores(job, NRG_BF16); }
void nrg_neon_relative_values_f32(const nrg_relative_job *job) { relative_values(job, NRG_F32); }
void nrg_neon_relative_values_f16(const nrg_relative_job *job) { relative_values(job, NRG_F16); }
void nrg_neon_relative_values_bf16(const nrg_relative_job *job) { relative_values(job, NRG_BF16); }
void nrg_neon_relative_backward_f32(const nrg_relative_job *job) { relative_backward(job, NRG_F32); }
void nrg_neon_relative_backward_f16(const nrg_relative_job *job) { relative_backward(job, NRG_F16); }
void nrg_neon_relative_backward_bf16(const nrg_relative_job *job) { relative_backward(job, NRG_BF16); }
