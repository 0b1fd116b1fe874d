/* nrg/softmax.h: softmax and log-softmax of attention scores and of rows of logits, forward and backward.
 *
 * The forward pass includes the steps that engines put before a softmax, such as scale, soft cap, mask and sliding window. A
 * second form, nrg_softmax_part, computes softmax in blocks of keys, for attention that never stores all its scores.
 *
 *     t[b][h][i][j] = cap(scale · x) + bias[h](j - p_i) + slope[h] · mask          b: batch, h: head, i: query, j: key
 *     o[b][h][i][j] = e^t / (Σ e^t + e^sink[h])        or, with log, t - log(Σ e^t + e^sink[h])
 *
 * The sum covers the visible keys of query i.
 * - By default all keys are visible.
 * - With `causal`, the keys up to the query's own position p_i = first_position + i are visible.
 * - With a window of w, keys with p_i - j < w are visible. If the call is not causal, j - p_i < w must hold too.
 *
 * Key j has position j, from 0 to keys - 1, as in nrg/score_bias.h. The default of first_position, keys - queries, is for a cache
 * that is filled to its end. For a hidden key, the call reads no element of any operand and writes 0 (-infinity with log).
 *
 * The steps, in this order:
 * - scale: multiplies each score.
 * - cap: soft cap, applied before biases and mask: cap(v) = cap · tanh(v/cap). FLT_MAX disables it. ggml's flash_attn_ext and
 *   Gemma 2 have it.
 * - diagonals: biases by distance, such as those of T5 or ALiBi, as a table of nrg/score_bias.h.
 * - slopes: one factor of the mask per head; NULL is 1. ggml's soft_max_ext with max_bias has them, with distances in its mask.
 *   nrg_alibi_slopes computes them.
 * - mask: added to the scores, in f32, f16 or bf16. mask_repeat lets heads or samples share it.
 * - sinks: one logit per head that enters only the maximum and the sum. Sources: gpt-oss, and the sinks of ggml's soft_max_ext.
 *
 * Rounding. t is an f32 value.
 * - Without a cap, x · scale is rounded. With a bias, fma(x, scale, bias) is rounded, as in nrg_score_bias_forward.
 * - With a cap, x · (scale/cap), its tanh and cap · tanh are each rounded. tanh is bit-identical to nrg_activation_forward. A
 *   bias makes the last step one fma.
 * - The mask is applied last: fma(mask, slope, t).
 *
 * So a mask of 0 and -infinity is bit-identical to the limit that it represents, unless it hides a NaN or +infinity. Separate
 * calls for these steps are bit-identical to one call.
 *
 * Error bounds (proven) hold for every row, as functions of t. docs/ops/softmax.md derives them. A 16-bit result is the f32
 * result, within its bound, rounded once.
 * - o: 3.02 ulp. Without sinks, o is exactly 1 if one key is visible.
 * - log-softmax: 3.8 ulp + 2^-46. It is never above 0. Without sinks, it is exactly 0 if one key is visible.
 *
 * A row without visible keys, or whose t are all -infinity, becomes zeros (-infinity with log) and not NaN. So padded queries do
 * no harm. A NaN among the visible elements, or a t of +infinity, makes the full row NaN.
 *
 * Results are bit-identical on every path and for any (ith, nth), stride and alignment, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SOFTMAX_H
#define NRG_SOFTMAX_H

#include <float.h>

#include "score_bias.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands and options of a softmax. Make one with nrg_softmax_args_init, then change fields. */
typedef struct nrg_softmax_args {
    size_t size;  /* sizeof(nrg_softmax_args) */
    size_t batch; /* batch, heads, queries, keys: if one is 0, the tensor is empty */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;      /* of x and o */
    nrg_dtype mask_dtype; /* of mask; NRG_DTYPE_SAME is dtype */
    const void *x;        /* [batch, heads, queries, keys] input */
    nrg_head_strides x_strides;
    const float *diagonals;  /* [heads, queries + keys - 1] input, or NULL: no biases */
    size_t diagonals_stride; /* bytes from one head to the next; 0 is dense */
    const float *slopes;     /* [heads] input, or NULL: 1. Requires mask */
    const float *sinks;      /* [heads] input, or NULL: no sinks */
    const void *mask;        /* [batch, heads, queries, keys] input, or NULL: no mask */
    nrg_head_strides mask_strides;
    uint32_t mask_repeat;   /* nrg_repeat bits of mask: rows are queries, rows2 are heads, rows3 are batches */
    float scale;            /* multiplies x. Default: 1. */
    float cap;              /* soft cap, above 0; FLT_MAX and INFINITY disable it. Default: FLT_MAX. */
    int causal;             /* not 0: keys after the query's own position are hidden */
    int64_t first_position; /* of query 0, within ±2^61; ignored unless causal or with a window. Default: keys - queries. */
    size_t window;          /* at least 1; SIZE_MAX is no window. Default: SIZE_MAX. */
    int log;                /* not 0: log-softmax */
    nrg_store store;        /* how o is stored; never changes a bit */
    void *o;                /* [batch, heads, queries, keys] output */
    nrg_head_strides o_strides;
} nrg_softmax_args;

