/* nrg/relative.h: relative position representations in attention: one learned vector for each distance of query and key, clipped
 * at both ends.
 *
 * Source: Shaw, Uszkoreit, Vaswani, "Self-Attention with Relative Position Representations", arXiv:1803.02155. A table R has a
 * row of dim elements for each of the classes p_min … p_max:
 *
 *     class(i, j) = clip(first_position + i - j, p_min, p_max) - p_min         classes = p_max - p_min + 1
 *
 * Here the query in row i has position first_position + i, and key j has position j. With a cache of earlier keys, first_position
 * is keys - queries.
 *
 * The paper's w_clip(j - i, k) is class(i, j) with -p_min = p_max = k and the rows of R in the opposite order. Nothing is clipped
 * if p_min ≤ first_position - keys + 1 and p_max ≥ first_position + queries - 1. Both may have either sign. All heads share one
 * R, or each head has its own.
 *
 * The formulas are attention with both relative terms, and its gradients. Each e is a score before the softmax, and each a is a
 * weight after it. A query and a key of each batch and head are i and j:
 *
 *     e_ij = q_i · k_j + q_i · R^K[class(i, j)]            the second term: nrg_relative_scores(q, R^K) added to e
 *     o_i  = Σ_j a_ij (v_j + R^V[class(i, j)])             the second term: nrg_relative_values(a, R^V) added to o
 *
 *     da_ij += dO_i · R^V[class(i, j)]                     nrg_relative_scores(dO, R^V)
 *     dq_i  += Σ_j dS_ij R^K[class(i, j)]                  nrg_relative_values(dS, R^K)
 *     dR^K[c] = Σ_i q_i  Σ_{j: class(i, j) = c} dS_ij      nrg_relative_backward(dS, q)      Σ_i over batch and queries, and over
 *     dR^V[c] = Σ_i dO_i Σ_{j: class(i, j) = c} a_ij       nrg_relative_backward(a, dO)      heads where they share R
 *
 * So three functions compute the forward and the backward pass of both terms. Multiply q by a factor such as 1/√dim before the
 * call. Masked keys have a_ij = 0 and dS_ij = 0, and contribute nothing. A score of -∞ stays -∞.
 *
 * Tensors have elements [batch, heads, queries, dim] (q, o) and [batch, heads, queries, keys] (a, scores). Each of the first
 * three levels has a stride, so other orders such as [batch, queries, heads, dim] work too.
 *
 * For every call, dtype and shape:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, with `ends` or without.
 * - The sums q · R, Σ_j a R and dR are in double, and rounded to f32 once. With accumulate, the previous value is added in f32
 *   (scores, o), or before that rounding (d_table). A 16-bit result is the f32 result rounded once.
 * - The error bound of a term is half an ulp, plus n · 2^-53 of the sum of the magnitudes of its n products. The addition to
 *   scores or o rounds once more.
 * - A NaN or an infinity in q affects its row of scores, and one in `a` its row of o. One in a row of R affects the results with
 *   a key of that class. In d_table it affects the classes whose sums contain it. A class without a key is not read.
 *
 * docs/ops/relative.md has the definition of every bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RELATIVE_H
#define NRG_RELATIVE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands and options of the three functions. Make one with nrg_relative_args_init, then set the operands of the function:
 *
 *     nrg_relative_scores      q, table → scores
 *     nrg_relative_values      a, table → o, and ends if set
 *     nrg_relative_backward    a, q, and ends_in if set → d_table
 *
 * A call returns NRG_ERR_COMBINATION if an operand of another function is set. Pointers and strides need only the alignment of
 * their element. Strides are in bytes; 0 is dense. If batch, heads, queries or keys is 0, sums have no terms.
 *
 * Aliasing: no output shares a byte with another operand. Rows of two tensors may interleave if their strides are equal. */
typedef struct nrg_relative_args {
    size_t size; /* sizeof(nrg_relative_args) */
    size_t batch;
    size_t heads;   /* heads of q, a, scores and o */
    size_t queries; /* rows of a head */
    size_t keys;
    size_t dim;             /* elements of q and of a row of the table, at least 1 */
    int64_t first_position; /* position of query 0; key 0 has position 0. Default: keys - queries. */
    int64_t p_min, p_max;   /* clip distances (query minus key) to these limits; p_min is at most p_max */
    nrg_dtype dtype;        /* of q, a, scores and o */
    nrg_dtype table_dtype;  /* of table: SAME, dtype or NRG_F32; for nrg_relative_backward SAME */
    const void *q;          /* [batch, heads, queries, dim] input */
    nrg_head_strides q_strides;
    const void *a; /* [batch, heads, queries, keys] input */
    nrg_head_strides a_strides;
    const double *ends_in; /* input: ends of the same a, or NULL: nrg_relative_backward reads every a once more */
    const void *table;     /* [classes, dim] input, or [heads, classes, dim] with table_per_head */
    nrg_head_strides table_strides;
    int table_per_head; /* not 0: each head has its own table and d_table; 0: all heads share one */
    int accumulate;     /* not 0: added to scores, o or d_table; 0: overwrites it */
    void *scores;       /* [batch, heads, queries, keys] output */
    nrg_head_strides scores_strides;
    void *o; /* [batch, heads, queries, dim] output */
    nrg_head_strides o_strides;
    double *ends;   /* [batch, heads, queries, 2] output, or NULL: sums of a over the keys of class p_max, and of class p_min */
    float *d_table; /* output, with the shape of table: its gradient */
    nrg_head_strides d_table_strides;
} nrg_relative_args;

