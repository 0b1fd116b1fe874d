/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../../src/operands/channel_norm_backward.h"
#include "sound.h"

enum { SPEC = NRG_CHANNEL_SPEC, ARGS = NRG_CHANNEL_ARGS, MORE = NRG_CHANNEL_MORE, SAMPLES = 3, CHANNELS = 4, POSITIONS = 5 };

#define SPEC_U32(field, value, status) WRONG_U32(SPEC, nrg_channel_norm_spec, field, value, status)
#define SPEC_U64(field, value, status) WRONG_U64(SPEC, nrg_channel_norm_spec, field, value, status)
#define SPEC_F64(field, value, status) WRONG_F64(SPEC, nrg_channel_norm_spec, field, value, status)
#define WITH_OVER_GROUP WITH_U32(SPEC, nrg_channel_norm_spec, over, NRG_CHANNEL_OVER_GROUP)

/* Of batch norm in f32. */
#define WRONG_SPEC                                                                                                               \
    SPEC_U32(dtype, NRG_BF16, NRG_OK), SPEC_U32(layout, NRG_LAYOUT_NHWC, NRG_OK),                                                \
        SPEC_U32(activation, NRG_ACTIVATION_COUNT - 1, NRG_OK), SPEC_F64(momentum, 0x1.0000000000001p0, NRG_ERR_CONSTANT),       \
        SPEC_F64(momentum, 0, NRG_OK), SPEC_F64(momentum, 1, NRG_OK), WITH_U32(SPEC, nrg_channel_norm_spec, cumulative, 1),      \
        SPEC_F64(momentum, NAN, NRG_ERR_CONSTANT), SPEC_U32(accuracy, NRG_ACCURACY_EXACT, NRG_OK), SPEC_F64(eps, 0, NRG_OK),     \
        SPEC_F64(eps, DBL_MAX, NRG_OK), SPEC_U64(groups, CHANNELS, NRG_ERR_COMBINATION), SPEC_U64(segment, 1, NRG_OK)

/* Of the variants with groups, which are all the second one. */
#define WRONG_GROUPS WRONG_VARIANT(GROUP)

/* ---- forward ---- */

/* Batch norm in training, with and without running statistics; group norm of 16 bits; statistics given, running, folded; a
 * tensor of one row, as long as a vector of channels. */
enum { BATCH, GROUP, GIVEN, RUNNING, UPDATED, ROW, FOLDED, VARIANTS };

static nrg_channel_norm_spec spec_of(int variant)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5);
    if (variant == GROUP) {
        spec = nrg_channel_norm_spec_group(NRG_F16, CHANNELS, 2, 1e-5);
        spec.layout = NRG_LAYOUT_NHWC;
        spec.w_dtype = NRG_F32;
        spec.activation = NRG_ACT_SILU;
    }
    spec.source = variant == GIVEN     ? NRG_STATISTICS_GIVEN
                  : variant == RUNNING ? NRG_STATISTICS_RUNNING
                  : variant == FOLDED  ? NRG_STATISTICS_FOLDED
                                       : NRG_STATISTICS_COMPUTE;
    return spec;
}

#define RUNNING_IN (NRG_BIT(NRG_CHANNEL_RUNNING_MEAN_IN) | NRG_BIT(NRG_CHANNEL_RUNNING_VAR_IN))
#define RUNNING_BITS (RUNNING_IN | NRG_BIT(NRG_CHANNEL_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_RUNNING_VAR))

static uint32_t set_up_forward(void *const *part, int variant)
{
    *(nrg_channel_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_channel_norm_args *)part[ARGS] = nrg_channel_norm_args_init(
        variant == ROW ? 1 : SAMPLES, variant == UPDATED || variant == ROW ? 1 : POSITIONS, NULL, NULL, NULL, NULL);
    const uint32_t weights = NRG_BIT(NRG_CHANNEL_W) | NRG_BIT(NRG_CHANNEL_B), residual = NRG_BIT(NRG_CHANNEL_Y),
                   out = NRG_BIT(NRG_CHANNEL_MEAN) | NRG_BIT(NRG_CHANNEL_RSTD) | NRG_BIT(NRG_CHANNEL_STATISTICS);
    ((nrg_channel_norm_args *)part[ARGS])->store = NRG_STORE_KEEP;
    switch (variant) {
    case BATCH:
        return NRG_BIT(NRG_CHANNEL_W);
    case GIVEN:
        return weights | NRG_BIT(NRG_CHANNEL_STATISTICS_IN) | NRG_BIT(NRG_CHANNEL_MEAN);
    case RUNNING:
        return weights | out | RUNNING_IN;
    case UPDATED:
        return weights | out | RUNNING_BITS;
    case FOLDED:
        return weights | residual;
    default:
        return weights | residual | out;
    }
}