/* Returns args for a dense softmax of x without mask, biases or limits.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, x, o: the fields of the same names. */
static inline nrg_softmax_args nrg_softmax_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries, size_t keys,
                                                     const void *x, void *o)
{
    nrg_softmax_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.mask_dtype = NRG_DTYPE_SAME;
    args.x = x;
    args.x_strides.row = args.x_strides.head = args.x_strides.batch = 0;
    args.diagonals = args.slopes = args.sinks = NULL;
    args.diagonals_stride = 0;
    args.mask = NULL;
    args.mask_strides.row = args.mask_strides.head = args.mask_strides.batch = 0;
    args.mask_repeat = 0;
    args.scale = 1;
    args.cap = FLT_MAX;
    args.causal = 0;
    args.first_position = (int64_t)((uint64_t)keys - queries);
    args.window = SIZE_MAX;
    args.log = 0;
    args.store = NRG_STORE_AUTO;
    args.o = o;
    args.o_strides.row = args.o_strides.head = args.o_strides.batch = 0;
    return args;
}

/* Computes softmax, or log-softmax if args->log is not 0, of each row of scores.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless the tensor is empty, x and o must not be NULL.
 * - ith, nth: the share, a range of the batch · heads · queries rows.
 *
 * Aliasing: o may be x, with the same strides. No other overlap is allowed.
 *
 *               x     mask  diagonals slopes sinks
 *         o     yes   no    no        no     no
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_ENUM: dtype, mask_dtype or store has an unknown value, or mask_repeat has a bit that nrg_repeat lacks.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_NULL: args is NULL; or the tensor is not empty, and x or o is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_CONSTANT: scale or scale/cap is infinite or NaN; cap is 0, negative or NaN; or window is 0.
 * - NRG_ERR_POSITION: first_position is beyond ±2^61.
 * - NRG_ERR_COMBINATION: slopes is set, and mask is NULL.
 * - NRG_ERR_STRIDE: a stride is shorter than a row, or than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: o overlaps an input in a way that the table does not allow. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_forward(const nrg_softmax_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_forward_check(const nrg_softmax_args *args);

/* ---- softmax in blocks of keys ---- */

/* State of the rows of a softmax, before and after a block of keys. All arrays are dense, with one number per row and queries
 * fastest. */
typedef struct nrg_softmax_state {
    size_t size;       /* sizeof(nrg_softmax_state) */
    const float *m_in; /* [batch, heads, queries] input: the largest t so far. NULL, together with sum_in, for the first block */
    const double *sum_in; /* [batch, heads, queries] input: the sum so far, or NULL with m_in */
    float *m;             /* [batch, heads, queries] output: the largest t, this block included */
    double *sum;          /* [batch, heads, queries] output: the sum, this block included */
    float *factor;        /* [batch, heads, queries] output: multiply sums over the previous keys by it */
} nrg_softmax_state;

/* Returns a state for the first block of keys. For further blocks, set m_in and sum_in.
 *
 * Parameters:
 * - m, sum, factor: the fields of the same names. */
static inline nrg_softmax_state nrg_softmax_state_init(float *m, double *sum, float *factor)
{
    nrg_softmax_state state;
    state.size = sizeof state;
    state.m_in = NULL;
    state.sum_in = NULL;
    state.m = m;
    state.sum = sum;
    state.factor = factor;
    return state;
}

