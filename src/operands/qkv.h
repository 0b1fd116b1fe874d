/* What the calls of nrg/qkv.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_QKV_H
#define NRG_OPERANDS_QKV_H

#include "../../include/nrg/qkv.h"
#include "norm.h"
#include "rope.h"

/* Elements that are staged at once: the heads of k of a large model. They, and their results, stay in L1. */
enum { NRG_QKV_BLOCK = 2048 };

/* Heads that are staged in f32, at least one. */
static inline size_t nrg_qkv_block_rows(const nrg_qkv_args *args)
{
    const size_t heads = args->q_heads > args->k_heads ? args->q_heads : args->k_heads;
    const size_t rows = args->dim < NRG_QKV_BLOCK ? NRG_QKV_BLOCK / args->dim : 1;
    return rows <= heads ? rows : heads ? heads : 1;
}

/* What can be said of args without a norm: the slices of its workspace, and its doubles. */
static inline nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, nrg_rope_space *space,
                                              size_t *doubles)
{
    space->slices = (size_t)nth;
    space->tokens = args->tokens;
    const nrg_status status =
        nrg_rope_measure_positions(rope, args->dim, args->rotate_from, args->positions, args->first_position, space);
    if (status != NRG_OK)
        return status;
    if (args->v_heads && !args->v_dim)
        return NRG_ERR_DIM;
    if (args->dim > NRG_ROPE_SPACE_MOST)
        return NRG_ERR_OVERFLOW;
    space->block = nrg_qkv_block_rows(args) * args->dim * sizeof(float);
    return nrg_rope_measure_space(space, doubles);
}

/* 16-bit halves of a head of q8_0. */
static inline size_t nrg_qkv_halves(size_t dim) { return dim / 32 * 17; }

/* A cache's format and dtype. */
static inline nrg_status nrg_qkv_check_cache(nrg_quant_format format, nrg_dtype own, size_t dim)
{
    if (format == NRG_QUANT_NONE)
        return NRG_OK;
#ifdef NRG_NO_QUANTIZE
    (void)own, (void)dim;
    return NRG_ERR_ENUM;
#else
    return own != NRG_DTYPE_SAME ? NRG_ERR_COMBINATION : dim % 32 ? NRG_ERR_DIM : NRG_OK;
#endif
}
static inline nrg_dtype nrg_qkv_cache_dtype(nrg_quant_format format, nrg_dtype own, nrg_dtype dtype)
{
    return format ? NRG_F16 : nrg_own_dtype(own, dtype); /* as large and as aligned as a half of the scale */
}

/* Whether there is anything to do. */
static inline int nrg_qkv_is_used(const nrg_qkv_args *a) { return a->tokens && (a->q_heads | a->k_heads | a->v_heads); }

#include "qkv_calls.def"

#endif
