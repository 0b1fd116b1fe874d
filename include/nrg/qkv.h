/* nrg/qkv.h: what an engine does between the projections of q, k and v and attention, in one call: a norm of every head of q and
 * k (QK-norm), their rotation (nrg/rope.h), q to its tensor, k and v to their slots of a KV cache.
 *
 *     q_o[t, h]         = rope(norm(q[t, h]))
 *     k_o[slot(t), h]   = rope(norm(k[t, h]))          each part may be left out: no k, no v, no norm, no slots
 *     v_o[slot(t), h]   = v[t, h]
 *
 * Frequencies and the table of cosines, which are steps of their own in nrg/rope.h, are kept in a workspace. Nobody waits: every
 * share has a slice of the workspace to itself, and makes there what its own tokens need.
 *
 *     nrg_qkv_workspace     how large the workspace is, once for a graph
 *     nrg_qkv               the call, in every layer
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
 * Every path gives the same bits; so does any (ith, nth), any number of slices, alignment and stride, kept or not.
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

/* Tensors are [tokens, heads, dim], with strides in bytes as in nrg/rope.h: a stride of 0 stands for dense. Tokens of several
 * sequences follow each other, each with its own position and slot.
 *
 * A cache is [slot_count, heads, dim] with k_o_token_stride from slot to slot: as many slots of it are written as there are
 * tokens with a slot, and nothing else. Without slots, token t goes to row t of [tokens, heads, dim]. Elements of a head are
 * adjacent: a transposed v, as llama.cpp has it without flash attention, is not offered.
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
    size_t size;         /* sizeof(nrg_qkv_args) */
    size_t tokens;       /* 0 is fine */
    size_t dim;          /* elements of a head of q and k */
    size_t offset;       /* of the first rotated element in a head */
    nrg_dtype dtype;     /* of q, k and v */
    nrg_dtype q_o_dtype; /* of the outputs, likewise below: any beside any; NRG_DTYPE_SAME: dtype */
    nrg_dtype k_o_dtype, v_o_dtype;
    nrg_store store;         /* how q_o is stored where it has the dtype of q, as in nrg/norm.h; caches are not streamed */
    int backward;            /* not 0: the transposed rotation, for gradients; without a norm, slots and v */
    int keep;                /* not 0: see below */
    uint32_t reserved;       /* 0 */
    size_t slices;           /* of the workspace: as many shares have work. 0: 1 */
    size_t q_heads, k_heads; /* 0: none, and pointers are not looked at */
    size_t v_heads, v_dim;   /* v_dim 0: dim */
    const void *q, *k, *v;   /* inputs */
    void *q_o, *k_o, *v_o;   /* outputs: q_o [tokens, q_heads, dim]; k_o and v_o as above */
    size_t q_token_stride, q_head_stride; /* bytes, likewise below */
    size_t k_token_stride, k_head_stride;
    size_t v_token_stride, v_head_stride;
    size_t q_o_token_stride, q_o_head_stride;
    size_t k_o_token_stride, k_o_head_stride; /* from slot to slot, and from head to head */
    size_t v_o_token_stride, v_o_head_stride;
    const int32_t *positions; /* [axes, tokens], as in nrg_rope_table_args; NULL: token t is at first + t, on all axes */
    size_t positions_stride;  /* bytes from axis to axis; 0: 4 · tokens */
    int32_t first;            /* without positions */
    uint32_t reserved2;       /* 0 */
    const int64_t *slots;     /* [tokens] the slot of each token, or -1; NULL: row t. No two slots are equal */
    size_t slot_count;        /* with slots: of both caches */
    const float *q_w, *k_w;   /* [dim] weights of the norm, or NULL */
    const float *q_b, *k_b;   /* [dim] biases of the norm, or NULL */
    void *workspace;          /* of nrg_qkv_workspace bytes or more, 8-byte aligned */
    size_t workspace_size;
    /* NRG_QUANT_Q8_0: heads of a cache are blocks of 32 with scales, nrg/quantize.h, 34 bytes each, 2-byte aligned; the dtype
     * is then NRG_DTYPE_SAME, and dim, or v_dim, a multiple of 32. NRG_QUANT_NONE: elements. No other format */
    nrg_quant_format k_o_format, v_o_format;
} nrg_qkv_args;

