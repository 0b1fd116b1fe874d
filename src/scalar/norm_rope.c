/* A norm of every head, then its rotation: the reference is the two references in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "../norm_rope_rows.h"
#include "kernels.h"

SCALAR_KERNEL(norm_rope, f32, norm_rope, nrg_norm_rope_rows(job, 4, nrg_scalar_norm_forward_f32, nrg_scalar_rope_f32))
SCALAR_KERNEL(norm_rope, f16, norm_rope, nrg_norm_rope_rows(job, 2, nrg_scalar_norm_forward_f16, nrg_scalar_rope_f16))
SCALAR_KERNEL(norm_rope, bf16, norm_rope, nrg_norm_rope_rows(job, 2, nrg_scalar_norm_forward_bf16, nrg_scalar_rope_bf16))
