/* nrg/channel_norm.h: normalization of tensors with channels: batch, group, instance and layer norm, and RMSNorm over such sets.
 *
 * A tensor has the shape [samples, channels, positions] (NRG_LAYOUT_NCHW) or [samples, positions, channels] (NRG_LAYOUT_NHWC).
 * The positions are height times width. Its elements fall into sets, and each set has separate statistics:
 *
 *     over                                sets          a set is                           size of a set
 *     NRG_CHANNEL_OVER_BATCH              channels      a channel, in all samples          samples·positions
 *     NRG_CHANNEL_OVER_GROUP, groups = G  samples·G     channels/G channels of a sample    channels/G·positions
 *                             G = 1                     a sample: layer norm over channels and positions
 *                             G = channels              a channel of a sample: instance norm
 *
 * For every set with elements x_i, of channel c(i), i = 1 … d (⊙ element-wise):
 *
 *     m  = Σx / d          centred;  m = 0 otherwise
 *     σ² = Σ(x - m)² / d
 *     s  = √(σ² + eps)
 *     o1 = (x - m) / s ⊙ w_c(i) + b_c(i)          w absent: factor 1; b absent: 0; s = 0: o1 = b
 *     o  = g(o1 + y)                              y absent: g(o1)
 *
 * g is spec.activation (nrg/activation.h). Examples are GroupNorm + SiLU, batch norm + ReLU, and batch norm + residual + ReLU.
 *
 * Sources:
 * - Batch norm: Ioffe, Szegedy, arXiv:1502.03167.
 * - Instance norm: Ulyanov, Vedaldi, Lempitsky, arXiv:1607.08022.
 * - Layer norm: Ba, Kiros, Hinton, arXiv:1607.06450.
 * - Group norm: Wu, He, arXiv:1803.08494.
 * - RMSNorm (not centred): Zhang, Sennrich, arXiv:1910.07467.
 *
 * The source of the statistics (spec.source):
 * - COMPUTE: computed from x. If running_mean and running_var are set, the call updates them (training of batch norm).
 * - GIVEN: args.statistics_in. nrg_channel_norm_statistics computes them from sums that several threads or machines added up. Or
 *   another call stored them.
 * - RUNNING: m = running_mean_in_c, σ² = running_var_in_c (inference of batch norm). The floats count as their exact values.
 * - FOLDED: none. o1 = x ⊙ w + b, with w and b from nrg_channel_norm_fold. That is the inference of batch norm, with the
 *   arithmetic that does not depend on x done once.
 *
 * For every call, dtype and shape:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not. They do not depend on
 *   which outputs are requested, or on whether a set's sums were computed in parts (below).
 * - There is no spurious overflow or underflow: 1e30s and 1e-30s are normalized like ones.
 * - A NaN or an infinity in x makes o, mean and rstd of its set NaN, and affects no other set. If the statistics are not computed
 *   from x, it affects only its own element, which becomes NaN or infinite.
 *
 * Errors, for finite w and b, and sets of up to 2^32 elements:
 * - Fast grade (spec.accuracy, and always with 16-bit dtypes), on the stress set:
 *   - o1: 3 ulp of the larger of o1 and b, plus 2^-23 |w|. A search for the worst inputs reached 1.16 times that
 *     (docs/ops/channel_norm.md).
 *   - mean: 1 ulp plus 3 · 2^-24 σ.
 *   - rstd: 3 · 2^-24 of itself.
 * - Exact grade, for every input:
 *   - o1: 1 ulp of the larger of o1 and b, plus 2^-24 |w|.
 *   - mean: 1 ulp plus 2^-24 σ.
 *   - rstd: 1 ulp.
 * - The addition of y rounds once more. An activation adds 3 ulp to its result.
 * - A 16-bit result is the f32 result of the fast grade rounded once: within 0.51 ulp of its type unless terms cancel.
 * - NCHW and NHWC sum in different orders. In the exact grade, their statistics differ by less than 2^-26 of σ², and results by
 *   an ulp plus 2^-24 |w|. In the fast grade, these are 2^-22 of σ², and 3 ulp plus 2^-23 |w|. With s = 1 they are bit-identical.
 *
 * docs/ops/channel_norm.md has the definition of every bit, and the measured errors.
 *
 * Statistics in parts. Several threads or machines can each compute the sums of a part of a set, and add them:
 *
 *     1. nrg_channel_norm_sums     on every part: NRG_CHANNEL_NORM_SUMS_WORDS integers for every set
 *     2. nrg_channel_norm_sums_add, or MPI_Allreduce with MPI_INT64_T and MPI_SUM, or another addition of integers
 *     3. nrg_channel_norm_statistics, from the sums
 *     4. nrg_channel_norm_forward with NRG_STATISTICS_GIVEN, on every part
 *
 * Each segment is summed in double. The integers hold the sum of these doubles exactly. So the result depends neither on the part
 * that contains a segment, nor on the order in which parts are added. But a segment must be inside one part. With L =
 * spec.segment, a segment is:
 *
 *     NRG_CHANNEL_OVER_BATCH                     max(1, L/positions) samples, counted from the first; where positions > L, L
 *                                                positions of one sample
 *     NRG_CHANNEL_OVER_GROUP, NRG_LAYOUT_NCHW    L elements of the set, in the order of memory
 *     NRG_CHANNEL_OVER_GROUP, NRG_LAYOUT_NHWC    max(1, L/min(channels/G, 64)) positions of a sample
 *
 * Divisions round down, and the last segment of a set may be shorter. Another L gives other bits. Choose an L that fits the
 * parts: 32·49 for a batch of 32 samples per machine with 49 positions. The folder examples/ has synchronized batch norm and
 * tensor-parallel RMSNorm over MPI.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHANNEL_NORM_H
#define NRG_CHANNEL_NORM_H

#include "activation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sets of elements with common statistics. */
typedef enum nrg_channel_over {
    NRG_CHANNEL_OVER_BATCH = 0, /* batch norm */
    NRG_CHANNEL_OVER_GROUP = 1  /* group, instance and layer norm */
} nrg_channel_over;

