/* Channel normalization: forward, statistics in parts, folding.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm.h"

#include <float.h>

nrg_status nrg_channel_measure_spec(const nrg_channel_norm_spec *spec, nrg_sizes *sizes)
{
    sizes->type[NRG_CHANNEL_TYPE_X] = spec->dtype;
    if (spec->channels == 0 || spec->groups == 0 ||
        (spec->over == NRG_CHANNEL_OVER_GROUP && spec->groups > 1 && spec->channels % spec->groups != 0))
        return NRG_ERR_DIM;
    if (nrg_beside(spec->w_dtype, spec->dtype, &sizes->type[NRG_CHANNEL_TYPE_W]) != NRG_OK)
        return NRG_ERR_DTYPE;
    if (!(spec->eps >= 0 && spec->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    if (!(spec->momentum >= 0 && spec->momentum <= 1) || spec->segment - 1 > NRG_CHANNEL_SEGMENT - 1)
        return NRG_ERR_CONSTANT;
    return spec->over == NRG_CHANNEL_OVER_BATCH && spec->groups > 1 ? NRG_ERR_COMBINATION : NRG_OK;
}

nrg_status nrg_channel_measure_tensor(const nrg_channel_norm_spec *spec, size_t n, size_t s, nrg_sizes *sizes)
{
    const size_t c = spec->channels, groups = nrg_channel_groups(spec);
    const int is_nhwc = nrg_channel_is_nhwc(spec, s);
    size_t sample, elements;
    if (s == 0)
        return NRG_ERR_DIM;
    if (!nrg_product(c, s, &sample) || !nrg_product(n, sample, &elements))
        return NRG_ERR_OVERFLOW;
    /* no product below has more factors than the elements have */
    sizes->n[NRG_CHANNEL_ROWS] = is_nhwc ? n * s : n;
    sizes->n[NRG_CHANNEL_DIM] = is_nhwc ? c : sample;
    sizes->n[NRG_CHANNEL_CHANNELS] = c;
    sizes->n[NRG_CHANNEL_USED_CHANNELS] = n ? c : 0;
    sizes->n[NRG_CHANNEL_SETS] = groups ? n * groups : c;
    sizes->n[NRG_CHANNEL_STATISTIC] = sizeof(nrg_channel_statistics) / sizeof(double);
    sizes->n[NRG_CHANNEL_RECORD] = NRG_CHANNEL_NORM_SUMS_WORDS;
    return NRG_OK;
}

/* Refuses running statistics, whose bits are in `all`, unless there are all four of them, for sets that are channels. An average
 * of all batches needs them. */
static nrg_status measure_running(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, nrg_sizes *s,
                                  uint32_t all)
{
    if (!nrg_channel_may_run(spec) || !args->running_mean_in || !args->running_var_in || !args->running_mean ||
        !args->running_var)
        s->refused |= all;
    return spec->cumulative && !args->running_mean ? NRG_ERR_COMBINATION : NRG_OK;
}

/* Spec and tensor; batches are those of an average. */
static nrg_status measure_batches(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, size_t positions,
                                  nrg_sizes *s)
{
    nrg_status status = nrg_channel_measure_spec(spec, s);
    if (status == NRG_OK)
        status = nrg_channel_measure_tensor(spec, args->samples, positions, s);
    return status == NRG_OK && args->batches && !spec->cumulative ? NRG_ERR_COMBINATION : status;
}

static const nrg_range ranges[] = {NRG_CHANNEL_SPEC_RANGES, NRG_CHANNEL_STORE_RANGE(nrg_channel_norm_args),
                                   NRG_RESERVED_RANGE(NRG_CHANNEL_ARGS, nrg_channel_norm_args, reserved)};

#define ARGS_PART                                                                                                                \
    {                                                                                                                            \
        .size = sizeof(nrg_channel_norm_args), .least = sizeof(nrg_channel_norm_args)                                            \
    }
#define TENSOR(field, role) NRG_CHANNEL_TENSOR(nrg_channel_norm_args, field, role)
#define LINE(field, role, number) NRG_CHANNEL_LINE(nrg_channel_norm_args, field, role, NRG_ELEMENT_F32, number)
#define WEIGHT(field, number) NRG_CHANNEL_WEIGHT(nrg_channel_norm_args, field, number)
#define RUNNING(field, role) LINE(field, role, NRG_CHANNEL_USED_CHANNELS), .may_be_absent = 1
#define STATISTICS(field, role) NRG_CHANNEL_STATISTICS_OF(nrg_channel_norm_args, field, role)
#define SUMS(index, type, field, role)                                                                                           \
#field, role, NRG_ELEMENT_I64, .part = (index), .at = NRG_AT(type, field), .dim = NRG_CHANNEL_RECORD,                        \
                                   .level = {{.count = NRG_CHANNEL_SETS } }
