/* nrg/relative_shift.h: the relative attention of Transformer-XL and XLNet. It moves scores of distances to the keys at those
 * distances, and adds the two biases of the query.
 *
 * Sources:
 * - Dai, Yang, Yang, Carbonell, Le, Salakhutdinov, "Transformer-XL", arXiv:1901.02860, section 3.3 and appendix B.
 * - Yang, Dai, Yang, Carbonell, Salakhutdinov, Le, "XLNet", arXiv:1906.08237.
 *
 * The score of query i and key j has four terms there. The last two depend only on the distance:
 *
 *     (q_i + u) · k_j + (q_i + v) · r_{distance(i, j)}
 *
 * with q = W_q E_x, k = W_k,E E_x and r_t = W_k,R R_t, a sinusoid of distance t.
 *
 * 1. nrg_head_bias_forward computes q + u and q + v.
 * 2. The caller multiplies q + u with the keys, which gives scores [queries, keys]. It multiplies q + v with the r_t, which gives
 *    x [queries, rel]: one column per distance, in descending order.
 * 3. nrg_relative_shift_forward adds to each score the element of its row of x that has its distance:
 *
 *        scores[b, h, i, j] (+)= x[b, h, i, j - i + shift]         where 0 ≤ j - i + shift < rel; otherwise + 0
 *
 * Transformer-XL. With a memory of m = keys - queries, query i has position m + i, so its distance from key j is m + i - j.
 * Column c of x is for distance keys - 1 - c (the paper's Q: keys - 1 … 0). So c = j - i + queries - 1: shift = queries - 1, rel
 * = keys. Keys after the query have no column, and need a causal mask. The paper's method pads x by a column, reshapes it and
 * drops a row. It leaves elements of other rows at these keys.
 *
 * XLNet (bidirectional). Column c is for distance keys - c, from keys down to 1 - queries. So c = j - i + queries: shift =
 * queries, rel = queries + keys.
 *
 * The backward pass of the shift is its inverse, where that key exists:
 *
 *     dx[b, h, i, c] (+)= d_scores[b, h, i, c + i - shift]
 *
 * The backward pass of the two biases:
 *
 *     dq = d_o_u + d_o_v,   du (+)= Σ d_o_u,   dv (+)= Σ d_o_v        sums over batch and rows
 *
 * For every call, dtype and shape:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not.
 * - An addition rounds once, in f32. A 16-bit result is the f32 result rounded once. An element that is moved without an addition
 *   keeps its bits.
 * - du and dv are sums in double, in the order of batches and rows, and rounded once. Their error bound is half an ulp, plus n ·
 *   2^-53 of the sum of the magnitudes, for n rows.
 * - A NaN or an infinity affects only the results whose formula contains it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RELATIVE_SHIFT_H
#define NRG_RELATIVE_SHIFT_H

#include "relative.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands and options of both passes of the shift. Make one with a constructor below, then change fields:
 *
 *     nrg_relative_shift_forward      x → scores
 *     nrg_relative_shift_backward     d_scores → dx
 *
 * A call returns NRG_ERR_COMBINATION if an operand of the other pass is set. Pointers and strides need only the alignment of
 * their element. Strides are in bytes; 0 is dense. If batch, heads, queries, keys or rel is 0, nothing is added.
 *
 * Aliasing: the output shares no byte with the input. */
typedef struct nrg_relative_shift_args {
    size_t size; /* sizeof(nrg_relative_shift_args) */
    size_t batch;
    size_t heads;
    size_t queries;    /* rows of a head */
    size_t keys;       /* columns of scores and d_scores */
    size_t rel;        /* columns of x and dx */
    int64_t shift;     /* column of x for key 0 of query 0, within ±2^60 */
    nrg_dtype dtype;   /* of all tensors */
    uint32_t reserved; /* 0 */
    const void *x;     /* [batch, heads, queries, rel] input */
    nrg_head_strides x_strides;
    const void *d_scores; /* [batch, heads, queries, keys] input: gradient of scores */
    nrg_head_strides d_scores_strides;
    int accumulate;  /* not 0: added to scores or dx; 0: overwrites it, with 0 where no element is moved to */
    nrg_store store; /* how scores or dx is stored without accumulate; never changes a bit */
    void *scores;    /* [batch, heads, queries, keys] output */
    nrg_head_strides scores_strides;
    void *dx; /* [batch, heads, queries, rel] output: gradient of x */
    nrg_head_strides dx_strides;
} nrg_relative_shift_args;

