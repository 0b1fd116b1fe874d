/* nrg/channel_norm_backward.h: the backward pass of nrg/channel_norm.h.
 *
 * d_o is the gradient of o. The other names are those of nrg/channel_norm.h (h = (x - m)/s, Σ over the elements of a set):
 *
 *     do1 = d_o ⊙ g′(o1 + y)              d_o without an activation
 *     dy  = do1
 *     db_c += Σ do1,  dw_c += Σ do1 ⊙ h   over the elements of channel c, in all samples
 *     dh  = do1 ⊙ w
 *     dx  = (dh - Σdh/d - h · (Σ dh⊙h)/d) / s     centred;  without Σdh/d otherwise;  s = 0, or d ≤ centred + (eps = 0): 0
 *
 * With NRG_STATISTICS_RUNNING, m and s are constants: dx = dh/s. NRG_STATISTICS_FOLDED has no backward pass.
 *
 * Source: the chain rule; for batch norm, the formulas of arXiv:1502.03167, section 3.
 *
 * For every call:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not. They depend neither on
 *   which outputs are requested, nor on whether statistics are stored or recomputed, nor on sums in parts.
 * - spec.accuracy is the grade of everything that this pass computes again: o1, with an activation, and statistics that are not
 *   given. With the accuracy of the forward pass, they are bit-identical to those of the forward pass.
 * - A NaN or an infinity in x or d_o makes dx of its set NaN or infinite, and dw of the set's channels. It can do so to db. With
 *   NRG_STATISTICS_RUNNING, it affects only its own dx. No other set is affected.
 *
 * Errors of dx, dw and db, in both grades and for every input:
 * - The bound is 4 · 2^-24 · Σ|terms| of the formula. A 16-bit dx or dy adds 0.51 ulp of its type.
 * - Σ|terms| is the sum of the magnitudes of the summands. A term below 2^-126 counts as 2^-126.
 *   - dx: |dh|/s, |h| Σ|dh⊙h|/(d s) and, if centred, Σ|dh|/(d s). Read |h| as |h| + 2^-24 |m|/s here.
 *   - dw: Σ|do1⊙h|.
 *   - db: Σ|do1|.
 * - If g is not identity, the error of g′ (nrg/activation.h) is added.
 * - A mean that was computed in the fast grade has an error of up to k σ, with k = 3 · 2^-24.
 *   - It changes dx by k (|Σ dh⊙h| + |h Σdh|)/(d s) in addition.
 *   - It changes dw by k Σ |do1| in addition.
 * - Statistics as floats add more errors, see below.
 *
 * Statistics as floats. Set args.mean and args.rstd instead of args.statistics. They are mean and rstd of the forward pass, or of
 * another library, such as save_mean and save_invstd of PyTorch. Each counts as its exact value in double. The number of elements
 * d is that of the set, or with args.sums the number in the sums. Results are bit-identical to an nrg_channel_statistics of the
 * same values. The cost in accuracy:
 * - A mean rounded to float has an error of up to 2^-24 |m|, which changes h by up to k = 2^-24 |m|/σ.
 *   - dx changes by k (|Σ dh⊙h| + |h Σdh|)/(d s).
 *   - dw changes by k |Σ do1|.
 *   - The o1 at which g′ is computed changes by k |w|.
 * - This is small if |m| is a few σ, and most of the error if |m| is far above σ. Measured error of dx with random d_o, in units
 *   of 2^-24 · Σ|terms|: 1 at 6 σ, 60 at 400 σ, 2600 at 25000 σ. With equal d_o: 9, 500 and 35000.
 * - A rounded rstd changes dx by up to 3 · 2^-24 of its terms, and dw by 2^-24.
 * - Statistics in double have neither error.
 *
 * One thread: nrg_channel_norm_backward(&spec, &args, 0, 1) computes all gradients. Several threads:
 *
 *     1. nrg_channel_norm_backward(&spec, &args, ith, nth) on every thread
 *     2. the host's barrier
 *     3. nrg_channel_norm_backward_reduce(&spec, &args, ith, nth) on every thread
 *
 * Only dw and db with NRG_CHANNEL_OVER_GROUP need the second phase and the workspace, because the samples of a channel are in
 * different sets. For all other gradients, the first phase is enough, without workspace and barrier. Then the second phase does
 * nothing and returns NRG_OK. No call detects that a phase was left out.
 *
 * Sums in parts (synchronized batch norm; only NRG_CHANNEL_OVER_BATCH):
 *
 *     1. nrg_channel_norm_backward_sums on every part, which also writes dw and db of the part
 *     2. add the integers
 *     3. nrg_channel_norm_backward with args.sums, for dx and dy
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHANNEL_NORM_BACKWARD_H
#define NRG_CHANNEL_NORM_BACKWARD_H

#include "channel_norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands of the backward pass, with the layout of nrg_channel_norm_args. Make one with nrg_channel_norm_backward_args_init,
 * then change fields. Every output may be NULL. Strides are in bytes; 0 is dense.
 *
 * Aliasing: dx may be d_o, x or y, and dy may be d_o or y, with the same first byte and the same stride. Otherwise no output
 * shares a byte with another operand, and dx and dy share none with each other.
 *
 *               d_o   x     y
 *        dx     yes   yes   yes
 *        dy     yes   no    yes */
