/* A norm of every head, then its rotation: the reference is the two references in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "../norm_rope_rows.h"

void nrg_scalar_norm_rope_f32(const nrg_norm_rope_job *job)
{
    nrg_norm_rope_rows(job, 4, nrg_scalar_norm_forward_f32, nrg_scalar_rope_f32);
}

void nrg_scalar_norm_rope_f16(const nrg_norm_rope_job *job)
{
    nrg_norm_rope_rows(job, 2, nrg_scalar_norm_forward_f16, nrg_scalar_rope_f16);
}

void nrg_scalar_norm_rope_bf16(const nrg_norm_rope_job *job)
{
    nrg_norm_rope_rows(job, 2, nrg_scalar_norm_forward_bf16, nrg_scalar_rope_bf16);
}
