/* nrg/softmax.h: softmax of attention scores and of rows of logits, with what engines put in front of it: a scale, a soft cap,
 * biases by distance, a mask, a causal limit, a sliding window, attention sinks. Also log-softmax, the backward passes, and
 * softmax in parts, for attention that never stores its scores.
 *
 *     t[b][h][i][j] = cap(x · scale) + bias[h](j - p_i) + slope[h] · mask          b: batch, h: head, i: query, j: key
 *     o[b][h][i][j] = e^t / (Σ e^t + e^sink[h])        or, with log, t - log(Σ e^t + e^sink[h])
 *
 * The sum goes over the keys that query i sees: all of them, or with `causal` those up to its own position p_i = query_offset + i
 * (keys stand at 0 … keys - 1, as in nrg/score_bias.h; query_offset is keys - queries where a cache is filled to its end), or
 * with a window of w those with p_i - j < w (and j - p_i < w, where not causal). What is not seen is not read, in no operand, and
 * is written as 0 (-infinity with log).
 *
 *     scale        multiplies scores; the constructor sets 1
 *     cap          soft capping, before biases and mask: cap(v) = cap · tanh(v/cap), as in ggml's flash_attn_ext and Gemma 2;
 *                  0: none
 *     diagonals    biases by distance, T5's, ALiBi's or any other: the table of nrg/score_bias.h
 *     mask         added; f32, f16 or bf16; shared by heads or samples as mask_repeat specifies
 *     slopes       one number a head, which multiplies the mask; NULL: 1. ggml's soft_max_ext with max_bias has them, and
 *                  distances in its mask. nrg_alibi_slopes computes them
 *     sinks        one logit a head, which enters the maximum and the sum and nothing else (gpt-oss; ggml: soft_max_ext's sinks)
 *
 * What is rounded. t is a float: x · scale is rounded (with a bias, fma(x, scale, bias), as nrg_score_bias_forward rounds it);
 * with a cap, x · (scale/cap), its tanh (the bits of nrg_activation_forward) and cap · tanh (+ bias: one fma); fma(mask, slope,
 * t) last. So a mask of 0 and -infinity gives the bits of the limit it stands for, unless it hides a NaN or +infinity. Separate
 * calls give the bits of one call.
 *
 * Error bounds, for every row, as functions of t; docs/softmax.md derives them. A 16-bit result is the float within its bound,
 * rounded once.
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

#include <string.h>

#include "score_bias.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_softmax_args_init, then change fields. Scores, and what is like them, are rows of keys, as
 * nrg/base.h has rows in up to four dimensions: strides in bytes from query to query, from head to head, from sample to sample,
 * each 0 for dense, in any order that nests. */
typedef struct nrg_softmax_args {
    size_t size;  /* sizeof(nrg_softmax_args) */
    size_t batch; /* 0 of any of these is fine: the call checks what it was given, and does nothing */
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype;        /* of x and o */
    nrg_dtype mask_dtype;   /* of the mask; NRG_DTYPE_SAME: that of x */
    nrg_store store;        /* how o is stored */
    int log;                /* not 0: log-softmax */
    float scale;            /* Default: 1. */
    float cap;              /* 0: none */
    int causal;             /* not 0: keys up to the query's own position */
    uint32_t mask_repeat;   /* nrg_repeat bits: rows are queries, rows2 heads, rows3 samples */
    int64_t query_offset;   /* position of query 0, from -2^61 to 2^61; only looked at with causal or a window */
    size_t window;          /* 0: none */
    const void *x;          /* [batch, heads, queries, keys] input */
    const void *mask;       /* [batch, heads, queries, keys] optional input */
    const float *diagonals; /* [heads][queries + keys - 1] optional input */
    const float *slopes;    /* [heads] optional input, with a mask only */
    const float *sinks;     /* [heads] optional input */
    void *o;                /* [batch, heads, queries, keys] output */
    size_t x_query_stride;
    size_t x_head_stride;
    size_t x_batch_stride;
    size_t mask_query_stride;
    size_t mask_head_stride;
    size_t mask_batch_stride;
    size_t diagonals_stride; /* of heads */
    size_t o_query_stride;
    size_t o_head_stride;
    size_t o_batch_stride;
} nrg_softmax_args;