/* Of as many elements as there can be. */
static void fill_statistics(nrg_channel_statistics *statistics, size_t sets)
{
    const nrg_channel_statistics one = {0, 0, 1, 1, 7};
    for (size_t i = 0; statistics && i < sets; i++)
        statistics[i] = one;
}

static void fill_forward(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    const nrg_channel_norm_args *args = part[ARGS];
    if (spec->source == NRG_STATISTICS_GIVEN)
        fill_statistics(own_memory(args->statistics_in), CHANNELS);
}

#define ARGS_U64(field, value, status) WRONG_U64(ARGS, nrg_channel_norm_args, field, value, status)
#define WITH(field, value) WITH_U64(ARGS, nrg_channel_norm_args, field, value)

#define WRONG_STORE(type) WRONG_U32(ARGS, type, store, NRG_STORE_STREAM, NRG_OK)
#define WRONG_ARGS WRONG_STORE(nrg_channel_norm_args)

/* No running statistics: all four pointers. */
#define WITHOUT_RUNNING WITH(running_mean_in, 0), WITH(running_var_in, 0), WITH(running_mean, 0), WITH(running_var, 0)

/* Of a variant with running statistics: batches without an average of them, and an average without running statistics. */
#define WRONG_AVERAGE                                                                                                            \
    WITH_U32(SPEC, nrg_channel_norm_spec, cumulative, 1), WRONG_U64(ARGS, nrg_channel_norm_args, batches, 1, NRG_OK),            \
        WITHOUT_RUNNING, SPEC_U32(cumulative, 1, NRG_ERR_COMBINATION)

static const sound_wrong wrong_forward[] = {
    WRONG_SPEC,
    WRONG_ARGS,
    ARGS_U64(positions, SIZE_MAX / CHANNELS + 2, NRG_ERR_OVERFLOW),
    ARGS_U64(samples, SIZE_MAX / CHANNELS / POSITIONS + 2, NRG_ERR_OVERFLOW),
    WITH(samples, 0),
    ARGS_U64(positions, 0, NRG_ERR_DIM),
    WITH(samples, 0),
    SPEC_U64(channels, 0, NRG_ERR_DIM),
    WITH(samples, 0),
    SPEC_F64(eps, -1, NRG_ERR_EPS),
    WITH(samples, 1),
    ARGS_U64(positions, 1, NRG_OK),
    SPEC_U32(centred, 0, NRG_OK),
    SPEC_U32(source, NRG_STATISTICS_FOLDED, NRG_OK),
    ARGS_U64(statistics_in, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_mean_in, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_var, 64, NRG_ERR_COMBINATION),
    WRONG_GROUPS,
    WITH(running_mean_in, 64),
    WITH(running_mean, 64),
    WITH(running_var_in, 128),
    ARGS_U64(running_var, 128, NRG_ERR_COMBINATION),
    WRONG_VARIANT(GIVEN),
    WITH(running_mean_in, 64),
    ARGS_U64(running_var_in, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_mean, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_var, 64, NRG_ERR_COMBINATION),
    ARGS_U64(statistics, 64, NRG_ERR_COMBINATION),
    WRONG_VARIANT(RUNNING),
    WITH_OVER_GROUP,
    SPEC_U64(groups, 2, NRG_ERR_COMBINATION),
    WITH_OVER_GROUP,
    SPEC_U64(channels, 1, NRG_OK),
    ARGS_U64(running_mean, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_var, 64, NRG_ERR_COMBINATION),
    ARGS_U64(statistics_in, 64, NRG_ERR_COMBINATION),
    WITH(samples, 1),
    ARGS_U64(positions, 1, NRG_OK),
    WRONG_VARIANT(UPDATED),
    WITH(samples, 0),
    SPEC_F64(momentum, 2, NRG_ERR_CONSTANT),
    SPEC_U32(centred, 0, NRG_ERR_COMBINATION),
    WITH_OVER_GROUP,
    SPEC_U64(groups, 2, NRG_ERR_COMBINATION),
    WITH(samples, 0),
    ARGS_U64(running_var, 0, NRG_ERR_COMBINATION),
    WITHOUT_RUNNING,
    SPEC_U32(centred, 0, NRG_OK),
    ARGS_U64(samples, 2, NRG_OK),
    WITH_U32(SPEC, nrg_channel_norm_spec, layout, NRG_LAYOUT_NHWC),
    ARGS_U64(samples, 1, NRG_ERR_COUNT),
    WITH_OVER_GROUP,
    SPEC_U64(groups, CHANNELS, NRG_ERR_COUNT),
    WITHOUT_RUNNING,
    ARGS_U64(samples, 1, NRG_OK),
    WRONG_AVERAGE,
    WRONG_VARIANT(FOLDED),
    SPEC_U32(cumulative, 1, NRG_OK),
    ARGS_U64(b, 0, NRG_OK),
    ARGS_U64(mean, 64, NRG_ERR_COMBINATION),
    ARGS_U64(rstd, 64, NRG_ERR_COMBINATION),
    ARGS_U64(statistics, 64, NRG_ERR_COMBINATION),
    ARGS_U64(statistics_in, 64, NRG_ERR_COMBINATION),
    ARGS_U64(running_mean_in, 64, NRG_ERR_COMBINATION),
    WITH(running_mean, 64),
    ARGS_U64(running_var, 64, NRG_ERR_COMBINATION),
};

