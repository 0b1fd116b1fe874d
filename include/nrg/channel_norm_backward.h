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
 * One thread: nrg_channel_norm_backward(&spec, &args, 0, 1) computes all gradients. Several threads:
 *
 *     1. nrg_channel_norm_backward(&spec, &args, ith, nth) on every thread
 *     2. the host's barrier
 *     3. nrg_channel_norm_backward_reduce(&spec, &args, ith, nth) on every thread
 *
 * The second phase is needed for dw or db with NRG_CHANNEL_OVER_GROUP, since the samples of a channel are in different sets, and
 * these need the workspace. dx and dy alone, and all of NRG_CHANNEL_OVER_BATCH, are done after the first, without a workspace and
 * without the barrier. Where nothing is left to do, the second returns NRG_OK at once.
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
    size_t samples;    /* n */
    size_t positions;  /* s */
    const void *d_o;   /* as x: gradient of o */
    size_t d_o_stride; /* bytes, 0: dense; likewise the other strides */
    const void *x;     /* as in the forward pass */
    size_t x_stride;
    const nrg_channel_statistics *statistics; /* [sets] as the forward pass wrote them; NULL: mean and rstd; COMPUTE: or neither,
                                                 to have them computed again */
    const float *mean;                        /* [sets] statistics as floats; NULL unless centred */
    const float *rstd;                        /* [sets] 1/s */
    const float *running_mean;                /* [c] RUNNING */
    const float *running_var;                 /* [c] likewise */
    const int64_t *sums; /* [sets][NRG_CHANNEL_NORM_SUMS_WORDS] of all parts, or NULL: summed here. Then dw and db must be NULL */
    const void *w;       /* as in the forward pass */
    const void *b;       /* as in the forward pass, with an activation; otherwise NULL */
    const void *y;       /* likewise */
    size_t y_stride;
    nrg_store store; /* of dx and dy; a hint */
    int accumulate;  /* not 0: dw and db are added to their old values, in one rounding */
    void *dx;        /* as x: output, or NULL */
    size_t dx_stride;
    void *dy; /* as x: output, or NULL */
    size_t dy_stride;
    float *dw;             /* [c] output, or NULL; also without w */
    float *db;             /* [c] output, or NULL; also without b */
    void *workspace;       /* multiple of 8 bytes; NULL where none is needed */
    size_t workspace_size; /* bytes */
} nrg_channel_norm_backward_args;

static inline nrg_channel_norm_backward_args nrg_channel_norm_backward_args_init(size_t samples, size_t positions, const void *x,
                                                                                 const void *w, const void *d_o, void *dx)
{
    nrg_channel_norm_backward_args args;
    args.size = sizeof args;
    args.samples = samples;
    args.positions = positions;
    args.d_o = d_o;
    args.x = x;
    args.statistics = NULL;
    args.mean = args.rstd = args.running_mean = args.running_var = NULL;
    args.sums = NULL;
    args.w = w;
    args.b = args.y = NULL;
    args.store = NRG_STORE_AUTO;
    args.accumulate = 0;
    args.dx = dx;
    args.dy = NULL;
    args.d_o_stride = args.x_stride = args.y_stride = args.dx_stride = args.dy_stride = 0;
    args.dw = args.db = NULL;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Bytes of workspace: 0 with NRG_CHANNEL_OVER_BATCH, and where neither dw nor db is asked for; otherwise 8 · channels for each
 * of them and each of at most 64 blocks of samples. Reads only samples, dw and db of args. Returns NRG_OK, or writes nothing:
 * NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT,
 * NRG_ERR_COMBINATION. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec,
                                                                     const nrg_channel_norm_backward_args *args, size_t *bytes);

/* The gradients of share ith of nth: whole channels with NRG_CHANNEL_OVER_BATCH, otherwise whole sets, in blocks of samples
 * where dw or db is requested. The only share (nth = 1) does the reduction, too. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_channel_norm_sums, and
 *   NRG_ERR_NULL         (with n > 0) x or d_o; statistics (or mean and rstd) with GIVEN or with sums; workspace where needed
 *   NRG_ERR_COMBINATION  NRG_STATISTICS_FOLDED; statistics, mean or rstd with RUNNING; running statistics without it; mean or
 *                        rstd in addition to statistics; one of mean and rstd without the other; mean where not centred; sums
 *                        with NRG_CHANNEL_OVER_GROUP or RUNNING, or with dw or db; y or b without an activation
 *   NRG_ERR_COUNT        sums or statistics of no elements
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec,
                                                           const nrg_channel_norm_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_check(const nrg_channel_norm_spec *spec,
                                                                 const nrg_channel_norm_backward_args *args);

/* Phase 2, with the spec and args of phase 1: channels of share ith of nth, from the workspace to dw and db. Returns NRG_OK
 * at once if nothing is left: NRG_CHANNEL_OVER_BATCH, neither dw nor db, or phase 1 had one share. What phase 1 refuses is
 * refused here too: the statuses of nrg_channel_norm_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec,
                                                                  const nrg_channel_norm_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_reduce_check(const nrg_channel_norm_spec *spec,
                                                                        const nrg_channel_norm_backward_args *args);

/* NRG_CHANNEL_OVER_BATCH: Σdo1 and Σdo1 ⊙ (x - m) of a part, [c][NRG_CHANNEL_NORM_SUMS_WORDS], with statistics given (of all
 * parts; or as floats); dw and db, where requested, are the part's. dx, dy, args.sums and running statistics are ignored.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_channel_norm_sums, and
 *   NRG_ERR_NULL         sums; (with n > 0) x, d_o, or statistics in double or as floats
 *   NRG_ERR_COMBINATION  NRG_CHANNEL_OVER_GROUP, NRG_STATISTICS_RUNNING or NRG_STATISTICS_FOLDED; mean, rstd, y or b as above
 *   NRG_ERR_COUNT        statistics of no elements */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_sums(const nrg_channel_norm_spec *spec,
                                                                const nrg_channel_norm_backward_args *args, int64_t *sums,
                                                                int ith, int nth);

/* Validates the arguments of nrg_channel_norm_backward_sums. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_sums_check(const nrg_channel_norm_spec *spec,
                                                                      const nrg_channel_norm_backward_args *args, int64_t *sums);

#ifdef __cplusplus
}
#endif
#endif
