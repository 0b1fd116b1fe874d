/* The embedding layer and its gradients: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/embed/embed.h"
#include "../template/embed/embed_backward.h"

void nrg_avx2_embed_f32(const nrg_embed_job *job) { embed_forward(job, NRG_F32); }
void nrg_avx2_embed_f16(const nrg_embed_job *job) { embed_forward(job, NRG_F16); }
void nrg_avx2_embed_bf16(const nrg_embed_job *job) { embed_forward(job, NRG_BF16); }
void nrg_avx2_embed_backward_f32(const nrg_embed_backward_job *job) { embed_backward(job, NRG_F32); }
void nrg_avx2_embed_backward_f16(const nrg_embed_backward_job *job) { embed_backward(job, NRG_F16); }
void nrg_avx2_embed_backward_bf16(const nrg_embed_backward_job *job) { embed_backward(job, NRG_BF16); }
