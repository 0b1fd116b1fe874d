/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/channel_norm_backward.h"
#include "sound.h"

enum { SPEC = NRG_CHANNEL_SPEC, ARGS = NRG_CHANNEL_ARGS, MORE = NRG_CHANNEL_MORE, SAMPLES = 3, CHANNELS = 4, POSITIONS = 5 };

#define WRONG_SPEC                                                                                                               \
    WRONG_U64(SPEC, nrg_channel_norm_spec, channels, 0, NRG_ERR_DIM),                                                            \
        WRONG_U32(SPEC, nrg_channel_norm_spec, w_dtype, NRG_F16, NRG_ERR_DTYPE),                                                 \
        WRONG_F64(SPEC, nrg_channel_norm_spec, eps, -1, NRG_ERR_EPS),                                                            \
        WRONG_F64(SPEC, nrg_channel_norm_spec, eps, NAN, NRG_ERR_EPS),                                                           \
        WRONG_F64(SPEC, nrg_channel_norm_spec, momentum, 1.5, NRG_ERR_CONSTANT),                                                 \
        WRONG_F64(SPEC, nrg_channel_norm_spec, momentum, NAN, NRG_ERR_CONSTANT),                                                 \
        WRONG_U64(SPEC, nrg_channel_norm_spec, groups, 2, NRG_ERR_COMBINATION),                                                  \
        WRONG_U64(SPEC, nrg_channel_norm_spec, segment, 4097, NRG_ERR_COMBINATION)

/* ---- forward ---- */

/* Batch norm in training, with and without running statistics; group norm of 16 bits; statistics given, running, folded. */
enum { BATCH, GROUP, GIVEN, RUNNING, UPDATED, FOLDED, VARIANTS };

static nrg_channel_norm_spec spec_of(int variant)
{
    nrg_channel_norm_spec spec = nrg_batch_norm_spec(CHANNELS, 1e-5);
    spec.store = NRG_STORE_KEEP;
    if (variant == GROUP) {
        spec = nrg_group_norm_spec(CHANNELS, 2, 1e-5);
        spec.layout = NRG_NHWC;
        spec.dtype = NRG_F16;
        spec.w_dtype = NRG_F32;
        spec.activation = NRG_ACT_SILU;
    }
    spec.statistics = variant == GIVEN     ? NRG_STATISTICS_GIVEN
                      : variant == RUNNING ? NRG_STATISTICS_RUNNING
                      : variant == FOLDED  ? NRG_STATISTICS_FOLDED
                                           : NRG_STATISTICS_COMPUTE;
    return spec;
}

static uint32_t set_up_forward(void *const *part, int variant)
{
    *(nrg_channel_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_channel_norm_args *)part[ARGS] = nrg_channel_norm_args_init(SAMPLES, variant == UPDATED ? 1 : POSITIONS, NULL, NULL);
    const uint32_t weights = NRG_BIT(NRG_CHANNEL_W) | NRG_BIT(NRG_CHANNEL_B), residual = NRG_BIT(NRG_CHANNEL_Y),
                   out = NRG_BIT(NRG_CHANNEL_MEAN) | NRG_BIT(NRG_CHANNEL_RSTD) | NRG_BIT(NRG_CHANNEL_STATISTICS),
                   running = NRG_BIT(NRG_CHANNEL_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_RUNNING_VAR);
    switch (variant) {
    case BATCH:
        return NRG_BIT(NRG_CHANNEL_W);
    case GIVEN:
        return weights | NRG_BIT(NRG_CHANNEL_STATISTICS) | NRG_BIT(NRG_CHANNEL_MEAN);
    case RUNNING:
    case UPDATED:
        return weights | out | running;
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
    if (spec->statistics == NRG_STATISTICS_GIVEN)
        fill_statistics(args->statistics, CHANNELS);
}

static nrg_status run_forward(void *const *part, int ith, int nth)
{
    return nrg_channel_norm_forward(part[SPEC], part[ARGS], ith, nth);
}

static const sound_wrong wrong_forward[] = {
    WRONG_SPEC,
    WRONG_U64(ARGS, nrg_channel_norm_args, s, 0, NRG_ERR_DIM),
    /* one element has no unbiased variance */
    {.part = ARGS,
     .bytes = 8,
     .variant = UPDATED,
     .at = NRG_AT(nrg_channel_norm_args, n),
     .status = NRG_ERR_COUNT,
     .value.u64 = 1},
};
static const sound_size forward_sizes[] = {{SPEC, NRG_AT(nrg_channel_norm_spec, channels)},
                                           {ARGS, NRG_AT(nrg_channel_norm_args, n)},
                                           {ARGS, NRG_AT(nrg_channel_norm_args, s)}};

/* ---- statistics in parts ---- */

static uint32_t set_up_sums(void *const *part, int variant)
{
    set_up_forward(part, variant ? GROUP : BATCH);
    return 0;
}

static nrg_status run_sums(void *const *part, int ith, int nth)
{
    const nrg_channel_sums *more = part[MORE];
    return nrg_channel_norm_sums(part[SPEC], part[ARGS], (int64_t *)more->sums, ith, nth); /* the test's own memory */
}

static uint32_t set_up_add(void *const *part, int variant)
{
    (void)variant;
    ((nrg_sums_add_args *)part[0])->sets = 3;
    return 0;
}

static nrg_status run_add(void *const *part, int ith, int nth)
{
    const nrg_sums_add_args *args = part[0];
    (void)ith;
    (void)nth;
    return nrg_sums_add(args->sets, (int64_t *)args->into, args->from);
}

static const sound_size add_sizes[] = {{0, NRG_AT(nrg_sums_add_args, sets)}};

/* Batch norm, with running statistics; group norm. */
static uint32_t set_up_statistics(void *const *part, int variant)
{
    const uint32_t out = NRG_BIT(NRG_CHANNEL_STATISTICS_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RSTD) |
                         NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS),
                   running = NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR);
    set_up_forward(part, variant ? GROUP : BATCH);
    return variant ? out : out | running;
}

