/* The cases of channel_norm_forward, with what is around it: sums, statistics, folding.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "channel.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"

static const struct {
    uint64_t ways, rounds;
} levels[] = {[SWEEP_QUICK] = {4, 1}, [SWEEP_DEFAULT] = {16, 1}, [SWEEP_FULL] = {16, 4}};

static uint64_t count(sweep_level level) { return sweep_channel_count(level, levels[level].ways, levels[level].rounds); }

static void add_running(sweep_case *c)
{
    sweep_add(c, SWEEP_RUNNING_MEAN, NRG_F32, c->channel.channels, 1);
    sweep_add(c, SWEEP_RUNNING_VAR, NRG_F32, c->channel.channels, 1);
}

/* A set of one element has no unbiased variance. */
static int may_update(const sweep_case *c)
{
    size_t samples = c->channel.over == NRG_OVER_BATCH ? c->rows : 1;
    return sweep_channel_may_run(c) && c->rows && samples * c->positions > 1;
}

/* Sums of parts, the sum of them, and the statistics: everything that a call with NRG_STATISTICS_COMPUTE does at once. */
static void draw_parts(sweep_case *c, uint64_t *random)
{
    if (!c->rows)
        return;
    c->saved = 1;
    c->parts = 1 + (int)sweep_draw(random, 5);
    sweep_channel_add_statistics(c);
    sweep_add(c, SWEEP_WORKSPACE, SWEEP_I64, NRG_SUMS_WORDS, 2 * sweep_channel_sets(c));
}

static void draw_folded(sweep_case *c, uint64_t *random)
{
    nrg_channel_norm_spec *s = &c->channel;
    s->statistics = NRG_STATISTICS_FOLDED;
    if (sweep_channel_may_run(c) && sweep_draw(random, 2)) {
        add_running(c);
        sweep_add(c, SWEEP_SCALE, NRG_F32, s->channels, 1);
        sweep_add(c, SWEEP_SHIFT, NRG_F32, s->channels, 1);
    } else
        sweep_add(c, SWEEP_W, s->w_dtype, s->channels, 1);
}

static void draw_source(sweep_case *c, uint64_t *random)
{
    unsigned way = sweep_draw(random, 8);
    size_t sets = sweep_channel_sets(c);
    if (way == 0) {
        draw_folded(c, random);
        return;
    }
    if (way == 1 && sweep_channel_may_run(c)) {
        c->channel.statistics = NRG_STATISTICS_RUNNING;
        add_running(c);
    } else {
        if (way < 4)
            draw_parts(c, random);
        if (way % 2 && may_update(c)) {
            add_running(c);
            sweep_add(c, SWEEP_NEW_MEAN, NRG_F32, c->channel.channels, 1);
            sweep_add(c, SWEEP_NEW_VAR, NRG_F32, c->channel.channels, 1);
        }
    }
    if (sets && sweep_draw(random, 2))
        sweep_add(c, SWEEP_MEAN, NRG_F32, sets, 1);
    if (sets && sweep_draw(random, 2))
        sweep_add(c, SWEEP_RSTD, NRG_F32, sets, 1);
    if (sweep_draw(random, 3) == 0)
        sweep_channel_add_statistics(c);
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    uint64_t random = c->number;
    sweep_channel_draw(level, levels[level].ways, n, c, &random);
    sweep_channel_add_tensor(c, SWEEP_X);
    sweep_channel_add_tensor(c, SWEEP_O);
    if (sweep_draw(&random, 3) == 0)
        sweep_channel_add_tensor(c, SWEEP_Y);
    sweep_channel_add_weights(c, &random);
    draw_source(c, &random);
    if (sweep_draw(&random, 3) == 0)
        sweep_add(c, SWEEP_SUMS, SWEEP_I64, NRG_SUMS_WORDS, sweep_channel_sets(c));
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH && !c->rows; i++)
        c->operands[i].may_stay = 1; /* of no samples there is nothing to say */
    sweep_lay_out(c, &random);
    switch (sweep_draw(&random, 6)) {
    case 0:
    case 1:
        sweep_share_place(c, SWEEP_O, SWEEP_X);
        break;
    case 2:
        sweep_share_place(c, SWEEP_O, SWEEP_Y);
        break;
    default:
        break;
    }
}

