/* Biases of attention scores: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/bias/score_bias_backward.h"

void nrg_avx2_score_bias_f32(const nrg_score_bias_job *job) { score_forward(job, NRG_F32); }
void nrg_avx2_score_bias_f16(const nrg_score_bias_job *job) { score_forward(job, NRG_F16); }
void nrg_avx2_score_bias_bf16(const nrg_score_bias_job *job) { score_forward(job, NRG_BF16); }
void nrg_avx2_score_bias_backward_f32(const nrg_score_bias_backward_job *job) { score_backward(job, NRG_F32); }
void nrg_avx2_score_bias_backward_f16(const nrg_score_bias_backward_job *job) { score_backward(job, NRG_F16); }
void nrg_avx2_score_bias_backward_bf16(const nrg_score_bias_backward_job *job) { score_backward(job, NRG_BF16); }
