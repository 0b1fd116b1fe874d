/* The relative shift and the bias pair: the templates over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/relative/head_bias.h"
#include "../template/relative/relative_shift.h"

void nrg_avx512_relative_shift_f32(const nrg_relative_shift_job *job) { relative_shift(job, NRG_F32); }
void nrg_avx512_relative_shift_f16(const nrg_relative_shift_job *job) { relative_shift(job, NRG_F16); }
void nrg_avx512_relative_shift_bf16(const nrg_relative_shift_job *job) { relative_shift(job, NRG_BF16); }
void nrg_avx512_head_bias_pair_f32(const nrg_head_bias_job *job) { head_bias_pair(job, NRG_F32); }
void nrg_avx512_head_bias_pair_f16(const nrg_head_bias_job *job) { head_bias_pair(job, NRG_F16); }
void nrg_avx512_head_bias_pair_bf16(const nrg_head_bias_job *job) { head_bias_pair(job, NRG_BF16); }
void nrg_avx512_head_bias_pair_backward_f32(const nrg_head_bias_backward_job *job) { head_bias_pair_backward(job, NRG_F32); }
void nrg_avx512_head_bias_pair_backward_f16(const nrg_head_bias_backward_job *job) { head_bias_pair_backward(job, NRG_F16); }
void nrg_avx512_head_bias_pair_backward_bf16(const nrg_head_bias_backward_job *job) { head_bias_pair_backward(job, NRG_BF16); }
