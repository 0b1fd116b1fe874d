/* Recurrent encodings, forward and backward: the templates over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx512
#include "vec.h"

#include "../template/recurrent/recurrent_backward.h"

void nrg_avx512_recurrent_f32(const nrg_recurrent_job *job) { recurrent(job, NRG_F32); }
void nrg_avx512_recurrent_f16(const nrg_recurrent_job *job) { recurrent(job, NRG_F16); }
void nrg_avx512_recurrent_bf16(const nrg_recurrent_job *job) { recurrent(job, NRG_BF16); }
void nrg_avx512_recurrent_backward_f32(const nrg_recurrent_backward_job *job) { recurrent_backward(job, NRG_F32); }
void nrg_avx512_recurrent_backward_f16(const nrg_recurrent_backward_job *job) { recurrent_backward(job, NRG_F16); }
void nrg_avx512_recurrent_backward_bf16(const nrg_recurrent_backward_job *job) { recurrent_backward(job, NRG_BF16); }
void nrg_avx512_recurrent_reduce_f32(const nrg_recurrent_backward_job *job) { recurrent_reduce(job, NRG_F32); }
void nrg_avx512_recurrent_reduce_f16(const nrg_recurrent_backward_job *job) { recurrent_reduce(job, NRG_F16); }
void nrg_avx512_recurrent_reduce_bf16(const nrg_recurrent_backward_job *job) { recurrent_reduce(job, NRG_BF16); }
