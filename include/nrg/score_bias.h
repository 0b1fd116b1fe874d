/* nrg/score_bias.h: relative biases of attention scores: T5's buckets, ALiBi's slopes, and other biases that depend only on the
 * distance of key and query.
 *
 *     o[b][h][i][j] = scores[b][h][i][j] · scale + bias[h](j - p_i)        b: batch, h: head, i: query, j: key
 *
 * Keys have the positions 0 … keys - 1, and query i has p_i = first_position + i. With a cache of earlier keys, first_position is
 * keys - queries. Such a bias is one number per head and diagonal of the score matrix. The table holds these numbers:
 *
 *     diagonals[heads][queries + keys - 1], in f32;  entry e is for the distance j - p_i = e - (queries - 1) - first_position
 *
 * Row i of a head's matrix has the entries queries - 1 - i to queries - 1 - i + keys - 1, in order. The table is small, and is
 * the same for all layers. Compute it once for a graph, with nrg_t5_diagonals_forward, nrg_alibi_diagonals or your own code. One
 * kernel adds it, for any contents.
 *
 * A part of a matrix, with queries from i0 on and keys from j0 on, has its table inside the table of the full matrix. It begins
 * at entry (queries - i0 - the part's queries) + j0, and has the stride of the full table.
 *
 * T5 (Raffel et al., arXiv:1910.10683). The bias is table[bucket(j - p_i)][h], and the table is trained. With B = buckets / 2 if
 * bidirectional, otherwise B = buckets (divisions of integers round down), E = B / 2 and M = max_distance:
 *
 *     bidirectional   bucket(j - p) = f(|j - p|), plus B where the key comes after the query
 *     otherwise       bucket(j - p) = f(max(p - j, 0))
 *     f(n) = n                                                          n < E
 *     f(n) = min(E + floor(log(n/E) / log(M/E) · (B - E)), B - 1)       n ≥ E
 *
 * The formula holds for real numbers: f(n) ≥ E + k exactly where n^(B-E) ≥ M^k · E^(B-E-k). The library compares these integers,
 * and computes no logarithm. The last bits of a logarithm would decide at powers, and differ between systems.
 *
 * B must be at least 2, so that there is an exact bucket. M must be above E, so that the divisor is not 0. If bidirectional,
 * bucket B is never used, because a key after the query is at least 1 away. Nor is the last bucket of an odd number.
 *
 * ALiBi (Press et al., arXiv:2108.12409). The bias is -slope[h] · |j - p_i|. Slopes are constants and have no gradient.
 *
 * With `causal`, the bias of keys after their query is -infinity. So adding the bias applies the causal mask too.
 *
 * Backward, from d_o, the gradient of o:
 * - The gradient of the scores is d_o · scale. No call computes it.
 * - The gradient of the diagonals is the sum along them, in double: nrg_score_bias_backward. The program can add the sums of all
 *   layers, and then round once into T5's table: nrg_t5_diagonals_backward.
 *
 * For every call, dtype and shape:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not.
 * - o is rounded to f32 once, and once more to a 16-bit dtype. It is a fused multiply-add, or an addition without scale.
 * - T5's diagonals are the numbers of its table. ALiBi's are rounded once, so the error bound is half an ulp. The error bound of
 *   slopes is 0.5001 ulp; powers of two are exact.
 * - Gradients are sums in double, in ascending order of batch, then query, then, for T5, distance. Each summand adds an error of
 *   at most 2^-53 of the sum of magnitudes. The result is rounded.
 * - A NaN or an infinity affects only the results whose formula contains it.
 *
 * docs/ops/score_bias.md has the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCORE_BIAS_H
#define NRG_SCORE_BIAS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the number of entries of a head's table: queries + keys - 1, or 0 without queries or keys.
 *
 * Parameters:
 * - queries, keys: rows and columns of the score matrix. */
NRG_API size_t nrg_score_bias_diagonals(size_t queries, size_t keys);

/* ---- the table ---- */

/* The positions and the bias that a table is for. Make one with nrg_score_bias_spec_t5 or nrg_score_bias_spec_alibi, then change
 * fields. If heads, queries or keys is 0, the table is empty. */
