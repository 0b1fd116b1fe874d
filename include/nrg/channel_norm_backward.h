/* nrg/channel_norm_backward.h: the backward pass of nrg/channel_norm.h.
 *
 * Given d_o, the gradient of o, with the names of nrg/channel_norm.h (h = (x - m)/s, Σ over the elements of a set):
 *
 *     do1 = d_o ⊙ g′(o1 + y)              d_o without an activation
 *     dy  = do1
 *     db_c += Σ do1,  dw_c += Σ do1 ⊙ h   over the elements of channel c, in all samples
 *     dh  = do1 ⊙ w
 *     dx  = (dh - Σdh/d - h · (Σ dh⊙h)/d) / s     centred;  without Σdh/d otherwise;  s = 0, or d ≤ centred + (eps = 0): 0
 *
 * With NRG_STATISTICS_RUNNING, m and s are constants: dx = dh/s. NRG_STATISTICS_FOLDED has no backward pass.
 *
 * Source: the chain rule; for batch norm the formulas of arXiv:1502.03167, section 3.
 *
 * What holds:
 * - The bits are the same on every path, for any (ith, nth), alignment, stride, in place or not, with statistics saved or
 *   recomputed, whichever outputs are asked for, and for sums in parts.
 * - Error of dx, dw, db, in both grades and for every input: within 4 · 2^-24 · Σ|terms| of the formula; 16-bit dx and dy 0.51
 *   ulp of their type on top. Σ|terms| is the sum of the magnitudes of what is added up: of dx |dh|/s, |h| Σ|dh⊙h|/(d s) and,
 *   centred, Σ|dh|/(d s), with |h| + 2^-24 |m|/s for |h|; of dw Σ|do1⊙h|, of db Σ|do1|. One below 2^-126 counts as that. Where g
 *   is not identity, the error of g′ (nrg/activation.h) comes on top. A mean that was computed in the fast grade is off by up to
 *   k σ, k = 3 · 2^-24, which moves dx by k (|Σ dh⊙h| + |h Σdh|)/(d s) and dw by k Σ |do1| beside that. Statistics given as
 *   floats: more, see below.
 * - spec.accuracy is the grade of what the forward pass has computed and this one computes again: o1, where there is an
 *   activation, and statistics that are not given. With the forward pass's accuracy they have its bits.
 * - A NaN or an infinity in x or d_o poisons its set's dx and dw of its channels, and may poison db; with NRG_STATISTICS_RUNNING
 *   its own dx only. No other set is touched.
 *
 * Statistics as floats. args.mean and args.rstd take the place of args.statistics: the mean and rstd of the forward pass, or what
 * another library has kept, such as save_mean and save_invstd of PyTorch. Each counts as its exact value in double, and d is the
 * number of elements, or with args.sums what these say: the bits are those of an nrg_channel_statistics of the same values. What
 * floats cost: a mean rounded to float is off by up to 2^-24 |m|, which moves h by up to k = 2^-24 |m|/σ, and so dx by k (|Σ
 * dh⊙h| + |h Σdh|)/(d s), dw by k |Σ do1|, and the o1 in which g′ is taken by k |w|. Little where |m| is a few σ; far beyond σ it
 * is most of the error (measured: of dx, in 2^-24 · Σ|terms|, 1 at 6 σ, 60 at 400 σ, 2600 at 25000 σ with random d_o; 9, 500 and
 * 35000 where d_o is alike). A rounded rstd moves dx by up to 3 · 2^-24 of its terms, and dw by 2^-24. Statistics in double cost
 * neither.
 *
 * How it is called:
 *
 *     1. nrg_channel_norm_backward(&spec, &args, ith, nth) on every thread
 *     2. the host's barrier
 *     3. nrg_channel_norm_backward_reduce(&spec, &args, ith, nth) on every thread
 *
 * Always call both: where nothing is left to do, the second returns NRG_OK at once. It is needed for dw or db with
 * NRG_CHANNEL_OVER_GROUP, since the samples of a channel are in different sets, and these need the workspace. dx and dy alone,
 * and all of NRG_CHANNEL_OVER_BATCH, are done after the first, without a workspace and without the barrier.
 *
 * Sums in parts (synchronized batch norm; NRG_CHANNEL_OVER_BATCH only): nrg_channel_norm_backward_sums on every part, which also
 * writes the part's own dw and db; add the integers; nrg_channel_norm_backward with args.sums, for dx and dy.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHANNEL_NORM_BACKWARD_H
#define NRG_CHANNEL_NORM_BACKWARD_H

#include "channel_norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is; as nrg_channel_norm_args. Every output may be NULL.
 *
 * Aliasing: dx may be d_o, x or y, dy may be d_o or y (the whole operand, same first byte, same stride); dx and dy are apart.
 * Nothing else overlaps an output.
 *
 *               d_o   x     y
 *        dx     yes   yes   yes
 *        dy     yes   no    yes */
