/* nrg/recurrent.h: positional encodings by recursion, as in a recurrent network, forward and backward.
 *
 * A chain is a sequence of vectors from a given p_0. Each vector is computed from the previous one:
 *
 *     p_k = tanh(W p_(k-1) + b),   k = 1 … n                         b absent: 0
 *
 * A call computes `chains` independent chains, with the same W and b. The encodings of n positions are the n vectors of a chain.
 * W, b and p_0 are learned. For the same idea in continuous time, see nrg/floater.h.
 *
 * Source: the cell is that of a simple recurrent network (Elman, "Finding Structure in Time", Cognitive Science 14, 1990),
 * without an input.
 *
 * For every call, dtype and shape:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, and for any number of chains in a call.
 * - In the formula, p_(k-1) is the stored vector, rounded to dtype. So a call can continue a chain: its p_0 is the last vector of
 *   the previous call (p0_dtype: SAME). Results are bit-identical to one call for all positions.
 * - W p_(k-1) is summed in double, and b is added in double. The result is rounded once to f32, and tanh is computed from it
 *   (nrg/activation.h: 1.9 ulp). A 16-bit result is that f32 rounded once.
 * - A NaN or an infinity in W or b affects every result whose formula contains it. After two positions, that may be every
 *   element. One in p_0 affects only its chain.
 *
 * Error of an element of p_k, compared with the exact tanh(W p_(k-1) + b) of the stored p_(k-1):
 * - The bound is 3 ulp (measured: 2.5), plus the effect of cancellation in the double sum: (dim/32 + 8) · 2^-53 · Σ|W p_(k-1)|.
 * - A 16-bit result adds half an ulp of its type.
 * - W determines how such errors grow over many positions. At most ‖W‖ times the error of one position enters the next.
 *
 * The backward pass gets dp_k, the gradient that arrives at p_k from elsewhere, for every k. It is the reversed recursion:
 *
 *     g_k  = (dp_k + Wᵀ g_(k+1)) ⊙ (1 - p_k²),  k = n … 1             g_(n+1) = 0
 *     dp_0 = Wᵀ g_1                                                    n = 0: 0
 *     dW  += Σ_chains Σ_k g_k p_(k-1)ᵀ
 *     db  += Σ_chains Σ_k g_k
 *
 * The slope 1 - p_k² uses the stored p_k. If a 16-bit p_k was rounded to 1, the slope is 0. All arithmetic is in double, except
 * that g_k and the sums dp_0, dW and db are rounded to f32. Error bounds:
 * - g_k, compared with the exact right-hand side for the stored g_(k+1) and p_k: 0.51 ulp, plus the slope times (dim + 2) · 2^-53
 *   of the sum of the magnitudes.
 * - dp_0, dW, db: 0.51 ulp, plus (terms + 2) · 2^-53 of the sum of the magnitudes of their terms.
 *
 * One thread: nrg_recurrent_backward(&args, 0, 1) computes all gradients. Several threads, if dW or db is requested:
 *
 *     1. nrg_recurrent_backward(&args, ith, nth) on every thread: g_k and dp_0; every g_k stays in the workspace
 *     2. the host's barrier
 *     3. nrg_recurrent_backward_reduce(&args, ith, nth) on every thread: dW and db
 *
 * docs/ops/recurrent.md has the definition of every bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_RECURRENT_H
#define NRG_RECURRENT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands of nrg_recurrent_forward. Make one with nrg_recurrent_args_init, then change fields. Pointers need only the alignment
 * of their element. Inputs may overlap each other.
 *
 * Strides are in bytes; 0 is dense, in the order of the operand's shape. If both strides of p are 0, p is [chains, positions,
 * dim]. In [positions, chains, dim], the chains are side by side: set p_stride[1] smaller than p_stride[0].
 *
 * Aliasing: p shares no byte with another operand. p0 may be the vector before p in the same buffer. */
typedef struct nrg_recurrent_args {
    size_t size;        /* sizeof(nrg_recurrent_args) */
    size_t chains;      /* number of chains; if 0, the call does nothing. Default: 1. */
    size_t positions;   /* n, vectors of a chain; if 0, the call does nothing */
    size_t dim;         /* elements of a vector, at least 1 */
    nrg_dtype dtype;    /* of p */
    nrg_dtype w_dtype;  /* of w and b: SAME, dtype or NRG_F32 */
    nrg_dtype p0_dtype; /* of p0: SAME, dtype or NRG_F32 */
    uint32_t reserved;  /* 0 */
    const void *w;      /* [dim, dim] input: W; row i gives element i */
    size_t w_stride;    /* from one row to the next */
    const void *p0;     /* [chains, dim] input */
    size_t p0_stride;   /* from one chain to the next */
    const void *b;      /* [dim] input, or NULL: 0 */
    void *p;            /* [chains, positions, dim] output: p_1 … p_n */
    size_t p_stride[2]; /* from one position to the next, from one chain to the next */
} nrg_recurrent_args;

/* Returns args for one dense chain without b.
 *
 * Parameters:
 * - dtype, positions, dim, w, p0, p: the fields of the same names. */