static const sound_wrong wrong_sums[] = {WRONG_SPEC, WRONG_ARGS, WITH(samples, 0), ARGS_U64(positions, 0, NRG_ERR_DIM),
                                         WRONG_GROUPS};

/* ---- statistics in parts ---- */

static uint32_t set_up_sums(void *const *part, int variant)
{
    set_up_forward(part, variant ? GROUP : BATCH);
    return 0;
}

static uint32_t set_up_add(void *const *part, int variant)
{
    (void)variant;
    ((nrg_channel_norm_sums_add_args *)part[0])->sets = 3;
    return 0;
}

/* Batch norm, with running statistics; group norm. */
static uint32_t set_up_statistics(void *const *part, int variant)
{
    const uint32_t out = NRG_BIT(NRG_CHANNEL_STATISTICS_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RSTD) |
                         NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS),
                   running = NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN) |
                             NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR);
    set_up_forward(part, variant ? GROUP : BATCH);
    return variant ? out : out | running;
}

/* Sums begin with the number of elements. */
static int64_t *counts_of(void *const *part)
{
    const nrg_channel_sums *more = part[MORE];
    return own_memory(more->sums);
}

/* One element is enough where no running variance is to be unbiased. */
static void fill_sums(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    const nrg_channel_norm_args *args = part[ARGS];
    const size_t sets = spec->over == NRG_CHANNEL_OVER_BATCH ? CHANNELS : SAMPLES * spec->groups;
    for (size_t i = 0; counts_of(part) && i < sets * NRG_CHANNEL_NORM_SUMS_WORDS; i++)
        counts_of(part)[i] = i % NRG_CHANNEL_NORM_SUMS_WORDS ? 0 : args->running_mean ? 2 : 1;
}

static nrg_status spoil_statistics(void *const *part, int n)
{
    const nrg_channel_norm_args *args = part[ARGS];
    const int counts = args->running_mean ? 2 : 1;
    if (n >= counts * CHANNELS)
        return NRG_OK;
    counts_of(part)[n / counts * NRG_CHANNEL_NORM_SUMS_WORDS] = n % counts;
    return NRG_ERR_COUNT;
}

/* Both ignore positions, x and o, and the source of statistics. */
#define WRONG_CHANNELS                                                                                                           \
    WRONG_SPEC, WRONG_ARGS, SPEC_U32(centred, 0, NRG_ERR_COMBINATION), WITH_OVER_GROUP,                                          \
        SPEC_U64(groups, 2, NRG_ERR_COMBINATION), WITH(positions, 0), WITH(x, 3), WITH(o, 3), WITH(x_stride, 3),                 \
        WITH(o_stride, 3), SPEC_U32(source, NRG_STATISTICS_FOLDED, NRG_OK)

static const sound_wrong wrong_statistics[] = {WRONG_CHANNELS, WITHOUT_RUNNING, SPEC_U32(centred, 0, NRG_OK), WRONG_AVERAGE,
                                               WRONG_GROUPS};
static const sound_wrong wrong_fold[] = {WRONG_CHANNELS, WRONG_GROUPS};

/* ---- folding ---- */

