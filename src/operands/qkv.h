/* What the calls of nrg/qkv.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_QKV_H
#define NRG_OPERANDS_QKV_H

#include "../../include/nrg/qkv.h"
#include "operand.h"

enum { NRG_QKV_ROPE, NRG_QKV_NORM, NRG_QKV_ARGS };

/* nrg_qkv */
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
extern const nrg_call nrg_call_qkv;

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
    NRG_QKV_N_Q_W,
    NRG_QKV_N_K_W,
    NRG_QKV_SPACE
};

/* A slice of the workspace: where its arrays begin, in bytes, and what there is room for. */
typedef struct nrg_qkv_slice {
    size_t frequencies, factors, block, positions, table, bytes;
    size_t rows;       /* there is room for in the table */
    size_t block_rows; /* heads that are staged in f32 */
} nrg_qkv_slice;

/* What a slice begins with: what its arrays hold. */
typedef struct nrg_qkv_kept {
    uint64_t mark;      /* NRG_QKV_MARK where the rest means something */
    nrg_rope_spec spec; /* of the frequencies, without the pointer */
    int32_t has_factors;
    int32_t has_positions; /* of the table; otherwise it counts from `first` */
    double magnitude;
    size_t rows;   /* of the table; 0: none */
    int64_t first; /* the position of its first row */
} nrg_qkv_kept;
#define NRG_QKV_MARK UINT64_C(0x6e72672071202620)

/* Elements that are staged at once: the heads of k of a large model. They, and what becomes of them, stay in L1. */
enum { NRG_QKV_BLOCK = 2048, NRG_QKV_LINE = 64 };

/* The slice of a sound call. It is the same for any number of tokens, so that a prompt leaves to the tokens after it what it has
 * made: what is not its fixed part is the table's. */
nrg_qkv_slice nrg_qkv_slice_of(const nrg_qkv_args *args, size_t pairs, size_t axes);

/* What can be said of args without a norm: pairs, axes, and what a workspace has in doubles. */
nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, size_t *factors, size_t *axes,
                                size_t *doubles);

/* 16-bit halves of a head of q8_0. */
static inline size_t nrg_qkv_halves(size_t dim) { return dim / 32 * 17; }

static inline int nrg_qkv_has_norm(const nrg_norm_spec *norm) { return norm->dtype != NRG_DTYPE_SAME || norm->dim != 0; }

#endif
