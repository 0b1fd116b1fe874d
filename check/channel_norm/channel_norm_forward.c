/* The cases of channel_norm_forward, with what is around it: sums, statistics, folding.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "channel.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"

static const unsigned char statistics_slots[] = {[NRG_CHANNEL_STATISTICS_RUNNING_MEAN_IN] = SWEEP_NOWHERE,
                                                 [NRG_CHANNEL_STATISTICS_RUNNING_VAR_IN] = SWEEP_NOWHERE,
                                                 [NRG_CHANNEL_STATISTICS_RUNNING_MEAN] = SWEEP_NOWHERE,
                                                 [NRG_CHANNEL_STATISTICS_RUNNING_VAR] = SWEEP_NOWHERE,
                                                 [NRG_CHANNEL_STATISTICS_SUMS] = SWEEP_NOWHERE,
                                                 [NRG_CHANNEL_STATISTICS_MEAN] = SWEEP_MEAN,
                                                 [NRG_CHANNEL_STATISTICS_RSTD] = SWEEP_RSTD,
                                                 [NRG_CHANNEL_STATISTICS_STATISTICS] = SWEEP_STATISTICS};
static const unsigned char fold_slots[] = {[NRG_CHANNEL_FOLD_W] = SWEEP_W,
                                           [NRG_CHANNEL_FOLD_B] = SWEEP_B,
                                           [NRG_CHANNEL_FOLD_RUNNING_MEAN] = SWEEP_RUNNING_MEAN,
                                           [NRG_CHANNEL_FOLD_RUNNING_VAR] = SWEEP_RUNNING_VAR,
                                           [NRG_CHANNEL_FOLD_SCALE] = SWEEP_SCALE,
                                           [NRG_CHANNEL_FOLD_SHIFT] = SWEEP_SHIFT};

/* A set of one element has no unbiased variance. */
static int may_update(const sweep_case *c)
{
    size_t samples = c->channel.over == NRG_CHANNEL_OVER_BATCH ? c->rows : 1;
    return c->may_run && c->rows && samples * c->positions > 1;
}

/* Factors that are made of running statistics, or such as there are. */
static uint32_t draw_folded(sweep_case *c, uint32_t there, uint64_t *random)
{
    c->channel.source = NRG_STATISTICS_FOLDED;
    if (!c->may_run || !sweep_draw(random, 2))
        return there | NRG_BIT(NRG_CHANNEL_W);
    sweep_channel_add_before(c, &nrg_call_channel_norm_fold, fold_slots,
                             (there & NRG_BIT(NRG_CHANNEL_W) ? NRG_BIT(NRG_CHANNEL_FOLD_W) : 0) |
                                 (there & NRG_BIT(NRG_CHANNEL_B) ? NRG_BIT(NRG_CHANNEL_FOLD_B) : 0));
    return there;
}

static uint32_t draw_source(sweep_case *c, uint32_t there, uint64_t *random)
{
    const unsigned way = sweep_draw(random, 8);
    const size_t sets = sweep_channel_sets(c);
    uint32_t statistics = 0;
    if (way == 0)
        return draw_folded(c, there, random);
    if (way == 1 && c->may_run) {
        c->channel.source = NRG_STATISTICS_RUNNING;
        sweep_channel_add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
    } else {
        /* sums of parts, the sum of them, and the statistics: all that a call with NRG_STATISTICS_COMPUTE does at once */
        if (way < 4 && c->rows) {
            c->saved = 1;
            c->parts = 1 + (int)sweep_draw(random, 5);
            statistics = NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS);
            sweep_channel_add_parts(c);
        }
        if (way % 2 && may_update(c)) {
            sweep_channel_add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
            sweep_channel_add_running(c, SWEEP_NEW_MEAN, SWEEP_NEW_VAR);
        }
    }
    statistics |= sets && sweep_draw(random, 2) ? NRG_BIT(NRG_CHANNEL_STATISTICS_MEAN) : 0;
    statistics |= sets && sweep_draw(random, 2) ? NRG_BIT(NRG_CHANNEL_STATISTICS_RSTD) : 0;
    statistics |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS) : 0;
    sweep_channel_add_before(c, &nrg_call_channel_norm_statistics, statistics_slots, statistics);
    return there;
}

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    nrg_channel_norm_args args;
    sweep_channel_draw(c, sweep_family_channel_norm_forward.ways[c->level], &random);
    uint32_t there = sweep_draw(&random, 3) == 0 ? NRG_BIT(NRG_CHANNEL_Y) : 0;
    there |= sweep_draw(&random, 3) ? NRG_BIT(NRG_CHANNEL_W) : 0;
    there |= sweep_draw(&random, 3) ? NRG_BIT(NRG_CHANNEL_B) : 0;
    const int cumulative = c->channel.cumulative;
    c->channel.cumulative = 0; /* until there are running statistics */
    there = draw_source(c, there, &random);
    args = nrg_channel_norm_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    sweep_add_call(c, &nrg_call_channel_norm_forward, (void *const[]){&c->channel, &args}, sweep_channel_slots, there, 0);
    if (sweep_draw(&random, 3) == 0)
        sweep_channel_add_before(c, &nrg_call_channel_norm_sums, sweep_channel_sums_slots, 0);
    c->channel.cumulative = cumulative && c->operands[SWEEP_NEW_MEAN].rows;
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH && !c->rows; i++)
        c->operands[i].may_stay = 1; /* of no samples there is nothing to say */
    sweep_lay_out(c, &random);
}

