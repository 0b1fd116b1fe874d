/* What the calls of nrg/channel_norm.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CHANNEL_NORM_H
#define NRG_OPERANDS_CHANNEL_NORM_H

#include "../../include/nrg/channel_norm.h"
#include "activation.h"
#include "operand.h"

/* NRG_CHANNEL_MORE: what a function takes beside spec and args. */
enum { NRG_CHANNEL_SPEC, NRG_CHANNEL_ARGS, NRG_CHANNEL_MORE };

/* nrg_channel_norm_forward */
enum {
    NRG_CHANNEL_X,
    NRG_CHANNEL_Y,
    NRG_CHANNEL_W,
    NRG_CHANNEL_B,
    NRG_CHANNEL_STATISTICS_IN,
    NRG_CHANNEL_RUNNING_MEAN_IN,
    NRG_CHANNEL_RUNNING_VAR_IN,
    NRG_CHANNEL_O,
    NRG_CHANNEL_MEAN,
    NRG_CHANNEL_RSTD,
    NRG_CHANNEL_STATISTICS,
    NRG_CHANNEL_RUNNING_MEAN,
    NRG_CHANNEL_RUNNING_VAR,
    NRG_CHANNEL_OPERANDS
};
extern const nrg_call nrg_call_channel_norm_forward;

/* nrg_channel_norm_sums */
typedef struct nrg_channel_sums {
    const int64_t *sums;
} nrg_channel_sums;
enum { NRG_CHANNEL_SUMS_X, NRG_CHANNEL_SUMS_SUMS, NRG_CHANNEL_SUMS_OPERANDS };
extern const nrg_call nrg_call_channel_norm_sums;

/* nrg_channel_norm_sums_add */
typedef struct nrg_channel_norm_sums_add_args {
    size_t sets;
    const int64_t *from, *into;
} nrg_channel_norm_sums_add_args;
enum { NRG_SUMS_ADD_FROM, NRG_SUMS_ADD_INTO, NRG_SUMS_ADD_OPERANDS };
extern const nrg_call nrg_call_sums_add;

/* nrg_channel_norm_statistics; what it takes beside spec and args is nrg_channel_sums */
enum {
    NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN,
    NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN,
    NRG_CHANNEL_STATISTICS_SUMS,
    NRG_CHANNEL_STATISTICS_MEAN,
    NRG_CHANNEL_STATISTICS_RSTD,
    NRG_CHANNEL_STATISTICS_STATISTICS,
    NRG_CHANNEL_STATISTICS_RUNNING_MEAN,
    NRG_CHANNEL_STATISTICS_RUNNING_VAR,
    NRG_CHANNEL_STATISTICS_OPERANDS
};
extern const nrg_call nrg_call_channel_norm_statistics;

/* nrg_channel_norm_fold */
typedef struct nrg_channel_factors {
    const float *scale, *shift;
} nrg_channel_factors;
enum {
    NRG_CHANNEL_FOLD_W,
    NRG_CHANNEL_FOLD_B,
    NRG_CHANNEL_FOLD_RUNNING_MEAN,
    NRG_CHANNEL_FOLD_RUNNING_VAR,
    NRG_CHANNEL_FOLD_SCALE,
    NRG_CHANNEL_FOLD_SHIFT,
    NRG_CHANNEL_FOLD_OPERANDS
};
extern const nrg_call nrg_call_channel_norm_fold;

/* ---- what all calls that take this spec share, those of nrg/channel_norm_backward.h too ---- */

enum { NRG_CHANNEL_TYPE_X, NRG_CHANNEL_TYPE_W };

/* Numbers. Rows and dim are a tensor's: with NCHW n rows of c·s elements, with NHWC n·s of c. */
enum {
    NRG_CHANNEL_ROWS = 1,
    NRG_CHANNEL_DIM,
    NRG_CHANNEL_CHANNELS,
    NRG_CHANNEL_USED_CHANNELS, /* 0 where no channel is looked at, since there are no samples */
    NRG_CHANNEL_SETS,
    NRG_CHANNEL_STATISTIC, /* doubles of a set's statistics */
    NRG_CHANNEL_RECORD,    /* integers of a set's sums */
    NRG_CHANNEL_SPACE      /* doubles of the backward pass's workspace */
};