static inline nrg_softmax_args nrg_softmax_args_init(nrg_dtype dtype, size_t batch, size_t heads, size_t queries, size_t keys,
                                                     const void *x, void *o)
{
    nrg_softmax_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.scale = 1;
    args.x = x;
    args.o = o;
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
 *   NRG_ERR_CONSTANT     scale or scale/cap infinite or NaN; cap negative, infinite or NaN
 *   NRG_ERR_POSITION     query_offset beyond ±2^61
 *   NRG_ERR_COMBINATION  slopes without a mask
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      o overlaps an input in a way that is not allowed */
NRG_API nrg_status nrg_softmax_forward(const nrg_softmax_args *args, int ith, int nth);

/* What nrg_softmax_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_softmax_forward_check(const nrg_softmax_args *args);

/* ---- in parts ---- */

/* What is known of a row before and after some of its keys: dense, one number a row, queries fastest. */
typedef struct nrg_softmax_state {
    size_t size;        /* sizeof(nrg_softmax_state) */
    const float *m_in;  /* [batch, heads, queries] input: the largest t so far; NULL, like s_in: nothing so far */
    const double *s_in; /* [batch, heads, queries] input: the sum so far */
    float *m;           /* [batch, heads, queries] output */
    double *s;          /* [batch, heads, queries] output */
    float *factor;      /* [batch, heads, queries] output: what sums over the keys so far have to be multiplied by */
} nrg_softmax_state;

static inline nrg_softmax_state nrg_softmax_state_init(float *m, double *s, float *factor)
{
    nrg_softmax_state state;
    memset(&state, 0, sizeof state);
    state.size = sizeof state;
    state.m = m;
    state.s = s;
    state.factor = factor;
    return state;
}

/* One block of keys of longer rows, after which
 *
 *     m = max(m_in, max t)      o = e^(t - base(m))      s = s_in · factor + Σ o      factor = e^(base(m_in) - base(m))
 *
 * base(m) is the multiple of ln 2 next to m (m itself beyond ±256), so that a factor is a power of two, and what is multiplied by
 * it keeps its bits. Σ o is of the unrounded e^t; o and s are within 1.28 · 2^-24 of themselves. So attention over blocks of keys
 * is, a row: acc = acc · factor + o · V for each block, and acc · inverse in the end, where nrg_softmax_merge has 1/s, the
 * log-sum-exp log(s) + base(m), and the factors of blocks that were done apart.
 *
 * Everything else is as in nrg_softmax_forward, for the keys of the block alone: query_offset is the
 * position less the block's first key, diagonals begin at the entry of that key, as nrg/score_bias.h says of parts; sinks belong
 * to one block of a row, any. A row of -infinity so far has m = -infinity, s = 0 and factor = 1; a NaN makes m and s NaN.
 *
 * The bits are those of the split into blocks, and of nothing else. m may be m_in, and s may be s_in, so that a state is kept in
 * one place; o may be x:
 *
 *               x     mask  diagonals slopes sinks m_in  s_in  o     m     s
 *         o     yes   no    no        no     no    no    no
 *         m     no    no    no        no     no    yes   no    no
 *         s     no    no    no        no     no    no    yes   no    no
 *         factor no   no    no        no     no    no    no    no    no    no
 *
 * Returns the statuses of nrg_softmax_forward: NRG_OK, NRG_ERR_ENUM, NRG_ERR_THREAD, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP; NRG_ERR_COMBINATION
 * also with log, or where one of m_in and s_in is there alone. */
NRG_API nrg_status nrg_softmax_part(const nrg_softmax_args *args, const nrg_softmax_state *state, int ith, int nth);

/* What nrg_softmax_part would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_softmax_part_check(const nrg_softmax_args *args, const nrg_softmax_state *state);

/* States of the same rows, from keys that were done apart (by threads, or a cache in pieces), made one. Set size, then what there
 * is; dense, a part's rows together. One part: what a state comes to. */
typedef struct nrg_softmax_merge_args {
    size_t size;
    size_t parts;
    size_t rows;
    const float *m_in;  /* [parts, rows] input */
    const double *s_in; /* [parts, rows] input */
    float *m;           /* [rows] output: the largest */
    double *s;          /* [rows] output: the sum of s_in · e^(base(m_in) - base(m)), in the order of parts; within
                         * 1.28 · 2^-24 of itself, as s_in is */
    float *factor;      /* [parts, rows] optional output: those powers, for what was summed beside */
    float *inverse;     /* [rows] optional output: 1/s, within 1.8 ulp; 0 of rows of -infinity */
    double *lse;        /* [rows] optional output: log(s) + base(m), within 2^-48 of itself or of 1 as a function of m and s;
                         * -infinity of such rows */
} nrg_softmax_merge_args;

/* A NaN in a row's states makes all of its results NaN. No operand may share a byte with an output:
 *
 *               m_in  s_in  m     s     factor inverse
 *      m        no    no
 *      s        no    no    no
 *      factor   no    no    no    no
 *      inverse  no    no    no    no    no
 *      lse      no    no    no    no    no     no
 *
 * The rows of share ith of nth. Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with something to do) m_in, s_in, m or s
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_COUNT        no parts
 *   NRG_ERR_ALIGNMENT    a pointer that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      an output shares a byte with another operand */
NRG_API nrg_status nrg_softmax_merge(const nrg_softmax_merge_args *args, int ith, int nth);

/* What nrg_softmax_merge would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_softmax_merge_check(const nrg_softmax_merge_args *args);

/* ---- backward ---- */

/* Where the data is. Make one with nrg_softmax_backward_args_init. o is what the forward pass has stored. */
typedef struct nrg_softmax_backward_args {
    size_t size; /* sizeof(nrg_softmax_backward_args) */
    size_t batch;
    size_t heads;
    size_t queries;
    size_t keys;
    nrg_dtype dtype; /* of all tensors */
    nrg_store store; /* how dx is stored */
    int log;         /* as in the forward pass, like the following */
    float scale;     /* Default: 1. */
    float cap;
    int causal;
    int64_t query_offset;
    size_t window;
    const void *o;   /* [batch, heads, queries, keys] input: the result of the forward pass */
    const void *d_o; /* [batch, heads, queries, keys] input: its gradient */
    const void *x; /* [batch, heads, queries, keys] input of the forward pass, needed with a cap and not looked at without one */
    void *dx;      /* [batch, heads, queries, keys] output */
    size_t o_query_stride;
    size_t o_head_stride;
    size_t o_batch_stride;
    size_t d_o_query_stride;
    size_t d_o_head_stride;
    size_t d_o_batch_stride;
    size_t x_query_stride;
    size_t x_head_stride;
    size_t x_batch_stride;
    size_t dx_query_stride;
    size_t dx_head_stride;
    size_t dx_batch_stride;
} nrg_softmax_backward_args;

static inline nrg_softmax_backward_args nrg_softmax_backward_args_init(nrg_dtype dtype, size_t batch, size_t heads,
                                                                       size_t queries, size_t keys, const void *o,
                                                                       const void *d_o, void *dx)
{
    nrg_softmax_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.batch = batch;
    args.heads = heads;
    args.queries = queries;
    args.keys = keys;
    args.dtype = dtype;
    args.scale = 1;
    args.o = o;
    args.d_o = d_o;
    args.dx = dx;
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
 * NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP. */
NRG_API nrg_status nrg_softmax_backward(const nrg_softmax_backward_args *args, int ith, int nth);

/* What nrg_softmax_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_softmax_backward_check(const nrg_softmax_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