/* The order of the elements in memory. */
typedef enum nrg_layout {
    NRG_LAYOUT_NCHW = 0, /* [samples, channels, positions] */
    NRG_LAYOUT_NHWC = 1  /* [samples, positions, channels] ("channels last") */
} nrg_layout;

/* The source of m and σ², as described above. */
typedef enum nrg_statistics_source {
    NRG_STATISTICS_COMPUTE = 0, /* computed from x */
    NRG_STATISTICS_GIVEN = 1,   /* statistics_in */
    NRG_STATISTICS_RUNNING = 2, /* running_mean_in and running_var_in */
    NRG_STATISTICS_FOLDED = 3   /* none: they are in w and b */
} nrg_statistics_source;

/* The computation. Make one with a constructor below, then change fields. */
typedef struct nrg_channel_norm_spec {
    size_t size;                  /* sizeof(nrg_channel_norm_spec) */
    size_t channels;              /* at least 1 */
    size_t groups;                /* G, a divisor of channels; 1 with NRG_CHANNEL_OVER_BATCH. Default: 1. */
    size_t segment;               /* L, from 1 to 4096. Default: 4096. */
    nrg_channel_over over;        /* the sets */
    nrg_layout layout;            /* of x, y, o and the gradients */
    nrg_dtype dtype;              /* of x, y, o, d_o, dx and dy */
    nrg_dtype w_dtype;            /* of w and b: SAME, dtype or NRG_F32 */
    nrg_statistics_source source; /* of m and σ² */
    int centred;                  /* not 0: subtract the mean. Default: 1. */
    nrg_accuracy accuracy;        /* grade; 16-bit dtypes are always fast */
    nrg_activation activation;    /* g */
    int cumulative;               /* not 0: running statistics are the average of all batches: momentum is 1/(batches + 1) */
    uint32_t reserved;            /* 0 */
    double eps;                   /* finite, at least 0; a value below 2^-600 counts as 0 */
    double momentum;              /* 0 to 1: running = (1 - momentum)·running + momentum·batch. Default: 0.1. */
} nrg_channel_norm_spec;