#define NRG_CHANNEL_SPEC_PART                                                                                                    \
    {                                                                                                                            \
        .size = sizeof(nrg_channel_norm_spec), .least = sizeof(nrg_channel_norm_spec)                                            \
    }
#define NRG_CHANNEL_SPEC_RANGES                                                                                                  \
    NRG_DTYPE_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, dtype),                                                             \
        NRG_OTHER_DTYPE_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, w_dtype),                                                 \
        NRG_ENUM_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, over, NRG_CHANNEL_OVER_GROUP),                                   \
        NRG_ENUM_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, layout, NRG_LAYOUT_NHWC),                                        \
        NRG_ENUM_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, source, NRG_STATISTICS_FOLDED),                                  \
        NRG_ENUM_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, activation, NRG_ACTIVATION_COUNT - 1),                           \
        NRG_ENUM_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, accuracy, NRG_ACCURACY_EXACT),                                   \
        NRG_RESERVED_RANGE(NRG_CHANNEL_SPEC, nrg_channel_norm_spec, reserved)
#define NRG_CHANNEL_STORE_RANGE(args) NRG_ENUM_RANGE(NRG_CHANNEL_ARGS, args, store, NRG_STORE_STREAM)

/* Operands that args point to: a tensor; a number for each channel or set; an array for each set. */
#define NRG_CHANNEL_TENSOR(args, field, role)                                                                                    \
#field, role, NRG_ELEMENT_CHOSEN + NRG_CHANNEL_TYPE_X, .part = NRG_CHANNEL_ARGS, .at = NRG_AT(args, field),                  \
                                                           .dim = NRG_CHANNEL_DIM,                                               \
                                                           .level = {{NRG_AT(args, field##_stride), NRG_CHANNEL_ROWS } }
#define NRG_CHANNEL_LINE(args, field, role, element, number)                                                                     \
#field, role, element, .part = NRG_CHANNEL_ARGS, .at = NRG_AT(args, field), .dim = (number)
#define NRG_CHANNEL_WEIGHT(args, field, number)                                                                                  \
    NRG_CHANNEL_LINE(args, field, NRG_IN, NRG_ELEMENT_CHOSEN + NRG_CHANNEL_TYPE_W, number)
#define NRG_CHANNEL_STATISTICS_OF(args, field, role)                                                                             \
    NRG_CHANNEL_LINE(args, field, role, NRG_ELEMENT_F64, NRG_CHANNEL_STATISTIC), .level = {{.count = NRG_CHANNEL_SETS}}

/* 0 with NRG_CHANNEL_OVER_BATCH. */
static inline size_t nrg_channel_groups(const nrg_channel_norm_spec *spec)
{
    return spec->over == NRG_CHANNEL_OVER_BATCH ? 0 : spec->groups;
}

/* Also where s is 1 and there is no difference. */
static inline int nrg_channel_is_nhwc(const nrg_channel_norm_spec *spec, size_t s)
{
    return spec->layout == NRG_LAYOUT_NHWC || s == 1;
}

/* Whether running statistics can be a set's: it is of one channel, and centred. */
static inline int nrg_channel_may_run(const nrg_channel_norm_spec *spec)
{
    const size_t groups = nrg_channel_groups(spec);
    return (groups == 0 || groups == spec->channels) && spec->centred;
}

/* What is wrong with a spec. */
nrg_status nrg_channel_measure_spec(const nrg_channel_norm_spec *spec, nrg_sizes *sizes);

/* All numbers of n samples of s positions but NRG_CHANNEL_SPACE. NRG_CHANNEL_SETS: with NRG_CHANNEL_OVER_BATCH there are sets
 * without
 * samples, too. */
nrg_status nrg_channel_measure_tensor(const nrg_channel_norm_spec *spec, size_t n, size_t s, nrg_sizes *sizes);

enum { NRG_CHANNEL_SEGMENT = 4096 };

#endif