/* Returns args without operands, which overwrite the output.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, rel, shift: the fields of the same names. */
static inline nrg_relative_shift_args nrg_relative_shift_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries,
                                                                   size_t keys, size_t rel, int64_t shift)
{
    nrg_relative_shift_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.rel = rel;
    args.shift = shift;
    args.dtype = dtype;
    args.reserved = 0;
    args.x = args.d_scores = NULL;
    args.accumulate = 0;
    args.store = NRG_STORE_AUTO;
    args.scores = args.dx = NULL;
    args.x_strides.row = args.x_strides.head = args.x_strides.batch = 0;
    args.d_scores_strides = args.scores_strides = args.dx_strides = args.x_strides;
    return args;
}

/* Returns args for Transformer-XL: columns for the distances from keys - 1 down to 0.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys: the fields of the same names. */
static inline nrg_relative_shift_args nrg_relative_shift_args_transformer_xl(nrg_dtype dtype, size_t batch, size_t heads,
                                                                             size_t queries, size_t keys)
{
    return nrg_relative_shift_args_init(dtype, batch, heads, queries, keys, keys, (int64_t)queries - 1);
}

/* Returns args for XLNet: columns for the distances from keys down to 1 - queries.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys: the fields of the same names. */
static inline nrg_relative_shift_args nrg_relative_shift_args_xlnet(nrg_dtype dtype, size_t batch, size_t heads, size_t queries,
                                                                    size_t keys)
{
    return nrg_relative_shift_args_init(dtype, batch, heads, queries, keys, queries + keys, (int64_t)queries);
}

/* Moves the elements of x to the keys at their distances, by the formula above.
 *
 * Parameters:
 * - args: operands and options, described at their fields. The call reads x and writes scores.
 * - ith, nth: the share, a range of rows.
 *
 * The call uses at most 16 KB of stack in an optimized build.
 *
 * Aliasing: scores shares no byte with x.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL, or the input or the output is NULL although it has elements.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_POSITION: shift is beyond ±2^60.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory; or queries, keys or rel is
 *   above 2^60.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: the output shares bytes with the input.
 * - NRG_ERR_ENUM: dtype or store has an unknown value.
 * - NRG_ERR_COMBINATION: an operand of the other pass is set.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_forward(const nrg_relative_shift_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_shift_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_forward_check(const nrg_relative_shift_args *args);

/* Computes dx, the inverse of the shift, by the formula above.
 *
 * Parameters:
 * - args: operands and options, described at their fields. The call reads d_scores and writes dx.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: dx shares no byte with d_scores.
 *
 * Returns the statuses of nrg_relative_shift_forward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_backward(const nrg_relative_shift_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_shift_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_backward_check(const nrg_relative_shift_args *args);

/* Operands and options of both passes of the two biases. Make one with nrg_head_bias_args_init, then set the operands of the
 * pass:
 *
 *     nrg_head_bias_forward      q, u, v → o_u, o_v
 *     nrg_head_bias_backward     d_o_u, d_o_v → dq, du, dv
 *
 * A call returns NRG_ERR_COMBINATION if an operand of the other pass is set. Strides are in bytes; 0 is dense. If batch, heads or
 * rows is 0, sums have no terms.
 *
 * Aliasing: one of o_u and o_v may be q, and dq may be d_o_u or d_o_v, with the same first byte and the same strides:
 *
 *               q     u     v
 *       o_u     yes   no    no
 *       o_v     yes   no    no
 *
 *               d_o_u d_o_v
 *        dq     yes   yes
 *
 * Otherwise no output shares a byte with another operand. Rows of two tensors may interleave if their strides are equal. */
