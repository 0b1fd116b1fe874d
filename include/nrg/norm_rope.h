/* nrg/norm_rope.h: a norm of every head of q and k, then their rotation, in one pass (the QK-norm of Qwen 3 and Gemma 3).
 *
 * The call takes the arguments of two calls, nrg_norm_forward over [batch · tokens · heads, dim] and nrg_rope_forward, and gives
 * their bits: with 16-bit types, too, the norm is rounded before it is rotated. Rows stay in L1 between the two.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_ROPE_H
#define NRG_NORM_ROPE_H

#include "norm_backward.h"
#include "rope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* o = rope(norm(x)). rope: as for nrg_rope_forward; its q and k are x, its q_o and k_o are o, in place or not, with any strides.
 * q, k: as for nrg_norm_forward, of which w, b, mean and rstd ([batch, tokens, heads, groups], outputs or NULL) are used, and
 * everything else is as nrg_norm_args_init(0, NULL, w, NULL) sets it; NULL where there are no such heads, or nothing of it.
 *
 * norm: any spec without residual, gate or format; dim and dtype are those of rope, and so is the store. Share ith of nth: heads
 * of tokens, as in nrg_rope_forward.
 *
 * Aliasing, here and below:
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_forward and nrg_rope_forward, and
 *   NRG_ERR_NULL         norm, rope_spec or rope
 *   NRG_ERR_DIM          the dims are not the same
 *   NRG_ERR_DTYPE        the dtypes are not the same
 *   NRG_ERR_COMBINATION  a gate, a format or NRG_RESIDUAL_AFTER; NRG_WEIGHTS_GROUP with groups; anything else in q or k */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                       const nrg_rope_args *rope, const nrg_norm_args *q, const nrg_norm_args *k,
                                                       int ith, int nth);

/* Validates the arguments of nrg_norm_rope_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                             const nrg_rope_args *rope, const nrg_norm_args *q,
                                                             const nrg_norm_args *k);

/* Bytes of the workspaces of q and of k for nrg_norm_rope_backward, from their rows, dw and db; 0 without them. A NULL q or k
 * needs none.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_backward_workspace, and
 *   NRG_ERR_NULL  norm, q_bytes or k_bytes */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_workspace(const nrg_norm_spec *norm, const nrg_norm_backward_args *q,
                                                                  const nrg_norm_backward_args *k, size_t *q_bytes,
                                                                  size_t *k_bytes);

/* dx from the gradient of o, phase 1 of two. rope: its q and k are the gradients that arrive, its q_o and k_o the dx, each with
 * any strides; dx may lie over the gradient. q, k: as for nrg_norm_backward, with rows = batch · tokens · heads, and x, w, b,
 * mean, dw, db, workspace, accumulate and the strides of x: from head to head, from token to token, from batch to batch
 * (0: dense). d_o and dx are NULL, since rope has them. dx may not be x: the rotated gradient stands in dx
 * before x has been read.
 *
 * dw and db need a workspace for each of q and k (nrg_norm_rope_backward_workspace). A share is of q's blocks of rows and of
 * k's, as in nrg_norm_backward. With nth = 1 the call does phase 2 as well.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_backward, nrg_norm_rope_forward, and
 *   NRG_ERR_COMBINATION  also d_o, dx, y, r, z, dr_in, dy, dz, store or a repeat in q or k; rows that are not batch · tokens ·
 *                        heads */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                        const nrg_rope_args *rope, const nrg_norm_backward_args *q,
                                                        const nrg_norm_backward_args *k, int ith, int nth);

/* Validates the arguments of nrg_norm_rope_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                              const nrg_rope_args *rope, const nrg_norm_backward_args *q,
                                                              const nrg_norm_backward_args *k);

/* Phase 2, with the arguments of phase 1: the workspaces into dw and db, as nrg_norm_backward_reduce. Required if
 * phase 1 had several shares; otherwise it returns NRG_OK at once. The statuses of nrg_norm_rope_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_reduce(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                               const nrg_rope_args *rope, const nrg_norm_backward_args *q,
                                                               const nrg_norm_backward_args *k, int ith, int nth);

/* Validates the arguments of nrg_norm_rope_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_rope_backward_reduce_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                                                                     const nrg_rope_args *rope, const nrg_norm_backward_args *q,
                                                                     const nrg_norm_backward_args *k);

#ifdef __cplusplus
}
#endif
#endif
