/* nrg/score_bias.h: relative biases of attention scores: T5's buckets, ALiBi's slopes, and any other bias that depends on the
 * distance of key and query alone.
 *
 *     o[b][h][i][j] = scores[b][h][i][j] · scale + bias[h](j - p_i)        b: batch, h: head, i: query, j: key
 *
 * Keys stand at the positions 0 … keys - 1, query i at p_i = query_offset + i: query_offset is what a cache has already, 0 where
 * there is none. Such a bias is one number for each head and each diagonal of the score matrix, so it is kept as that:
 *
 *     diagonals[heads][queries + keys - 1], in f32;  entry e is for the distance j - p_i = e - (queries - 1) - query_offset
 *
 * Row i of a head's matrix has the entries queries - 1 - i to queries - 1 - i + keys - 1, in order. The table is small, is made
 * once for a graph (nrg_t5_diagonals, nrg_alibi_diagonals, or by hand), and serves all layers; adding it is one kernel, whatever
 * is in it. A part of a matrix, queries from i0 on and keys from j0 on, finds its own table inside of the whole one's: at entry
 * (queries - i0 - the part's queries) + j0, with the whole one's stride.
 *
 * T5: Raffel et al., arXiv:1910.10683. The bias is table[bucket(j - p_i)][h], where table is trained. With B = buckets / 2
 * bidirectional, B = buckets otherwise (divisions of integers round down), E = B / 2 and M = max_distance:
 *
 *     bidirectional   bucket(j - p) = f(|j - p|), plus B where the key comes after the query
 *     otherwise       bucket(j - p) = f(max(p - j, 0))
 *     f(n) = n                                                          n < E
 *     f(n) = min(E + floor(log(n/E) / log(M/E) · (B - E)), B - 1)       n ≥ E
 *
 * The rule is that of real numbers: f(n) ≥ E + k exactly where n^(B-E) ≥ M^k · E^(B-E-k), and that is what is compared, in
 * integers: no logarithm is taken, whose last bits would decide at powers and differ between systems. (Bidirectional, bucket B is
 * never used: a key after the query is at least 1 away. Nor is the last bucket of an odd number.) B must be at least 2, so that
 * there is an exact bucket to start from, and M larger than E, so that there is something to divide by.
 *
 * ALiBi: Press et al., arXiv:2108.12409. The bias is -slope[h] · |j - p_i|; slopes are constants and have no gradient.
 *
 * With mask_future the bias of keys after their query is -infinity: adding it is the causal mask too.
 *
 * Backward, from d_o, the gradient of o: the gradient of the scores is d_o · scale, for which there is no call. That of the
 * diagonals is the sum along them, nrg_score_bias_backward; it comes in double, so that the sums of all layers can be added up
 * and then go into T5's table (nrg_t5_backward) with one rounding.
 *
 * What holds for every call, dtype and shape:
 *
 * - Every path gives the same bits; so does any (ith, nth), alignment and stride, in place or not.
 * - o is rounded to f32 once (a fused multiply-add; without scale, an addition), and once more to a 16-bit dtype. T5's diagonals
 *   are the table's numbers. ALiBi's are rounded once: half an ulp. Slopes are within 0.5001 ulp, and exact where they are powers
 *   of two.
 * - Gradients are summed in double, in ascending order of batch, then query; then, for T5, of the distance: an error of at most
 *   2^-53 of the sum of magnitudes for each number that is added up, and the rounding of the result.
 * - A NaN or an infinity goes where the formulas take it, and nowhere else.
 *
 * docs/score_bias.md has the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCORE_BIAS_H
#define NRG_SCORE_BIAS_H

#include <string.h>

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of a head's table. */
static inline size_t nrg_score_diagonals(size_t queries, size_t keys) { return queries && keys ? queries + keys - 1 : 0; }

/* ---- making the table ---- */

