/* nrg/qkv.h: what an engine does between the projections of q, k and v and attention, in one call: a norm of every head of q and
 * k (QK-norm), their rotation (nrg/rope.h), q to its tensor, k and v to their slots of a KV cache.
 *
 *     q_o[t, h]         = rope(norm(q[t, h]))
 *     k_o[slot(t), h]   = rope(norm(k[t, h]))          each part may be left out: no k, no v, no norm, no slots
 *     v_o[slot(t), h]   = v[t, h]
 *
 * Frequencies and the table of cosines, which are steps of their own in nrg/rope.h, are kept in a workspace. Shares never wait
 * for each other: each has a slice of the workspace, and makes there what its tokens need.
 *
 *     nrg_qkv_workspace     how large the workspace is, once for a graph
 *     nrg_qkv_forward       the call, in every layer
 *     nrg_qkv_backward      the transposed rotation of q and k
 *
 * Sources: rope is ggml_rope_ext; norm of heads: Henry et al., arXiv:2010.04245, as Qwen 3 and Gemma 3 have it; slots: the slot
 * mapping of paged attention, Kwon et al., arXiv:2309.06180, and the rows of ggml_set_rows.
 *
 * What is rounded: elements are widened to f32, which is exact; the norm gives f32, the rotation takes and gives f32, and what
 * comes out is rounded once, to the dtype of its output. So the bits are those of nrg_norm_forward and nrg_rope_forward in f32,
 * one after the other, and then a rounding; with f32 q and q_o, of the steps by hand. v is rounded once where its output has
 * another dtype, and copied otherwise, NaNs included. A NaN that is widened and rounded stays a NaN. A q8_0 output is what
 * nrg_quantize makes of the f32 numbers, ties to even.
 *
 * Every path gives the same bits; so does any (ith, nth), alignment and stride, kept or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_QKV_H
#define NRG_QKV_H

#include "norm.h"
#include "quantize.h"
#include "rope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors are [tokens, heads, dim]; the row of their strides is a token, and batch is not read. Tokens of several sequences
 * follow each other, each with its own position and slot.
 *
 * A cache is [slot_count, heads, dim], and the row of its strides is a slot: the call writes the slots of its tokens and nothing
 * else. Without slots, token t goes to row t of [tokens, heads, dim]. Elements of a head are adjacent: a transposed v, as
 * llama.cpp has it without flash attention, is not offered.
 *
 * A slot of -1 is a padding token's, as in vLLM's slot mapping: neither its k nor its v is written anywhere. Its q is written as
 * that of any token, so its position must be one. Any number of tokens may have it.
 *
 * Aliasing: q_o may be q, with the same strides and an element of the same size. Otherwise outputs and the workspace share no
 * byte with anything. A cache's rows are seen as in nrg/rope.h: two caches may interleave, slot by slot.
 *
 *               q     k     v
 *       q_o     yes   no    no */
typedef struct nrg_qkv_args {
    size_t size;                      /* sizeof(nrg_qkv_args) */
    size_t tokens;                    /* 0 is fine */
    size_t q_heads, k_heads, v_heads; /* 0: none; the pointers are then NULL */
    size_t dim;                       /* elements of a head of q and k */
    size_t v_dim;                     /* elements of a head of v. Default: dim. */
    size_t rotate_from;               /* the first rotated element of a head */
    size_t slot_count;                /* with slots: of both caches */
    nrg_dtype dtype;                  /* of q, k and v */
    nrg_dtype q_o_dtype;              /* of the outputs, likewise below: any with any; NRG_DTYPE_SAME: dtype */
    nrg_dtype k_o_dtype;
    nrg_dtype v_o_dtype;
    /* NRG_QUANT_Q8_0: heads of a cache are blocks of 32 with scales, nrg/quantize.h, 34 bytes each, 2-byte aligned; the dtype is
     * then NRG_DTYPE_SAME, and dim, or v_dim, a multiple of 32. NRG_QUANT_NONE: elements. No other format */
    nrg_quant_format k_o_format;
    nrg_quant_format v_o_format;
    nrg_store store; /* how q_o is stored if it has the dtype of q; caches are not streamed */
    int keep;        /* not 0: frequencies and table are kept from call to call, as in nrg_rope_positions_args */
    const void *q;
    nrg_head_strides q_strides;
    const void *k;
    nrg_head_strides k_strides;
    const void *v;
    nrg_head_strides v_strides;
    const float *q_w, *q_b;   /* [dim] weights and biases of the norm of q, or NULL */
    const float *k_w, *k_b;   /* likewise of k */
    const int32_t *positions; /* [axes, tokens], as in nrg_rope_table_args; NULL: token t is at first_position + t, on all axes */
    size_t positions_stride;  /* bytes from axis to axis; 0: 4 · tokens */
    int32_t first_position;   /* without positions */
    uint32_t reserved;        /* 0 */
    const int64_t *slots;     /* [tokens] the slot of each token, or -1; NULL: row t. No two slots are equal */
    void *q_o;                /* [tokens, q_heads, dim] output */
    nrg_head_strides q_o_strides;
    void *k_o; /* the cache of k */
    nrg_head_strides k_o_strides;
    void *v_o; /* the cache of v */
    nrg_head_strides v_o_strides;
    void *workspace; /* of nrg_qkv_workspace bytes or more, 8-byte aligned */
    size_t workspace_size;
} nrg_qkv_args;

