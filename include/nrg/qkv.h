/* nrg/qkv.h: the steps between the projections of q, k and v and attention, in one call.
 *
 * The call normalizes each head of q and k (QK-norm), rotates it (nrg/rope.h), and writes k and v to their slots of a KV cache:
 *
 *     q_o[t, h]         = rope(norm(q[t, h]))
 *     k_o[slot(t), h]   = rope(norm(k[t, h]))          each part is optional: no k, no v, no norm, no slots
 *     v_o[slot(t), h]   = v[t, h]
 *
 * The functions:
 *
 *     nrg_qkv_workspace     how large the workspace is, once for a graph
 *     nrg_qkv_forward       the call, in every layer
 *     nrg_qkv_backward      the transposed rotation of q and k
 *
 * The workspace holds the frequencies and the table of cosines that separate calls of nrg/rope.h compute. Shares never wait for
 * each other: each has its own part of the workspace, and computes there what its tokens need.
 *
 * Sources:
 * - Rotation: ggml_rope_ext.
 * - Norm of heads: Henry et al., arXiv:2010.04245, as in Qwen 3 and Gemma 3.
 * - Slots: the slot mapping of paged attention, Kwon et al., arXiv:2309.06180, and the rows of ggml_set_rows.
 *
 * Rounding:
 * - Elements are widened to f32, which is exact. Norm and rotation compute in f32. Results are rounded once, to the dtype of
 *   their output.
 * - So results are bit-identical to nrg_norm_forward, then nrg_rope_forward, both in f32, then one rounding. With f32 q and q_o,
 *   they are bit-identical to separate calls.
 * - v is rounded once if its output has another dtype. Otherwise it is copied, NaNs included.
 * - A NaN stays a NaN when it is widened and rounded.
 * - A q8_0 output is nrg_quantize of the f32 results, with ties to even.
 *
 * Results are bit-identical on every path and for any (ith, nth), alignment and stride, with `keep` or without.
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

/* Operands and options of nrg_qkv_forward. Make one with a constructor below, then change fields.
 *
 * Tensors are [tokens, heads, dim]. The row of their strides is a token; their batch stride is ignored. Strides are in bytes; 0
 * is dense. Tokens of several sequences follow each other, each with its position and its slot.
 *
 * A cache is [slot_count, heads, dim], and the row of its strides is a slot. The call writes the slots of its tokens and nothing
 * else. Without slots, token t goes to row t of [tokens, heads, dim]. Elements of a head are adjacent: the call does not support
 * a transposed v, which llama.cpp has without flash attention.
 *
 * Slot -1 marks a padding token, as in vLLM's slot mapping. The call does not write its k and v. It writes its q as for any
 * token, so its position must be valid. Several tokens may have slot -1.
 *
 * Aliasing: q_o may be q, with the same strides and the same element size. Otherwise no output shares a byte with another
 * operand, nor does the workspace. Two caches may interleave slot by slot, by the rule of nrg/rope.h.
 *
 *               q     k     v
 *       q_o     yes   no    no */