/* What a table is for. Make one with nrg_bias_spec_init, then change fields. */
typedef struct nrg_score_bias_spec {
    size_t size;  /* sizeof(nrg_score_bias_spec) */
    size_t heads; /* 0 of any of these is fine: there is nothing to make */
    size_t queries;
    size_t keys;
    int64_t query_offset; /* position of the first query; may be negative, where keys of later positions are passed alone */
    int mask_future;      /* not 0: -infinity where the key comes after the query */
    int bidirectional;    /* T5, like the following: not 0: keys after the query have buckets of their own */
    int buckets;          /* at least 4 bidirectional, at least 2 otherwise */
    int max_distance;     /* larger than buckets / 4 bidirectional, buckets / 2 otherwise */
    uint32_t reserved;    /* 0 */
} nrg_score_bias_spec;

/* No offset, no mask; T5 as in the encoders of the paper: bidirectional, 32 buckets up to a distance of 128. */
static inline nrg_score_bias_spec nrg_bias_spec_init(size_t heads, size_t queries, size_t keys)
{
    nrg_score_bias_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec;
    spec.heads = heads;
    spec.queries = queries;
    spec.keys = keys;
    spec.bidirectional = 1;
    spec.buckets = 32;
    spec.max_distance = 128;
    return spec;
}

/* The bucket of a distance, key minus query; -1 where buckets or max_distance are refused (see above). For many distances
 * nrg_t5_diagonals is much faster: it looks for the ends of buckets only. */
NRG_API int nrg_t5_bucket(int64_t distance, int bidirectional, int buckets, int max_distance);

/* T5's diagonals from its table of numbers: table [buckets][heads] of dtype, diagonals [heads][queries + keys - 1]. Strides are
 * those of a bucket and of a head, in bytes; 0: dense. The heads of share ith of nth.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, or (with something to make) table or diagonals
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_ENUM         dtype unknown
 *   NRG_ERR_CONSTANT     buckets or max_distance too small
 *   NRG_ERR_POSITION     a distance beyond ±2^29
 *   NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT  as nrg_norm_forward
 *   NRG_ERR_OVERLAP      table and diagonals share a byte
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_API nrg_status nrg_t5_diagonals(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table, size_t table_stride,
                                    float *diagonals, size_t diagonals_stride, int ith, int nth);

/* What nrg_t5_diagonals would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_t5_diagonals_check(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table,
                                          size_t table_stride, float *diagonals, size_t diagonals_stride);

/* ALiBi's slopes. For a power of two, heads = m: slopes[h] = 2^(-max_bias · (h + 1) / m); the paper's max_bias is 8. For other
 * numbers as in the paper's code: the slopes of the next lower power of two m, then every other one of those of 2m. Returns
 * NRG_OK, NRG_ERR_NULL, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, or NRG_ERR_CONSTANT where max_bias is negative, infinite or NaN. */
NRG_API nrg_status nrg_alibi_slopes(size_t heads, double max_bias, float *slopes);

/* ALiBi's diagonals from slopes [heads]; -0 at distance 0. The fields of spec that are T5's are not looked at. Otherwise as
 * nrg_t5_diagonals: NRG_OK, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE,
 * NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD. */
NRG_API nrg_status nrg_alibi_diagonals(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                       size_t diagonals_stride, int ith, int nth);

/* What nrg_alibi_diagonals would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_alibi_diagonals_check(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                             size_t diagonals_stride);

/* ---- adding it ---- */

/* Where the data is. Make one with nrg_score_bias_args_init, then change fields. Strides are in bytes. 0 stands for a dense
 * tensor: a query stride of keys elements, a head stride of queries times that of a query, a batch stride of heads times that of
 * a head or queries times that of a query, whichever is larger. Any order of the strides of o is fine (queries may lie outside of
 * heads) as long as they nest: sorted by size, each must be at least as long as all that it steps over. Those of scores need only
 * be no shorter than a row.
 *
 * Aliasing: o may be scores (same first byte, same strides):
 *
 *               scores diagonals
 *         o     yes    no
 *
 * Otherwise no operand may begin or end between the first and the last
 * byte of o, even where it would lie in the gaps that the strides leave. */
typedef struct nrg_score_bias_args {
    size_t size;  /* sizeof(nrg_score_bias_args) */
    size_t batch; /* 0 of any of these is fine: the call checks what it was given, and does nothing */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;        /* of scores and o */
    nrg_store store;        /* how o is stored */
    const void *scores;     /* [batch, heads, queries, keys] input */
    const float *diagonals; /* [heads][queries + keys - 1] input */
    void *o;                /* [batch, heads, queries, keys] output */
    size_t scores_batch_stride;
    size_t scores_head_stride;
    size_t scores_query_stride;
    size_t diagonals_stride; /* of heads */
    size_t o_batch_stride;
    size_t o_head_stride;
    size_t o_query_stride;
    float scale;       /* of the scores. Default: 1. */
    uint32_t reserved; /* 0 */
} nrg_score_bias_args;