static inline nrg_qkv_args nrg_qkv_args_init(nrg_dtype dtype, size_t tokens, size_t dim)
{
    nrg_qkv_args args;
    args.size = sizeof args;
    args.tokens = tokens;
    args.q_heads = args.k_heads = args.v_heads = 0;
    args.dim = dim;
    args.v_dim = dim;
    args.rotate_from = 0;
    args.slot_count = 0;
    args.dtype = dtype;
    args.q_o_dtype = args.k_o_dtype = args.v_o_dtype = NRG_DTYPE_SAME;
    args.k_o_format = args.v_o_format = NRG_QUANT_NONE;
    args.store = NRG_STORE_AUTO;
    args.keep = 0;
    args.q = args.k = args.v = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.k_strides = args.q_strides;
    args.v_strides = args.q_strides;
    args.q_w = args.q_b = args.k_w = args.k_b = NULL;
    args.positions = NULL;
    args.positions_stride = 0;
    args.first_position = 0;
    args.reserved = 0;
    args.slots = NULL;
    args.q_o = args.k_o = args.v_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    args.v_o_strides = args.q_strides;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Dense rows [q | k | v] of a token's heads, as one projection makes them. q stays in its place; k_o and v_o are to be set. */
static inline nrg_qkv_args nrg_qkv_args_fused(nrg_dtype dtype, size_t tokens, size_t q_heads, size_t kv_heads, size_t dim,
                                              void *qkv)
{
    const size_t head = dim * nrg_dtype_size(dtype), q_bytes = qkv == NRG_UNALLOCATED ? 0 : q_heads * head,
                 k_bytes = qkv == NRG_UNALLOCATED ? 0 : kv_heads * head;
    nrg_qkv_args args = nrg_qkv_args_init(dtype, tokens, dim);
    args.q_heads = q_heads;
    args.k_heads = args.v_heads = kv_heads;
    args.q = args.q_o = qkv;
    args.k = (const char *)qkv + q_bytes;
    args.v = (const char *)qkv + q_bytes + k_bytes;
    args.q_strides.row = args.q_o_strides.row = args.k_strides.row = args.v_strides.row = (q_heads + 2 * kv_heads) * head;
    return args;
}

/* Bytes of the workspace for calls with nth shares and as many tokens as args has, or fewer: for each share 20 bytes a pair for
 * the frequencies, 8 a pair and token of its share for the table, and 8 KB or one head to stage heads in. Reads no pointer to
 * operands, no workspace_size.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         rope, args or bytes
 *   NRG_ERR_THREAD       nth is below 1
 *   NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM, NRG_ERR_DIM, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_OVERFLOW
 *                        as in nrg_qkv_forward, for the fields of both structs that are no pointers to operands */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_workspace(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, size_t *bytes);

/* Share ith of nth: of the heads of all tokens, a token's q, k and v together.
 *
 * norm: any spec without residual, gate or format, f32 and of dim; its weights are in args. NULL: none.
 *
 * keep is as in nrg_rope_positions_args; dim and the numbers of heads stay as well. Two calls at the same time need two
 * workspaces.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         rope or args; with tokens and heads: an input, its output, the workspace
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          n_dims 0, odd, beyond 2^31, or 2 with NRG_ROPE_SCALING_NTK; rotate_from + 2·pairs beyond dim; sections
 *                        below 0, or all 0, with a mode that has them; norm's dim another one; heads of q8_0 no multiple of 32;
 *                        v_dim 0 with heads of v
 *   NRG_ERR_ENUM         mode, scaling, a dtype, a format, store or an option of norm unknown; q8_0 in a build without quantize
 *   NRG_ERR_DTYPE        norm's dtype, or its weights', not f32
 *   NRG_ERR_EPS          as in nrg/norm.h
 *   NRG_ERR_CONSTANT     as nrg_rope_frequencies has it; and norm's, as in nrg/norm.h
 *   NRG_ERR_COMBINATION  a format and a dtype for one cache; a gate, a format, NRG_RESIDUAL_AFTER or NRG_WEIGHTS_GROUP with
 *                        groups in norm; weights or biases without norm; a pointer of q, k or v whose heads are 0
 *   NRG_ERR_POSITION     first_position + tokens beyond what an int32_t holds; a slot below -1 or not below slot_count
 *   NRG_ERR_WORKSPACE    workspace_size is less than nrg_qkv_workspace says for nth
 *   NRG_ERR_STRIDE       heads or tokens of a tensor lie over each other
 *   NRG_ERR_OVERLAP      two tokens have one slot; and as in nrg/norm.h
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD  as in nrg/norm.h */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *args,
                                                 int ith, int nth);

/* Validates the arguments of nrg_qkv_forward, with a workspace for one share. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                       const nrg_qkv_args *args);

/* Rotates by -k·θ: q and k are the gradients of the outputs of a forward call without norm, q_o and k_o become those of its q and
 * k. The gradient of a norm and a rotation is in nrg/norm_rope.h.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         rope or args; with tokens and heads: an input, its output, the workspace
 *   NRG_ERR_DIM          n_dims 0, odd, beyond 2^31, or 2 with NRG_ROPE_SCALING_NTK; rotate_from + 2·pairs beyond dim; sections
 *                        below 0, or all 0, with a mode that has them; heads of q8_0 no multiple of 32
 *   NRG_ERR_ENUM         mode, scaling, a dtype, a format or store unknown; q8_0 in a build without quantize
 *   NRG_ERR_COMBINATION  slots, v_heads, weights or biases; a format and a dtype for one cache; a pointer of q or k whose heads
 *                        are 0
 *   NRG_ERR_STRUCT_SIZE, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_WORKSPACE, NRG_ERR_STRIDE, NRG_ERR_OVERLAP,
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD  as in nrg_rope_positions_forward */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_backward(const nrg_rope_spec *rope, const nrg_qkv_args *args, int ith, int nth);

/* Validates the arguments of nrg_qkv_backward, with a workspace for one share. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_backward_check(const nrg_rope_spec *rope, const nrg_qkv_args *args);

#ifdef __cplusplus
}
#endif
#endif