typedef struct nrg_head_bias_args {
    size_t size; /* sizeof(nrg_head_bias_args) */
    size_t batch;
    size_t heads;
    size_t rows;
    size_t dim;           /* elements of a head, at least 1 */
    nrg_dtype dtype;      /* of q, o_u, o_v and their gradients */
    nrg_dtype bias_dtype; /* of u and v: SAME, dtype or NRG_F32; in the backward pass SAME */
    const void *q;        /* [batch, rows, heads, dim] input */
    nrg_head_strides q_strides;
    const void *u; /* [heads, dim] input with o_u, otherwise NULL */
    const void *v; /* [heads, dim] input with o_v, otherwise NULL */
    /* [batch, rows, heads, dim] input: gradient of o_u. One of d_o_u and d_o_v may be NULL, which counts as 0 */
    const void *d_o_u;
    nrg_head_strides d_o_u_strides;
    const void *d_o_v; /* [batch, rows, heads, dim] input: gradient of o_v */
    nrg_head_strides d_o_v_strides;
    int accumulate;  /* backward. Not 0: added to du and dv, in one rounding; 0: overwrites them */
    nrg_store store; /* how o_u, o_v and dq are stored; never changes a bit */
    void *o_u;       /* [batch, rows, heads, dim] output: q + u, or NULL */
    nrg_head_strides o_u_strides;
    void *o_v; /* [batch, rows, heads, dim] output: q + v, or NULL */
    nrg_head_strides o_v_strides;
    void *dq; /* [batch, rows, heads, dim] output: gradient of q, or NULL */
    nrg_head_strides dq_strides;
    float *du; /* [heads, dim] output: gradient of u, or NULL */
    float *dv; /* [heads, dim] output: gradient of v, or NULL */
} nrg_head_bias_args;

/* Returns args without operands, which overwrite du and dv.
 *
 * Parameters:
 * - dtype, batch, heads, rows, dim: the fields of the same names. */
static inline nrg_head_bias_args nrg_head_bias_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t rows, size_t dim)
{
    nrg_head_bias_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.bias_dtype = NRG_DTYPE_SAME;
    args.q = args.u = args.v = args.d_o_u = args.d_o_v = NULL;
    args.accumulate = 0;
    args.store = NRG_STORE_AUTO;
    args.o_u = args.o_v = args.dq = NULL;
    args.du = args.dv = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.d_o_u_strides = args.d_o_v_strides = args.o_u_strides = args.o_v_strides = args.dq_strides = args.q_strides;
    return args;
}

/* Computes o_u = q + u and o_v = q + v, and reads q once.
 *
 * Parameters:
 * - args: operands and options, described at their fields. o_u and o_v may be NULL.
 * - ith, nth: the share, a range of rows of all heads if the heads of a row are adjacent. Otherwise it is a range of rows of one
 *   head.
 *
 * Aliasing: as the first table at nrg_head_bias_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or the tensor is not empty, and q is NULL, or u with o_u, or v with o_v.
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_DTYPE: bias_dtype is neither dtype nor f32.
 * - NRG_ERR_COMBINATION: u is set without o_u, or v without o_v, or an operand or option of the other pass is set.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_THREAD: as
 *   in nrg_relative_shift_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_forward(const nrg_head_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_head_bias_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_forward_check(const nrg_head_bias_args *args);

/* Computes dq = d_o_u + d_o_v, and the sums du and dv. A sum over no rows is 0.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Each output may be NULL.
 * - ith, nth: the share, a range of columns of every row, in groups of 32 of the heads · dim columns.
 *
 * Aliasing: as the second table at nrg_head_bias_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or the tensor is not empty, an output is set, and d_o_u and d_o_v are both NULL.
 * - NRG_ERR_COMBINATION: an operand or option of the other pass is set.
 * - NRG_ERR_DIM, NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM,
 *   NRG_ERR_THREAD: as in nrg_head_bias_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_backward(const nrg_head_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_head_bias_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_backward_check(const nrg_head_bias_args *args);

#ifdef __cplusplus
}
#endif
#endif
