/* nrg/score_bias.h: relative biases of attention scores: T5's buckets, ALiBi's slopes, and any other bias that depends on the
 * distance of key and query alone.
 *
 *     o[b][h][i][j] = scores[b][h][i][j] · scale + bias[h](j - p_i)        b: batch, h: head, i: query, j: key
 *
 * Keys have the positions 0 … keys - 1, query i has p_i = first_position + i. With a cache of earlier keys, first_position is
 * keys - queries. Such a bias is one number for each head and each diagonal of the score matrix, and the table holds these:
 *
 *     diagonals[heads][queries + keys - 1], in f32;  entry e is for the distance j - p_i = e - (queries - 1) - first_position
 *
 * Row i of a head's matrix has the entries queries - 1 - i to queries - 1 - i + keys - 1, in order. The table is small, is made
 * once for a graph (nrg_t5_diagonals_forward, nrg_alibi_diagonals, or by hand), and is the same for all layers; one kernel adds
 * it, whatever is in it. A part of a matrix, queries from i0 on and keys from j0 on, finds its own table inside of the whole
 * one's: at entry (queries - i0 - the part's queries) + j0, with the whole one's stride.
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
 * With causal the bias of keys after their query is -infinity: adding it is the causal mask too.
 *
 * Backward, from d_o, the gradient of o: the gradient of the scores is d_o · scale, for which there is no call. That of the
 * diagonals is the sum along them, nrg_score_bias_backward; it comes in double, so that the sums of all layers can be added up
 * and then go into T5's table (nrg_t5_diagonals_backward) with one rounding.
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
 * docs/ops/score_bias.md has the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCORE_BIAS_H
#define NRG_SCORE_BIAS_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of a head's table: queries + keys - 1, or 0 without queries or keys. */
NRG_API size_t nrg_score_bias_diagonals(size_t queries, size_t keys);

/* ---- making the table ---- */

/* What a table is for. Make one with nrg_score_bias_spec_t5 or nrg_score_bias_spec_alibi, then change fields. With 0 heads,
 * queries or keys there is no table. */
typedef struct nrg_score_bias_spec {
    size_t size; /* sizeof(nrg_score_bias_spec) */
    size_t heads;
    size_t queries;
    size_t keys;
    int64_t first_position; /* of the first query; negative if keys before it are left out. Default: keys - queries. */
    int causal;             /* not 0: -infinity where the key comes after the query */
    int bidirectional;      /* T5, as the next two. Not 0: keys after the query have their own buckets. Default: 1. */
    int buckets;            /* at least 4 bidirectional, at least 2 otherwise. Default: 32. */
    int max_distance;       /* larger than buckets / 4 bidirectional, buckets / 2 otherwise. Default: 128. */
} nrg_score_bias_spec;

/* T5 as in the encoders of the paper: bidirectional, 32 buckets up to a distance of 128. No mask. */
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

/* ALiBi, which has no use for T5's fields: they are 0. No mask. */
static inline nrg_score_bias_spec nrg_score_bias_spec_alibi(size_t heads, size_t queries, size_t keys)
{
    nrg_score_bias_spec spec = nrg_score_bias_spec_t5(heads, queries, keys);
    spec.bidirectional = spec.buckets = spec.max_distance = 0;
    return spec;
}

/* The bucket of a distance, key minus query; -1 where buckets or max_distance are refused (see above). For many distances
 * nrg_t5_diagonals_forward is much faster: it looks for the ends of buckets only. */
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
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_forward(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table,
                                                          size_t table_stride, float *diagonals, size_t diagonals_stride, int ith,
                                                          int nth);