typedef struct nrg_score_bias_spec {
    size_t size; /* sizeof(nrg_score_bias_spec) */
    size_t heads;
    size_t queries;
    size_t keys;
    int64_t first_position; /* of query 0; negative if earlier keys are left out. Default: keys - queries. */
    int causal;             /* not 0: -infinity where the key comes after the query */
    int bidirectional;      /* T5, like the next two. Not 0: keys after the query have separate buckets. Default: 1. */
    int buckets;            /* at least 4 if bidirectional, otherwise at least 2. Default: 32. */
    int max_distance;       /* above buckets / 4 if bidirectional, otherwise above buckets / 2. Default: 128. */
} nrg_score_bias_spec;

/* Returns the spec of T5's encoders in the paper: bidirectional, 32 buckets up to a distance of 128, no mask.
 *
 * Parameters:
 * - heads, queries, keys: the fields of the same names. */
static inline nrg_score_bias_spec nrg_score_bias_spec_t5(size_t heads, size_t queries, size_t keys)
{
    nrg_score_bias_spec spec;
    spec.size = sizeof spec;
    spec.heads = heads;
    spec.queries = queries;
    spec.keys = keys;
    spec.first_position = (int64_t)((uint64_t)keys - queries);
    spec.causal = 0;
    spec.bidirectional = 1;
    spec.buckets = 32;
    spec.max_distance = 128;
    return spec;
}

/* Returns the spec of ALiBi, without a mask. The fields of T5 are 0, because ALiBi does not use them.
 *
 * Parameters:
 * - heads, queries, keys: the fields of the same names. */
static inline nrg_score_bias_spec nrg_score_bias_spec_alibi(size_t heads, size_t queries, size_t keys)
{
    nrg_score_bias_spec spec = nrg_score_bias_spec_t5(heads, queries, keys);
    spec.bidirectional = spec.buckets = spec.max_distance = 0;
    return spec;
}

/* Returns the bucket of one distance, by the formula of T5 above. For many distances, nrg_t5_diagonals_forward is much faster: it
 * searches only for the ends of buckets.
 *
 * Parameters:
 * - distance: key minus query.
 * - bidirectional, buckets, max_distance: as in nrg_score_bias_spec.
 *
 * Returns -1 if buckets or max_distance is out of its range. */
NRG_API int nrg_t5_bucket(int64_t distance, int bidirectional, int buckets, int max_distance);

/* Computes T5's diagonals from its table of trained numbers. The formula and its source are above.
 *
 * Parameters:
 * - spec: positions and buckets.
 * - dtype: of table.
 * - table: [buckets][heads] input.
 * - table_stride: bytes from one bucket to the next; 0 is dense.
 * - diagonals: [heads][queries + keys - 1] output.
 * - diagonals_stride: bytes from one head to the next; 0 is dense.
 * - ith, nth: the share, a range of heads.
 *
 * Aliasing: table and diagonals share no byte.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec is NULL; or the table is not empty, and table or diagonals is NULL.
 * - NRG_ERR_STRUCT_SIZE: spec->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_ENUM: dtype has an unknown value.
 * - NRG_ERR_CONSTANT: buckets or max_distance is too small.
 * - NRG_ERR_POSITION: a distance is beyond ±2^29.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: table and diagonals share a byte.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_forward(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table,
                                                          size_t table_stride, float *diagonals, size_t diagonals_stride, int ith,
                                                          int nth);

/* Validates the arguments of nrg_t5_diagonals_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_forward_check(const nrg_score_bias_spec *spec, nrg_dtype dtype,
                                                                const void *table, size_t table_stride, float *diagonals,
                                                                size_t diagonals_stride);

/* Computes ALiBi's slopes. For a power of two, heads = m:
 *
 *     slopes[h] = 2^(-max_bias · (h + 1) / m)
 *
 * Other numbers follow the paper's code: first the slopes of the next lower power of two m, then every other slope of 2m.
 *
 * Parameters:
 * - heads: number of slopes; may be 0.
 * - max_bias: 8 in the paper; at least 0.
 * - slopes: [heads] output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: slopes is NULL, and heads is not 0.
 * - NRG_ERR_ALIGNMENT: slopes is no multiple of 4.
 * - NRG_ERR_OVERFLOW: slopes has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_CONSTANT: max_bias is negative, infinite or NaN. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_slopes(size_t heads, double max_bias, float *slopes);

/* Computes ALiBi's diagonals from its slopes. At distance 0, they are -0.
 *
 * Parameters:
 * - spec: positions. The fields of T5 must be 0.
 * - slopes: [heads] input.
 * - diagonals: [heads][queries + keys - 1] output.
 * - diagonals_stride: bytes from one head to the next; 0 is dense.
 * - ith, nth: the share, a range of heads.
 *
 * Aliasing: slopes and diagonals share no byte.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec is NULL; or the table is not empty, and slopes or diagonals is NULL.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD: as in
 *   nrg_t5_diagonals_forward.
 * - NRG_ERR_OVERLAP: slopes and diagonals share a byte.
 * - NRG_ERR_COMBINATION: a field of T5 is not 0. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_diagonals(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                                     size_t diagonals_stride, int ith, int nth);

/* Validates the arguments of nrg_alibi_diagonals. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_diagonals_check(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                                           size_t diagonals_stride);

/* ---- forward ---- */

