/* Activations: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/activation/activation.h"

void nrg_neon_activate(nrg_activation g, const float *in, float *out, size_t n)
{
    act_data a = {in, NULL, out, NULL};
    act_run(g, ACT_VALUES, a, n);
}

void nrg_neon_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n)
{
    act_data a = {in, NULL, out, slope};
    act_run(g, ACT_BOTH, a, n);
}

void nrg_neon_activation_f32(const nrg_activation_job *job) { act_f32(job, ACT_VALUES); }
void nrg_neon_activation_f16(const nrg_activation_job *job) { act_half(job, ACT_VALUES, NRG_F16); }
void nrg_neon_activation_bf16(const nrg_activation_job *job) { act_half(job, ACT_VALUES, NRG_BF16); }
void nrg_neon_activation_backward_f32(const nrg_activation_job *job) { act_f32(job, ACT_BACKWARD); }
void nrg_neon_activation_backward_f16(const nrg_activation_job *job) { act_half(job, ACT_BACKWARD, NRG_F16); }
void nrg_neon_activation_backward_bf16(const nrg_activation_job *job) { act_half(job, ACT_BACKWARD, NRG_BF16); }