/* Validates the arguments of nrg_t5_diagonals_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_t5_diagonals_forward_check(const nrg_score_bias_spec *spec, nrg_dtype dtype,
                                                                const void *table, size_t table_stride, float *diagonals,
                                                                size_t diagonals_stride);

/* ALiBi's slopes. For a power of two, heads = m: slopes[h] = 2^(-max_bias · (h + 1) / m); the paper's max_bias is 8. For other
 * numbers as in the paper's code: the slopes of the next lower power of two m, then every other one of those of 2m. Returns
 * NRG_OK, NRG_ERR_NULL, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, or NRG_ERR_CONSTANT where max_bias is negative, infinite or NaN. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_slopes(size_t heads, double max_bias, float *slopes);

/* ALiBi's diagonals from slopes [heads]; -0 at distance 0. Returns NRG_OK, or says what is wrong as nrg_t5_diagonals_forward does
 * and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT,
 * NRG_ERR_OVERLAP, NRG_ERR_THREAD; NRG_ERR_COMBINATION if a field of T5 is not 0. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_diagonals(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                                     size_t diagonals_stride, int ith, int nth);

/* Validates the arguments of nrg_alibi_diagonals. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_alibi_diagonals_check(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                                           size_t diagonals_stride);

/* ---- adding it ---- */

/* Where the data is. Make one with nrg_score_bias_args_init, then change fields. With 0 batches, heads, queries or keys nothing
 * is computed.
 *
 * Aliasing: o may be scores (same first byte, same strides):
 *
 *               scores diagonals
 *         o     yes    no
 *
 * Otherwise no output shares a byte with another operand, but rows may interleave where they are one stride apart. */
typedef struct nrg_score_bias_args {
    size_t size; /* sizeof(nrg_score_bias_args) */
    size_t batch;
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;    /* of scores and o */
    uint32_t reserved;  /* 0 */
    const void *scores; /* [batch, heads, queries, keys] */
    nrg_head_strides scores_strides;
    const float *diagonals;  /* [heads, queries + keys - 1] */
    size_t diagonals_stride; /* bytes from head to head */
    float scale;             /* of the scores. Default: 1. */
    nrg_store store;         /* how o is stored */
    void *o;                 /* [batch, heads, queries, keys] output */
    nrg_head_strides o_strides;
} nrg_score_bias_args;

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

/* o = scores · scale + bias, for the rows (batch · heads · queries of them) of share ith of nth.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with something to do) scores, diagonals or o
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_ENUM         dtype or store unknown
 *   NRG_ERR_CONSTANT     scale infinite or NaN
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      operands overlap in a way that is not allowed
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_forward(const nrg_score_bias_args *args, int ith, int nth);

/* Validates the arguments of nrg_score_bias_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_forward_check(const nrg_score_bias_args *args);

/* ---- its backward pass ---- */

/* Where the data is. Make one with nrg_score_bias_backward_args_init. d_diagonals shares no byte with d_o. */
typedef struct nrg_score_bias_backward_args {
    size_t size;  /* sizeof(nrg_score_bias_backward_args) */
    size_t batch; /* 0: d_diagonals is then 0, or keeps its value with accumulate */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype; /* of d_o */
    int accumulate;  /* not 0: added to d_diagonals (layers that share a table); 0: overwrites it */
    const void *d_o; /* [batch, heads, queries, keys] gradient of o */
    nrg_head_strides d_o_strides;
    double *d_diagonals;       /* [heads, queries + keys - 1] output */
    size_t d_diagonals_stride; /* bytes from head to head */
} nrg_score_bias_backward_args;

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

/* d_diagonals[h][e] = Σ d_o[b][h][i][j] over b and all (i, j) of that diagonal; with accumulate, what is there (a -0 as 0) is the
 * first number of the sum. A share is a range of diagonals with as many elements of d_o as any other, so that more threads than
 * heads have work; it has no workspace and no second phase. With batch = 0, d_diagonals is needed still.
 *
 * Returns NRG_OK, or says what is wrong as nrg_score_bias_forward does and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_ENUM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_backward(const nrg_score_bias_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_score_bias_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_score_bias_backward_check(const nrg_score_bias_backward_args *args);

/* The gradient of T5's table from that of the diagonals: d_table[bucket][h] = Σ d_diagonals[h][e] over the diagonals of the
 * bucket, ascending, in double; rounded once, together with what is there where accumulate is not 0. d_table: [buckets][heads]
 * in f32; buckets without a diagonal are 0, or keep their value. With causal the diagonals after the query count for no
 * bucket. The heads of share ith of nth. With queries or keys = 0, d_table is needed still.
 *
 * Returns NRG_OK, or says what is wrong as nrg_t5_diagonals_forward does and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD. */
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
