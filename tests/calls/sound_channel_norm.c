/* SPDX-License-Identifier: MIT */
#include "../../src/operands/channel_norm_backward.h"
#include "sound.h"

enum { SPEC = NRG_CHANNEL_SPEC, ARGS = NRG_CHANNEL_ARGS, MORE = NRG_CHANNEL_SUMS_MORE, SAMPLES = 3, CHANNELS = 4, POSITIONS = 5 };

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
    spec.cumulative = variant == UPDATED;
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

/* Running statistics of groups: of one channel each, and of more than one element. */
#define WITH(field, value) WITH_U32(SPEC, nrg_channel_norm_spec, field, value)
#define WRONG_SPEC(field, value, status) WRONG_U64(SPEC, nrg_channel_norm_spec, field, value, status)
#define WRONG_ARGS(field, value, status) WRONG_U64(ARGS, nrg_channel_norm_args, field, value, status)
static const sound_wrong wrong_forward[] = {WRONG_VARIANT(RUNNING),
                                            WITH(over, NRG_CHANNEL_OVER_GROUP),
                                            WRONG_SPEC(groups, 2, NRG_ERR_COMBINATION),
                                            WITH(over, NRG_CHANNEL_OVER_GROUP),
                                            WRONG_SPEC(channels, 1, NRG_OK),
                                            WRONG_VARIANT(UPDATED),
                                            WITH(over, NRG_CHANNEL_OVER_GROUP),
                                            WRONG_SPEC(groups, CHANNELS, NRG_ERR_COUNT),
                                            WITH(layout, NRG_LAYOUT_NHWC),
                                            WRONG_ARGS(samples, 1, NRG_ERR_COUNT),
                                            WITH_U64(ARGS, nrg_channel_norm_args, samples, 0),
                                            WRONG_ARGS(running_var, 0, NRG_ERR_COMBINATION)};

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

#define OPERAND(name) NRG_BIT(NRG_CHANNEL_BACKWARD_##name)
static uint32_t set_up_backward(void *const *part, int variant)
{
    nrg_channel_norm_spec *spec = part[SPEC];
    *spec = spec_of(variant == ONE_SUM ? GROUP : variant == FLOATS ? GIVEN : variant);
    if (variant == ROW)
        spec->activation = NRG_ACT_SILU;
    *(nrg_channel_norm_backward_args *)part[ARGS] =
        nrg_channel_norm_backward_args_init(variant == ROW ? 1 : SAMPLES, variant == ROW ? 1 : POSITIONS, NULL, NULL, NULL, NULL);
    ((nrg_channel_norm_backward_args *)part[ARGS])->store = NRG_STORE_KEEP;
    const uint32_t usual = OPERAND(W) | OPERAND(DX), sums = OPERAND(DW) | OPERAND(DB);
    switch (variant) {
    case BATCH:
        return usual | sums;
    case GROUP:
        return usual | sums | OPERAND(Y) | OPERAND(B) | OPERAND(DY);
    case ONE_SUM:
        return usual | OPERAND(DW) | OPERAND(STATISTICS);
    case ROW:
        return usual | sums | OPERAND(Y) | OPERAND(B) | OPERAND(DY) | OPERAND(STATISTICS);
    case GIVEN:
        return usual | OPERAND(STATISTICS) | OPERAND(SUMS);
    case FLOATS:
        return usual | sums | OPERAND(MEAN) | OPERAND(RSTD);
    default:
        return usual | sums | OPERAND(RUNNING_MEAN) | OPERAND(RUNNING_VAR);
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

#define SUMS_OF_CHANNELS (OPERAND(DW) | OPERAND(DB))

/* Outputs of phase 1 only. */
static uint32_t spared_by_reduce(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    return OPERAND(DX) | OPERAND(DY) | OPERAND(WORKSPACE) | (spec->over == NRG_CHANNEL_OVER_GROUP ? 0 : SUMS_OF_CHANNELS);
}

/* A workspace may be larger than it has to be. */
static const sound_wrong wrong_backward[] = {WRONG_VARIANT(GROUP),
                                             WRONG_U64(ARGS, nrg_channel_norm_backward_args, workspace_size, SIZE_MAX, NRG_OK)};

/* The most channels of which a workspace's bytes are a number. */
#define MOST_CHANNELS(gradients) (SIZE_MAX / 8 / SAMPLES / (gradients) / 2 * 2)
#define WRONG_CHANNELS(variant, gradients)                                                                                       \
    WRONG_VARIANT(variant), WRONG_U64(SPEC, nrg_channel_norm_spec, channels, MOST_CHANNELS(gradients), NRG_OK),                  \
        WRONG_U64(SPEC, nrg_channel_norm_spec, channels, MOST_CHANNELS(gradients) + 2, NRG_ERR_OVERFLOW)
static const sound_wrong wrong_workspace[] = {WRONG_CHANNELS(GROUP, 2), WRONG_CHANNELS(ONE_SUM, 1)};

/* ---- backward, sums in parts ---- */

/* As little as there may be; all there is, and statistics as floats. */
static uint32_t set_up_backward_sums(void *const *part, int variant)
{
    set_up_backward(part, BATCH);
    if (!variant)
        return NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_STATISTICS);
    ((nrg_channel_norm_spec *)part[SPEC])->activation = NRG_ACT_SILU;
    return OPERAND(Y) | OPERAND(W) | OPERAND(B) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_MEAN) |
           NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_RSTD) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DW) |
           NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DB);
}

static const sound_call calls[] = {
    {&invoke_channel_norm_forward, VARIANTS, set_up_forward, WRONG(wrong_forward), .fill = fill_forward, .own = RUNNING_BITS},
    {&invoke_channel_norm_sums, 2, .set_up = set_up_sums, .own = UINT32_MAX},
    {&invoke_channel_norm_sums_add, 1, .set_up = set_up_add, NO_KERNEL},
    {&invoke_channel_norm_statistics, 2, .set_up = set_up_statistics, .fill = fill_sums, .spoil = spoil_statistics, NO_KERNEL},
    {&invoke_channel_norm_fold, 2, .set_up = set_up_fold, NO_KERNEL},
    {&invoke_channel_norm_backward, BACKWARD_VARIANTS, set_up_backward, WRONG(wrong_backward), .fill = fill_backward,
     .spoil = spoil_backward, .own = UINT32_MAX},
    {&invoke_channel_norm_backward_reduce, BACKWARD_VARIANTS, set_up_backward, WRONG(wrong_backward), .fill = fill_backward,
     .spoil = spoil_backward, .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_channel_norm_backward_sums, 2, .set_up = set_up_backward_sums, .fill = fill_backward, .spoil = spoil_backward,
     .own = UINT32_MAX},
    {&invoke_channel_norm_backward_workspace, BACKWARD_VARIANTS, set_up_backward, WRONG(wrong_workspace),
     .like = &nrg_call_channel_norm_backward},
};

const sound_family sound_channel_norm = {"channel_norm", calls, NRG_COUNT(calls)};
