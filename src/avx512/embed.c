/* The embedding layer and its gradients: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/embed.h"
#include "../template/embed_backward.h"

void nrg_avx512_embed_f32(const nrg_embed_job *job) { embed_forward(job, embed_sum_f32, embed_copy_f32); }
void nrg_avx512_embed_f16(const nrg_embed_job *job) { embed_forward(job, embed_sum_f16, embed_copy_half); }
void nrg_avx512_embed_bf16(const nrg_embed_job *job) { embed_forward(job, embed_sum_bf16, embed_copy_half); }

void nrg_avx512_embed_backward_f32(const nrg_embed_backward_job *job) { embed_backward(job, 4, embed_batch_f32, embed_copy_f32); }

void nrg_avx512_embed_backward_f16(const nrg_embed_backward_job *job)
{
    embed_backward(job, 2, embed_batch_f16, embed_copy_half);
}

void nrg_avx512_embed_backward_bf16(const nrg_embed_backward_job *job)
{
    embed_backward(job, 2, embed_batch_bf16, embed_copy_half);
}