typedef struct nrg_qkv_args {
    size_t size;                      /* sizeof(nrg_qkv_args) */
    size_t tokens;                    /* may be 0 */
    size_t q_heads, k_heads, v_heads; /* 0: there is no such tensor, and its pointers are NULL */
    size_t dim;                       /* elements of a head of q and k */
    size_t v_dim;                     /* elements of a head of v. Default: dim. */
    size_t rotate_from;               /* the first rotated element of a head */
    size_t slot_count;                /* slots of each cache; 0 without slots */
    nrg_dtype dtype;                  /* of q, k and v */
    nrg_dtype q_o_dtype;              /* of each output, independently; NRG_DTYPE_SAME is dtype */
    nrg_dtype k_o_dtype;
    nrg_dtype v_o_dtype;
    /* The format of the k and v caches: NRG_QUANT_NONE or NRG_QUANT_Q8_0, no other. With q8_0, heads are blocks of 32 elements
     * with scales (nrg/quantize.h), 34 bytes each, aligned to 2 bytes. Then the output's dtype is NRG_DTYPE_SAME, and dim (for
     * v, v_dim) is a multiple of 32. */
    nrg_quant_format k_o_format;
    nrg_quant_format v_o_format;
    const void *q; /* [tokens, q_heads, dim] input */
    nrg_head_strides q_strides;
    const void *k; /* [tokens, k_heads, dim] input */
    nrg_head_strides k_strides;
    const void *v; /* [tokens, v_heads, v_dim] input */
    nrg_head_strides v_strides;
    const float *q_w, *q_b; /* [dim] weights and biases of the norm of q, each may be NULL */
    const float *k_w, *k_b; /* [dim] weights and biases of the norm of k, each may be NULL */
    /* [axes, tokens] input, as in nrg_rope_table_args; NULL: token t has first_position + t on all axes */
    const int32_t *positions;
    size_t positions_stride; /* bytes from one axis to the next; 0 is 4 · tokens */
    int32_t first_position;  /* the position of token 0; 0 with positions */
    uint32_t reserved;       /* 0 */
    const int64_t *slots;    /* [tokens] input: the slot of each token, or -1; NULL: row t. Slots differ, except -1 */
    nrg_store store;         /* how q_o is stored if it has the dtype of q; caches are never streamed */
    int keep;                /* not 0: frequencies and table stay valid from call to call, as in nrg_rope_positions_args */
    void *q_o;               /* [tokens, q_heads, dim] output */
    nrg_head_strides q_o_strides;
    void *k_o; /* output: the cache of k */
    nrg_head_strides k_o_strides;
    void *v_o; /* output: the cache of v */
    nrg_head_strides v_o_strides;
    void *workspace;       /* at least nrg_qkv_workspace bytes, aligned to 8 bytes */
    size_t workspace_size; /* bytes; nrg_qkv_workspace computes the minimum */
} nrg_qkv_args;

/* Returns args without tensors. Set the heads, inputs and outputs of q, k and v, and the workspace.
 *
 * Parameters:
 * - dtype, tokens, dim: the fields of the same names. */
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
    args.store = NRG_STORE_AUTO;
    args.keep = 0;
    args.q_o = args.k_o = args.v_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    args.v_o_strides = args.q_strides;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Returns args for dense rows [q | k | v] of the heads of each token, as one projection computes them. q is updated in place. Set
 * k_o, v_o and the workspace.
 *
 * Parameters:
 * - dtype, tokens, q_heads, dim: the fields of the same names.
 * - kv_heads: the fields k_heads and v_heads.
 * - qkv: [tokens, q_heads + 2·kv_heads, dim] input, and output of q. */
static inline nrg_qkv_args nrg_qkv_args_fused(nrg_dtype dtype, size_t tokens, size_t q_heads, size_t kv_heads, size_t dim,
                                              void *qkv)
{
    const size_t head = dim * nrg_dtype_size(dtype), is_address = qkv && qkv != NRG_UNALLOCATED,
                 q_bytes = is_address ? q_heads * head : 0, k_bytes = is_address ? kv_heads * head : 0;
    nrg_qkv_args args = nrg_qkv_args_init(dtype, tokens, dim);
    args.q_heads = q_heads;
    args.k_heads = args.v_heads = kv_heads;
    args.q = args.q_o = qkv;
    args.k = (const char *)qkv + q_bytes;
    args.v = (const char *)qkv + q_bytes + k_bytes;
    args.q_strides.row = args.q_o_strides.row = args.k_strides.row = args.v_strides.row = (q_heads + 2 * kv_heads) * head;
    return args;
}

