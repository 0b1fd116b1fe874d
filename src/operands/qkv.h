/* What the calls of nrg/qkv.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_QKV_H
#define NRG_OPERANDS_QKV_H

#include "../../include/nrg/qkv.h"
#include "rope.h"

/* The norm comes last: without one it is no part. */
enum { NRG_QKV_ROPE, NRG_QKV_ARGS, NRG_QKV_SHARES, NRG_QKV_NORM };

/* nrg_qkv_forward with a norm; without one, and nrg_qkv_backward */
enum {
    NRG_QKV_Q,
    NRG_QKV_K,
    NRG_QKV_V,
    NRG_QKV_Q_W,
    NRG_QKV_K_W,
    NRG_QKV_Q_B,
    NRG_QKV_K_B,
    NRG_QKV_POSITIONS,
    NRG_QKV_SLOTS,
    NRG_QKV_FACTORS,
    NRG_QKV_Q_O,
    NRG_QKV_K_O,
    NRG_QKV_V_O,
    NRG_QKV_WORKSPACE,
    NRG_QKV_OPERANDS
};
extern const nrg_call nrg_call_qkv, nrg_call_qkv_bare;

/* nrg_qkv_workspace: options only. NRG_QKV_SPACE is the answer in doubles. */
extern const nrg_call nrg_call_qkv_workspace;

/* Its dtypes, and the numbers that a call needs of what was measured. */
enum { NRG_QKV_TYPE_X, NRG_QKV_TYPE_Q_O, NRG_QKV_TYPE_K_O, NRG_QKV_TYPE_V_O };
enum {
    NRG_QKV_N_TOKENS = 1,
    NRG_QKV_N_Q_HEADS,
    NRG_QKV_N_K_HEADS,
    NRG_QKV_N_V_HEADS,
    NRG_QKV_N_DIM,
    NRG_QKV_N_V_DIM,
    NRG_QKV_N_K_O_DIM, /* elements of a head in the cache; of q8_0 halves of 16 bits */
    NRG_QKV_N_V_O_DIM,
    NRG_QKV_N_CACHE, /* rows of k_o and v_o: slots, or tokens */
    NRG_QKV_N_AXES,
    NRG_QKV_N_FACTORS,
    NRG_QKV_SPACE
};

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
nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, nrg_rope_space *space,
                                size_t *doubles);

/* 16-bit halves of a head of q8_0. */
static inline size_t nrg_qkv_halves(size_t dim) { return dim / 32 * 17; }

#endif
