/* The cases of channel_norm_backward, both of its phases, and with sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../src/operands/channel_norm_backward.h"

#include "channel.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"

static const unsigned char slots[] = {
    [NRG_CHANNEL_BACKWARD_X] = SWEEP_X,
    [NRG_CHANNEL_BACKWARD_Y] = SWEEP_Y,
    [NRG_CHANNEL_BACKWARD_W] = SWEEP_W,
    [NRG_CHANNEL_BACKWARD_B] = SWEEP_B,
    [NRG_CHANNEL_BACKWARD_D_O] = SWEEP_D_O,
    [NRG_CHANNEL_BACKWARD_RUNNING_MEAN] = SWEEP_RUNNING_MEAN,
    [NRG_CHANNEL_BACKWARD_RUNNING_VAR] = SWEEP_RUNNING_VAR,
    [NRG_CHANNEL_BACKWARD_STATISTICS] = SWEEP_NOWHERE, /* computed, or what a forward pass has saved */
    [NRG_CHANNEL_BACKWARD_MEAN] = SWEEP_NOWHERE,       /* the properties tests have these */
    [NRG_CHANNEL_BACKWARD_RSTD] = SWEEP_NOWHERE,
    [NRG_CHANNEL_BACKWARD_SUMS] = SWEEP_NOWHERE, /* of parts only */
    [NRG_CHANNEL_BACKWARD_DX] = SWEEP_DX,
    [NRG_CHANNEL_BACKWARD_DY] = SWEEP_DY,
    [NRG_CHANNEL_BACKWARD_DW] = SWEEP_DW,
    [NRG_CHANNEL_BACKWARD_DB] = SWEEP_DB,
    [NRG_CHANNEL_BACKWARD_WORKSPACE] = SWEEP_WORKSPACE,
};

static const unsigned char sums_slots[] = {
    [NRG_CHANNEL_BACKWARD_X] = SWEEP_X,
    [NRG_CHANNEL_BACKWARD_Y] = SWEEP_Y,
    [NRG_CHANNEL_BACKWARD_W] = SWEEP_W,
    [NRG_CHANNEL_BACKWARD_B] = SWEEP_B,
    [NRG_CHANNEL_BACKWARD_D_O] = SWEEP_D_O,
    [NRG_CHANNEL_BACKWARD_SUMS_STATISTICS] = SWEEP_STATISTICS,
    [NRG_CHANNEL_BACKWARD_SUMS_MEAN] = SWEEP_NOWHERE,
    [NRG_CHANNEL_BACKWARD_SUMS_RSTD] = SWEEP_NOWHERE,
    [NRG_CHANNEL_BACKWARD_SUMS_SUMS] = SWEEP_SUMS,
    [NRG_CHANNEL_BACKWARD_SUMS_DW] = SWEEP_NOWHERE,
    [NRG_CHANNEL_BACKWARD_SUMS_DB] = SWEEP_NOWHERE,
};

#define OPERAND(name) NRG_BIT(NRG_CHANNEL_BACKWARD_##name)

void sweep_channel_add_backward(sweep_case *c, uint32_t there)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    sweep_add_call(c, &nrg_call_channel_norm_backward, (void *const[]){&c->channel, &args}, slots, there, 0);
    c->operands[SWEEP_DW].is_read = c->operands[SWEEP_DB].is_read = 0; /* what there is before them is not drawn */
}

/* Constant statistics; or saved ones, with or without sums in parts; or none. */
static void draw_source(sweep_case *c, uint64_t *random)
{
    unsigned way = sweep_draw(random, 6);
    if (way == 0 && c->may_run) {
        c->channel.source = NRG_STATISTICS_RUNNING;
        sweep_channel_add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
    } else if (way < 4 && c->rows) {
        c->saved = 1;
        /* Σdo1 and Σdo1 ⊙ (x - m) of parts, and dx and dy from the sum of all. dw and db are then the parts' own: the whole's,
         * where one part is all. */
        if (way < 3 && c->channel.over == NRG_CHANNEL_OVER_BATCH)
            c->parts = 1 + (int)sweep_draw(random, 4);
    }
}

static void add_saved(sweep_case *c)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    nrg_channel_sums sums;
    sweep_channel_add_before(c, &nrg_call_channel_norm_forward, sweep_channel_slots, NRG_BIT(NRG_CHANNEL_STATISTICS));
    if (c->parts) {
        sweep_channel_add_parts(c);
        sweep_add_before(c, &nrg_call_channel_norm_backward_sums, (void *const[]){&c->channel, &args, &sums}, sums_slots,
                         NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_STATISTICS));
    }
}

