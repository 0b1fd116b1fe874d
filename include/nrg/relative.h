/* nrg/relative.h: relative position representations in attention: one learned vector for every distance of query and key, clipped
 * at both ends.
 *
 * Source: Shaw, Uszkoreit, Vaswani, "Self-Attention with Relative Position Representations", arXiv:1803.02155. A table R has a
 * row of dim elements for each of the classes p_min … p_max:
 *
 *     class(i, j) = clip(first_position + i - j, p_min, p_max) - p_min         classes = p_max - p_min + 1
 *
 * for the query in row i, whose position is first_position + i, and the key at position j. With a cache of earlier keys,
 * first_position is keys - queries. The paper's w_clip(j - i, k) is class(i, j) with -p_min = p_max = k and the rows of R in the
 * opposite order. With p_min ≤ first_position - keys + 1 and p_max ≥ first_position + queries - 1 nothing is clipped. Both may
 * have either sign. R is shared by all heads, or one for each.
 *
 * Attention with both of its relative terms, and its gradients (e a score before the softmax, a a weight after it; i, j for every
 * query and key of a batch and head):
 *
 *     e_ij = q_i · k_j + q_i · R^K[class(i, j)]            the second term: nrg_relative_scores(q, R^K) added to e
 *     o_i  = Σ_j a_ij (v_j + R^V[class(i, j)])             the second term: nrg_relative_values(a, R^V) added to o
 *
 *     da_ij += dO_i · R^V[class(i, j)]                     nrg_relative_scores(dO, R^V)
 *     dq_i  += Σ_j dS_ij R^K[class(i, j)]                  nrg_relative_values(dS, R^K)
 *     dR^K[c] = Σ_i q_i  Σ_{j: class(i, j) = c} dS_ij      nrg_relative_backward(dS, q)      Σ_i over batch and queries, and over
 *     dR^V[c] = Σ_i dO_i Σ_{j: class(i, j) = c} a_ij       nrg_relative_backward(a, dO)      heads where they share R
 *
 * So three operations are the forward and the backward pass of both terms. A factor such as 1/√dim belongs to q. Masked keys:
 * a_ij = 0 and dS_ij = 0 take no part; a score that is -∞ stays so.
 *
 * Tensors have elements [batch, heads, queries, dim] (q, o) and [batch, heads, queries, keys] (a, scores), and a stride for each
 * of the first three, so [batch, queries, heads, dim] is as good as any other layout.
 *
 * What holds for every call, dtype and shape:
 *
 * - Every path gives the same bits; so does any (ith, nth), alignment and stride, with the ends given or not.
 * - Sums are taken in double and rounded to f32 once: q · R, Σ_j a R, and dR. What is there already is added in f32 (scores, o)
 *   or before that rounding (d_table, with accumulate). A 16-bit result is the f32 result rounded once. So the error of a term is
 *   half an ulp of it, plus n · 2^-53 of the sum of the magnitudes of the n products that are added up; the addition to scores or
 *   o rounds once more.
 * - A NaN or an infinity in q touches its row of scores, one in a its row of o, one in a row of R what has a key of that class; a
 *   class that no key of a row has is not looked at. In d_table it touches the classes whose sums it is in.
 *
 * docs/ops/relative.md has the definition to the last bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RELATIVE_H
#define NRG_RELATIVE_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_relative_args_init, then set what the operation reads and writes:
 *
 *     nrg_relative_scores      q, table → scores
 *     nrg_relative_values      a, table → o, and ends if given
 *     nrg_relative_backward    a, q, and ends_in if given → d_table
 *
 * Another operation's operands are refused. Pointers and strides need the alignment of their element only. No output shares a
 * byte with another operand, but rows of two tensors may interleave where they are one stride apart. With 0 batches, heads,
 * queries or keys there is nothing to add up. */
typedef struct nrg_relative_args {
    size_t size; /* sizeof(nrg_relative_args) */
    size_t batch;
    size_t heads;   /* of q, a, scores and o */
    size_t queries; /* rows of a head */
    size_t keys;
    size_t dim;             /* elements of q and of a row of the table, at least 1 */
    int64_t first_position; /* of the first query, where that of the first key is 0. Default: keys - queries. */
    int64_t p_min, p_max;   /* distances (query minus key) beyond these count as these; p_min at most p_max */
    nrg_dtype dtype;        /* of q, a, scores and o */
    nrg_dtype table_dtype;  /* of table: SAME, dtype, or NRG_F32; SAME for nrg_relative_backward */
    const void *q;          /* [batch, heads, queries, dim] */
    nrg_head_strides q_strides;
    const void *a; /* [batch, heads, queries, keys] */
    nrg_head_strides a_strides;
    const double *ends_in; /* ends of the same a, or NULL: nrg_relative_backward then reads every a once more */
    const void *table;     /* [classes, dim], or [heads, classes, dim] with table_per_head */
    nrg_head_strides table_strides;
    int table_per_head; /* not 0: each head has its own table and d_table; 0: one for all heads */
    int accumulate;     /* not 0: added to scores, o or d_table; 0: overwrites it */
    void *scores;       /* [batch, heads, queries, keys] */
    nrg_head_strides scores_strides;
    void *o; /* [batch, heads, queries, dim] */
    nrg_head_strides o_strides;
    double *ends;   /* [batch, heads, queries, 2] or NULL: sums of a over all keys of class p_max, and of class p_min */
    float *d_table; /* as table */
    nrg_head_strides d_table_strides;
} nrg_relative_args;

/* One table for all heads; scores, o or d_table is overwritten. To add to it, as the formulas above do to e and o, set accumulate
 * to 1. */
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

/* scores[b, h, i, j] (+)= q[b, h, i, :] · table[class(i, j), :]
 *
 * Rows (of all batches and heads) of share ith of nth: (0, 1) does all; from n threads, call it once each with (0, n) … (n-1, n)
 * and the same args. At most 16 KB of stack in an optimized build; no workspace, however many classes there are.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or an operand of the operation (above) that has elements, but for ends and ends_in; d_table in any
 *                        case
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_POSITION     p_min > p_max, or one of them or first_position beyond ±2^60
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory; queries or keys above 2^60
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      an output shares bytes with another operand
 *   NRG_ERR_ENUM         dtype or table_dtype unknown
 *   NRG_ERR_DTYPE        table_dtype neither dtype nor f32
 *   NRG_ERR_COMBINATION  an operand of another operation
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_relative_scores(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_scores. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_scores_check(const nrg_relative_args *args);

/* o[b, h, i, :] (+)= Σ_j a[b, h, i, j] · table[class(i, j), :]
 *
 * Shares as above, and the statuses of nrg_relative_scores. Without keys the sum is 0. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_values(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_values. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_values_check(const nrg_relative_args *args);

/* d_table[c, :] (+)= Σ_{b, h, i} q[b, h, i, :] · Σ_{j: class(i, j) = c} a[b, h, i, j]
 *
 * The sum is not over h where a head has a table of its own. A share is every nth piece, of 8 classes and 64 columns of one table
 * each; so at most ⌈classes/8⌉·⌈dim/64⌉ threads have work, times heads where each has a table. Without ends_in the two threads
 * that have the outermost classes read all of a. A sum over nothing is 0.
 *
 * Returns NRG_OK, or says what is wrong as nrg_relative_scores does and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_DIM, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM,
 * NRG_ERR_COMBINATION, NRG_ERR_THREAD. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_backward(const nrg_relative_args *args, int ith, int nth);

/* Validates the arguments of nrg_relative_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_relative_backward_check(const nrg_relative_args *args);

#ifdef __cplusplus
}
#endif
#endif