#define CALL(call_parts, call_operands)                                                                                          \
    .parts = (call_parts), .part_count = NRG_COUNT(call_parts), .operands = (call_operands),                                     \
    .operand_count = NRG_COUNT(call_operands), .ranges = ranges, .range_count = NRG_COUNT(ranges)

/* ---- forward ---- */

/* The source of m and σ² decides which statistics are read and written. */
static nrg_status measure_source(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, nrg_sizes *s)
{
    const uint32_t given = NRG_BIT(NRG_CHANNEL_STATISTICS_IN),
                   running_in = NRG_BIT(NRG_CHANNEL_RUNNING_MEAN_IN) | NRG_BIT(NRG_CHANNEL_RUNNING_VAR_IN),
                   running = NRG_BIT(NRG_CHANNEL_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_RUNNING_VAR);
    switch (spec->source) {
    case NRG_STATISTICS_COMPUTE:
        s->refused |= given;
        return measure_running(spec, args, s, running_in | running);
    case NRG_STATISTICS_GIVEN:
        s->needed |= given;
        s->refused |= running_in | running | NRG_BIT(NRG_CHANNEL_STATISTICS);
        break;
    case NRG_STATISTICS_RUNNING:
        if (!nrg_channel_may_run(spec))
            return NRG_ERR_COMBINATION;
        s->always |= running_in;
        s->refused |= running | given;
        break;
    case NRG_STATISTICS_FOLDED:
        s->needed |= NRG_BIT(NRG_CHANNEL_W);
        s->refused |= running_in | running | given | NRG_BIT(NRG_CHANNEL_STATISTICS) | NRG_BIT(NRG_CHANNEL_MEAN) |
                      NRG_BIT(NRG_CHANNEL_RSTD);
        break;
    }
    return NRG_OK;
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    nrg_status status = measure_batches(spec, args, args->positions, s);
    if (status != NRG_OK)
        return status;
    if ((status = measure_source(spec, args, s)) != NRG_OK)
        return status;
    if (!args->samples) {
        s->n[NRG_CHANNEL_SETS] = 0;
        return NRG_OK;
    }
    /* an unbiased variance needs two elements */
    const size_t samples = spec->over == NRG_CHANNEL_OVER_BATCH ? args->samples : 1;
    const int is_updated = args->running_mean && !(s->refused & NRG_BIT(NRG_CHANNEL_RUNNING_MEAN));
    return is_updated && samples == 1 && args->positions == 1 ? NRG_ERR_COUNT : NRG_OK;
}

static const nrg_part forward_parts[] = {NRG_CHANNEL_SPEC_PART, ARGS_PART};