static nrg_status forward(const sweep_case *c, const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_channel_norm_forward(spec, args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

/* Statistics, mean and rstd from set `first` on, as far as they are asked for. */
static void ask_for(const sweep_case *c, size_t first, nrg_channel_norm_args *args, unsigned char *memory)
{
    nrg_channel_statistics *statistics = sweep_place(c, SWEEP_STATISTICS, memory);
    float *mean = sweep_place(c, SWEEP_MEAN, memory), *rstd = sweep_place(c, SWEEP_RSTD, memory);
    args->statistics = statistics ? statistics + first : NULL;
    args->mean = mean ? mean + first : NULL;
    args->rstd = rstd ? rstd + first : NULL;
}

static nrg_status run_sums(const sweep_case *c, const sweep_part *part, int64_t *sums, unsigned char *memory)
{
    nrg_channel_norm_args args = sweep_channel_args(c, part, memory);
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_channel_norm_sums(&part->spec, &args, sums, sweep_share(c, i, c->shares), c->shares);
    return status;
}

/* Statistics from the sums of all parts; then each part with them. */
static nrg_status run_parts(const sweep_case *c, nrg_channel_norm_args *all, unsigned char *memory)
{
    size_t sets = sweep_channel_sets(c), parts = sweep_channel_parts(c);
    int64_t *total = sweep_place(c, SWEEP_WORKSPACE, memory), *sums = total + sets * NRG_SUMS_WORDS;
    /* mean and rstd come with the statistics, or with the result */
    int early = c->number % 2 == 0;
    nrg_status status = NRG_OK;
    memset(total, 0, sets * NRG_SUMS_WORDS * sizeof *total);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, parts - 1 - (size_t)sweep_share(c, (int)i, (int)parts));
        status = run_sums(c, &part, sums, memory);
        if (status == NRG_OK)
            status = nrg_sums_add(part.sets, total + part.first_set * NRG_SUMS_WORDS, sums);
    }
    ask_for(c, 0, all, memory);
    if (!early)
        all->mean = all->rstd = NULL;
    for (int i = 0; i < c->reduce_shares && status == NRG_OK; i++)
        status = nrg_channel_norm_statistics(&c->channel, all, total, sweep_share(c, i, c->reduce_shares), c->reduce_shares);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, i);
        nrg_channel_norm_args args = sweep_channel_args(c, &part, memory);
        part.spec.statistics = NRG_STATISTICS_GIVEN;
        ask_for(c, part.first_set, &args, memory);
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
        args->running_mean = sweep_place(c, SWEEP_RUNNING_MEAN, memory);
        args->running_var = sweep_place(c, SWEEP_RUNNING_VAR, memory);
        nrg_status status = nrg_channel_norm_fold(&spec, args, scale, shift);
        if (status != NRG_OK)
            return status;
        args->running_mean = args->running_var = NULL;
        args->w = scale;
        args->b = shift;
        spec.w_dtype = NRG_F32;
    }
    return forward(c, &spec, args);
}

/* What is there is used, or, where it is to be updated, a copy of it. */
static void place_running(const sweep_case *c, nrg_channel_norm_args *args, unsigned char *memory)
{
    size_t bytes = c->channel.channels * sizeof(float);
    args->running_mean = sweep_place(c, SWEEP_RUNNING_MEAN, memory);
    args->running_var = sweep_place(c, SWEEP_RUNNING_VAR, memory);
    if (c->operands[SWEEP_NEW_MEAN].rows) {
        args->running_mean = memcpy(sweep_place(c, SWEEP_NEW_MEAN, memory), args->running_mean, bytes);
        args->running_var = memcpy(sweep_place(c, SWEEP_NEW_VAR, memory), args->running_var, bytes);
    }
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_args args = sweep_channel_args(c, &whole, memory);
    int64_t *sums = sweep_place(c, SWEEP_SUMS, memory);
    nrg_status status = sums ? run_sums(c, &whole, sums, memory) : NRG_OK;
    if (status != NRG_OK)
        return status;
    if (c->channel.statistics == NRG_STATISTICS_FOLDED)
        return run_folded(c, &args, memory);
    place_running(c, &args, memory);
    if (c->saved && !c->recompute)
        return run_parts(c, &args, memory);
    ask_for(c, 0, &args, memory);
    return forward(c, &c->channel, &args);
}

const sweep_family sweep_family_channel_norm_forward = {count, make, sweep_channel_fill, run, sweep_channel_describe, NULL};
