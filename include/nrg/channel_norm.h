/* nrg/channel_norm.h: normalization of tensors with channels: batch, group, instance and layer norm, for convolutional networks
 * and for whatever else has its statistics over other sets than rows.
 *
 * A tensor has n samples, c channels and s positions (height times width), as [n, c, s] (NRG_LAYOUT_NCHW) or [n, s, c]
 * (NRG_LAYOUT_NHWC). Its elements fall into sets, each of which has statistics of its own:
 *
 *     over                        sets     a set is                           size of a set
 *     NRG_CHANNEL_OVER_BATCH              c        a channel, in all samples          n·s
 *     NRG_CHANNEL_OVER_GROUP, groups = G  n·G      c/G channels of one sample         c/G·s
 *                     G = 1                a sample: layer norm over (c, s)
 *                     G = c                a channel of a sample: instance norm
 *
 * For every set with elements x_i, of channel c(i), i = 1 … d (⊙ element-wise):
 *
 *     m  = Σx / d          centred;  m = 0 otherwise
 *     σ² = Σ(x - m)² / d
 *     s  = √(σ² + eps)
 *     o1 = (x - m) / s ⊙ w_c(i) + b_c(i)          w absent: factor 1; b absent: 0; s = 0: o1 = b
 *     o  = g(o1 + y)                              y absent: g(o1)
 *
 * g is spec.activation (nrg/activation.h): GroupNorm + SiLU, batch norm + ReLU, batch norm + residual + ReLU.
 *
 * Sources: batch norm: Ioffe, Szegedy, arXiv:1502.03167. Instance norm: Ulyanov, Vedaldi, Lempitsky, arXiv:1607.08022. Layer
 * norm: Ba, Kiros, Hinton, arXiv:1607.06450. Group norm: Wu, He, arXiv:1803.08494. Not centred: RMSNorm, Zhang, Sennrich,
 * arXiv:1910.07467.
 *
 * Where the statistics come from (spec.source):
 *
 *     COMPUTE  from x; running_mean and running_var, where given, are updated with them (training of batch norm)
 *     GIVEN    from args.statistics_in: what nrg_channel_norm_statistics has made of sums that several threads or machines have
 *              added up, or what another call has saved
 *     RUNNING  m = running_mean_in_c, σ² = running_var_in_c (inference of batch norm): floats, which count as their exact values
 *     FOLDED   none: o1 = x ⊙ w + b, with w and b from nrg_channel_norm_fold (inference of batch norm, with the arithmetic
 *              that does not depend on x done once)
 *
 * What holds for every call, dtype and shape:
 *
 * - Every path gives the same bits; so does any (ith, nth), alignment and stride, in place or not, whichever outputs are asked
 *   for, and whether a set's sums were taken in one piece or in parts (below).
 * - Error of o1, in the fast grade (spec.accuracy, and 16-bit dtypes always), on the stress set: 3 ulp of the largest of o1 and
 *   b, plus 2^-23 |w|. mean: 1 ulp plus 3 · 2^-24 σ; rstd: 3 · 2^-24 of itself. Made inputs came to 1.16 times that of o1
 *   (docs/ops/channel_norm.md). In the exact grade, always: 1 ulp of the largest of o1 and b, plus 2^-24 |w|. mean: 1 ulp plus
 *   2^-24 σ; rstd: 1 ulp. + y rounds once more; an activation adds 3 ulp of its own
 *   to what it makes of that; a 16-bit result is the f32 result of the fast grade rounded once, within 0.51 ulp of its type where
 *   nothing cancels. For finite w and b, and sets of up to 2^32 elements.
 * - No spurious overflow or underflow: 1e30s and 1e-30s are normalized like ones.
 * - NCHW and NHWC take their sums in another order: their statistics differ by less than 2^-26 of σ², and results
 *   by an ulp plus 2^-24 |w|; in the fast grade by less than 2^-22 of σ², and results by 3 ulp plus 2^-23 |w|.
 *   With s = 1 the two are the same, to the bit.
 * - A NaN or an infinity in x makes o, mean and rstd of its set NaN, and touches no other set. Where the statistics are not
 *   computed from x it touches its own element only, which becomes NaN or infinite.
 *
 * docs/ops/channel_norm.md has the definition to the last bit, and the measured errors.
 *
 * Statistics in parts. A set's sums can be taken in parts, by several threads or machines, and added:
 *
 *     1. nrg_channel_norm_sums     on every part: NRG_CHANNEL_NORM_SUMS_WORDS integers for every set
 *     2. nrg_channel_norm_sums_add, or MPI_Allreduce with MPI_INT64_T and MPI_SUM, or what else adds integers
 *     3. nrg_channel_norm_statistics, from the sums
 *     4. nrg_channel_norm_forward with NRG_STATISTICS_GIVEN, on every part
 *
 * The sums are those of segments, each in double; the integers hold their sum exactly. So it does not matter which part a segment
 * is in, nor in which order parts are added; but a segment must be in one part. A segment is, with L = spec.segment:
 *
 *     NRG_CHANNEL_OVER_BATCH              max(1, L/s) whole samples, counted from the first; where s > L, L positions of one
 *                                         sample
 *     NRG_CHANNEL_OVER_GROUP, NRG_LAYOUT_NCHW    L elements of the set, in the order of memory
 *     NRG_CHANNEL_OVER_GROUP, NRG_LAYOUT_NHWC    max(1, L/min(c/G, 64)) positions of a sample
 *
 * (divisions rounded down; the last segment of a set may be shorter). Another L gives other bits. Choose an L that fits the
 * parts: 32·49 for a batch of 32 samples a machine with s = 49. examples/ has synchronized batch norm and tensor-parallel RMSNorm
 * over MPI.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHANNEL_NORM_H
#define NRG_CHANNEL_NORM_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_channel_over {
    NRG_CHANNEL_OVER_BATCH = 0, /* batch norm */
    NRG_CHANNEL_OVER_GROUP = 1  /* group, instance and layer norm */
} nrg_channel_over;