/* Batch norm; instance norm of 16 bits. */
static uint32_t set_up_fold(void *const *part, int variant)
{
    set_up_forward(part, variant ? GROUP : BATCH);
    if (variant)
        ((nrg_channel_norm_spec *)part[SPEC])->groups = CHANNELS;
    return NRG_BIT(NRG_CHANNEL_FOLD_B) | (variant ? 0 : NRG_BIT(NRG_CHANNEL_FOLD_W));
}

/* ---- backward ---- */

/* In the place of those that are a forward pass's only: groups with dw alone, and with statistics; statistics as floats. GIVEN:
 * also the sums. */
enum { ONE_SUM = UPDATED, FLOATS = FOLDED, BACKWARD_VARIANTS };

static uint32_t set_up_backward(void *const *part, int variant)
{
    nrg_channel_norm_spec *spec = part[SPEC];
    *spec = spec_of(variant == ONE_SUM ? GROUP : variant == FLOATS ? GIVEN : variant);
    if (variant == ROW)
        spec->activation = NRG_ACT_SILU;
    *(nrg_channel_norm_backward_args *)part[ARGS] =
        nrg_channel_norm_backward_args_init(variant == ROW ? 1 : SAMPLES, variant == ROW ? 1 : POSITIONS, NULL, NULL, NULL, NULL);
    ((nrg_channel_norm_backward_args *)part[ARGS])->store = NRG_STORE_KEEP;
    const uint32_t usual = NRG_BIT(NRG_CHANNEL_BACKWARD_W) | NRG_BIT(NRG_CHANNEL_BACKWARD_DX),
                   sums = NRG_BIT(NRG_CHANNEL_BACKWARD_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_DB);
    switch (variant) {
    case BATCH:
        return usual | sums;
    case GROUP:
        return usual | sums | NRG_BIT(NRG_CHANNEL_BACKWARD_Y) | NRG_BIT(NRG_CHANNEL_BACKWARD_B) |
               NRG_BIT(NRG_CHANNEL_BACKWARD_DY);
    case ONE_SUM:
        return usual | NRG_BIT(NRG_CHANNEL_BACKWARD_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_STATISTICS);
    case ROW:
        return usual | sums | NRG_BIT(NRG_CHANNEL_BACKWARD_Y) | NRG_BIT(NRG_CHANNEL_BACKWARD_B) |
               NRG_BIT(NRG_CHANNEL_BACKWARD_DY) | NRG_BIT(NRG_CHANNEL_BACKWARD_STATISTICS);
    case GIVEN:
        return usual | NRG_BIT(NRG_CHANNEL_BACKWARD_STATISTICS) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS);
    case FLOATS:
        return usual | sums | NRG_BIT(NRG_CHANNEL_BACKWARD_MEAN) | NRG_BIT(NRG_CHANNEL_BACKWARD_RSTD);
    default:
        return usual | sums | NRG_BIT(NRG_CHANNEL_BACKWARD_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_BACKWARD_RUNNING_VAR);
    }
}

static void fill_backward(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    const nrg_channel_norm_backward_args *args = part[ARGS];
    const size_t sets = spec->over == NRG_CHANNEL_OVER_BATCH ? CHANNELS : SAMPLES * spec->groups;
    fill_statistics(own_memory(args->statistics), sets);
    int64_t *sums = own_memory(args->sums);
    for (size_t set = 0; sums && set < CHANNELS; set++)
        sums[set * NRG_CHANNEL_NORM_SUMS_WORDS] = 1;
}

/* Sums, or statistics, of no elements. */
static nrg_status spoil_backward(void *const *part, int n)
{
    const nrg_channel_norm_backward_args *args = part[ARGS];
    if (n >= 2 * CHANNELS || !args->statistics)
        return NRG_OK;
    int64_t *sums = own_memory(args->sums);
    nrg_channel_statistics *statistics = own_memory(args->statistics);
    if (sums && n % 2)
        sums[n / 2 * NRG_CHANNEL_NORM_SUMS_WORDS] = 0;
    else
        statistics[n / 2].count = 0;
    return NRG_ERR_COUNT;
}

#define SUMS_OF_CHANNELS (NRG_BIT(NRG_CHANNEL_BACKWARD_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_DB))

/* Outputs of phase 1 only. */
static uint32_t spared_by_reduce(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    return NRG_BIT(NRG_CHANNEL_BACKWARD_DX) | NRG_BIT(NRG_CHANNEL_BACKWARD_DY) | NRG_BIT(NRG_CHANNEL_BACKWARD_WORKSPACE) |
           (spec->over == NRG_CHANNEL_OVER_GROUP ? 0 : SUMS_OF_CHANNELS);
}