/* Operands and options of nrg_score_bias_forward. Make one with nrg_score_bias_args_init, then change fields. Strides are in
 * bytes; 0 is dense. If batch, heads, queries or keys is 0, the call computes nothing.
 *
 * Aliasing: o may be scores, with the same first byte and the same strides:
 *
 *               scores diagonals
 *         o     yes    no
 *
 * Otherwise no output shares a byte with another operand. Rows of two tensors may interleave if their strides are equal. */
typedef struct nrg_score_bias_args {
    size_t size; /* sizeof(nrg_score_bias_args) */
    size_t batch;
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;    /* of scores and o */
    uint32_t reserved;  /* 0 */
    const void *scores; /* [batch, heads, queries, keys] input */
    nrg_head_strides scores_strides;
    const float *diagonals;  /* [heads, queries + keys - 1] input */
    size_t diagonals_stride; /* bytes from one head to the next; 0 is dense */
    float scale;             /* multiplies the scores. Default: 1. */
    nrg_store store;         /* how o is stored; never changes a bit */
    void *o;                 /* [batch, heads, queries, keys] output */
    nrg_head_strides o_strides;
} nrg_score_bias_args;

/* Returns args for dense tensors and a scale of 1.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, scores, diagonals, o: the fields of the same names. */
static inline nrg_score_bias_args nrg_score_bias_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries,
                                                           size_t keys, const void *scores, const float *diagonals, void *o)
{
    nrg_score_bias_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.reserved = 0;
    args.scores = scores;
    args.diagonals = diagonals;
    args.diagonals_stride = 0;
    args.scale = 1;
    args.store = NRG_STORE_AUTO;
    args.o = o;
    args.scores_strides.row = args.scores_strides.head = args.scores_strides.batch = 0;
    args.o_strides = args.scores_strides;
    return args;
}

/* Computes o = scores · scale + bias.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless the tensor is empty, scores, diagonals and o must not be NULL.
 * - ith, nth: the share, a range of the batch · heads · queries rows.
 *
 * Aliasing: as the matrix at nrg_score_bias_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or the tensor is not empty, and scores, diagonals or o is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_ENUM: dtype or store has an unknown value.
 * - NRG_ERR_CONSTANT: scale is infinite or NaN.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the matrix does not allow.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_forward(const nrg_score_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_score_bias_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_forward_check(const nrg_score_bias_args *args);

/* ---- backward ---- */

/* Operands and options of nrg_score_bias_backward. Make one with nrg_score_bias_backward_args_init, then change fields. Strides
 * are in bytes; 0 is dense. */