/* Of f32, into tensors of f32, with one slice. */
static inline nrg_qkv_args nrg_qkv_args_init(size_t tokens, size_t dim)
{
    nrg_qkv_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.tokens = tokens;
    args.dim = dim;
    args.dtype = NRG_F32;
    return args;
}

/* Bytes of the workspace, for the most tokens there will be at once: a slice has 20 bytes a pair for the frequencies, 8 a pair
 * and token of its share for the table, and 8 KB or one head to stage heads in. A larger one is no mistake. workspace and
 * workspace_size are not looked at.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         rope, args or bytes
 *   NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM, NRG_ERR_DIM, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_COMBINATION, NRG_ERR_OVERFLOW
 *                        as nrg_qkv says them of the fields of both structs that are no pointers to operands */
NRG_API nrg_status nrg_qkv_workspace(const nrg_rope_spec *rope, const nrg_qkv_args *args, size_t *bytes);

/* Share ith of nth: of the heads of all tokens, a token's q, k and v together. Work is for shares 0 to slices - 1; if nth is
 * larger, the others return at once, and have said what is wrong as every share does.
 *
 * norm: any spec without residual, gate or format, f32 and of dim; its weights are in args. NULL, or all zero but for its size:
 * none.
 *
 * What is kept. With keep, the workspace is the call's own from call to call: it begins as zeros, nothing else writes to it, and
 * its place and size stay, as do slices, dim, the numbers of heads, and n_dims and mode of the spec. Tokens may be more or fewer
 * from call to call. A share then looks whether its slice has the frequencies of this spec (compared are the numbers of the spec
 * and its freq_factors, not pointers), and the table of these positions; what is there is not made again. So frequencies, some
 * 2 µs a pair, are made by the first call of a model, and the table by the first layer of a graph. A model with two specs, such
 * as Gemma 3, takes two workspaces. Without keep nothing in the workspace is looked at, as in memory that others use between
 * calls, and every share makes both again, in every call.
 *
 * Two calls at the same time need two workspaces.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         rope or args; with tokens and heads: an input, its output, the workspace
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          n_dims 0, odd, beyond 2^31, or 2 with NRG_ROPE_SCALING_NTK; offset + 2·pairs beyond dim; sections below
 *                        0, or all 0, with a mode that has them; norm's dim another one; heads of q8_0 no multiple of 32
 *   NRG_ERR_ENUM         mode, scaling, a dtype, a format, store or an option of norm unknown; q8_0 in a build without quantize
 *   NRG_ERR_DTYPE        norm's dtype, or its weights', not f32
 *   NRG_ERR_EPS          as in nrg/norm.h
 *   NRG_ERR_CONSTANT     as nrg_rope_frequencies has it; and norm's, as in nrg/norm.h
 *   NRG_ERR_COMBINATION  a format beside a dtype of its own; a gate, a format, NRG_RESIDUAL_AFTER or NRG_WEIGHTS_GROUP with
 *                        groups in norm; weights or biases without norm; backward with norm, slots or v
 *   NRG_ERR_POSITION     first + tokens beyond what an int32_t holds; a slot below -1 or not below slot_count
 *   NRG_ERR_WORKSPACE    workspace_size is less than nrg_qkv_workspace says
 *   NRG_ERR_STRIDE       heads or tokens of a tensor lie over each other
 *   NRG_ERR_OVERLAP      two tokens have one slot; and as in nrg/norm.h
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD  as in nrg/norm.h */
NRG_API nrg_status nrg_qkv(const nrg_rope_spec *rope, const nrg_norm_spec *norm, const nrg_qkv_args *args, int ith, int nth);

/* What nrg_qkv would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_qkv_check(const nrg_rope_spec *rope, const nrg_norm_spec *norm, const nrg_qkv_args *args);

#ifdef __cplusplus
}
#endif
#endif