typedef struct nrg_channel_norm_backward_args {
    size_t size;                              /* sizeof(nrg_channel_norm_backward_args) */
    size_t samples;                           /* if 0, dw and db become 0, or keep their values with accumulate */
    size_t positions;                         /* at least 1 */
    const void *x;                            /* x of the forward pass */
    size_t x_stride;                          /* bytes; 0 is dense, for all strides */
    const nrg_channel_statistics *statistics; /* [sets] input, as the forward pass wrote it; NULL with mean and rstd. NULL with
                                                 COMPUTE and without them: computed again */
    const float *mean;                        /* [sets] input: statistics as floats, or NULL; NULL if not centred */
    const float *rstd;                        /* [sets] input: 1/s as floats, or NULL */
    const float *running_mean;                /* [channels] input with RUNNING, otherwise NULL */
    const float *running_var;                 /* [channels] input with RUNNING, otherwise NULL */
    /* [sets][NRG_CHANNEL_NORM_SUMS_WORDS] input: sums of all parts, or NULL: computed from x. With sums, dw and db are NULL */
    const int64_t *sums;
    const void *w; /* w of the forward pass, or NULL: 1 */
    const void *b; /* b of the forward pass with an activation, otherwise NULL */
    const void *y; /* y of the forward pass with an activation, otherwise NULL */
    size_t y_stride;
    const void *d_o; /* input with the shape of x: gradient of o */
    size_t d_o_stride;
    nrg_store store; /* how dx and dy are stored; never changes a bit */
    int accumulate;  /* not 0: added to dw and db, in one rounding; 0: overwrites them */
    void *dx;        /* output with the shape of x: gradient of x, or NULL */
    size_t dx_stride;
    void *dy; /* output with the shape of x: gradient of y, or NULL */
    size_t dy_stride;
    float *dw;             /* [channels] output: gradient of w, or NULL; also if w is NULL */
    float *db;             /* [channels] output: gradient of b, or NULL; also if b is NULL */
    void *workspace;       /* aligned to 8 bytes; unused if nrg_channel_norm_backward_workspace computes 0 bytes */
    size_t workspace_size; /* bytes of workspace */
} nrg_channel_norm_backward_args;

/* Returns args for dense tensors and dx. For other gradients, set dy, dw and db.
 *
 * Parameters:
 * - samples, positions, x, w, d_o, dx: the fields of the same names. */