typedef struct nrg_score_bias_backward_args {
    size_t size;  /* sizeof(nrg_score_bias_backward_args) */
    size_t batch; /* 0: the call sets d_diagonals to 0, or leaves it unchanged with accumulate */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype; /* of d_o */
    int accumulate;  /* not 0: added to d_diagonals, for layers that share a table; 0: overwrites it */
    const void *d_o; /* [batch, heads, queries, keys] input: gradient of o */
    nrg_head_strides d_o_strides;
    double *d_diagonals;       /* [heads, queries + keys - 1] output: gradient of diagonals */
    size_t d_diagonals_stride; /* bytes from one head to the next; 0 is dense */
} nrg_score_bias_backward_args;

/* Returns args for dense tensors that overwrite d_diagonals.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, d_o, d_diagonals: the fields of the same names. */
static inline nrg_score_bias_backward_args nrg_score_bias_backward_args_init(nrg_dtype dtype, size_t batch, size_t heads,
                                                                             size_t queries, size_t keys, const void *d_o,
                                                                             double *d_diagonals)
{
    nrg_score_bias_backward_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.accumulate = 0;
    args.d_o = d_o;
    args.d_o_strides.row = args.d_o_strides.head = args.d_o_strides.batch = 0;
    args.d_diagonals = d_diagonals;
    args.d_diagonals_stride = 0;
    return args;
}

/* Computes the gradient of the diagonals:
 *
 *     d_diagonals[h][e] = Σ d_o[b][h][i][j]        over b and all (i, j) of that diagonal
 *
 * With accumulate, the previous value is the first summand; -0 counts as 0.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless heads, queries or keys is 0, d_diagonals must not be NULL, even
 *   if batch is 0.
 * - ith, nth: the share, a range of diagonals, and all shares have as many elements of d_o. So more threads than heads have work.
 *   The call needs no workspace and no second phase.
 *
 * Aliasing: d_diagonals shares no byte with d_o.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or there are heads, queries and keys, and d_diagonals or (unless batch is 0) d_o is NULL.
 * - NRG_ERR_ENUM: dtype has an unknown value.
 * - NRG_ERR_OVERLAP: d_diagonals shares a byte with d_o.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD: as in nrg_score_bias_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_backward(const nrg_score_bias_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_score_bias_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_backward_check(const nrg_score_bias_backward_args *args);

/* Computes the gradient of T5's table from the gradient of the diagonals:
 *
 *     d_table[bucket][h] = Σ d_diagonals[h][e]        over the diagonals of the bucket
 *
 * The sum is in double, in ascending order. It is rounded once, with accumulate after the previous value is added. A bucket
 * without a diagonal becomes 0, or keeps its value with accumulate. With spec->causal, the diagonals after the query belong to no
 * bucket.
 *
 * Parameters:
 * - spec: positions and buckets.
 * - d_diagonals: [heads][queries + keys - 1] input.
 * - d_diagonals_stride: bytes from one head to the next; 0 is dense.
 * - d_table: [buckets][heads] f32 output. It must not be NULL unless heads is 0, even if queries or keys is 0.
 * - d_table_stride: bytes from one bucket to the next; 0 is dense.
 * - accumulate: not 0: added to d_table; 0: overwrites it.
 * - ith, nth: the share, a range of heads.
 *
 * Aliasing: d_table shares no byte with d_diagonals.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec is NULL; or there are heads, and d_table is NULL; or the diagonals are not empty, and d_diagonals is NULL.
 * - NRG_ERR_OVERLAP: d_table shares a byte with d_diagonals.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_THREAD:
 *   as in nrg_t5_diagonals_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_backward(const nrg_score_bias_spec *spec, const double *d_diagonals,
                                                           size_t d_diagonals_stride, float *d_table, size_t d_table_stride,
                                                           int accumulate, int ith, int nth);

/* Validates the arguments of nrg_t5_diagonals_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_backward_check(const nrg_score_bias_spec *spec, const double *d_diagonals,
                                                                 size_t d_diagonals_stride, float *d_table, size_t d_table_stride,
                                                                 int accumulate);

#ifdef __cplusplus
}
#endif
#endif