/* Statistics of one set, in double. A forward pass writes them. The backward pass and NRG_STATISTICS_GIVEN read them. For the
 * statistics as two floats per set, which the backward pass accepts too, see args.mean and args.rstd. A NaN or an infinity in the
 * set makes all fields except count NaN. */
typedef struct nrg_channel_statistics {
    double mean, mean_low; /* their sum is m; 0 if not centred */
    double variance;       /* σ² */
    double rstd;           /* 1/s; 0 if s = 0 */
    double count;          /* d; 0 with NRG_STATISTICS_RUNNING */
} nrg_channel_statistics;

/* Operands of a channel norm. Make one with nrg_channel_norm_args_init, then change fields.
 *
 * Strides are in bytes; 0 is dense. With NRG_LAYOUT_NCHW, a stride is from one sample to the next, and the elements of a sample
 * are adjacent. With NRG_LAYOUT_NHWC, it is from one position to the next, and samples are `positions` times that apart. So a
 * tensor can be a range of the channels of a larger one.
 *
 * Running statistics have separate inputs and outputs. COMPUTE requires all four pointers or none. It updates in place if input
 * and output are equal. Running statistics require centred sets that are channels: NRG_CHANNEL_OVER_BATCH, or groups = channels.
 *
 * Aliasing: o may be x or y, with the same first byte and the same stride. running_mean may be running_mean_in, and running_var
 * may be running_var_in. Otherwise no output shares a byte with another operand.
 *
 *                      x     y     running_mean_in running_var_in
 *         o            yes   yes   no              no
 *         running_mean no    no    yes             no
 *         running_var  no    no    no              yes */
typedef struct nrg_channel_norm_args {
    size_t size;                                 /* sizeof(nrg_channel_norm_args) */
    size_t samples;                              /* if 0, the call only validates */
    size_t positions;                            /* at least 1 */
    const void *x;                               /* [samples, channels, positions] input, or as spec.layout */
    size_t x_stride;                             /* bytes; 0 is dense, for all strides */
    const nrg_channel_statistics *statistics_in; /* [sets] input with GIVEN, otherwise NULL */
    const float *running_mean_in;                /* [channels] input with RUNNING, or with COMPUTE and running_mean; else NULL */
    const float *running_var_in;                 /* [channels] input, as running_mean_in */
    const void *w;                               /* [channels] weight, or NULL: 1; must not be NULL with FOLDED */
    const void *b;                               /* [channels] bias, or NULL: 0 */
    const void *y;                               /* residual with the shape of x, or NULL: 0 */
    size_t y_stride;
    uint64_t batches;  /* number of batches already in the running statistics; 0 without spec.cumulative */
    nrg_store store;   /* how o is stored; never changes a bit */
    uint32_t reserved; /* 0 */
    void *o;           /* output with the shape of x */
    size_t o_stride;
    float *mean;                        /* [sets] output: m rounded to float, or NULL; NULL with FOLDED */
    float *rstd;                        /* [sets] output: 1/s rounded to float, or NULL; NULL with FOLDED */
    nrg_channel_statistics *statistics; /* [sets] output with COMPUTE and RUNNING, or NULL */
    float *running_mean;                /* [channels] output with COMPUTE, or NULL */
    /* [channels] output with COMPUTE, or NULL. The update uses the unbiased variance, σ²·d/(d-1). Instance norm averages both
     * updates over the samples, as PyTorch does */
    float *running_var;
} nrg_channel_norm_args;