/* Computes one block of keys of longer rows, and updates the state of the rows:
 *
 *     m = max(m_in, max t)    o = e^(t - base(m))    sum = sum_in · factor + Σ o    factor = e^(base(m_in) - base(m))
 *
 * The base is the multiple of ln 2 nearest to m, or m itself beyond ±256. So a factor is a power of two, and a product with it
 * keeps the bits of the other operand. The sum adds the unrounded e^t. The relative error of o and sum is at most 1.28 · 2^-24.
 *
 * Attention over blocks of keys, per row:
 * - acc = acc · factor + o · V for each block.
 * - acc · inverse after the last block.
 *
 * nrg_softmax_merge computes inverse = 1/sum and the log-sum-exp log(sum) + base(m). It also computes the factors for blocks that
 * were processed separately.
 *
 * Parameters:
 * - args: as in nrg_softmax_forward, for the keys of the block only. Set first_position to the first query's position minus the
 *   block's first key. Let diagonals point to the entry of that key, as nrg/score_bias.h describes. Set sinks for exactly one
 *   block of a row, whichever it is. The field log must be 0.
 * - state: the state of the rows. Unless the tensor is empty, m, sum and factor must not be NULL.
 * - ith, nth: the share, as in nrg_softmax_forward.
 *
 * While all t of a row are -infinity, its state is m = -infinity, sum = 0 and factor = 1. A NaN makes m and sum NaN. Bits depend
 * on how the keys are split into blocks, and on nothing else.
 *
 * Aliasing: o may be x. m may be m_in, and sum may be sum_in, which updates a state in place:
 *
 *               x     mask  diagonals slopes sinks m_in  sum_in o     m     sum
 *         o     yes   no    no        no     no    no    no
 *         m     no    no    no        no     no    yes   no     no
 *         sum   no    no    no        no     no    no    yes    no    no
 *         factor no   no    no        no     no    no    no     no    no    no
 *
 * Returns the statuses of nrg_softmax_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: also if state is NULL, or if the tensor is not empty, and m, sum or factor is NULL.
 * - NRG_ERR_STRUCT_SIZE: also for state->size.
 * - NRG_ERR_COMBINATION: also if log is not 0, or if only one of m_in and sum_in is NULL.
 * - NRG_ERR_OVERLAP: an output overlaps another operand in a way that the table does not allow. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_part(const nrg_softmax_args *args, const nrg_softmax_state *state, int ith, int nth);

/* Validates the arguments of nrg_softmax_part. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_part_check(const nrg_softmax_args *args, const nrg_softmax_state *state);

/* States of the same rows to merge, computed from different keys by threads or from pieces of a cache. Arrays are dense, and the
 * rows of a part are adjacent. A single part is allowed: then the call computes the results of its state. */
typedef struct nrg_softmax_merge_args {
    size_t size;          /* sizeof(nrg_softmax_merge_args) */
    size_t parts;         /* states per row, at least 1 */
    size_t rows;          /* may be 0 */
    const float *m_in;    /* [parts, rows] input: m of each state */
    const double *sum_in; /* [parts, rows] input: sum of each state */
    float *m;             /* [rows] output: the largest m_in */
    /* [rows] output: the sum of sum_in · e^(base(m_in) - base(m)), in the order of parts; within 1.28 · 2^-24 of itself, as
     * sum_in is */
    double *sum;
    float *factor;  /* [parts, rows] output, or NULL: those powers, for the sums over each part's keys */
    float *inverse; /* [rows] output, or NULL: 1/sum, within 1.8 ulp; 0 for rows of -infinity */
    /* [rows] output, or NULL: log(sum) + base(m), as a function of m and sum within 2^-48 of the larger of itself and 1;
     * -infinity for rows of -infinity */
    double *lse;
} nrg_softmax_merge_args;

/* Returns args that merge m and sum of each row. For the other results, set factor, inverse or lse.
 *
 * Parameters:
 * - parts, rows, m_in, sum_in, m, sum: the fields of the same names. */
static inline nrg_softmax_merge_args nrg_softmax_merge_args_init(size_t parts, size_t rows, const float *m_in,
                                                                 const double *sum_in, float *m, double *sum)
{
    nrg_softmax_merge_args args;
    args.size = sizeof args;
    args.parts = parts;
    args.rows = rows;
    args.m_in = m_in;
    args.sum_in = sum_in;
    args.m = m;
    args.sum = sum;
    args.factor = args.inverse = NULL;
    args.lse = NULL;
    return args;
}

/* Merges the states of the same rows into one state per row.
 *
 * Parameters:
 * - args: operands, described at their fields. The outputs factor, inverse and lse may be NULL.
 * - ith, nth: the share, a range of rows.
 *
 * A NaN in the states of a row makes all its results NaN.
 *
 * Aliasing: no output shares a byte with another operand.
 *
 *               m_in  sum_in m     sum   factor inverse
 *      m        no    no
 *      sum      no    no     no
 *      factor   no    no     no    no
 *      inverse  no    no     no    no    no
 *      lse      no    no     no    no    no     no
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or rows is not 0, and m_in, sum_in, m or sum is NULL.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_COUNT: parts is 0.
 * - NRG_ERR_ALIGNMENT: a pointer is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: an output shares a byte with another operand. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_merge(const nrg_softmax_merge_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_merge. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_merge_check(const nrg_softmax_merge_args *args);

/* ---- backward ---- */