/* Sums begin with the number of elements. */
static int64_t *counts_of(void *const *part)
{
    const nrg_channel_sums *more = part[MORE];
    return (int64_t *)more->sums; /* the test's own memory */
}

static void fill_sums(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[SPEC];
    const size_t sets = spec->over == NRG_OVER_BATCH ? CHANNELS : SAMPLES * spec->groups;
    memset(counts_of(part), 0, sets * NRG_SUMS_WORDS * sizeof(int64_t));
    for (size_t set = 0; set < sets; set++)
        counts_of(part)[set * NRG_SUMS_WORDS] = 2;
}

/* One element is enough where no running variance is to be unbiased. */
static nrg_status spoil_statistics(void *const *part, int n)
{
    const nrg_channel_norm_args *args = part[ARGS];
    if (n > 1 || (n && !args->running_mean))
        return NRG_OK;
    counts_of(part)[NRG_SUMS_WORDS] = n;
    return NRG_ERR_COUNT;
}

static nrg_status run_statistics(void *const *part, int ith, int nth)
{
    return nrg_channel_norm_statistics(part[SPEC], part[ARGS], counts_of(part), ith, nth);
}

static const sound_wrong wrong_running[] = {
    WRONG_SPEC,
    WRONG_U32(SPEC, nrg_channel_norm_spec, over, NRG_OVER_GROUP, NRG_ERR_COMBINATION),
    WRONG_U32(SPEC, nrg_channel_norm_spec, centred, 0, NRG_ERR_COMBINATION),
};
static const sound_size channels_size[] = {{SPEC, NRG_AT(nrg_channel_norm_spec, channels)}};

/* ---- folding ---- */

/* Batch norm; instance norm of 16 bits. */
static uint32_t set_up_fold(void *const *part, int variant)
{
    set_up_forward(part, variant ? GROUP : BATCH);
    if (variant)
        ((nrg_channel_norm_spec *)part[SPEC])->groups = CHANNELS;
    return NRG_BIT(NRG_CHANNEL_FOLD_B) | (variant ? 0 : NRG_BIT(NRG_CHANNEL_FOLD_W));
}

static nrg_status run_fold(void *const *part, int ith, int nth)
{
    const nrg_channel_factors *factors = part[MORE];
    (void)ith;
    (void)nth;
    return nrg_channel_norm_fold(part[SPEC], part[ARGS], (float *)factors->scale, (float *)factors->shift);
}

/* ---- backward ---- */

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_channel_norm_spec *)part[SPEC] = spec_of(variant == 4 ? GROUP : variant);
    *(nrg_channel_norm_backward_args *)part[ARGS] = nrg_channel_norm_backward_args_init(SAMPLES, POSITIONS, NULL, NULL, NULL);
    const uint32_t usual = NRG_BIT(NRG_CHANNEL_BACKWARD_W) | NRG_BIT(NRG_CHANNEL_BACKWARD_DX),
                   sums = NRG_BIT(NRG_CHANNEL_BACKWARD_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_DB);
    switch (variant) {
    case BATCH:
        return usual | sums;
    case GROUP:
    case 4:
        return usual | NRG_BIT(NRG_CHANNEL_BACKWARD_Y) | NRG_BIT(NRG_CHANNEL_BACKWARD_B) | NRG_BIT(NRG_CHANNEL_BACKWARD_DY) |
               (variant == 4 ? NRG_BIT(NRG_CHANNEL_BACKWARD_DW) : sums);
    case GIVEN:
        return usual | NRG_BIT(NRG_CHANNEL_BACKWARD_STATISTICS) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS);
    default:
        return usual | sums | NRG_BIT(NRG_CHANNEL_BACKWARD_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_BACKWARD_RUNNING_VAR);
    }
}

static void fill_backward(void *const *part)
{
    const nrg_channel_norm_backward_args *args = part[ARGS];
    fill_statistics((nrg_channel_statistics *)args->statistics, CHANNELS); /* the test's own memory */
    for (size_t set = 0; args->sums && set < CHANNELS; set++)
        ((int64_t *)args->sums)[set * NRG_SUMS_WORDS] = 1;
}