/* Returns the spec of batch norm in training: centred, NCHW.
 *
 * Parameters:
 * - dtype, channels, eps: the fields of the same names. */
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

/* Returns the spec of batch norm in inference, with running_mean_in and running_var_in.
 *
 * Parameters:
 * - dtype, channels, eps: the fields of the same names. */
static inline nrg_channel_norm_spec nrg_channel_norm_spec_batch_inference(nrg_dtype dtype, size_t channels, double eps)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(dtype, channels, eps);
    spec.source = NRG_STATISTICS_RUNNING;
    return spec;
}

/* Returns the spec of group norm: centred, NCHW. With groups = 1, it is layer norm over channels and positions; with groups =
 * channels, it is instance norm.
 *
 * Parameters:
 * - dtype, channels, groups, eps: the fields of the same names. */
static inline nrg_channel_norm_spec nrg_channel_norm_spec_group(nrg_dtype dtype, size_t channels, size_t groups, double eps)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(dtype, channels, eps);
    spec.over = NRG_CHANNEL_OVER_GROUP;
    spec.groups = groups;
    return spec;
}

/* Returns args for dense tensors. w and b may be NULL.
 *
 * Parameters:
 * - samples, positions, x, w, b, o: the fields of the same names. */
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

/* Normalizes the sets of a tensor. The formulas and their sources are at the top of this file.
 *
 * Parameters:
 * - spec: the computation.
 * - args: operands, described at their fields. Unless samples is 0, x and o must not be NULL.
 * - ith, nth: the share. With NRG_STATISTICS_COMPUTE, a share is a range of sets, so at most as many threads as sets have work.
 *   With fewer sets than threads, compute statistics in parts (above). With other sources, a share is a range of channels of
 *   samples (NRG_LAYOUT_NCHW) or of positions (NRG_LAYOUT_NHWC).
 *
 * The call uses at most 16 KB of stack in an optimized build.
 *
 * Aliasing: as the table at nrg_channel_norm_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL. Or samples is not 0, and x or o is NULL, or statistics_in with GIVEN, or w with FOLDED.
 *   Or running_mean_in or running_var_in is NULL with RUNNING.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: channels, groups or positions is 0, or channels is no multiple of groups.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the table does not allow.
 * - NRG_ERR_ENUM: over, layout, source, dtype, activation, store or accuracy has an unknown value.
 * - NRG_ERR_DTYPE: w_dtype is neither dtype nor f32.
 * - NRG_ERR_EPS: eps is negative, infinite or NaN.
 * - NRG_ERR_CONSTANT: momentum is not from 0 to 1, or segment is not from 1 to 4096.
 * - NRG_ERR_COMBINATION: one of these:
 *   - There are two or more groups with NRG_CHANNEL_OVER_BATCH.
 *   - Only some of the four pointers to running statistics are set.
 *   - There are running statistics, and the sets are not centred or are no channels.
 *   - batches is set without cumulative; or cumulative with COMPUTE, and there are no running statistics.
 *   - An operand is set that spec.source does not use.
 * - NRG_ERR_COUNT: running_var is set, and sets have one element, so that there is no unbiased variance.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_forward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                          int ith, int nth);

/* Validates the arguments of nrg_channel_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_forward_check(const nrg_channel_norm_spec *spec,
                                                                const nrg_channel_norm_args *args);

/* ---- statistics in parts ---- */

/* The number of integers that hold the sums of one set. Their contents are opaque, except for two rules. To add the sums of two
 * parts, add integer by integer, in any order, up to 2^30 parts; integers may wrap around. All zero is the sum of nothing. */
#define NRG_CHANNEL_NORM_SUMS_WORDS 32

