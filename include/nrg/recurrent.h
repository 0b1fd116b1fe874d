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
 * One thread: nrg_recurrent_backward(&args, 0, 1) computes all gradients. Several threads, where dW or db is requested:
 *
 *     1. nrg_recurrent_backward(&args, ith, nth) on every thread: g_k and dp_0; every g_k stays in the workspace
 *     2. the host's barrier
 *     3. nrg_recurrent_backward_reduce(&args, ith, nth) on every thread: dW and db
 *
 * docs/ops/recurrent.md has the definition to the last bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RECURRENT_H
#define NRG_RECURRENT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make one with nrg_recurrent_args_init, then set other fields. Pointers need the alignment of their element only. Strides are in
 * bytes; 0 is dense, in the order of the operand's shape. So p of 0 and 0 is [chains, positions, dim]. Chains side by side,
 * [positions, chains, dim], have a p_stride[1] that is smaller than p_stride[0].
 *
 * Aliasing: inputs may overlap each other. p shares no byte with another operand; p0 may be the vector before p in the same
 * buffer. */
typedef struct nrg_recurrent_args {
    size_t size;        /* sizeof(nrg_recurrent_args) */
    size_t dim;         /* elements of a vector, at least 1 */
    size_t positions;   /* n, of a chain; with 0 nothing is done */
    size_t chains;      /* likewise. Default: 1. */
    nrg_dtype dtype;    /* of p */
    nrg_dtype w_dtype;  /* of w and b: SAME, dtype, or NRG_F32 */
    nrg_dtype p0_dtype; /* of p0: SAME, dtype, or NRG_F32 */
    uint32_t reserved;  /* 0 */
    const void *w;      /* [dim, dim] W: row i makes element i */
    size_t w_stride;    /* from row to row */
    const void *p0;     /* [chains, dim] */
    size_t p0_stride;   /* from chain to chain */
    const void *b;      /* [dim], or NULL */
    void *p;            /* [chains, positions, dim] output: p_1 … p_n */
    size_t p_stride[2]; /* from position to position, from chain to chain */
} nrg_recurrent_args;

/* One chain, without b. */
static inline nrg_recurrent_args nrg_recurrent_args_init(nrg_dtype dtype, size_t dim, size_t positions, const void *w,
                                                         const void *p0, void *p)
{
    nrg_recurrent_args args;
    args.size = sizeof args;
    args.dim = dim;
    args.positions = positions;
    args.chains = 1;
    args.dtype = dtype;
    args.w_dtype = args.p0_dtype = NRG_DTYPE_SAME;
    args.reserved = 0;
    args.w = w;
    args.p0 = p0;
    args.b = NULL;
    args.p = p;
    args.w_stride = args.p0_stride = args.p_stride[0] = args.p_stride[1] = 0;
    return args;
}

/* The chains of share ith of nth: (0, 1) does all; from several threads, call it once each with (0, nth) … (nth-1, nth) and the
 * same args. A chain is sequential and goes to one thread: with one chain, which is the usual case, share 0 does everything. At
 * most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with positions and chains > 0) w, p0 or p
 *   NRG_ERR_STRUCT_SIZE  a size smaller than this struct's, larger and not zero beyond it, or over 4096; reserved not 0
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      p overlaps another operand
 *   NRG_ERR_ENUM         a dtype unknown
 *   NRG_ERR_DTYPE        w_dtype or p0_dtype neither dtype nor f32
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_forward(const nrg_recurrent_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_forward_check(const nrg_recurrent_args *args);

/* Dtypes and strides as above; dp has dtype. dw, db and d_p0 are f32 whatever the dtype.
 *
 * Aliasing: inputs may overlap each other; dw, db, d_p0 and the workspace share no byte with another operand. */
typedef struct nrg_recurrent_backward_args {
    size_t size;           /* sizeof(nrg_recurrent_backward_args) */
    size_t dim;            /* as in the forward pass */
    size_t positions;      /* with 0, gradients are 0, or keep their value with accumulate */
    size_t chains;         /* likewise. Default: 1. */
    nrg_dtype dtype;       /* of p and dp */
    nrg_dtype w_dtype;     /* of w */
    nrg_dtype p0_dtype;    /* of p0 */
    int accumulate;        /* not 0: dw and db are added to their old values, in one rounding. d_p0 is overwritten */
    const void *w;         /* [dim, dim] */
    size_t w_stride;       /* from row to row */
    const void *p0;        /* [chains, dim]; read for dw, otherwise it may be NULL */
    size_t p0_stride;      /* from chain to chain */
    const void *p;         /* [chains, positions, dim] as the forward pass stored it */
    size_t p_stride[2];    /* from position to position, from chain to chain */
    const void *dp;        /* [chains, positions, dim] gradient of p */
    size_t dp_stride[2];   /* as p_stride */
    float *d_p0;           /* [chains, dim] output, or NULL */
    size_t d_p0_stride;    /* from chain to chain */
    float *dw;             /* [dim, dim] output, or NULL */
    size_t dw_stride;      /* from row to row */
    float *db;             /* [dim] output, or NULL; also without b */
    void *workspace;       /* begins with g_k, [chains, positions, dim] floats, from phase 1 to phase 2 */
    size_t workspace_size; /* bytes, at least what nrg_recurrent_backward_workspace returns */
} nrg_recurrent_backward_args;

/* One chain, no output yet. */
static inline nrg_recurrent_backward_args nrg_recurrent_backward_args_init(nrg_dtype dtype, size_t dim, size_t positions,
                                                                           const void *w, const void *p0, const void *p,
                                                                           const void *dp)
{
    nrg_recurrent_backward_args args;
    args.size = sizeof args;
    args.dim = dim;
    args.positions = positions;
    args.chains = 1;
    args.dtype = dtype;
    args.w_dtype = args.p0_dtype = NRG_DTYPE_SAME;
    args.accumulate = 0;
    args.w = w;
    args.p0 = p0;
    args.p = p;
    args.dp = dp;
    args.d_p0 = args.dw = args.db = NULL;
    args.w_stride = args.p0_stride = args.d_p0_stride = args.dw_stride = 0;
    args.p_stride[0] = args.p_stride[1] = args.dp_stride[0] = args.dp_stride[1] = 0;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Bytes of workspace: 4 · chains · positions · dim and 8 more, whichever outputs are requested; without positions or chains 0.
 * Reads only these three fields of args. Returns NRG_OK, or writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_workspace(const nrg_recurrent_backward_args *args, size_t *bytes);

/* Phase 1: g_k and d_p0 of the chains of share ith of nth; as the only share (nth = 1) also dw and db, so that no second phase
 * is needed. Returns the statuses of nrg_recurrent_forward, and
 *   NRG_ERR_NULL         (with positions and chains > 0) w, p or dp; workspace; p0 with dw
 *   NRG_ERR_OVERLAP      an output, or the workspace, overlaps another operand
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward(const nrg_recurrent_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_check(const nrg_recurrent_backward_args *args);

/* Phase 2: the rows of dw, and elements of db, of share ith of nth, from the workspace. Sums are over chains and their positions,
 * both in ascending order. nth may differ from that of phase 1. Does nothing if neither is requested, or if phase 1 had one
 * share. Returns the statuses of nrg_recurrent_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_reduce(const nrg_recurrent_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_reduce_check(const nrg_recurrent_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