typedef struct nrg_channel_norm_backward_args {
    size_t size;       /* sizeof(nrg_channel_norm_backward_args) */
    size_t n, s;       /* samples, positions */
    const void *d_o;   /* as x: gradient of o */
    const void *x;     /* as in the forward pass */
    const void *y;     /* as in the forward pass; read where there is an activation */
    const void *w, *b; /* as in the forward pass; b is read where there is an activation */
    const nrg_channel_statistics
        *statistics; /* [sets] as the forward pass gave them, or mean and rstd; COMPUTE: neither to have them computed again */
    const float *running_mean, *running_var; /* [c] with NRG_STATISTICS_RUNNING */
    const int64_t *sums; /* [sets][NRG_CHANNEL_NORM_SUMS_WORDS] of all parts, or NULL: summed here. Then dw and db must be NULL */
    void *dx;            /* as x: output, or NULL */
    void *dy;            /* as x: output, or NULL */
    float *dw;           /* [c] output, or NULL; also without w */
    float *db;           /* [c] output, or NULL; also without b */
    void *workspace;     /* multiple of 8 bytes; NULL where none is needed */
    size_t workspace_size;                                       /* bytes */
    size_t d_o_stride, x_stride, y_stride, dx_stride, dy_stride; /* bytes, 0: dense */
    int accumulate;    /* not 0: dw and db are added to what is there, in one rounding */
    uint32_t reserved; /* 0 */
    const float *mean; /* [sets] statistics as floats, both in the place of `statistics`, or NULL; not read unless centred */
    const float *rstd; /* [sets] 1/s; or NULL */
} nrg_channel_norm_backward_args;

static inline nrg_channel_norm_backward_args nrg_channel_norm_backward_args_init(size_t n, size_t s, const void *x,
                                                                                 const void *d_o, void *dx)
{
    nrg_channel_norm_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.n = n;
    args.s = s;
    args.x = x;
    args.d_o = d_o;
    args.dx = dx;
    return args;
}

/* Bytes of workspace: 0 with NRG_CHANNEL_OVER_BATCH, and where neither dw nor db is asked for; otherwise 8 · channels for each
 * of them
 * and each of at most 64 blocks of samples. Only n, dw and db of args are looked at. Returns NRG_OK, or writes nothing:
 * NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 * NRG_ERR_COMBINATION. */
NRG_API nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec,
                                                       const nrg_channel_norm_backward_args *args, size_t *bytes);

/* The gradients of share ith of nth: whole channels with NRG_CHANNEL_OVER_BATCH, otherwise whole sets, in blocks of samples
 * where dw or
 * db is asked for. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_channel_norm_sums, and
 *   NRG_ERR_NULL         (with n > 0) x or d_o; statistics (or mean and rstd) with GIVEN or with sums; workspace where needed
 *   NRG_ERR_COMBINATION  NRG_STATISTICS_FOLDED; statistics, mean or rstd with RUNNING; mean or rstd beside statistics;
 *                        mean or rstd alone (rstd may be, where not centred); sums with NRG_CHANNEL_OVER_GROUP or RUNNING, or
 *                        with dw or db
 *   NRG_ERR_COUNT        sums or statistics of no elements
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_API nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                             int ith, int nth);

/* What nrg_channel_norm_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_channel_norm_backward_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args);

/* Phase 2, with the spec and args of phase 1: channels of share ith of nth, from the workspace to dw and db. Always call it;
 * where nothing is left (NRG_CHANNEL_OVER_BATCH, or neither dw nor db) it returns NRG_OK at once. What phase 1 refuses is
 * refused here too: the statuses of nrg_channel_norm_backward. */
NRG_API nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                                    int ith, int nth);

/* What nrg_channel_norm_backward_reduce would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_channel_norm_backward_reduce_check(const nrg_channel_norm_spec *spec,
                                                          const nrg_channel_norm_backward_args *args);

/* NRG_CHANNEL_OVER_BATCH: Σdo1 and Σdo1 ⊙ (x - m) of a part, [c][NRG_CHANNEL_NORM_SUMS_WORDS], with statistics given (of all
 * parts; or
 * as floats); dw and db, where asked for, are the part's own. dx, dy and args.sums are not looked at.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_channel_norm_sums, and
 *   NRG_ERR_NULL         sums; (with n > 0) x, d_o, or statistics in double or as floats
 *   NRG_ERR_COMBINATION  NRG_CHANNEL_OVER_GROUP, NRG_STATISTICS_RUNNING or NRG_STATISTICS_FOLDED; mean or rstd as above
 *   NRG_ERR_COUNT        statistics of no elements */
NRG_API nrg_status nrg_channel_norm_backward_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                                  int64_t *sums, int ith, int nth);

/* What nrg_channel_norm_backward_sums would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_channel_norm_backward_sums_check(const nrg_channel_norm_spec *spec,
                                                        const nrg_channel_norm_backward_args *args, int64_t *sums);

#ifdef __cplusplus
}
#endif
#endif