static inline nrg_score_bias_args nrg_score_bias_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries,
                                                           size_t keys, const void *scores, const float *diagonals, void *o)
{
    nrg_score_bias_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.scores = scores;
    args.diagonals = diagonals;
    args.o = o;
    args.scale = 1;
    return args;
}

/* o = scores · scale + bias, for the rows (batch · heads · queries of them) of share ith of nth.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with something to do) scores, diagonals or o
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_ENUM         dtype or store unknown
 *   NRG_ERR_CONSTANT     scale infinite or NaN
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than a row; strides of o that do not nest
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      operands overlap in a way that is not allowed
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_API nrg_status nrg_score_bias_forward(const nrg_score_bias_args *args, int ith, int nth);

/* What nrg_score_bias_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_score_bias_forward_check(const nrg_score_bias_args *args);

/* ---- its backward pass ---- */

/* Where the data is. Make one with nrg_score_bias_backward_args_init. d_o as scores above; d_diagonals may lie nowhere between
 * its first and its last byte. */
typedef struct nrg_score_bias_backward_args {
    size_t size;  /* sizeof(nrg_score_bias_backward_args) */
    size_t batch; /* 0: d_diagonals is then 0, or keeps its value with accumulate */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;     /* of d_o */
    int accumulate;      /* not 0: d_diagonals is added to (layers that share a table); 0: overwritten */
    const void *d_o;     /* [batch, heads, queries, keys] gradient of o */
    double *d_diagonals; /* [heads][queries + keys - 1] output */
    size_t d_o_batch_stride;
    size_t d_o_head_stride;
    size_t d_o_query_stride;
    size_t d_diagonals_stride; /* of heads, a multiple of 8 */
} nrg_score_bias_backward_args;

static inline nrg_score_bias_backward_args nrg_score_bias_backward_args_init(nrg_dtype dtype, size_t batch, size_t heads,
                                                                             size_t queries, size_t keys, const void *d_o,
                                                                             double *d_diagonals)
{
    nrg_score_bias_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.d_o = d_o;
    args.d_diagonals = d_diagonals;
    return args;
}

/* d_diagonals[h][e] = Σ d_o[b][h][i][j] over b and all (i, j) of that diagonal; with accumulate, what is there (a -0 as 0) is the
 * first number of the sum. A share is a range of diagonals with as many elements of d_o as any other, so that more threads than
 * heads have work; it has no workspace and no second phase. With batch = 0, d_diagonals is needed still.
 *
 * Returns NRG_OK, or says what is wrong as nrg_score_bias_forward does and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_ENUM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD. */
NRG_API nrg_status nrg_score_bias_backward(const nrg_score_bias_backward_args *args, int ith, int nth);

/* What nrg_score_bias_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_score_bias_backward_check(const nrg_score_bias_backward_args *args);

/* The gradient of T5's table from that of the diagonals: d_table[bucket][h] = Σ d_diagonals[h][e] over the diagonals of the
 * bucket, ascending, in double; rounded once, together with what is there where accumulate is not 0. d_table: [buckets][heads]
 * in f32; buckets without a diagonal are 0, or keep their value. With mask_future the diagonals after the query count for no
 * bucket. The heads of share ith of nth. With queries or keys = 0, d_table is needed still.
 *
 * Returns NRG_OK, or says what is wrong as nrg_t5_diagonals does and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD. */
NRG_API nrg_status nrg_t5_backward(const nrg_score_bias_spec *spec, const double *d_diagonals, size_t d_diagonals_stride,
                                   float *d_table, size_t d_table_stride, int accumulate, int ith, int nth);

/* What nrg_t5_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_t5_backward_check(const nrg_score_bias_spec *spec, const double *d_diagonals, size_t d_diagonals_stride,
                                         float *d_table, size_t d_table_stride, int accumulate);

#ifdef __cplusplus
}
#endif
#endif