typedef enum nrg_layout {
    NRG_LAYOUT_NCHW = 0, /* [n, c, s]: a channel's positions lie together */
    NRG_LAYOUT_NHWC = 1  /* [n, s, c]: a position's channels lie together ("channels last") */
} nrg_layout;

typedef enum nrg_statistics_source {
    NRG_STATISTICS_COMPUTE = 0,
    NRG_STATISTICS_GIVEN = 1,
    NRG_STATISTICS_RUNNING = 2,
    NRG_STATISTICS_FOLDED = 3
} nrg_statistics_source;

/* The computation. Make one with a constructor below, then change fields. */
typedef struct nrg_channel_norm_spec {
    size_t size;                  /* sizeof(nrg_channel_norm_spec) */
    size_t channels;              /* c, at least 1 */
    size_t groups;                /* G, a divisor of c; 1 with NRG_CHANNEL_OVER_BATCH. Default: 1. */
    size_t segment;               /* L, from 1 to 4096. Default: 4096. */
    nrg_channel_over over;        /* what a set is */
    nrg_layout layout;            /* of x, y, o and the gradients */
    nrg_dtype dtype;              /* of x, y, o, d_o, dx, dy */
    nrg_dtype w_dtype;            /* of w and b: SAME, dtype, or NRG_F32 */
    nrg_statistics_source source; /* of m and σ² */
    int centred;                  /* not 0: subtract the mean. Default: 1. */
    nrg_accuracy accuracy;        /* fast, or exact; 16-bit dtypes are fast either way */
    nrg_activation activation;    /* g */
    int cumulative;               /* not 0: momentum is 1/(batches + 1), which makes running the average of all batches */
    uint32_t reserved;            /* 0 */
    double eps;                   /* finite, at least 0; below 2^-600 it counts as 0 */
    double momentum;              /* 0 to 1: running = (1 - momentum)·running + momentum·batch. Default: 0.1. */
} nrg_channel_norm_spec;

/* What a set's elements are normalized with, in double. A forward pass writes it; the backward pass and NRG_STATISTICS_GIVEN read
 * it. (As two floats a set: args.mean and args.rstd, which the backward pass takes as well.) A NaN or an infinity in the set
 * makes all but count NaN. */
typedef struct nrg_channel_statistics {
    double mean, mean_low; /* m is the sum of both; 0 where not centred */
    double variance;       /* σ² */
    double rstd;           /* 1/s; 0 where s = 0 */
    double count;          /* d; 0 with NRG_STATISTICS_RUNNING */
} nrg_channel_statistics;

/* Where the data is. Make one with nrg_channel_norm_args_init, then set other fields. Pointers need the alignment of their
 * element only.
 *
 * Strides are in bytes, 0 for a dense tensor: with NRG_LAYOUT_NCHW from one sample to the next (a sample's elements lie
 * together), with NRG_LAYOUT_NHWC from one position to the next (and from sample to sample `positions` times that). So a tensor
 * can be a range of the channels of a larger one.
 *
 * Running statistics are read and written apart: COMPUTE needs all four pointers or none, and updates in place if they are equal
 * in pairs. They are for sets that are channels and centred: NRG_CHANNEL_OVER_BATCH, or groups = c.
 *
 * Aliasing: o may be x or y (the whole operand, same first byte, same stride). running_mean may be running_mean_in, and
 * running_var may be running_var_in. Otherwise no output shares a byte with another operand.
 *
 *                      x     y     running_mean_in running_var_in
 *         o            yes   yes   no              no
 *         running_mean no    no    yes             no
 *         running_var  no    no    no              yes */
