/* nrg/softmax.h: softmax of attention scores and of rows of logits, with what engines put in front of it: a scale, a soft cap,
 * biases by distance, a mask, a causal limit, a sliding window, attention sinks. Also log-softmax, the backward passes, and
 * softmax in parts, for attention that never stores its scores.
 *
 *     t[b][h][i][j] = cap(scale · x) + bias[h](j - p_i) + slope[h] · mask          b: batch, h: head, i: query, j: key
 *     o[b][h][i][j] = e^t / (Σ e^t + e^sink[h])        or, with log, t - log(Σ e^t + e^sink[h])
 *
 * The sum goes over the keys that query i sees: all of them, or with `causal` those up to its own position, which is
 * p_i = first_position + i. Keys stand at 0 … keys - 1, as in nrg/score_bias.h; first_position is keys - queries if a cache is
 * filled to its end. A window of w leaves those with p_i - j < w (and j - p_i < w, if not causal). What is not seen is not read,
 * in no operand, and its result is 0 (-infinity with log).
 *
 *     scale        multiplies scores
 *     cap          soft capping, before biases and mask: cap(v) = cap · tanh(v/cap), as in ggml's flash_attn_ext and Gemma 2;
 *                  INFINITY: none
 *     diagonals    biases by distance, T5's, ALiBi's or any other: the table of nrg/score_bias.h
 *     slopes       one number a head, which multiplies the mask; NULL: 1. ggml's soft_max_ext with max_bias has them, and
 *                  distances in its mask. nrg_alibi_slopes computes them
 *     mask         added; f32, f16 or bf16; shared by heads or samples as mask_repeat specifies
 *     sinks        one logit a head, which enters the maximum and the sum and nothing else (gpt-oss; ggml: soft_max_ext's sinks)
 *
 * What is rounded. t is a float: x · scale is rounded (with a bias, fma(x, scale, bias), as nrg_score_bias_forward rounds it);
 * with a cap, x · (scale/cap), its tanh (the bits of nrg_activation_forward) and cap · tanh (+ bias: one fma); fma(mask, slope,
 * t) last. So a mask of 0 and -infinity gives the bits of the limit it stands for, unless it hides a NaN or +infinity. Separate
 * calls give the bits of one call.
 *
 * Error bounds, for every row, as functions of t; docs/ops/softmax.md derives them. A 16-bit result is the float within its
 * bound, rounded once.
 *   - o: 3.02 ulp. Without sinks it is exactly 1 where one key is seen.
 *   - log-softmax: 3.8 ulp + 2^-46. It is never above 0, and without sinks exactly 0 where one key is seen.
 *
 * A row in which nothing is seen, or whose t are all -infinity, becomes zeros (-infinity with log), and not NaN: an engine's
 * padded queries stay harmless. A NaN among what is seen, or a t of +infinity, makes the whole row NaN.
 *
 * The bits are the same on every path and for any (ith, nth), stride and alignment, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SOFTMAX_H
#define NRG_SOFTMAX_H

#include <math.h>

#include "score_bias.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_softmax_args_init, then change fields. */
typedef struct nrg_softmax_args {
    size_t size;  /* sizeof(nrg_softmax_args) */
    size_t batch; /* 0 of any of these four is an empty tensor */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;      /* of x and o */
    nrg_dtype mask_dtype; /* of the mask; NRG_DTYPE_SAME: that of x */
    const void *x;        /* [batch, heads, queries, keys] input */
    nrg_head_strides x_strides;
    const float *diagonals;  /* [heads, queries + keys - 1] optional input */
    size_t diagonals_stride; /* bytes from head to head; 0 is dense */
    const float *slopes;     /* [heads] optional input, with a mask only */
    const float *sinks;      /* [heads] optional input */
    const void *mask;        /* [batch, heads, queries, keys] optional input */
    nrg_head_strides mask_strides;
    uint32_t mask_repeat;   /* nrg_repeat bits: rows are queries, rows2 heads, rows3 samples */
    float scale;            /* Default: 1. */
    float cap;              /* above 0; INFINITY: none. Default: INFINITY. */
    int causal;             /* not 0: keys up to the query's own position */
    int64_t first_position; /* of query 0, within ±2^61; read with causal or a window. Default: keys - queries. */
    size_t window;          /* at least 1; SIZE_MAX: none. Default: SIZE_MAX. */
    int log;                /* not 0: log-softmax */
    nrg_store store;        /* how o is stored */
    void *o;                /* [batch, heads, queries, keys] output */
    nrg_head_strides o_strides;
} nrg_softmax_args;

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
    args.cap = INFINITY;
    args.causal = 0;
    args.first_position = (int64_t)((uint64_t)keys - queries);
    args.window = SIZE_MAX;
    args.log = 0;
    args.store = NRG_STORE_AUTO;
    args.o = o;
    args.o_strides.row = args.o_strides.head = args.o_strides.batch = 0;
    return args;
}