#define BACKWARD_U64(field, value, status) WRONG_U64(ARGS, nrg_channel_norm_backward_args, field, value, status)
#define BACKWARD_WITH(field, value) WITH_U64(ARGS, nrg_channel_norm_backward_args, field, value)

/* 3: a pointer that is ignored. Variant 0 has no activation. */
#define WRONG_INPUTS                                                                                                             \
    WRONG_STORE(nrg_channel_norm_backward_args), BACKWARD_WITH(samples, 0), SPEC_F64(eps, -1, NRG_ERR_EPS),                      \
        BACKWARD_WITH(samples, 0), SPEC_U64(channels, 0, NRG_ERR_DIM), BACKWARD_U64(y, 64, NRG_ERR_COMBINATION),                 \
        BACKWARD_U64(b, 64, NRG_ERR_COMBINATION), BACKWARD_WITH(y_stride, 1), BACKWARD_WITH(workspace, 3),                       \
        BACKWARD_U64(workspace_size, 3, NRG_OK)

/* Where mean and rstd are the statistics: one without the other, and a mean where it is 0. */
#define WRONG_FLOATS                                                                                                             \
    WITH_U32(SPEC, nrg_channel_norm_spec, centred, 0), BACKWARD_U64(mean, 0, NRG_OK), SPEC_U32(centred, 0, NRG_ERR_COMBINATION)

enum { SUM_BYTES = CHANNELS * SAMPLES * 8 };