/* Operands and options of the backward pass. Make one with nrg_softmax_backward_args_init, then change fields. log, scale, cap,
 * first_position, window and causal have the values of the forward pass. Strides are in bytes; 0 is dense. */
typedef struct nrg_softmax_backward_args {
    size_t size; /* sizeof(nrg_softmax_backward_args) */
    size_t batch;
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype; /* of all tensors */
    int log;         /* not 0: the forward pass computed log-softmax */
    const void *o;   /* [batch, heads, queries, keys] input: o as the forward pass stored it */
    nrg_head_strides o_strides;
    const void *d_o; /* [batch, heads, queries, keys] input: gradient of o */
    nrg_head_strides d_o_strides;
    const void *x; /* [batch, heads, queries, keys] input: x of the forward pass with a cap; otherwise NULL */
    nrg_head_strides x_strides;
    float scale;            /* Default: 1. */
    float cap;              /* as in nrg_softmax_args. Default: FLT_MAX. */
    int64_t first_position; /* Default: keys - queries. */
    size_t window;          /* Default: SIZE_MAX. */
    int causal;             /* not 0: the forward pass was causal */
    nrg_store store;        /* how dx is stored; never changes a bit */
    void *dx;               /* [batch, heads, queries, keys] output: gradient of x */
    nrg_head_strides dx_strides;
} nrg_softmax_backward_args;

/* Returns args for a dense backward pass without a cap. With a cap, set cap and x.
 *
 * Parameters:
 * - dtype, batch, heads, queries, keys, o, d_o, dx: the fields of the same names. */
static inline nrg_softmax_backward_args nrg_softmax_backward_args_init(nrg_dtype dtype, size_t batch, size_t heads,
                                                                       size_t queries, size_t keys, const void *o,
                                                                       const void *d_o, void *dx)
{
    nrg_softmax_backward_args args;
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.log = 0;
    args.o = o;
    args.o_strides.row = args.o_strides.head = args.o_strides.batch = 0;
    args.d_o = d_o;
    args.d_o_strides.row = args.d_o_strides.head = args.d_o_strides.batch = 0;
    args.x = NULL;
    args.x_strides.row = args.x_strides.head = args.x_strides.batch = 0;
    args.scale = 1;
    args.cap = FLT_MAX;
    args.first_position = (int64_t)((uint64_t)keys - queries);
    args.window = SIZE_MAX;
    args.causal = 0;
    args.store = NRG_STORE_AUTO;
    args.dx = dx;
    args.dx_strides.row = args.dx_strides.head = args.dx_strides.batch = 0;
    return args;
}

/* Computes the gradient of x. For hidden keys it writes 0 and reads nothing.
 *
 *     dt = o ⊙ (d_o - Σ o·d_o)           log: dt = d_o - e^o · Σ d_o
 *     dx = dt · scale                     with a cap, · (1 - tanh²(x · scale/cap)), which requires x
 *
 * The sum is a compensated sum, rounded to f32. Each other operation is rounded to f32 too. For every row, the error bound of dx
 * for the stored o is
 *
 *     2^-24 · |scale| · o · (3·|d_o| + 10·Σ|o·d_o|)           log: 2^-24 · |scale| · (2·|d_o| + 9.3 · e^o · Σ|d_o|)
 *
 * With a cap, the bound holds before the product with the slope.
 *
 * Sinks do not change the formula. No call computes their gradient, which for head h is the sum over its rows of
 *
 *     -e^(sink - log-sum-exp) · Σ o·d_o
 *
 * With a scale of 1 and no cap, dx is dt, the gradient of biases and mask. To sum it, call nrg_score_bias_backward.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless the tensor is empty, o, d_o and dx must not be NULL. With a
 *   cap, x must not be NULL either.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: dx may be o, d_o or x, with the same strides. No other overlap is allowed.
 *
 *               o     d_o   x
 *        dx     yes   yes   yes
 *
 * Returns the statuses of nrg_softmax_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: args is NULL; or the tensor is not empty, and o, d_o, dx or, with a cap, x is NULL.
 * - NRG_ERR_COMBINATION: x is set, and there is no cap.
 * - NRG_ERR_OVERLAP: dx overlaps an input in a way that the table does not allow. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_backward(const nrg_softmax_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_backward_check(const nrg_softmax_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