typedef struct nrg_channel_norm_args {
    size_t size;                                 /* sizeof(nrg_channel_norm_args) */
    size_t samples;                              /* n; with 0 nothing is done */
    size_t positions;                            /* s, at least 1 */
    const void *x;                               /* [n, c, s] or [n, s, c] input */
    size_t x_stride;                             /* bytes */
    const nrg_channel_statistics *statistics_in; /* [sets] GIVEN */
    const float *running_mean_in;                /* [c] RUNNING; COMPUTE with running_mean */
    const float *running_var_in;                 /* [c] likewise */
    const void *w;                               /* [c] weight, or NULL; not NULL with FOLDED */
    const void *b;                               /* [c] bias, or NULL */
    const void *y;                               /* as x: residual, or NULL */
    size_t y_stride;
    uint64_t batches;  /* that the running statistics have seen before; read where spec.cumulative */
    nrg_store store;   /* of o; a hint */
    uint32_t reserved; /* 0 */
    void *o;           /* as x: output */
    size_t o_stride;
    float *mean;                        /* [sets] output: m rounded to float, or NULL; not with FOLDED */
    float *rstd;                        /* [sets] output: 1/s rounded to float, or NULL; likewise */
    nrg_channel_statistics *statistics; /* [sets] output, or NULL; with COMPUTE and RUNNING */
    float *running_mean;                /* [c] COMPUTE: output, or NULL */
    float *running_var; /* [c] likewise. Updated with the unbiased variance, σ²·d/(d-1); instance norm: with the
                                           average over the samples of either, as PyTorch does */
} nrg_channel_norm_args;

/* Batch norm, training: centred, NCHW. */
static inline nrg_channel_norm_spec nrg_channel_norm_spec_batch(nrg_dtype dtype, size_t channels, double eps)
{
    nrg_channel_norm_spec spec;
    spec.size = sizeof spec;
    spec.channels = channels;
    spec.groups = 1;
    spec.segment = 4096;
    spec.over = NRG_CHANNEL_OVER_BATCH;
    spec.layout = NRG_LAYOUT_NCHW;
    spec.dtype = dtype;
    spec.w_dtype = NRG_DTYPE_SAME;
    spec.source = NRG_STATISTICS_COMPUTE;
    spec.centred = 1;
    spec.accuracy = NRG_ACCURACY_FAST;
    spec.activation = NRG_ACT_IDENTITY;
    spec.cumulative = 0;
    spec.reserved = 0;
    spec.eps = eps;
    spec.momentum = 0.1;
    return spec;
}

/* Batch norm, inference: with running_mean_in and running_var_in. */
static inline nrg_channel_norm_spec nrg_channel_norm_spec_batch_inference(nrg_dtype dtype, size_t channels, double eps)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(dtype, channels, eps);
    spec.source = NRG_STATISTICS_RUNNING;
    return spec;
}

/* Group norm: centred, NCHW. groups = 1: layer norm over (c, s); groups = channels: instance norm. */
static inline nrg_channel_norm_spec nrg_channel_norm_spec_group(nrg_dtype dtype, size_t channels, size_t groups, double eps)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(dtype, channels, eps);
    spec.over = NRG_CHANNEL_OVER_GROUP;
    spec.groups = groups;
    return spec;
}

static inline nrg_channel_norm_args nrg_channel_norm_args_init(size_t samples, size_t positions, const void *x, const void *w,
                                                               const void *b, void *o)
{
    nrg_channel_norm_args args;
    args.size = sizeof args;
    args.samples = samples;
    args.positions = positions;
    args.x = x;
    args.statistics_in = NULL;
    args.running_mean_in = args.running_var_in = NULL;
    args.w = w;
    args.b = b;
    args.y = NULL;
    args.batches = 0;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.o = o;
    args.x_stride = args.y_stride = args.o_stride = 0;
    args.mean = args.rstd = NULL;
    args.statistics = NULL;
    args.running_mean = args.running_var = NULL;
    return args;
}

