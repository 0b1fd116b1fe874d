/* nrg/recurrent.h: positional encodings by recursion, in the style of a recurrent network.
 *
 * A chain of vectors, each made from the one before it:
 *
 *     p_k = tanh(W p_(k-1) + b),   k = 1 … n                         b absent: 0
 *
 * from a given p_0; `chains` of them that do not know of each other, with the same W and b. The encodings of n positions are the
 * n vectors of a chain; W, b and p_0 are learned. The cell is that of a simple recurrent network (Elman, "Finding Structure in
 * Time", Cognitive Science 14, 1990) without an input. The same idea in continuous time is nrg/floater.h.
 *
 * What holds for every call, dtype and shape:
 *
 * - Every path gives the same bits; so does any (ith, nth), alignment, stride, and number of chains in a call.
 * - p_(k-1) in the formula is the vector as it is stored, rounded to dtype. So a chain can be continued: a call whose p_0 is the
 *   last vector of another (p0_dtype: SAME) gives the bits of one call for all positions.
 * - W p_(k-1) is summed in double, + b is an addition in double, and their sum is rounded once to f32, of which tanh is taken
 *   (nrg/activation.h: 1.9 ulp). A 16-bit result is that f32 rounded once. Error of an element of p_k against the exact
 *   tanh(W p_(k-1) + b) of the stored p_(k-1): 3 ulp (measured: 2.5), plus what cancellation leaves of the sum in double:
 *   (dim/32 + 8) · 2^-53 · Σ|W p_(k-1)|. In 16 bits half an ulp of theirs more. What a recursion makes of such errors over many
 *   positions is a matter of W: at most ‖W‖ times the error of one position enters the next.
 * - A NaN or an infinity in W or b goes where the formula takes it, which may be everywhere after two positions. No other chain
 *   is touched by one in p_0.
 *
 * The backward pass, for dp_k, the gradient that arrives at p_k from elsewhere (for every k), as the recursion reversed:
 *
 *     g_k  = (dp_k + Wᵀ g_(k+1)) ⊙ (1 - p_k²),  k = n … 1             g_(n+1) = 0
 *     dp_0 = Wᵀ g_1                                                    n = 0: 0
 *     dW  += Σ_chains Σ_k g_k p_(k-1)ᵀ
 *     db  += Σ_chains Σ_k g_k
 *
 * with the slope 1 - p_k² from the stored p_k. (So where a 16-bit p_k has been rounded to 1, nothing passes through it.) g_k is
 * rounded to f32, and the sums to dp_0, dW and db, everything else is in double. Error of g_k against the exact right hand side,
 * with g_(k+1) and p_k as they are: 0.51 ulp plus (dim + 2) · 2^-53 of the sum of the magnitudes, times the slope; of dp_0, dW,
 * db: 0.51 ulp plus (terms + 2) · 2^-53 of the sum of the magnitudes of their terms.
 *
 * As in nrg/norm_backward.h there are two phases with a barrier between them where dW or db is asked for: nrg_recurrent_backward
 * leaves every g_k in the workspace, nrg_recurrent_backward_reduce sums them up.
 *
 * docs/recurrent.md has the definition to the last bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RECURRENT_H
#define NRG_RECURRENT_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero everything, set size (nrg_recurrent_args_init does), then what there is. Pointers need the alignment of their element
 * only; strides are in bytes, 0 for a dense tensor. Chains may lie one after the other, [chains, n, dim], or side by side, [n,
 * chains, dim], with a p_chain_stride that is smaller than p_stride.
 *
 * Aliasing: inputs may overlap each other; p shares no byte with another operand. (p_0 may well be the vector before p in the
 * same buffer.) */
typedef struct nrg_recurrent_args {
    size_t size;           /* sizeof(nrg_recurrent_args) */
    size_t dim;            /* elements of a vector, at least 1 */
    size_t n;              /* positions of a chain; 0 is fine: nothing is done */
    size_t chains;         /* likewise */
    nrg_dtype dtype;       /* of p */
    nrg_dtype w_dtype;     /* of w and b: SAME, dtype, or NRG_F32 */
    nrg_dtype p0_dtype;    /* of p0: SAME, dtype, or NRG_F32 */
    uint32_t reserved;     /* 0 */
    const void *w;         /* [dim, dim] W: row i makes element i */
    const void *b;         /* [dim], or NULL */
    const void *p0;        /* [chains, dim] */
    void *p;               /* [chains, n, dim] output: p_1 … p_n */
    size_t w_stride;       /* bytes: from row to row */
    size_t p0_stride;      /* from chain to chain */
    size_t p_stride;       /* from position to position */
    size_t p_chain_stride; /* from chain to chain; 0: n · p_stride */
} nrg_recurrent_args;