static inline nrg_channel_norm_backward_args nrg_channel_norm_backward_args_init(size_t samples, size_t positions, const void *x,
                                                                                 const void *w, const void *d_o, void *dx)
{
    nrg_channel_norm_backward_args args;
    args.size = sizeof args;
    args.samples = samples;
    args.positions = positions;
    args.x = x;
    args.statistics = NULL;
    args.mean = args.rstd = args.running_mean = args.running_var = NULL;
    args.sums = NULL;
    args.w = w;
    args.b = args.y = NULL;
    args.d_o = d_o;
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

/* Computes the bytes of the workspace. They are 0 with NRG_CHANNEL_OVER_BATCH, or if dw and db are NULL. Otherwise they are 8 ·
 * channels for each of dw and db that is set, and each of at most 64 blocks of samples.
 *
 * Parameters:
 * - spec: the computation.
 * - args: the call reads only samples, dw and db.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec, args or bytes is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_OVERFLOW: the workspace has more bytes than a size_t can count.
 * - NRG_ERR_DIM, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION: no call accepts the spec, as in
 *   nrg_channel_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec,
                                                                     const nrg_channel_norm_backward_args *args, size_t *bytes);

/* Computes the gradients. With one share (nth = 1), it does the reduction too.
 *
 * Parameters:
 * - spec: the spec of the forward pass.
 * - args: operands, described at their fields. Unless samples is 0, x and d_o must not be NULL.
 * - ith, nth: the share. With NRG_CHANNEL_OVER_BATCH, a share is a range of channels. Otherwise it is a range of sets, in blocks
 *   of samples if dw or db is requested.
 *
 * The call uses at most 16 KB of stack in an optimized build.
 *
 * Aliasing: as the table at nrg_channel_norm_backward_args allows.
 *
 * Returns the statuses of nrg_channel_norm_sums. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec or args is NULL. Or samples is not 0, and one of these is NULL:
 *   - x or d_o.
 *   - statistics and both of mean and rstd, with GIVEN or with sums.
 *   - running_mean or running_var, with RUNNING (even if samples is 0).
 *   - workspace, if it is needed.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the table does not allow.
 * - NRG_ERR_COMBINATION: also one of these:
 *   - The source is NRG_STATISTICS_FOLDED.
 *   - statistics, mean or rstd is set with RUNNING, or running statistics are set without it.
 *   - mean or rstd is set, and statistics is too.
 *   - Only one of mean and rstd is set, although the spec is centred; or mean is set, and the spec is not.
 *   - sums is set with NRG_CHANNEL_OVER_GROUP or RUNNING, or with dw or db.
 *   - y or b is set without an activation.
 * - NRG_ERR_COUNT: sums or statistics have no elements.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than needed. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec,
                                                           const nrg_channel_norm_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_check(const nrg_channel_norm_spec *spec,
                                                                 const nrg_channel_norm_backward_args *args);

/* Computes dw and db from the workspace: phase 2. It does nothing with NRG_CHANNEL_OVER_BATCH, if dw and db are NULL, or if phase
 * 1 had one share.
 *
 * Parameters:
 * - spec, args: those of phase 1.
 * - ith, nth: the share, a range of channels.
 *
 * Aliasing: as the table at nrg_channel_norm_backward_args allows.
 *
 * Returns the statuses of nrg_channel_norm_backward, for the same errors. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec,
                                                                  const nrg_channel_norm_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_backward_reduce_check(const nrg_channel_norm_spec *spec,
                                                                        const nrg_channel_norm_backward_args *args);

/* Computes the sums of one part, Σdo1 and Σdo1 ⊙ (x - m), for NRG_CHANNEL_OVER_BATCH. If dw and db are set, it writes those of
 * the part.
 *
 * Parameters:
 * - spec: the spec of the forward pass.
 * - args: statistics, in double or as floats, are those of all parts. The call ignores dx, dy, sums and running statistics.
 * - sums: [channels][NRG_CHANNEL_NORM_SUMS_WORDS] output.
 * - ith, nth: the share, a range of channels.
 *
 * Aliasing: an output shares no byte with another operand.
 *
 * Returns the statuses of nrg_channel_norm_sums. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec, args or sums is NULL. Or samples is not 0, and x, d_o, or the statistics in both forms are NULL.
 * - NRG_ERR_OVERLAP: an output shares a byte with another operand.
 * - NRG_ERR_COMBINATION: also one of these:
 *   - spec has NRG_CHANNEL_OVER_GROUP, NRG_STATISTICS_RUNNING or NRG_STATISTICS_FOLDED.
 *   - mean, rstd, y or b is set in a way that nrg_channel_norm_backward does not allow.
 * - NRG_ERR_COUNT: statistics have no elements. */
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
