/* nrg/relative_shift.h: the relative attention of Transformer-XL and XLNet: moving scores that belong to distances to the keys at
 * those distances, and the two biases of the query.
 *
 * Sources: Dai, Yang, Yang, Carbonell, Le, Salakhutdinov, "Transformer-XL", arXiv:1901.02860, section 3.3 and appendix B; Yang,
 * Dai, Yang, Carbonell, Salakhutdinov, Le, "XLNet", arXiv:1906.08237. A score of query i and key j has four terms there, of which
 * the last two depend on the distance alone:
 *
 *     (q_i + u) · k_j + (q_i + v) · r_{distance(i, j)}
 *
 * with q = W_q E_x, k = W_k,E E_x and r_t = W_k,R R_t, a sinusoid of distance t.
 *
 * 1. nrg_head_bias_forward computes q + u and q + v.
 * 2. The caller multiplies q + u with the keys, which gives scores [queries, keys], and q + v with the r_t, which gives
 *    x [queries, rel]: one column for each distance, in descending order.
 * 3. nrg_relative_shift_forward adds to every score the element of its row of x that has its distance:
 *
 *        scores[b, h, i, j] (+)= x[b, h, i, j - i + shift]         where 0 ≤ j - i + shift < rel; otherwise + 0
 *
 * Transformer-XL: with a memory of m = keys - queries, query i stands at position m + i, so its distance from key j is m + i - j.
 * Column c of x is for distance keys - 1 - c (the paper's Q: keys - 1 … 0). So c = j - i + queries - 1: shift = queries - 1,
 * rel = keys. Keys that come after the query have no column, and a causal mask; the paper's own way (pad x by a column, reshape,
 * drop a row) leaves other rows' elements there.
 *
 * XLNet (bidirectional): column c is for distance keys - c, from keys down to 1 - queries: c = j - i + queries: shift = queries,
 * rel = queries + keys.
 *
 * The backward pass of the shift is its inverse, dx[b, h, i, c] (+)= d_scores[b, h, i, c + i - shift] where that key exists, and
 * of the bias pair
 *
 *     dq = d_o_u + d_o_v,   du (+)= Σ d_o_u,   dv (+)= Σ d_o_v        sums over batch and rows
 *
 * What holds for every call, dtype and shape: every path gives the same bits; so does any (ith, nth), alignment and stride, in
 * place or not. Additions are one rounding in f32; a 16-bit result is the f32 result rounded once; what is moved without an
 * addition keeps its bits. du and dv are summed in double, in the order of batches and rows, and rounded once: half an ulp plus n
 * · 2^-53 of the sum of the magnitudes, for n rows. NaN and infinities go where the formulas take them and nowhere else.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RELATIVE_SHIFT_H
#define NRG_RELATIVE_SHIFT_H

#include "relative.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. nrg_relative_shift_forward reads x and writes scores, nrg_relative_shift_backward reads d_scores and writes
 * dx; the other operands are refused. Pointers and strides need the alignment of their element only. The output shares no byte
 * with the input. With 0 batches, heads, queries, keys or rel nothing is added. */
typedef struct nrg_relative_shift_args {
    size_t size; /* sizeof(nrg_relative_shift_args) */
    size_t batch;
    size_t heads;
    size_t queries; /* rows of a head */
    size_t keys;    /* columns of scores and d_scores */
    size_t rel;     /* columns of x and dx */
    int64_t shift;
    nrg_dtype dtype;
    uint32_t reserved; /* 0 */
    const void *x;     /* [batch, heads, queries, rel] */
    nrg_head_strides x_strides;
    const void *d_scores; /* [batch, heads, queries, keys] */
    nrg_head_strides d_scores_strides;
    int accumulate;  /* not 0: added to scores or dx; 0: overwrites it, with 0 where nothing is moved to */
    nrg_store store; /* how scores or dx is stored without accumulate */
    void *scores;    /* [batch, heads, queries, keys] */
    nrg_head_strides scores_strides;
    void *dx; /* [batch, heads, queries, rel] */
    nrg_head_strides dx_strides;
} nrg_relative_shift_args;

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

/* Columns from distance keys - 1 down to 0. */
static inline nrg_relative_shift_args nrg_relative_shift_args_transformer_xl(nrg_dtype dtype, size_t batch, size_t heads,
                                                                             size_t queries, size_t keys)
{
    return nrg_relative_shift_args_init(dtype, batch, heads, queries, keys, keys, (int64_t)queries - 1);
}