static const sound_wrong wrong_backward[] = {
    WRONG_SPEC,
    WRONG_INPUTS,
    BACKWARD_U64(running_mean, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(running_var, 64, NRG_ERR_COMBINATION),
    WRONG_GROUPS,
    BACKWARD_WITH(dw, 0),
    BACKWARD_WITH(db, 0),
    BACKWARD_U64(workspace, 0, NRG_OK),
    BACKWARD_WITH(dw, 0),
    BACKWARD_U64(workspace, 0, NRG_ERR_NULL),
    BACKWARD_WITH(db, 0),
    BACKWARD_U64(workspace, 0, NRG_ERR_NULL),
    BACKWARD_WITH(dw, 0),
    BACKWARD_U64(workspace_size, SUM_BYTES, NRG_OK),
    BACKWARD_WITH(db, 0),
    BACKWARD_U64(workspace_size, SUM_BYTES - 1, NRG_ERR_WORKSPACE),
    BACKWARD_U64(workspace_size, SIZE_MAX, NRG_OK),
    WRONG_VARIANT(ROW),
    BACKWARD_WITH(dw, 0),
    BACKWARD_U64(sums, 64, NRG_ERR_COMBINATION),
    BACKWARD_WITH(db, 0),
    BACKWARD_U64(sums, 64, NRG_ERR_COMBINATION),
    WRONG_VARIANT(ONE_SUM),
    BACKWARD_WITH(dw, 0),
    BACKWARD_U64(sums, 64, NRG_ERR_COMBINATION), /* of a group */
    WRONG_VARIANT(GIVEN),
    BACKWARD_U64(dw, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(db, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(mean, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(rstd, 64, NRG_ERR_COMBINATION),
    WRONG_VARIANT(FLOATS),
    BACKWARD_U64(statistics, 64, NRG_ERR_COMBINATION),
    WRONG_FLOATS,
    BACKWARD_WITH(mean, 0),
    BACKWARD_U64(rstd, 0, NRG_ERR_NULL),
    SPEC_U32(source, NRG_STATISTICS_COMPUTE, NRG_OK),
    WRONG_VARIANT(RUNNING),
    BACKWARD_U64(statistics, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(mean, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(rstd, 64, NRG_ERR_COMBINATION),
    BACKWARD_WITH(dw, 0),
    BACKWARD_WITH(db, 0),
    BACKWARD_U64(sums, 64, NRG_ERR_COMBINATION),
    WITH_OVER_GROUP,
    SPEC_U64(groups, 2, NRG_ERR_COMBINATION),
};

/* Without operands: dw and db are there or not. */
static uint32_t set_up_workspace(void *const *part, int variant)
{
    static float any;
    const uint32_t there = set_up_backward(part, variant);
    nrg_channel_norm_backward_args *args = part[ARGS];
    args->dw = there & NRG_BIT(NRG_CHANNEL_BACKWARD_DW) ? &any : NULL;
    args->db = there & NRG_BIT(NRG_CHANNEL_BACKWARD_DB) ? &any : NULL;
    return 0;
}

/* Of args only samples, dw and db are read. */
#define MOST_CHANNELS(gradients) (SIZE_MAX / 8 / SAMPLES / (gradients) / 2 * 2)
#define WRONG_BYTES(gradients)                                                                                                   \
    SPEC_U64(channels, MOST_CHANNELS(gradients), NRG_OK), SPEC_U64(channels, MOST_CHANNELS(gradients) + 2, NRG_ERR_OVERFLOW)
static const sound_wrong wrong_workspace[] = {
    WRONG_SPEC,
    WRONG_STORE(nrg_channel_norm_backward_args),
    SPEC_U64(channels, SIZE_MAX, NRG_OK),
    BACKWARD_WITH(x, 3),
    BACKWARD_WITH(x_stride, 1),
    BACKWARD_WITH(sums, 64),
    BACKWARD_WITH(workspace, 3),
    BACKWARD_WITH(samples, SIZE_MAX),
    BACKWARD_U64(positions, 0, NRG_OK),
    WRONG_GROUPS,
    WRONG_BYTES(2),
    WRONG_VARIANT(ONE_SUM),
    WRONG_BYTES(1),
};

/* ---- backward, sums in parts ---- */

/* As little as there may be; all there is, and statistics as floats. */
static uint32_t set_up_backward_sums(void *const *part, int variant)
{
    set_up_backward(part, BATCH);
    if (!variant)
        return NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_STATISTICS);
    ((nrg_channel_norm_spec *)part[SPEC])->activation = NRG_ACT_SILU;
    return NRG_BIT(NRG_CHANNEL_BACKWARD_Y) | NRG_BIT(NRG_CHANNEL_BACKWARD_W) | NRG_BIT(NRG_CHANNEL_BACKWARD_B) |
           NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_MEAN) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_RSTD) |
           NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DB);
}

/* What the second phase writes is not looked at. */
static const sound_wrong wrong_backward_sums[] = {
    WRONG_SPEC,
    WRONG_INPUTS,
    BACKWARD_WITH(running_mean, 3),
    BACKWARD_WITH(dx, 3),
    BACKWARD_WITH(dy, 3),
    BACKWARD_WITH(sums, 3),
    BACKWARD_WITH(dx_stride, 1),
    BACKWARD_U64(dy_stride, 1, NRG_OK),
    BACKWARD_U64(rstd, 64, NRG_ERR_COMBINATION),
    BACKWARD_U64(mean, 64, NRG_ERR_COMBINATION),
    WRONG_VARIANT(1),
    BACKWARD_U64(statistics, 64, NRG_ERR_COMBINATION),
    WRONG_FLOATS,
    BACKWARD_WITH(mean, 0),
    BACKWARD_U64(rstd, 0, NRG_ERR_NULL),
};

static const sound_call calls[] = {
    {&invoke_channel_norm_forward, VARIANTS, set_up_forward, WRONG(wrong_forward), .fill = fill_forward, .own = RUNNING_BITS},
    {&invoke_channel_norm_sums, 2, set_up_sums, WRONG(wrong_sums), .own = UINT32_MAX},
    {&invoke_channel_norm_sums_add, 1, .set_up = set_up_add, NO_KERNEL},
    {&invoke_channel_norm_statistics, 2, set_up_statistics, WRONG(wrong_statistics), .fill = fill_sums, .spoil = spoil_statistics,
     NO_KERNEL},
    {&invoke_channel_norm_fold, 2, set_up_fold, WRONG(wrong_fold), NO_KERNEL},
    {&invoke_channel_norm_backward, BACKWARD_VARIANTS, set_up_backward, WRONG(wrong_backward), .fill = fill_backward,
     .spoil = spoil_backward, .own = UINT32_MAX},
    {&invoke_channel_norm_backward_reduce, BACKWARD_VARIANTS, set_up_backward, WRONG(wrong_backward), .fill = fill_backward,
     .spoil = spoil_backward, .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_channel_norm_backward_sums, 2, set_up_backward_sums, WRONG(wrong_backward_sums), .fill = fill_backward,
     .spoil = spoil_backward, .own = UINT32_MAX},
    {&invoke_channel_norm_backward_workspace, BACKWARD_VARIANTS, set_up_workspace, WRONG(wrong_workspace)},
};

const sound_family sound_channel_norm = {"channel_norm", calls, NRG_COUNT(calls)};