/* Computes the bytes of the workspace for calls with nth shares and at most args->tokens tokens.
 *
 * Each share needs 20 bytes per pair for the frequencies, and 8 bytes per pair and token of the share for the table. It also
 * needs 8 KB, or one head, to stage heads.
 *
 * Parameters:
 * - rope: the angles.
 * - args: the call ignores the operands, the workspace and workspace_size.
 * - nth: the number of shares, at least 1.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: rope, args or bytes is NULL.
 * - NRG_ERR_THREAD: nth is below 1.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM, NRG_ERR_DIM, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_POSITION, NRG_ERR_OVERFLOW:
 *   as in nrg_qkv_forward, for all fields except pointers to operands. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_workspace(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, size_t *bytes);

/* Normalizes and rotates the heads of q and k, and writes q, k and v to their outputs.
 *
 * Parameters:
 * - norm: any f32 spec of args->dim elements without residual, gate or format, or NULL: no norm. The weights are in args.
 * - rope: the angles.
 * - args: operands and options, described at their fields. With keep, the rules of nrg_rope_positions_args hold, and dim and the
 *   numbers of heads must not change either. Two concurrent calls need two workspaces.
 * - ith, nth: the share, a range of heads of all tokens. The heads of q, k and v of a token are adjacent in this order.
 *
 * Aliasing: as the table at nrg_qkv_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: rope or args is NULL; or there are tokens and heads, and an input, its output or workspace is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: one of these:
 *   - n_dims is 0, odd, above 2^31, or 2 with NRG_ROPE_SCALING_NTK.
 *   - rotate_from + 2·pairs is above dim.
 *   - The mode has sections, and one is negative or all are 0.
 *   - The dim of norm is not the dim of args.
 *   - A q8_0 head is no multiple of 32.
 *   - v_dim is 0, and there are heads of v.
 * - NRG_ERR_ENUM: mode, scaling, a dtype, a format, store or an option of norm has an unknown value. Also for q8_0 in a build
 *   without quantize.
 * - NRG_ERR_DTYPE: a dtype of norm or of its weights is not f32.
 * - NRG_ERR_EPS: eps is negative, infinite or NaN.
 * - NRG_ERR_CONSTANT: a number of rope, as in nrg_rope_frequencies, or of norm, as in nrg_norm_forward.
 * - NRG_ERR_COMBINATION: one of these:
 *   - A cache has both a format and a dtype.
 *   - The norm has a gate, a format, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups.
 *   - There are weights or biases, and norm is NULL.
 *   - weight_offset of norm is not 0, and q or k has heads and no weights.
 *   - A pointer of q, k or v is set whose number of heads is 0.
 *   - An option of rope is set that the others do not use, as in nrg_rope_frequencies.
 *   - positions are set, and first_position is not 0. Or slot_count is not 0, and slots is NULL.
 * - NRG_ERR_POSITION: first_position + tokens is beyond the range of an int32_t, or a slot is below -1 or not below slot_count.
 * - NRG_ERR_WORKSPACE: workspace_size is less than nrg_qkv_workspace returns for nth.
 * - NRG_ERR_STRIDE: heads or tokens of a tensor overlap.
 * - NRG_ERR_OVERLAP: two tokens have the same slot, or operands overlap in a way that the table does not allow.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *args,
                                                 int ith, int nth);

/* Validates the arguments of nrg_qkv_forward. Computes and writes nothing.
 *
 * Parameters:
 * - nth: the number of shares, which the size of the workspace depends on. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                                       const nrg_qkv_args *args, int nth);

/* Computes the gradients of q and k for a forward call without norm: rotates by -k·θ. For a norm with rotation, call the backward
 * pass of nrg/norm_rope.h.
 *
 * Parameters:
 * - rope: the angles.
 * - args: as in nrg_qkv_forward, with the gradients of its outputs in q and k. The call writes the gradients of its q and k to
 *   q_o and k_o. Slots, heads of v, weights and biases must not be set.
 * - ith, nth: as in nrg_qkv_forward.
 *
 * Aliasing: as the table at nrg_qkv_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: rope or args is NULL; or there are tokens and heads, and an input, its output or workspace is NULL.
 * - NRG_ERR_DIM: one of these:
 *   - n_dims is 0, odd, above 2^31, or 2 with NRG_ROPE_SCALING_NTK.
 *   - rotate_from + 2·pairs is above dim.
 *   - The mode has sections, and one is negative or all are 0.
 *   - A q8_0 head is no multiple of 32.
 * - NRG_ERR_ENUM: mode, scaling, a dtype, a format or store has an unknown value. Also for q8_0 in a build without quantize.
 * - NRG_ERR_COMBINATION: one of these:
 *   - slots, slot_count, v_heads, weights or biases are set.
 *   - A cache has both a format and a dtype.
 *   - A pointer of q or k is set whose number of heads is 0.
 *   - An option of rope is set that the others do not use, as in nrg_rope_frequencies.
 *   - positions are set, and first_position is not 0.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_WORKSPACE, NRG_ERR_STRIDE, NRG_ERR_OVERLAP,
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD: as in nrg_rope_positions_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_backward(const nrg_rope_spec *rope, const nrg_qkv_args *args, int ith, int nth);

/* Validates the arguments of nrg_qkv_backward. Computes and writes nothing.
 *
 * Parameters:
 * - nth: the number of shares, which the size of the workspace depends on. */
NRG_NODISCARD NRG_API nrg_status nrg_qkv_backward_check(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth);

#ifdef __cplusplus
}
#endif
#endif