/* Columns from distance keys down to 1 - queries. */
static inline nrg_relative_shift_args nrg_relative_shift_args_xlnet(nrg_dtype dtype, size_t batch, size_t heads, size_t queries,
                                                                    size_t keys)
{
    return nrg_relative_shift_args_init(dtype, batch, heads, queries, keys, queries + keys, (int64_t)queries);
}

/* Rows of share ith of nth: (0, 1) does all; from n threads, call it once each with (0, n) … (n-1, n) and the same args. At most
 * 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or an operand of the call that has elements
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_POSITION     shift beyond ±2^60
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory; queries, keys or rel above
 *                        2^60
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      the output shares bytes with the input
 *   NRG_ERR_ENUM         dtype or store unknown
 *   NRG_ERR_COMBINATION  an operand of the other pass
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_forward(const nrg_relative_shift_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_shift_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_forward_check(const nrg_relative_shift_args *args);

/* The other way round, with the statuses of nrg_relative_shift_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_backward(const nrg_relative_shift_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_shift_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_shift_backward_check(const nrg_relative_shift_args *args);

/* Where the data is. nrg_head_bias_forward reads q, u and v, nrg_head_bias_backward d_o_u and d_o_v; the operands of the other
 * pass are refused. With 0 batches, heads or rows, sums are over nothing.
 *
 * Aliasing: o_u or o_v may be q, not both; dq may be d_o_u or d_o_v (the whole operand, same first byte, same strides):
 *
 *               q     u     v
 *       o_u     yes   no    no
 *       o_v     yes   no    no
 *
 *               d_o_u d_o_v
 *        dq     yes   yes
 *
 * Otherwise no output shares a byte with another operand, but rows may interleave where they are one stride apart. */
typedef struct nrg_head_bias_args {
    size_t size; /* sizeof(nrg_head_bias_args) */
    size_t batch;
    size_t heads;
    size_t rows;
    size_t dim;           /* of a head, at least 1 */
    nrg_dtype dtype;      /* of q, o_u, o_v and their gradients */
    nrg_dtype bias_dtype; /* of u and v: SAME, dtype, or NRG_F32; SAME in the backward pass */
    const void *q;        /* [batch, rows, heads, dim] */
    nrg_head_strides q_strides;
    const void *u;     /* [heads, dim] with o_u, otherwise NULL */
    const void *v;     /* [heads, dim] with o_v, otherwise NULL */
    const void *d_o_u; /* [batch, rows, heads, dim]; one of d_o_u and d_o_v may be NULL, which is 0 */
    nrg_head_strides d_o_u_strides;
    const void *d_o_v; /* [batch, rows, heads, dim] */
    nrg_head_strides d_o_v_strides;
    int accumulate;  /* backward. Not 0: added to du and dv, in one rounding; 0: overwrites them */
    nrg_store store; /* how o_u, o_v and dq are stored */
    void *o_u;       /* [batch, rows, heads, dim] q + u, or NULL */
    nrg_head_strides o_u_strides;
    void *o_v; /* [batch, rows, heads, dim] q + v, or NULL */
    nrg_head_strides o_v_strides;
    void *dq; /* [batch, rows, heads, dim] or NULL */
    nrg_head_strides dq_strides;
    float *du; /* [heads, dim] or NULL */
    float *dv; /* [heads, dim] or NULL */
} nrg_head_bias_args;

/* No operands yet; du and dv are overwritten. */
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

/* o_u = q + u and o_v = q + v in one pass over q. Shares are rows of all heads where those lie together, or else rows of one
 * head.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL   args; with elements: q; u with o_u; v with o_v
 *   NRG_ERR_DIM    dim is 0
 *   NRG_ERR_DTYPE  bias_dtype neither dtype nor f32
 *   NRG_ERR_COMBINATION  u without o_u; v without o_v; an operand or option of the other pass
 *   NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_THREAD  as
 *                  nrg_relative_shift_forward */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_forward(const nrg_head_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_head_bias_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_forward_check(const nrg_head_bias_args *args);

/* dq = d_o_u + d_o_v, and the sums du and dv. A share is columns, in groups of 32 of all heads · dim, of every row. A sum over no
 * rows is 0.
 *
 * Returns NRG_OK, or says what is wrong as nrg_head_bias_forward does and writes nothing: NRG_ERR_DIM, NRG_ERR_COMBINATION,
 * NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_THREAD;
 * NRG_ERR_NULL: with elements and something to write, both of d_o_u and d_o_v. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_backward(const nrg_head_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_head_bias_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_head_bias_backward_check(const nrg_head_bias_args *args);

#ifdef __cplusplus
}
#endif
#endif