/* One chain, f32, without b. */
static inline nrg_recurrent_args nrg_recurrent_args_init(size_t dim, size_t n, const void *w, const void *p0, void *p)
{
    nrg_recurrent_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.dim = dim;
    args.n = n;
    args.chains = 1;
    args.dtype = NRG_F32;
    args.w = w;
    args.p0 = p0;
    args.p = p;
    return args;
}

/* The chains of share ith of nth: (0, 1) does all; from several threads, call it once each with (0, nth) … (nth-1, nth) and the
 * same args. A chain is sequential and goes to one thread: with one chain, which is the usual case, share 0 does everything. At
 * most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with n and chains > 0) w, p0 or p
 *   NRG_ERR_STRUCT_SIZE  a size smaller than the first version's struct, larger than this one's and not zero there, or over 4096;
 *                        reserved not 0
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      p overlaps another operand
 *   NRG_ERR_ENUM         a dtype unknown
 *   NRG_ERR_DTYPE        w_dtype or p0_dtype neither dtype nor f32
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_API nrg_status nrg_recurrent_forward(const nrg_recurrent_args *args, int ith, int nth);

/* What nrg_recurrent_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_recurrent_forward_check(const nrg_recurrent_args *args);

/* Dtypes and strides as above; dp has dtype. dw, db and dp0 are f32 whatever the dtype.
 *
 * Aliasing: inputs may overlap each other; dw, db, dp0 and the workspace share no byte with anything. */
typedef struct nrg_recurrent_backward_args {
    size_t size;            /* sizeof(nrg_recurrent_backward_args) */
    size_t dim;             /* as in the forward pass, like all that has a name from there */
    size_t n;               /* 0 is fine: gradients are then 0, or keep their value with accumulate */
    size_t chains;          /* likewise */
    nrg_dtype dtype;        /* of p and dp */
    nrg_dtype w_dtype;      /* of w */
    nrg_dtype p0_dtype;     /* of p0 */
    int accumulate;         /* not 0: dw and db are added to what is there, in one rounding; 0: overwritten, as dp0 always is */
    const void *w;          /* [dim, dim] */
    const void *p0;         /* [chains, dim]; read for dw, otherwise it may be NULL */
    const void *p;          /* [chains, n, dim] as the forward pass stored it */
    const void *dp;         /* [chains, n, dim] gradient of p */
    float *dw;              /* [dim, dim] output, or NULL */
    float *db;              /* [dim] output, or NULL; also without b */
    float *dp0;             /* [chains, dim] output, or NULL */
    void *workspace;        /* g_k, [chains, n, dim] floats, from phase 1 to phase 2 */
    size_t workspace_size;  /* bytes, at least what nrg_recurrent_workspace says */
    size_t w_stride;        /* bytes; 0: dense */
    size_t p0_stride;       /* from chain to chain */
    size_t p_stride;        /* from position to position */
    size_t p_chain_stride;  /* from chain to chain; 0: n · p_stride */
    size_t dp_stride;       /* from position to position */
    size_t dp_chain_stride; /* from chain to chain; 0: n · dp_stride */
    size_t dw_stride;       /* from row to row */
    size_t dp0_stride;      /* from chain to chain */
} nrg_recurrent_backward_args;

/* One chain, f32, no output yet. */
static inline nrg_recurrent_backward_args nrg_recurrent_backward_args_init(size_t dim, size_t n, const void *w, const void *p0,
                                                                           const void *p, const void *dp)
{
    nrg_recurrent_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.dim = dim;
    args.n = n;
    args.chains = 1;
    args.dtype = NRG_F32;
    args.w = w;
    args.p0 = p0;
    args.p = p;
    args.dp = dp;
    return args;
}

/* Bytes of workspace: 4 · chains · n · dim, whatever is asked for. Only these three of args are looked at. Returns NRG_OK, or
 * writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW. */
NRG_API nrg_status nrg_recurrent_workspace(const nrg_recurrent_backward_args *args, size_t *bytes);

/* Phase 1: g_k and dp0 of the chains of share ith of nth. Returns the statuses of nrg_recurrent_forward, and
 *   NRG_ERR_NULL         (with n and chains > 0) w, p or dp; workspace; p0 with dw
 *   NRG_ERR_OVERLAP      an output, or the workspace, overlaps another operand
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_API nrg_status nrg_recurrent_backward(const nrg_recurrent_backward_args *args, int ith, int nth);

/* What nrg_recurrent_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_recurrent_backward_check(const nrg_recurrent_backward_args *args);

/* Phase 2: the rows of dw, and elements of db, of share ith of nth, from the workspace. Sums are over chains and their positions,
 * both in ascending order. nth may differ from that of phase 1. Nothing is done where neither is asked for.
 * Returns the statuses of nrg_recurrent_backward. */
NRG_API nrg_status nrg_recurrent_backward_reduce(const nrg_recurrent_backward_args *args, int ith, int nth);

/* What nrg_recurrent_backward_reduce would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_recurrent_backward_reduce_check(const nrg_recurrent_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
