/* Channel normalization: backward, both of its phases, and sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm_backward.h"

#define OPERAND(name) NRG_BIT(NRG_CHANNEL_BACKWARD_##name)

/* Doubles of the workspace: a sum for each channel, block and gradient of it. */
static nrg_status find_space(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, nrg_sizes *s)
{
    const size_t gradients = spec->over == NRG_CHANNEL_OVER_BATCH ? 0 : (size_t)(args->dw != NULL) + (args->db != NULL),
                 sums = gradients * nrg_channel_block_count(args->samples);
    size_t bytes;
    s->n[NRG_CHANNEL_SPACE] = spec->channels * sums;
    return nrg_product(spec->channels, sums * sizeof(double), &bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

static nrg_status measure_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_status status = nrg_channel_measure_spec(part[NRG_CHANNEL_SPEC], s);
    return status == NRG_OK ? find_space(part[NRG_CHANNEL_SPEC], part[NRG_CHANNEL_ARGS], s) : status;
}

/* What all calls with gradients make of spec and args. */
static nrg_status measure_inputs(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, nrg_sizes *s)
{
    nrg_status status = nrg_channel_measure_spec(spec, s);
    if (status != NRG_OK || (status = nrg_channel_measure_tensor(spec, args->samples, args->positions, s)) != NRG_OK)
        return status;
    if (!args->samples)
        s->n[NRG_CHANNEL_SETS] = 0;
    if (!spec->activation)
        s->refused |= OPERAND(Y) | OPERAND(B);
    return spec->source == NRG_STATISTICS_FOLDED ? NRG_ERR_COMBINATION : NRG_OK;
}

/* Statistics, of which `first` is the first operand, and the floats in their place, which follow it: both, or without a mean
 * where it is 0. */
static void measure_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, unsigned first,
                               int are_needed, nrg_sizes *s)
{
    const uint32_t statistics = NRG_BIT(first), mean = NRG_BIT(first + 1), rstd = NRG_BIT(first + 2);
    if (are_needed && !args->mean && !args->rstd)
        s->needed |= statistics;
    if (args->statistics || (spec->centred && !args->mean))
        s->refused |= rstd;
    if (args->statistics || !args->rstd || !spec->centred)
        s->refused |= mean;
}

/* What a call is for. */
enum purpose { GRADIENTS, REDUCTION };

static nrg_status measure(const void *const *part, nrg_sizes *s, enum purpose purpose)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_backward_args *args = part[NRG_CHANNEL_ARGS];
    nrg_status status = measure_inputs(spec, args, s);
    if (status != NRG_OK || (status = find_space(spec, args, s)) != NRG_OK)
        return status;
    if (spec->source == NRG_STATISTICS_RUNNING) {
        if (!nrg_channel_may_run(spec))
            return NRG_ERR_COMBINATION;
        s->always |= OPERAND(RUNNING_MEAN) | OPERAND(RUNNING_VAR);
        s->refused |= OPERAND(STATISTICS) | OPERAND(MEAN) | OPERAND(RSTD) | OPERAND(SUMS);
    } else {
        s->refused |= OPERAND(RUNNING_MEAN) | OPERAND(RUNNING_VAR);
        /* a part's sums are around the mean of all parts */
        const int are_needed = spec->source == NRG_STATISTICS_GIVEN || (args->sums && purpose == GRADIENTS);
        measure_statistics(spec, args, NRG_CHANNEL_BACKWARD_STATISTICS, are_needed, s);
    }
    if (spec->over != NRG_CHANNEL_OVER_BATCH)
        s->refused |= OPERAND(SUMS);
    else if (args->sums)
        s->refused |= OPERAND(DW) | OPERAND(DB);
    return NRG_OK;
}

static nrg_status measure_gradients(const void *const *part, nrg_sizes *s) { return measure(part, s, GRADIENTS); }

static nrg_status measure_reduction(const void *const *part, nrg_sizes *s) { return measure(part, s, REDUCTION); }

static nrg_status measure_sums(const void *const *part, nrg_sizes *s)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_status status = measure_inputs(spec, part[NRG_CHANNEL_ARGS], s);
    if (status != NRG_OK)
        return status;
    measure_statistics(spec, part[NRG_CHANNEL_ARGS], NRG_CHANNEL_BACKWARD_SUMS_STATISTICS, 1, s);
    return spec->over != NRG_CHANNEL_OVER_BATCH || spec->source == NRG_STATISTICS_RUNNING ? NRG_ERR_COMBINATION : NRG_OK;
}

static const nrg_part parts[] = {
    NRG_CHANNEL_SPEC_PART,
    {.size = sizeof(nrg_channel_norm_backward_args), .least = sizeof(nrg_channel_norm_backward_args)},
    {.size = sizeof(nrg_channel_sums)},
};

static const nrg_range ranges[] = {NRG_CHANNEL_SPEC_RANGES, NRG_CHANNEL_STORE_RANGE(nrg_channel_norm_backward_args)};