/* Returns args without operands. All heads share one table, and the call overwrites scores, o or d_table. To add, as the formulas
 * above do to e and o, set accumulate to 1.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, dim, p_min, p_max: the fields of the same names. */
static inline nrg_relative_args nrg_relative_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries, size_t keys,
                                                       size_t dim, int64_t p_min, int64_t p_max)
{
    nrg_relative_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dim = dim;
    args.first_position = (int64_t)((uint64_t)keys - queries);
    args.p_min = p_min;
    args.p_max = p_max;
    args.dtype = dtype;
    args.table_dtype = NRG_DTYPE_SAME;
    args.q = args.a = args.table = NULL;
    args.ends_in = NULL;
    args.table_per_head = args.accumulate = 0;
    args.scores = args.o = NULL;
    args.ends = NULL;
    args.d_table = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.a_strides = args.table_strides = args.scores_strides = args.o_strides = args.d_table_strides = args.q_strides;
    return args;
}

/* Computes the relative term of scores:
 *
 *     scores[b, h, i, j] (+)= q[b, h, i, :] · table[class(i, j), :]
 *
 * Parameters:
 * - args: operands and options, described at their fields. The call reads q and table, and writes scores.
 * - ith, nth: the share, a range of rows, over all batches and heads.
 *
 * The call uses at most 16 KB of stack in an optimized build, and no workspace, for any number of classes.
 *
 * Aliasing: scores shares no byte with an input.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL, or an operand of the function is NULL although it has elements. That excludes ends and ends_in.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_POSITION: p_min is above p_max; or p_min, p_max or first_position is beyond ±2^60.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory; or queries or keys is above
 *   2^60.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: an output shares bytes with another operand.
 * - NRG_ERR_ENUM: dtype or table_dtype has an unknown value.
 * - NRG_ERR_DTYPE: table_dtype is neither dtype nor f32.
 * - NRG_ERR_COMBINATION: an operand of another function is set.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_scores(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_scores. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_scores_check(const nrg_relative_args *args);

/* Computes the relative term of the output of attention:
 *
 *     o[b, h, i, :] (+)= Σ_j a[b, h, i, j] · table[class(i, j), :]
 *
 * Without keys, the sum is 0.
 *
 * Parameters:
 * - args: operands and options, described at their fields. The call reads a and table, and writes o and, unless it is NULL, ends.
 * - ith, nth: the share, as in nrg_relative_scores.
 *
 * Aliasing: o and ends share no byte with another operand.
 *
 * Returns the statuses of nrg_relative_scores. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_values(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_values. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_values_check(const nrg_relative_args *args);

/* Computes the gradient of a table:
 *
 *     d_table[c, :] (+)= Σ_{b, h, i} q[b, h, i, :] · Σ_{j: class(i, j) = c} a[b, h, i, j]
 *
 * With table_per_head, the sum is not over h. A sum without terms is 0.
 *
 * Parameters:
 * - args: operands and options, described at their fields. The call reads a, q and, unless it is NULL, ends_in. It writes
 *   d_table.
 * - ith, nth: the share, every nth tile of 8 classes and 64 columns of one table. So at most ⌈classes/8⌉·⌈dim/64⌉ threads have
 *   work, times heads with table_per_head. Without ends_in, the two threads with the outermost classes read all of a.
 *
 * Aliasing: d_table shares no byte with an input.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL, or d_table is NULL even without elements, or a or q is NULL although it has elements.
 * - NRG_ERR_ENUM: dtype or table_dtype has an unknown value.
 * - NRG_ERR_COMBINATION: an operand of another function is set, or table_dtype is not NRG_DTYPE_SAME.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP,
 *   NRG_ERR_THREAD: as in nrg_relative_scores. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_backward(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_backward_check(const nrg_relative_args *args);

#ifdef __cplusplus
}
#endif
#endif