static inline nrg_recurrent_args nrg_recurrent_args_init(nrg_dtype dtype, size_t positions, size_t dim, const void *w,
                                                         const void *p0, void *p)
{
    nrg_recurrent_args args;
    args.size = sizeof args;
    args.chains = 1;
    args.positions = positions;
    args.dim = dim;
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

/* Computes the vectors of each chain.
 *
 * Parameters:
 * - args: operands, described at their fields. Unless positions or chains is 0, w, p0 and p must not be NULL.
 * - ith, nth: the share, a range of chains. A chain is sequential, so one thread computes it. With a single chain, the common
 *   case, share 0 does all work.
 *
 * The call uses at most 16 KB of stack in an optimized build.
 *
 * Aliasing: p shares no byte with another operand.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or there are positions and chains, and w, p0 or p is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: p overlaps another operand.
 * - NRG_ERR_ENUM: a dtype has an unknown value.
 * - NRG_ERR_DTYPE: w_dtype or p0_dtype is neither dtype nor f32.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_forward(const nrg_recurrent_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_forward_check(const nrg_recurrent_args *args);

/* Operands of the backward pass. Make one with nrg_recurrent_backward_args_init, then change fields. Dtypes and strides are as in
 * nrg_recurrent_args. Outputs are f32 for every dtype. Inputs may overlap each other.
 *
 * Aliasing: dw, db, d_p0 and the workspace share no byte with another operand. */
typedef struct nrg_recurrent_backward_args {
    size_t size;           /* sizeof(nrg_recurrent_backward_args) */
    size_t chains;         /* as in the forward pass; if 0, as positions. Default: 1. */
    size_t positions;      /* if 0, gradients become 0, or keep their values with accumulate */
    size_t dim;            /* as in the forward pass */
    nrg_dtype dtype;       /* of p and dp */
    nrg_dtype w_dtype;     /* of w: SAME, dtype or NRG_F32 */
    nrg_dtype p0_dtype;    /* of p0: SAME, dtype or NRG_F32 */
    int accumulate;        /* not 0: added to dw and db, in one rounding; 0: overwrites them. d_p0 is always overwritten */
    const void *w;         /* [dim, dim] input, as in the forward pass */
    size_t w_stride;       /* from one row to the next */
    const void *p0;        /* [chains, dim] input, as in the forward pass; may be NULL without dw */
    size_t p0_stride;      /* from one chain to the next */
    const void *p;         /* [chains, positions, dim] input, as the forward pass stored it */
    size_t p_stride[2];    /* from one position to the next, from one chain to the next */
    const void *dp;        /* [chains, positions, dim] input: gradient of p */
    size_t dp_stride[2];   /* as p_stride */
    float *d_p0;           /* [chains, dim] output: gradient of p0, or NULL */
    size_t d_p0_stride;    /* from one chain to the next */
    float *dw;             /* [dim, dim] output: gradient of w, or NULL */
    size_t dw_stride;      /* from one row to the next */
    float *db;             /* [dim] output: gradient of b, or NULL; also if b was NULL */
    void *workspace;       /* aligned to 4 bytes; begins with g_k, [chains, positions, dim] floats, from phase 1 to phase 2 */
    size_t workspace_size; /* bytes; nrg_recurrent_backward_workspace computes the minimum */
} nrg_recurrent_backward_args;

/* Returns args for one dense chain without outputs. Set d_p0, dw or db, and the workspace.
 *
 * Parameters:
 * - dtype, positions, dim, w, p0, p, dp: the fields of the same names. */
static inline nrg_recurrent_backward_args nrg_recurrent_backward_args_init(nrg_dtype dtype, size_t positions, size_t dim,
                                                                           const void *w, const void *p0, const void *p,
                                                                           const void *dp)
{
    nrg_recurrent_backward_args args;
    args.size = sizeof args;
    args.chains = 1;
    args.positions = positions;
    args.dim = dim;
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

/* Computes the bytes of the workspace: 4 · chains · positions · dim and 8 more, for any outputs. Without positions or chains,
 * they are 0.
 *
 * Parameters:
 * - args: the call reads only chains, positions and dim.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args or bytes is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_OVERFLOW: the workspace has more bytes than a size_t can count. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_workspace(const nrg_recurrent_backward_args *args, size_t *bytes);

/* Computes g_k and d_p0: phase 1. With one share (nth = 1), it computes dw and db too, and no second phase is needed.
 *
 * Parameters:
 * - args: operands, described at their fields. Each output may be NULL.
 * - ith, nth: the share, a range of chains.
 *
 * Aliasing: an output shares no byte with another operand, nor does the workspace.
 *
 * Returns the statuses of nrg_recurrent_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: args is NULL; or there are positions and chains, and w, p, dp, workspace or, with dw, p0 is NULL.
 * - NRG_ERR_OVERLAP: an output or the workspace overlaps another operand.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than needed. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward(const nrg_recurrent_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_check(const nrg_recurrent_backward_args *args);

/* Computes dw and db from the workspace: phase 2. It does nothing if both are NULL, or if phase 1 had one share.
 *
 * The sums are over chains and their positions, both in ascending order. The call does not detect that phase 1 was left out.
 *
 * Parameters:
 * - args: those of phase 1.
 * - ith, nth: the share, a range of rows of dw and elements of db. nth may differ from that of phase 1.
 *
 * Aliasing: as in nrg_recurrent_backward.
 *
 * Returns the statuses of nrg_recurrent_backward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_reduce(const nrg_recurrent_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_recurrent_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_recurrent_backward_reduce_check(const nrg_recurrent_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