#define TENSOR(field, role) NRG_CHANNEL_TENSOR(nrg_channel_norm_backward_args, field, role)
#define LINE(field, role, number) NRG_CHANNEL_LINE(nrg_channel_norm_backward_args, field, role, NRG_ELEMENT_F32, number)
#define WEIGHT(field) NRG_CHANNEL_WEIGHT(nrg_channel_norm_backward_args, field, NRG_CHANNEL_USED_CHANNELS)
#define STATISTICS NRG_CHANNEL_STATISTICS_OF(nrg_channel_norm_backward_args, statistics, NRG_IN)
#define SUMS(index, type, role, sets)                                                                                            \
    "sums", role, NRG_ELEMENT_I64, .part = (index), .at = NRG_AT(type, sums), .dim = NRG_CHANNEL_RECORD,                         \
                                   .level = {{.count = (sets)}}

#define INPUTS                                                                                                                   \
    [NRG_CHANNEL_BACKWARD_X] = {TENSOR(x, NRG_IN)}, [NRG_CHANNEL_BACKWARD_Y] = {TENSOR(y, NRG_IN), .may_be_absent = 1},          \
    [NRG_CHANNEL_BACKWARD_W] = {WEIGHT(w), .may_be_absent = 1}, [NRG_CHANNEL_BACKWARD_B] = {WEIGHT(b), .may_be_absent = 1},      \
    [NRG_CHANNEL_BACKWARD_D_O] = {                                                                                               \
        TENSOR(d_o, NRG_IN),                                                                                                     \
    }

/* dw and db are written where there are no samples, too. */
#define GRADIENT(field) LINE(field, NRG_INOUT, NRG_CHANNEL_CHANNELS)

static const nrg_operand operands[NRG_CHANNEL_BACKWARD_OPERANDS] = {
    INPUTS,
    [NRG_CHANNEL_BACKWARD_RUNNING_MEAN] = {LINE(running_mean, NRG_IN, NRG_CHANNEL_USED_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_RUNNING_VAR] = {LINE(running_var, NRG_IN, NRG_CHANNEL_USED_CHANNELS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_STATISTICS] = {STATISTICS, .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_MEAN] = {LINE(mean, NRG_IN, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_RSTD] = {LINE(rstd, NRG_IN, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_SUMS] = {SUMS(NRG_CHANNEL_ARGS, nrg_channel_norm_backward_args, NRG_IN, NRG_CHANNEL_SETS),
                                   .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_DX] = {TENSOR(dx, NRG_OUT), .may_be_absent = 1, .over = OPERAND(D_O) | OPERAND(X) | OPERAND(Y)},
    [NRG_CHANNEL_BACKWARD_DY] = {TENSOR(dy, NRG_OUT), .may_be_absent = 1, .over = OPERAND(D_O) | OPERAND(Y)},
    [NRG_CHANNEL_BACKWARD_DW] = {GRADIENT(dw), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_DB] = {GRADIENT(db), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64, .part = NRG_CHANNEL_ARGS,
                                        .at = NRG_AT(nrg_channel_norm_backward_args, workspace), .dim = NRG_CHANNEL_SPACE,
                                        .room = NRG_AT(nrg_channel_norm_backward_args, workspace_size)},
};

static const nrg_operand sums_operands[NRG_CHANNEL_BACKWARD_SUMS_OPERANDS] = {
    INPUTS,
    [NRG_CHANNEL_BACKWARD_SUMS_STATISTICS] = {STATISTICS, .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_SUMS_MEAN] = {LINE(mean, NRG_IN, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_SUMS_RSTD] = {LINE(rstd, NRG_IN, NRG_CHANNEL_SETS), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_SUMS_SUMS] = {SUMS(NRG_CHANNEL_MORE, nrg_channel_sums, NRG_OUT, NRG_CHANNEL_CHANNELS)},
    [NRG_CHANNEL_BACKWARD_SUMS_DW] = {GRADIENT(dw), .may_be_absent = 1},
    [NRG_CHANNEL_BACKWARD_SUMS_DB] = {GRADIENT(db), .may_be_absent = 1},
};

/* The part that nrg_channel_norm_backward_sums alone takes is the last. */
#define CALL(more, call_operands)                                                                                                \
    .parts = parts, .part_count = NRG_CHANNEL_ARGS + 1 + (more), .operands = (call_operands),                                    \
    .operand_count = NRG_COUNT(call_operands), .ranges = ranges, .range_count = NRG_COUNT(ranges)

const nrg_call nrg_call_channel_norm_backward = {
    CALL(0, operands),
    .measure = measure_gradients,
};

const nrg_call nrg_call_channel_norm_backward_reduce = {
    CALL(0, operands),
    .measure = measure_reduction,
};

const nrg_call nrg_call_channel_norm_backward_sums = {
    CALL(1, sums_operands),
    .measure = measure_sums,
};

const nrg_call nrg_call_channel_norm_backward_workspace = {
    .parts = parts,
    .part_count = NRG_CHANNEL_ARGS + 1,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_workspace,
};