/* Mostly all outputs; dy also where there was no y, dw and db where there was no w or b. */
static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    sweep_channel_draw(c, sweep_family_channel_norm_backward.ways[c->level], &random);
    c->channel.cumulative = 0;                                     /* forward passes here have no running statistics to update */
    uint32_t there = sweep_draw(&random, 3) == 0 ? OPERAND(Y) : 0; /* read with an activation only */
    there |= sweep_draw(&random, 3) ? OPERAND(W) : 0;
    there |= sweep_draw(&random, 3) ? OPERAND(B) : 0;
    draw_source(c, &random);
    there |= c->channel.source == NRG_STATISTICS_RUNNING ? OPERAND(RUNNING_MEAN) | OPERAND(RUNNING_VAR) : 0;
    there |= sweep_draw(&random, 8) ? OPERAND(DX) : 0;
    there |= sweep_draw(&random, 2) ? OPERAND(DY) : 0;
    there |= c->parts < 2 && sweep_draw(&random, 3) ? OPERAND(DW) : 0;
    there |= c->parts < 2 && sweep_draw(&random, 3) ? OPERAND(DB) : 0;
    c->accumulate = sweep_draw(&random, 3) == 0;
    sweep_channel_add_backward(c, there);
    if (c->saved)
        add_saved(c);
    sweep_lay_out(c, &random);
}

/* The operands of a part. */
static nrg_channel_norm_backward_args part_args(const sweep_case *c, const sweep_part *part, unsigned char *memory)
{
    nrg_channel_norm_spec spec = part->spec;
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(part->n, part->s, NULL, NULL, NULL, NULL);
    args.accumulate = c->accumulate;
    args.store = c->store;
    sweep_channel_bind(c, part, &nrg_call_channel_norm_backward, (void *const[]){&spec, &args}, slots, memory);
    if (!spec.activation)
        args.y = args.b = NULL; /* of the forward pass only */
    return args;
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_args args = sweep_channel_args(c, &whole, memory);
    return nrg_channel_norm_forward(&c->channel, &args, 0, 1);
}

static nrg_status run_sums(const sweep_case *c, const nrg_channel_norm_backward_args *args, int64_t *sums)
{
    nrg_status status = NRG_OK;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_channel_norm_backward_sums(&c->channel, args, sums, ith, nth));
    return status;
}

static nrg_status run_phases(const sweep_case *c, const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    nrg_status status = NRG_OK;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_channel_norm_backward(spec, args, ith, nth));
    SWEEP_EACH_SHARE(status, c, c->reduce_shares, nrg_channel_norm_backward_reduce(spec, args, ith, nth));
    return status;
}

static nrg_status run_parts(const sweep_case *c, const nrg_channel_statistics *statistics, unsigned char *memory)
{
    nrg_channel_norm_spec given = c->channel;
    size_t channels = given.channels, parts = sweep_channel_parts(c);
    int64_t *total = sweep_place(c, SWEEP_TOTAL, memory), *sums = sweep_place(c, SWEEP_PART_SUMS, memory);
    nrg_status status = NRG_OK;
    given.source = NRG_STATISTICS_GIVEN;
    memset(total, 0, channels * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *total);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, parts - 1 - (size_t)sweep_share(c, (int)i, (int)parts));
        nrg_channel_norm_backward_args args = part_args(c, &part, memory);
        args.statistics = statistics;
        status = run_sums(c, &args, sums);
        if (status == NRG_OK)
            status = nrg_channel_norm_sums_add(channels, total, sums);
    }
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, i);
        nrg_channel_norm_backward_args args = part_args(c, &part, memory);
        args.statistics = statistics;
        args.sums = total;
        args.dw = args.db = NULL;
        status = run_phases(c, &given, &args);
    }
    return status;
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_spec spec = c->channel;
    nrg_channel_norm_backward_args args = part_args(c, &whole, memory);
    nrg_channel_statistics *statistics = sweep_place(c, SWEEP_STATISTICS, memory);
    int64_t *sums = sweep_place(c, SWEEP_SUMS, memory);
    nrg_status status = c->saved ? run_forward(c, memory) : NRG_OK;
    if (status == NRG_OK && sums) {
        nrg_channel_norm_backward_args alone = args;
        alone.statistics = statistics;
        alone.dw = alone.db = NULL;
        status = run_sums(c, &alone, sums);
    }
    if (status != NRG_OK)
        return status;
    if (c->parts && !c->recompute)
        return run_parts(c, statistics, memory);
    if (c->saved && !c->recompute) {
        args.statistics = statistics;
        spec.source = c->seed % 2 ? NRG_STATISTICS_GIVEN : NRG_STATISTICS_COMPUTE;
    }
    return run_phases(c, &spec, &args);
}

const sweep_family sweep_family_channel_norm_backward = {.ways = {3, 16, 16},
                                                         SWEEP_CHANNEL_LENGTHS,
                                                         .rounds = {1, 1, 3},
                                                         .make = make,
                                                         .fill = sweep_channel_fill,
                                                         .run = run,
                                                         .describe = sweep_channel_describe};