static nrg_status run_backward(void *const *part, int ith, int nth)
{
    return nrg_channel_norm_backward(part[SPEC], part[ARGS], ith, nth);
}

static nrg_status run_reduce(void *const *part, int ith, int nth)
{
    return nrg_channel_norm_backward_reduce(part[SPEC], part[ARGS], ith, nth);
}

/* Sums, or statistics, of no elements. */
static nrg_status spoil_backward(void *const *part, int n)
{
    const nrg_channel_norm_backward_args *args = part[ARGS];
    if (n == 0 && args->sums)
        ((int64_t *)args->sums)[NRG_SUMS_WORDS] = 0;
    else if (n < 2 && args->statistics)
        ((nrg_channel_statistics *)args->statistics)[CHANNELS - 1].count = 0;
    else
        return NRG_OK;
    return NRG_ERR_COUNT;
}

#define WRONG_BACKWARD                                                                                                           \
    WRONG_SPEC, WRONG_U64(ARGS, nrg_channel_norm_backward_args, s, 0, NRG_ERR_DIM),                                              \
        WRONG_U32(SPEC, nrg_channel_norm_spec, statistics, NRG_STATISTICS_FOLDED, NRG_ERR_COMBINATION)

static const sound_wrong wrong_backward[] = {WRONG_BACKWARD};
static const sound_size backward_sizes[] = {{SPEC, NRG_AT(nrg_channel_norm_spec, channels)},
                                            {ARGS, NRG_AT(nrg_channel_norm_backward_args, n)},
                                            {ARGS, NRG_AT(nrg_channel_norm_backward_args, s)}};

/* ---- backward, sums in parts ---- */

/* As little as there may be; all there is. */
static uint32_t set_up_backward_sums(void *const *part, int variant)
{
    set_up_backward(part, BATCH);
    if (!variant)
        return 0;
    ((nrg_channel_norm_spec *)part[SPEC])->activation = NRG_ACT_SILU;
    return NRG_BIT(NRG_CHANNEL_BACKWARD_Y) | NRG_BIT(NRG_CHANNEL_BACKWARD_W) | NRG_BIT(NRG_CHANNEL_BACKWARD_B) |
           NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_DB);
}

static nrg_status run_backward_sums(void *const *part, int ith, int nth)
{
    return nrg_channel_norm_backward_sums(part[SPEC], part[ARGS], counts_of(part), ith, nth);
}

static const sound_wrong wrong_backward_sums[] = {
    WRONG_BACKWARD,
    WRONG_U32(SPEC, nrg_channel_norm_spec, over, NRG_OVER_GROUP, NRG_ERR_COMBINATION),
    WRONG_U32(SPEC, nrg_channel_norm_spec, statistics, NRG_STATISTICS_RUNNING, NRG_ERR_COMBINATION),
};

#define WRONG(options, numbers)                                                                                                  \
    .wrong = options, .wrong_count = NRG_COUNT(options), .sizes = numbers, .size_count = NRG_COUNT(numbers)

static const sound_call calls[] = {
    {&nrg_call_channel_norm_forward, "channel_norm.h", "nrg_channel_norm_forward", 1, VARIANTS, set_up_forward, fill_forward,
     run_forward, WRONG(wrong_forward, forward_sizes)},
    {&nrg_call_channel_norm_sums, "channel_norm.h", "nrg_channel_norm_sums", 1, 2, set_up_sums, NULL, run_sums,
     WRONG(wrong_forward, forward_sizes)},
    {&nrg_call_sums_add, "channel_norm.h", "nrg_sums_add", 0, 1, set_up_add, NULL, run_add, .sizes = add_sizes,
     .size_count = NRG_COUNT(add_sizes)},
    {&nrg_call_channel_norm_statistics, "channel_norm.h", "nrg_channel_norm_statistics", 1, 2, set_up_statistics, fill_sums,
     run_statistics, spoil_statistics, WRONG(wrong_running, channels_size)},
    {&nrg_call_channel_norm_fold, "channel_norm.h", "nrg_channel_norm_fold", 0, 2, set_up_fold, NULL, run_fold,
     WRONG(wrong_running, channels_size)},
    {&nrg_call_channel_norm_backward, "channel_norm_backward.h", "nrg_channel_norm_backward", 1, 5, set_up_backward,
     fill_backward, run_backward, WRONG(wrong_backward, backward_sizes), .spoil = spoil_backward},
    {&nrg_call_channel_norm_backward_reduce, "channel_norm_backward.h", "nrg_channel_norm_backward_reduce", 1, 5, set_up_backward,
     fill_backward, run_reduce, WRONG(wrong_backward, backward_sizes), .spoil = spoil_backward},
    {&nrg_call_channel_norm_backward_sums, "channel_norm_backward.h", "nrg_channel_norm_backward_sums", 1, 2,
     set_up_backward_sums, fill_backward, run_backward_sums, WRONG(wrong_backward_sums, backward_sizes), .spoil = spoil_backward},
};

const sound_family sound_channel = {"channel", calls, NRG_COUNT(calls)};
