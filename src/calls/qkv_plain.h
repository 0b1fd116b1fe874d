/* A call of nrg/qkv.h whose arguments are sound; and a way past the checker for most forward calls: see quick.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QKV_PLAIN_H
#define NRG_CALLS_QKV_PLAIN_H

#include "../operands/qkv.h"
#include "qkv_slots.h"
#include "quick.h"
#include "quick_norm.h"
#include "rope_slice.h"

enum { Q, K, V, TENSORS };

/* What q, k and v have each of their own. Strides: of heads, then of tokens. */
typedef struct qkv_tensor {
    const char *x;
    char *o;
    size_t x_strides[2], o_strides[2];
    size_t heads, dim;
    nrg_dtype o_dtype; /* of q8_0: of the halves it is made of */
    int is_quantized;
} qkv_tensor;

/* A call whose arguments are sound. */
typedef struct qkv_call {
    const nrg_rope_spec *spec;
    nrg_rope_spec own; /* of the checker: the caller's may be another version's */
    rope_slice slice;  /* of the share */
    rope_table table;  /* of the tokens that are next */
    qkv_tensor tensor[TENSORS];
    nrg_qkv_job job;      /* of one after the other: what they have in common */
    size_t tokens, heads; /* heads: of a token's q, k and v together */
    size_t block_rows;
    nrg_rope_space space;
    const float *w[V], *b[V]; /* of the norms of q and k */
    const int64_t *slots;
    const int32_t *positions;
    int32_t first_position;
    int keep, is_turned, stream, far; /* is_turned: there is q or k */
    nrg_dtype dtype;
} qkv_call;

/* Heads of rows that nest: tokens, or slots of a cache. */
static inline int qkv_quick_heads(quick_operand *e, size_t strides[2], const void *pointer, const nrg_head_strides *given,
                                  size_t rows, size_t heads, size_t row, size_t unit)
{
    const size_t by_head = given->head && heads != 1 ? given->head : row, by_token = given->row ? given->row : heads * by_head;
    strides[0] = by_head;
    strides[1] = by_token;
    e->first = (uintptr_t)pointer;
    e->stride = by_token;
    e->end = e->first + (rows - 1) * by_token + (heads - 1) * by_head + row;
    return (pointer != NULL) & (by_head >= row) & (by_head < QUICK_HEAD_STRIDE) & (by_token >= heads * by_head) &
           (by_token < QUICK_STRIDE) & (((e->first | by_head | by_token) & unit) == 0) & (e->end > e->first);
}

/* Operands that are there, as memory. */
typedef struct qkv_operands {
    unsigned count;
    quick_operand at[12];
} qkv_operands;

/* Adds a line of elements, if it is there. Whether it lies well. */
static inline int qkv_add_line(qkv_operands *all, const void *pointer, size_t bytes, size_t unit)
{
    if (!pointer)
        return 1;
    quick_operand *const e = &all->at[all->count++];
    return quick_rows(e, pointer, 0, 1, bytes, unit);
}

/* The format and dtype of an output: bytes of a head, and what its address is a multiple of, less one. 0: the checker decides. */
static inline int qkv_quick_output(qkv_tensor *t, nrg_quant_format format, nrg_dtype own, nrg_dtype dtype, size_t *row,
                                   size_t *unit)
{
    t->o_dtype = own == NRG_DTYPE_SAME ? dtype : own;
    t->is_quantized = 0;
    *row = t->dim * (t->o_dtype == NRG_F32 ? 4 : 2);
    *unit = t->o_dtype == NRG_F32 ? 3 : 1;
    if (format == NRG_QUANT_NONE)
        return (unsigned)own <= NRG_BF16;
#ifdef NRG_NO_QUANTIZE
    return 0;
#else
    t->o_dtype = NRG_F16;
    t->is_quantized = 1;
    *row = nrg_qkv_halves(t->dim) * 2;
    *unit = 1;
    return (format == NRG_QUANT_Q8_0) & (own == NRG_DTYPE_SAME) & (t->dim % 32 == 0);
#endif
}

/* A tensor and what becomes of it: the strides of both as given. */
typedef struct qkv_given {
    const void *x;
    void *o;
    size_t heads, dim, rows; /* rows: of the output */
    const nrg_head_strides *x_strides, *o_strides;
    nrg_dtype o_dtype;
    nrg_quant_format format;
} qkv_given;

static inline __attribute__((always_inline)) int qkv_quick_tensor(qkv_tensor *t, qkv_operands *in, qkv_operands *out,
                                                                  const nrg_qkv_args *a, qkv_given g)
{
    const size_t element = a->dtype == NRG_F32 ? 4 : 2;
    size_t row, unit;
    t->x = g.x;
    t->o = g.o;
    t->heads = g.heads;
    t->dim = g.dim;
    const int is_known = qkv_quick_output(t, g.format, g.o_dtype, a->dtype, &row, &unit);
    if (!g.heads)
        return is_known & !g.x & !g.o;
    return is_known &
           qkv_quick_heads(&in->at[in->count++], t->x_strides, g.x, g.x_strides, a->tokens, g.heads, g.dim * element,
                           element - 1) &
           qkv_quick_heads(&out->at[out->count++], t->o_strides, g.o, g.o_strides, g.rows, g.heads, row, unit);
}