static nrg_status forward(const sweep_case *c, const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args)
{
    nrg_status status = NRG_OK;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_channel_norm_forward(spec, args, ith, nth));
    return status;
}

static nrg_status run_sums(const sweep_case *c, const sweep_part *part, int64_t *sums, unsigned char *memory)
{
    nrg_channel_norm_args args = sweep_channel_args(c, part, memory);
    nrg_status status = NRG_OK;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_channel_norm_sums(&part->spec, &args, sums, ith, nth));
    return status;
}

/* Statistics from the sums of all parts; then each part with them. */
static nrg_status run_parts(const sweep_case *c, nrg_channel_norm_args *all, unsigned char *memory)
{
    size_t sets = sweep_channel_sets(c), parts = sweep_channel_parts(c);
    int64_t *total = sweep_place(c, SWEEP_TOTAL, memory), *sums = sweep_place(c, SWEEP_PART_SUMS, memory);
    /* mean and rstd come with the statistics, or with the result */
    int early = c->seed % 2 == 0;
    nrg_status status = NRG_OK;
    memset(total, 0, sets * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *total);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, parts - 1 - (size_t)sweep_share(c, (int)i, (int)parts));
        status = run_sums(c, &part, sums, memory);
        if (status == NRG_OK)
            status = nrg_channel_norm_sums_add(part.sets, total + part.first_set * NRG_CHANNEL_NORM_SUMS_WORDS, sums);
    }
    if (!early)
        all->mean = all->rstd = NULL;
    SWEEP_EACH_SHARE(status, c, c->reduce_shares, nrg_channel_norm_statistics(&c->channel, all, total, ith, nth));
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, i);
        nrg_channel_norm_args args = sweep_channel_args(c, &part, memory);
        part.spec.source = NRG_STATISTICS_GIVEN;
        args.statistics_in = args.statistics;
        args.statistics = NULL;
        args.running_mean = args.running_var = NULL;
        args.running_mean_in = args.running_var_in = NULL;
        if (early)
            args.mean = args.rstd = NULL;
        status = forward(c, &part.spec, &args);
    }
    return status;
}

static nrg_status run_folded(const sweep_case *c, nrg_channel_norm_args *args, unsigned char *memory)
{
    nrg_channel_norm_spec spec = c->channel;
    float *scale = sweep_place(c, SWEEP_SCALE, memory), *shift = sweep_place(c, SWEEP_SHIFT, memory);
    if (scale) {
        nrg_status status = nrg_channel_norm_fold(&spec, args, scale, shift);
        if (status != NRG_OK)
            return status;
        args->running_mean_in = args->running_var_in = NULL;
        args->w = scale;
        args->b = shift;
        spec.w_dtype = NRG_F32;
    }
    return forward(c, &spec, args);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_args args = sweep_channel_args(c, &whole, memory);
    int64_t *sums = sweep_place(c, SWEEP_SUMS, memory);
    nrg_status status = sums ? run_sums(c, &whole, sums, memory) : NRG_OK;
    if (status != NRG_OK)
        return status;
    if (c->channel.source == NRG_STATISTICS_FOLDED)
        return run_folded(c, &args, memory);
    return c->saved && !c->recompute ? run_parts(c, &args, memory) : forward(c, &c->channel, &args);
}

const sweep_family sweep_family_channel_norm_forward = {.ways = {4, 16, 16},
                                                        SWEEP_CHANNEL_LENGTHS,
                                                        .rounds = {1, 1, 4},
                                                        .make = make,
                                                        .fill = sweep_channel_fill,
                                                        .run = run,
                                                        .describe = sweep_channel_describe};