/* Softmax, or log-softmax, of rows. o may be x, with its strides:
 *
 *               x     mask  diagonals slopes sinks
 *         o     yes   no    no        no     no
 *
 * Share ith of nth: rows, batch · heads · queries of them. Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         dtype, mask_dtype or store unknown; other bits in mask_repeat than those of nrg_repeat
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args, or (with something to do) x or o
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_CONSTANT     scale or scale/cap infinite or NaN; cap 0, negative or NaN; window 0
 *   NRG_ERR_POSITION     first_position beyond ±2^61
 *   NRG_ERR_COMBINATION  slopes without a mask
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      o overlaps an input in a way that is not allowed */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_forward(const nrg_softmax_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_forward_check(const nrg_softmax_args *args);

/* ---- in parts ---- */

/* What is known of a row before and after some of its keys: dense, one number a row, queries fastest. */
typedef struct nrg_softmax_state {
    size_t size;          /* sizeof(nrg_softmax_state) */
    const float *m_in;    /* [batch, heads, queries] input: the largest t so far; NULL, like sum_in: nothing so far */
    const double *sum_in; /* [batch, heads, queries] input: the sum so far */
    float *m;             /* [batch, heads, queries] output */
    double *sum;          /* [batch, heads, queries] output */
    float *factor;        /* [batch, heads, queries] output: what sums over the keys so far have to be multiplied by */
} nrg_softmax_state;

/* The first keys of rows. For further ones m_in and sum_in are set. */
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

/* One block of keys of longer rows, after which
 *
 *     m = max(m_in, max t)    o = e^(t - base(m))    sum = sum_in · factor + Σ o    factor = e^(base(m_in) - base(m))
 *
 * base(m) is the multiple of ln 2 next to m (m itself beyond ±256), so that a factor is a power of two, and what is multiplied by
 * it keeps its bits. Σ o is of the unrounded e^t; o and sum are within 1.28 · 2^-24 of themselves. So attention over blocks of
 * keys is, a row: acc = acc · factor + o · V for each block, and acc · inverse in the end, where nrg_softmax_merge has 1/sum, the
 * log-sum-exp log(sum) + base(m), and the factors of blocks that were done apart.
 *
 * Everything else is as in nrg_softmax_forward, for the keys of the block only. first_position is the position less the
 * block's first key. diagonals begin at the entry of that key, as nrg/score_bias.h says of parts. sinks belong to one block of a
 * row, any. A row of -infinity so far has m = -infinity, sum = 0 and factor = 1; a NaN makes m and sum NaN.
 *
 * The bits are those of the split into blocks, and of nothing else. m may be m_in, and sum may be sum_in, so that a state is kept
 * in one place; o may be x:
 *
 *               x     mask  diagonals slopes sinks m_in  sum_in o     m     sum
 *         o     yes   no    no        no     no    no    no
 *         m     no    no    no        no     no    yes   no     no
 *         sum   no    no    no        no     no    no    yes    no    no
 *         factor no   no    no        no     no    no    no     no    no    no
 *
 * Returns the statuses of nrg_softmax_forward: NRG_OK, NRG_ERR_ENUM, NRG_ERR_THREAD, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP; NRG_ERR_COMBINATION
 * also with log, or where one of m_in and sum_in is there alone. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_part(const nrg_softmax_args *args, const nrg_softmax_state *state, int ith, int nth);

/* Validates the arguments of nrg_softmax_part. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_part_check(const nrg_softmax_args *args, const nrg_softmax_state *state);

/* States of the same rows, from keys that were done apart (by threads, or a cache in pieces), made one: dense, a part's rows
 * together. One part: what a state comes to. */
typedef struct nrg_softmax_merge_args {
    size_t size; /* sizeof(nrg_softmax_merge_args) */
    size_t parts;
    size_t rows;
    const float *m_in;    /* [parts, rows] input */
    const double *sum_in; /* [parts, rows] input */
    float *m;             /* [rows] output: the largest */
    double *sum;          /* [rows] output: the sum of sum_in · e^(base(m_in) - base(m)), in the order of parts; within
                           * 1.28 · 2^-24 of itself, as sum_in is */
    float *factor;        /* [parts, rows] optional output: those powers, for what was summed with each part */
    float *inverse;       /* [rows] optional output: 1/sum, within 1.8 ulp; 0 of rows of -infinity */
    double *lse;          /* [rows] optional output: log(sum) + base(m), within 2^-48 of itself or of 1 as a function of m and
                           * sum; -infinity of such rows */
} nrg_softmax_merge_args;

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

/* A NaN in a row's states makes all of its results NaN. No operand may share a byte with an output:
 *
 *               m_in  sum_in m     sum   factor inverse
 *      m        no    no
 *      sum      no    no     no
 *      factor   no    no     no    no
 *      inverse  no    no     no    no    no
 *      lse      no    no     no    no    no     no
 *
 * The rows of share ith of nth. Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with something to do) m_in, sum_in, m or sum
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_COUNT        no parts
 *   NRG_ERR_ALIGNMENT    a pointer that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      an output shares a byte with another operand */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_merge(const nrg_softmax_merge_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_merge. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_merge_check(const nrg_softmax_merge_args *args);

/* ---- backward ---- */

/* Where the data is. Make one with nrg_softmax_backward_args_init. o is what the forward pass has stored. */
typedef struct nrg_softmax_backward_args {
    size_t size; /* sizeof(nrg_softmax_backward_args) */
    size_t batch;
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype; /* of all tensors */
    int log;         /* as in the forward pass, like scale to window */
    const void *o;   /* [batch, heads, queries, keys] input: the result of the forward pass */
    nrg_head_strides o_strides;
    const void *d_o; /* [batch, heads, queries, keys] input: its gradient */
    nrg_head_strides d_o_strides;
    const void *x; /* [batch, heads, queries, keys] input of the forward pass, with a cap only */
    nrg_head_strides x_strides;
    float scale;            /* Default: 1. */
    float cap;              /* Default: INFINITY. */
    int64_t first_position; /* Default: keys - queries. */
    size_t window;          /* Default: SIZE_MAX. */
    int causal;
    nrg_store store; /* how dx is stored */
    void *dx;        /* [batch, heads, queries, keys] output */
    nrg_head_strides dx_strides;
} nrg_softmax_backward_args;

/* Without a cap; with one, x is set, too. */
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
    args.cap = INFINITY;
    args.first_position = (int64_t)((uint64_t)keys - queries);
    args.window = SIZE_MAX;
    args.causal = 0;
    args.store = NRG_STORE_AUTO;
    args.dx = dx;
    args.dx_strides.row = args.dx_strides.head = args.dx_strides.batch = 0;
    return args;
}

/* The gradient of x, of the keys that were seen (of others: 0, and nothing is read):
 *
 *     dt = o ⊙ (d_o - Σ o·d_o)           log: dt = d_o - e^o · Σ d_o
 *     dx = dt · scale                     with a cap, · (1 - tanh²(x · scale/cap)), for which x is needed
 *
 * The sum is compensated and rounded to f32, and so is each operation. For every row dx is within
 *
 *     2^-24 · |scale| · o · (3·|d_o| + 10·Σ|o·d_o|)           log: 2^-24 · |scale| · (2·|d_o| + 9.3 · e^o · Σ|d_o|)
 *
 * of its value for the saved o; with a cap, before the product with the slope. Sinks change nothing in it. Their own gradient,
 * of head h, is -Σ e^(sink - log-sum-exp) · Σ o·d_o over its rows; there is no call for it. With a scale of 1 and no cap, dx is
 * dt, which is the gradient of biases and mask: nrg_score_bias_backward sums it.
 *
 * dx may be o, d_o or x, with their strides:
 *
 *               o     d_o   x
 *        dx     yes   yes   yes
 *
 * Share ith of nth: rows. Returns NRG_OK, or says what is wrong as nrg_softmax_forward does and writes nothing: NRG_ERR_ENUM,
 * NRG_ERR_THREAD, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT,
 * NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP; NRG_ERR_COMBINATION where x is there without a cap. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_backward(const nrg_softmax_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_softmax_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_softmax_backward_check(const nrg_softmax_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
