/* nrg/norm_rope.h: normalizes each head of q and k, then rotates it, in one pass (the QK-norm of Qwen 3 and Gemma 3).
 *
 * The call takes the arguments of two calls, nrg_norm_forward over [batch · tokens · heads, dim] and nrg_rope_forward. It is
 * bit-identical to them: 16-bit types round the norm before the rotation, too. Rows stay in L1 between the two.
 *
 * Sources: nrg/norm.h and nrg/rope.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_ROPE_H
#define NRG_NORM_ROPE_H

#include "norm_backward.h"
#include "rope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes o = rope(norm(x)) for each head of q and k.
 *
 * Parameters:
 * - norm: a spec without residual, gate and format. Its dim and dtype must be those of rope_args.
 * - rope: the angles, as for nrg_rope_forward.
 * - rope_args: as for nrg_rope_forward. Its q and k are x, its q_o and k_o are o, in place or not, with any strides. Its store
 *   applies to o.
 * - q, k: args of the norms, as for nrg_norm_forward, with rows = batch · tokens · heads. The call uses w, b, mean and rstd
 *   ([batch, tokens, heads, groups], outputs or NULL). The fields x, y, z, r, o, packed, scales, store and the repeats must not
 *   be set, because rope_args has the tensors. NULL if there are no such heads, or if w, b, mean and rstd are all NULL.
 * - ith, nth: the share, a range of heads of tokens, as in nrg_rope_forward.
 *
 * Aliasing, here and below:
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes
 *
 * Returns the statuses of nrg_norm_forward and nrg_rope_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: also if norm, rope or rope_args is NULL.
 * - NRG_ERR_DIM: also if norm and rope_args have different dims.
 * - NRG_ERR_DTYPE: also if norm and rope_args have different dtypes.
 * - NRG_ERR_COMBINATION: also for one of these:
 *   - norm has a gate, a format, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups.
 *   - q or k has another field set than the four, or its rows are not batch · tokens · heads.
 *   - weight_offset is not 0, and q or k has heads and no w. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                       const nrg_rope_args *rope_args, const nrg_norm_args *q,
                                                       const nrg_norm_args *k, int ith, int nth);

/* Validates the arguments of nrg_norm_rope_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                             const nrg_rope_args *rope_args, const nrg_norm_args *q,
                                                             const nrg_norm_args *k);

/* Computes the sizes of the workspaces of q and k for nrg_norm_rope_backward.
 *
 * Parameters:
 * - norm: the norm.
 * - q, k: as for nrg_norm_rope_backward. Rows, dw and db affect the size. NULL needs no workspace.
 * - q_bytes, k_bytes: outputs: the sizes, 0 without dw and db.
 *
 * Returns the statuses of nrg_norm_backward_workspace. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: norm, q_bytes or k_bytes is NULL. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_workspace(const nrg_norm_spec *norm, const nrg_norm_backward_args *q,
                                                                  const nrg_norm_backward_args *k, size_t *q_bytes,
                                                                  size_t *k_bytes);

/* Computes dx from the gradient of o (phase 1), for each head of q and k. With nth = 1, it does phase 2 as well.
 *
 * Parameters:
 * - norm, rope: as in the forward pass.
 * - rope_args: its q and k are the gradients of o, its q_o and k_o are dx, each with any strides.
 * - q, k: as for nrg_norm_backward, with rows = batch · tokens · heads. The call uses x, w, b, mean, dw, db, workspace,
 *   accumulate and the strides of x. These step from head to head, from token to token, from batch to batch; 0 is dense. The
 *   fields d_o and dx must be NULL, because rope_args has them. NULL if there are no such heads. With dw or db, q and k each need
 *   their own workspace (nrg_norm_rope_backward_workspace).
 * - ith, nth: the share, a range of blocks of rows of q and of k, as in nrg_norm_backward.
 *
 * Aliasing: dx may alias the gradient of o, as in the table of nrg_norm_rope_forward. It must not alias x: the call writes the
 * rotated gradient to dx before it reads x.
 *
 * Returns the statuses of nrg_norm_backward and nrg_norm_rope_forward. On error, writes nothing. Differences:
 * - NRG_ERR_COMBINATION: also if q or k has d_o, dx, y, r, z, dr_in, dy, dz, store or a repeat set. Or its rows are not batch
 *   · tokens · heads. The offset is as in the forward pass. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                        const nrg_rope_args *rope_args, const nrg_norm_backward_args *q,
                                                        const nrg_norm_backward_args *k, int ith, int nth);

/* Validates the arguments of nrg_norm_rope_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                              const nrg_rope_args *rope_args, const nrg_norm_backward_args *q,
                                                              const nrg_norm_backward_args *k);

/* Adds the partial sums of the workspaces to dw and db (phase 2), as nrg_norm_backward_reduce does. Required if phase 1 had
 * several shares; otherwise it returns NRG_OK at once.
 *
 * Parameters:
 * - norm, rope, rope_args, q, k: those of phase 1.
 * - ith, nth: the share, a range of columns.
 *
 * Aliasing: as in nrg_norm_rope_backward.
 *
 * Returns the statuses of nrg_norm_rope_backward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_reduce(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                               const nrg_rope_args *rope_args, const nrg_norm_backward_args *q,
                                                               const nrg_norm_backward_args *k, int ith, int nth);

/* Validates the arguments of nrg_norm_rope_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_reduce_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                                     const nrg_rope_args *rope_args,
                                                                     const nrg_norm_backward_args *q,
                                                                     const nrg_norm_backward_args *k);

#ifdef __cplusplus
}
#endif
#endif