/* Normalizes the sets of share ith of nth: (0, 1) does all; from n threads, call it once each with (0, n) … (n-1, n) and the same
 * spec and args. A share is whole sets with NRG_STATISTICS_COMPUTE, so that no more threads have work than there are sets (fewer
 * sets than threads need their statistics in parts, above); otherwise it is whole planes of s elements (NRG_LAYOUT_NCHW) or
 * positions (NRG_LAYOUT_NHWC). At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, args, or (with n > 0) x or o; statistics_in with GIVEN; running_mean_in and running_var_in with
 *                        RUNNING; w with FOLDED
 *   NRG_ERR_STRUCT_SIZE  as nrg_norm_forward
 *   NRG_ERR_DIM          channels, groups or positions is 0, or channels no multiple of groups
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than what it steps over
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      operands overlap in a way that is not allowed
 *   NRG_ERR_ENUM         over, layout, source, dtype, activation, store or accuracy unknown
 *   NRG_ERR_DTYPE        w_dtype neither dtype nor f32
 *   NRG_ERR_EPS          eps negative, infinite or NaN
 *   NRG_ERR_CONSTANT     momentum not from 0 to 1; segment not from 1 to 4096
 *   NRG_ERR_COMBINATION  two groups or more with NRG_CHANNEL_OVER_BATCH; one of the running statistics without the others;
 *                        running statistics for sets that are no channels, or not centred; an operand that spec.source has no
 *                        use for
 *   NRG_ERR_COUNT        running_var with sets of one element, which have no unbiased variance
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_forward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                          int ith, int nth);

/* Validates the arguments of nrg_channel_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_forward_check(const nrg_channel_norm_spec *spec,
                                                                const nrg_channel_norm_args *args);

/* ---- statistics in parts ---- */

/* Integers that hold the sums of one set. Opaque but for this: the sums of two parts are added integer by integer (wrapping
 * around is of no concern), in any order, up to 2^30 parts; all zero is the sum of nothing. */
#define NRG_CHANNEL_NORM_SUMS_WORDS 32

/* The sums of a part: of all sets whose elements are in x, [sets][NRG_CHANNEL_NORM_SUMS_WORDS]. spec.over, groups, channels,
 * layout, dtype, segment, centred, accuracy (the same for all parts) and args.samples, positions, x, x_stride count; the other
 * fields of the spec are checked and not used. With NRG_CHANNEL_OVER_BATCH a part is a range of the samples. With
 * NRG_CHANNEL_OVER_GROUP it is a range of the channels (NRG_LAYOUT_NCHW; one group) or of the positions (NRG_LAYOUT_NHWC; two or
 * more, since a single one is summed otherwise): channels, or positions, then are the part's. The sets of share ith of nth are
 * overwritten, others not touched.
 *
 * Returns NRG_OK, or says what is wrong as nrg_channel_norm_forward does, and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 * NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_THREAD. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                       int64_t *sums, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_sums. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                             int64_t *sums);

/* into += from, for `sets` sets. into may not overlap from. Returns NRG_OK, NRG_ERR_NULL, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW or
 * NRG_ERR_OVERLAP. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums_add(size_t sets, int64_t *into, const int64_t *from);

/* From the sums of whole sets to args.statistics, args.mean, args.rstd (each may be NULL) and the running statistics, as a
 * forward pass with NRG_STATISTICS_COMPUTE would have made them. sums: [sets]; the number of sets follows from spec and
 * args.samples. Other operands, positions and strides are ignored. Aliasing:
 *
 *                      running_mean_in running_var_in
 *         running_mean yes             no
 *         running_var  no              yes
 *
 * Every share is `sets` in order.
 *
 * Returns NRG_OK, or says what is wrong as nrg_channel_norm_forward does, and writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT,
 * NRG_ERR_COMBINATION, NRG_ERR_THREAD, and
 *   NRG_ERR_COUNT   a set of no elements, or of one where there are running statistics */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                             const int64_t *sums, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_statistics. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_statistics_check(const nrg_channel_norm_spec *spec,
                                                                   const nrg_channel_norm_args *args, const int64_t *sums);

/* Scale and shift of batch norm's inference: o1 = x ⊙ scale + shift, to be used as w and b (both f32) of NRG_STATISTICS_FOLDED.
 * From args.running_mean_in, running_var_in, w and b; scale and shift: [c]. Each is rounded once from double; o1 is then one
 * fused multiply-add, within 2.5 ulp of the larger of its terms where neither scale nor shift is subnormal.
 *
 * Returns NRG_OK, or says what is wrong as nrg_channel_norm_forward does, and writes nothing: NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT, and
 *   NRG_ERR_NULL         spec, args, running_mean_in, running_var_in, scale or shift
 *   NRG_ERR_COMBINATION  a spec that no call takes; sets that are no channels, or not centred */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_fold(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                       float *scale, float *shift);

#ifdef __cplusplus
}
#endif
#endif