/* Whether an operand shares no byte with others, from number `first` on. */
static inline int qkv_is_apart(const quick_operand *e, const qkv_operands *others, unsigned first)
{
    unsigned meet = 0;
    for (unsigned i = first; i < others->count; i++)
        meet |= (e->end > others->at[i].first) & (others->at[i].end > e->first);
    return !meet;
}

/* Whether a norm, or that there is none, is plainly sound. */
static inline int qkv_quick_norm(const nrg_norm_spec *norm, const nrg_qkv_args *a)
{
    if (norm)
        return quick_norm_is_plain(norm, a->q_w ? a->k_w : NULL) && /* an offset needs both: else the checker decides */
               (norm->dtype == NRG_F32) & (norm->dim == a->dim) & quick_is_same(norm->y_dtype, NRG_F32) &
                   quick_is_same(norm->r_dtype, NRG_F32) & quick_is_same(norm->w_dtype, NRG_F32);
    return !(a->q_w || a->k_w || a->q_b || a->k_b);
}

/* Whether a forward call is plainly sound; its tensors are then complete. norm: NULL: none. */
static inline int qkv_is_plain(qkv_call *call, const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *a,
                               int nth)
{
    const size_t dim = a->dim, tokens = a->tokens, rows = a->slots ? a->slot_count : a->slot_count ? 0 : tokens;
    /* branches that are never taken cost less than one sum of all conditions, as in rope.c */
    if (((unsigned)a->dtype - NRG_F32 > NRG_BF16 - NRG_F32) | ((unsigned)a->store > NRG_STORE_STREAM) | (a->reserved != 0) |
        (rope->yarn > NRG_ROPE_YARN_MOST) | ((unsigned)rope->scaling > NRG_ROPE_SCALING_LLAMA3) |
        ((rope->mode != NRG_ROPE_NORMAL) & (rope->mode != NRG_ROPE_NEOX)))
        return 0;
    if ((dim - 1 >= QUICK_MOST) | (tokens - 1 >= QUICK_MOST) | (rows - 1 >= QUICK_MOST) | (a->q_heads - 1 >= QUICK_MOST) |
        (a->k_heads >= QUICK_MOST) | (a->v_heads >= QUICK_MOST) | (a->v_dim - 1 >= QUICK_MOST) | (a->workspace == NULL) |
        ((a->positions_stride != 0) & (a->positions != NULL)))
        return 0;
    if (!qkv_quick_norm(norm, a))
        return 0;
    size_t doubles;
    if (nrg_qkv_measure_args(rope, a, nth, &call->space, &doubles) != NRG_OK || a->workspace_size / sizeof(double) < doubles)
        return 0;
    qkv_operands in, out; /* q and q_o come first */
    in.count = out.count = 0;
    int sound = qkv_quick_tensor(&call->tensor[Q], &in, &out, a,
                                 (qkv_given){a->q, a->q_o, a->q_heads, dim, tokens, &a->q_strides, &a->q_o_strides, a->q_o_dtype,
                                             NRG_QUANT_NONE}) &
                qkv_quick_tensor(&call->tensor[K], &in, &out, a,
                                 (qkv_given){a->k, a->k_o, a->k_heads, dim, rows, &a->k_strides, &a->k_o_strides, a->k_o_dtype,
                                             a->k_o_format}) &
                qkv_quick_tensor(&call->tensor[V], &in, &out, a,
                                 (qkv_given){a->v, a->v_o, a->v_heads, a->v_dim, rows, &a->v_strides, &a->v_o_strides,
                                             a->v_o_dtype, a->v_o_format});
    const size_t line = dim * sizeof(float);
    if (norm)
        sound &= qkv_add_line(&in, a->q_w, line, sizeof(float) - 1) & qkv_add_line(&in, a->q_b, line, sizeof(float) - 1) &
                 qkv_add_line(&in, a->k_w, line, sizeof(float) - 1) & qkv_add_line(&in, a->k_b, line, sizeof(float) - 1) &
                 (a->k_heads || !(a->k_w || a->k_b));
    sound &= qkv_add_line(&in, a->positions, tokens * sizeof(int32_t), sizeof(int32_t) - 1) &
             qkv_add_line(&in, a->slots, tokens * sizeof(int64_t), sizeof(int64_t) - 1) &
             qkv_add_line(&in, rope->freq_factors, call->space.pairs * sizeof(float), sizeof(float) - 1) &
             qkv_add_line(&out, a->workspace, doubles * sizeof(double), sizeof(double) - 1);
    /* q_o may be q */
    const qkv_tensor *const q = &call->tensor[Q];
    const int over_q = ((q->o_dtype == NRG_F32) == (a->dtype == NRG_F32)) & (q->x_strides[0] == q->o_strides[0]);
    sound &= quick_apart(&out.at[0], &in.at[0], over_q) & qkv_is_apart(&out.at[0], &in, 1);
    for (unsigned i = 1; i < out.count; i++)
        sound &= qkv_is_apart(&out.at[i], &in, 0);
    for (unsigned i = 0; i < out.count; i++)
        sound &= qkv_is_apart(&out.at[i], &out, i + 1);
    return sound;
}

#endif