/* Computes the sums of one part, for all sets with elements in x.
 *
 * With NRG_CHANNEL_OVER_BATCH, a part is a range of the samples. With NRG_CHANNEL_OVER_GROUP and NRG_LAYOUT_NCHW, it is a range
 * of the channels, and there is one group. With NRG_CHANNEL_OVER_GROUP and NRG_LAYOUT_NHWC, it is a range of the positions, and
 * there are two or more groups: a single one is summed differently. Set channels, or positions, to those of the part.
 *
 * Parameters:
 * - spec: the call uses over, groups, channels, layout, dtype, segment, centred and accuracy, which are the same for all parts.
 *   It validates the other fields and ignores them.
 * - args: the call uses samples, positions, x and x_stride.
 * - sums: [sets][NRG_CHANNEL_NORM_SUMS_WORDS] output. The call overwrites the sets of its share and no others.
 * - ith, nth: the share, a range of sets.
 *
 * Aliasing: sums shares no byte with x.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec, args or sums is NULL; or samples is not 0, and x is NULL.
 * - NRG_ERR_OVERLAP: sums shares a byte with x.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_ENUM, NRG_ERR_DTYPE,
 *   NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_THREAD: as in nrg_channel_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                       int64_t *sums, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_sums. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                             int64_t *sums);

/* Adds sums: into += from.
 *
 * Parameters:
 * - sets: number of sets; may be 0.
 * - into: [sets][NRG_CHANNEL_NORM_SUMS_WORDS] input and output.
 * - from: [sets][NRG_CHANNEL_NORM_SUMS_WORDS] input.
 *
 * Aliasing: into shares no byte with from.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: sets is not 0, and into or from is NULL.
 * - NRG_ERR_ALIGNMENT: a pointer is no multiple of 8.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: into and from share a byte. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_sums_add(size_t sets, int64_t *into, const int64_t *from);

/* Computes the statistics from the sums of complete sets. They are bit-identical to those of a forward pass with
 * NRG_STATISTICS_COMPUTE.
 *
 * Parameters:
 * - spec: as in nrg_channel_norm_sums. With args->samples, it determines the number of sets.
 * - args: the outputs are statistics, mean, rstd and the running statistics; each may be NULL. The call ignores other operands,
 *   positions and strides.
 * - sums: [sets][NRG_CHANNEL_NORM_SUMS_WORDS] input.
 * - ith, nth: the share, a range of sets.
 *
 * Aliasing: running_mean may be running_mean_in, and running_var may be running_var_in. Otherwise no output shares a byte with
 * another operand.
 *
 *                      running_mean_in running_var_in
 *         running_mean yes             no
 *         running_var  no              yes
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL; or there are sets, and sums is NULL.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the table does not allow.
 * - NRG_ERR_COUNT: a set has no elements; or running statistics are set, and a set has one element.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 *   NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_THREAD: as in nrg_channel_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                             const int64_t *sums, int ith, int nth);

/* Validates the arguments of nrg_channel_norm_statistics. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_statistics_check(const nrg_channel_norm_spec *spec,
                                                                   const nrg_channel_norm_args *args, const int64_t *sums);

/* Computes scale and shift for the inference of batch norm: o1 = x ⊙ scale + shift. Use them as w and b, both f32, of
 * NRG_STATISTICS_FOLDED.
 *
 * Each is rounded once from double. Then o1 is one fused multiply-add. Its error bound is 2.5 ulp of the larger of its terms, if
 * neither scale nor shift is subnormal.
 *
 * Parameters:
 * - spec: the batch norm, centred; sets are channels.
 * - args: the call reads running_mean_in, running_var_in, w and b. The last two may be NULL.
 * - scale: [channels] output.
 * - shift: [channels] output.
 *
 * Aliasing: an output shares no byte with another operand.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec, args, running_mean_in, running_var_in, scale or shift is NULL.
 * - NRG_ERR_COMBINATION: no call accepts the spec; or the sets are not centred or are no channels.
 * - NRG_ERR_OVERLAP: an output shares a byte with another operand.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 *   NRG_ERR_CONSTANT: as in nrg_channel_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_channel_norm_fold(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                                       float *scale, float *shift);

#ifdef __cplusplus
}
#endif
#endif
