/* A norm of every head, then its rotation: the reference is the two references in turn, row by row.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/norm.h"
#include "../job/rope.h"
#include "kernels.h"

/* norm and gated: of rows without an activation, and with one. */
static void norm_rope(const nrg_norm_rope_job *job, void (*norm)(const nrg_norm_job *), void (*gated)(const nrg_norm_job *),
                      void (*rope)(const nrg_rope_job *))
{
    for (size_t row = job->rope.begin; row < job->rope.end; row++) {
        nrg_norm_job n = job->norm;
        nrg_rope_job r = job->rope;
        const size_t token = row / r.heads, head = row % r.heads;
        n.x = r.x + token * r.x_token_stride + head * r.x_head_stride;
        n.o = r.o + token * r.o_token_stride + head * r.o_head_stride;
        n.mean = n.mean ? n.mean + row * n.groups : NULL;
        n.rstd = n.rstd ? n.rstd + row * n.groups : NULL;
        n.row_begin = 0;
        n.row_end = n.groups;
        if (nrg_norm_is_gated(&n))
            gated(&n);
        else
            norm(&n);
        /* where the norm has left it */
        r.x = r.o;
        r.x_token_stride = r.o_token_stride;
        r.x_head_stride = r.o_head_stride;
        r.begin = row;
        r.end = row + 1;
        rope(&r);
    }
}

SCALAR_KERNEL(norm_rope, f32, norm_rope,
              norm_rope(job, nrg_scalar_norm_forward_f32, nrg_scalar_norm_gated_f32, nrg_scalar_rope_f32))
SCALAR_KERNEL(norm_rope, f16, norm_rope,
              norm_rope(job, nrg_scalar_norm_forward_f16, nrg_scalar_norm_gated_f16, nrg_scalar_rope_f16))
SCALAR_KERNEL(norm_rope, bf16, norm_rope,
              norm_rope(job, nrg_scalar_norm_forward_bf16, nrg_scalar_norm_gated_bf16, nrg_scalar_rope_bf16))