static const nrg_operand forward_operands[NRG_CHANNEL_OPERANDS] = {
    [NRG_CHANNEL_X] = {TENSOR(x, NRG_IN)},
    [NRG_CHANNEL_Y] = {TENSOR(y, NRG_IN), .may_be_absent = 1},
    [NRG_CHANNEL_W] = {WEIGHT(w, NRG_CHANNEL_USED_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_B] = {WEIGHT(b, NRG_CHANNEL_USED_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_STATISTICS_IN] = {STATISTICS(statistics_in, NRG_IN), .may_be_absent = 1},
    [NRG_CHANNEL_RUNNING_MEAN_IN] = {RUNNING(running_mean_in, NRG_IN)},
    [NRG_CHANNEL_RUNNING_VAR_IN] = {RUNNING(running_var_in, NRG_IN)},
    [NRG_CHANNEL_O] = {TENSOR(o, NRG_OUT), .over = NRG_BIT(NRG_CHANNEL_X) | NRG_BIT(NRG_CHANNEL_Y)},
    [NRG_CHANNEL_MEAN] = {LINE(mean, NRG_OUT, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_RSTD] = {LINE(rstd, NRG_OUT, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_STATISTICS] = {STATISTICS(statistics, NRG_OUT), .may_be_absent = 1},
    [NRG_CHANNEL_RUNNING_MEAN] = {RUNNING(running_mean, NRG_OUT), .over = NRG_BIT(NRG_CHANNEL_RUNNING_MEAN_IN)},
    [NRG_CHANNEL_RUNNING_VAR] = {RUNNING(running_var, NRG_OUT), .over = NRG_BIT(NRG_CHANNEL_RUNNING_VAR_IN)},
};

const nrg_call nrg_call_channel_norm_forward = {
    CALL(forward_parts, forward_operands),
    .measure = measure_forward,
};

/* ---- statistics in parts ---- */

static nrg_status measure_sums(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    const nrg_status status = nrg_channel_measure_spec(spec, s);
    return status == NRG_OK ? nrg_channel_measure_tensor(spec, args->samples, args->positions, s) : status;
}

static const nrg_part parts_with_sums[] = {NRG_CHANNEL_SPEC_PART, ARGS_PART, {.size = sizeof(nrg_channel_sums)}};

static const nrg_operand sums_operands[NRG_CHANNEL_SUMS_OPERANDS] = {
    [NRG_CHANNEL_SUMS_X] = {TENSOR(x, NRG_IN)},
    [NRG_CHANNEL_SUMS_SUMS] = {SUMS(NRG_CHANNEL_MORE, nrg_channel_sums, sums, NRG_OUT)},
};

const nrg_call nrg_call_channel_norm_sums = {
    CALL(parts_with_sums, sums_operands),
    .measure = measure_sums,
};

static nrg_status measure_sums_add(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_sums_add_args *args = part[0];
    s->n[NRG_CHANNEL_SETS] = args->sets;
    s->n[NRG_CHANNEL_RECORD] = NRG_CHANNEL_NORM_SUMS_WORDS;
    return NRG_OK;
}

static const nrg_part sums_add_parts[] = {{.size = sizeof(nrg_channel_norm_sums_add_args)}};

static const nrg_operand sums_add_operands[NRG_SUMS_ADD_OPERANDS] = {
    [NRG_SUMS_ADD_FROM] = {SUMS(0, nrg_channel_norm_sums_add_args, from, NRG_IN)},
    [NRG_SUMS_ADD_INTO] = {SUMS(0, nrg_channel_norm_sums_add_args, into, NRG_INOUT)},
};

const nrg_call nrg_call_sums_add = {
    .parts = sums_add_parts,
    .part_count = NRG_COUNT(sums_add_parts),
    .operands = sums_add_operands,
    .operand_count = NRG_SUMS_ADD_OPERANDS,
    .measure = measure_sums_add,
};

/* As a forward pass with NRG_STATISTICS_COMPUTE, whatever the spec says. The sums are of whole sets, of any number of positions.
 */
static nrg_status measure_statistics(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    const nrg_status status = measure_batches(spec, args, 1, s);
    if (status != NRG_OK)
        return status;
    s->n[NRG_CHANNEL_USED_CHANNELS] = s->n[NRG_CHANNEL_SETS] ? spec->channels : 0;
    return measure_running(spec, args, s,
                           NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN) |
                               NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR));
}

static const nrg_operand statistics_operands[NRG_CHANNEL_STATISTICS_OPERANDS] = {
    [NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN] = {RUNNING(running_mean_in, NRG_IN)},
    [NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN] = {RUNNING(running_var_in, NRG_IN)},
    [NRG_CHANNEL_STATISTICS_SUMS] = {SUMS(NRG_CHANNEL_MORE, nrg_channel_sums, sums, NRG_IN)},
    [NRG_CHANNEL_STATISTICS_MEAN] = {LINE(mean, NRG_OUT, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_STATISTICS_RSTD] = {LINE(rstd, NRG_OUT, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_STATISTICS_STATISTICS] = {STATISTICS(statistics, NRG_OUT), .may_be_absent = 1},
    [NRG_CHANNEL_STATISTICS_RUNNING_MEAN] = {RUNNING(running_mean, NRG_OUT),
                                             .over = NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN)},
    [NRG_CHANNEL_STATISTICS_RUNNING_VAR] = {RUNNING(running_var, NRG_OUT),
                                            .over = NRG_BIT(NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN)},
};

const nrg_call nrg_call_channel_norm_statistics = {
    CALL(parts_with_sums, statistics_operands),
    .measure = measure_statistics,
};

/* ---- folding ---- */

static nrg_status measure_fold(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_status status = nrg_channel_measure_spec(spec, s);
    if (status != NRG_OK)
        return status;
    s->n[NRG_CHANNEL_CHANNELS] = spec->channels;
    return nrg_channel_may_run(spec) ? NRG_OK : NRG_ERR_COMBINATION;
}

static const nrg_part fold_parts[] = {NRG_CHANNEL_SPEC_PART, ARGS_PART, {.size = sizeof(nrg_channel_factors)}};

#define FACTOR(field)                                                                                                            \
#field, NRG_OUT, NRG_ELEMENT_F32, .part = NRG_CHANNEL_MORE, .at = NRG_AT(nrg_channel_factors, field),                        \
                                      .dim = NRG_CHANNEL_CHANNELS

static const nrg_operand fold_operands[NRG_CHANNEL_FOLD_OPERANDS] = {
    [NRG_CHANNEL_FOLD_W] = {WEIGHT(w, NRG_CHANNEL_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_FOLD_B] = {WEIGHT(b, NRG_CHANNEL_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_FOLD_RUNNING_MEAN] = {LINE(running_mean_in, NRG_IN, NRG_CHANNEL_CHANNELS)},
    [NRG_CHANNEL_FOLD_RUNNING_VAR] = {LINE(running_var_in, NRG_IN, NRG_CHANNEL_CHANNELS)},
    [NRG_CHANNEL_FOLD_SCALE] = {FACTOR(scale)},
    [NRG_CHANNEL_FOLD_SHIFT] = {FACTOR(shift)},
};

const nrg_call nrg_call_channel_norm_fold = {
    CALL(fold_parts, fold_operands),
    .measure = measure_fold,
};
