/* The cases of channel_norm_backward, both of its phases, and with sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "channel.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"

static const struct {
    uint64_t ways, rounds;
} levels[] = {[SWEEP_QUICK] = {3, 1}, [SWEEP_DEFAULT] = {16, 1}, [SWEEP_FULL] = {16, 3}};

static uint64_t count(sweep_level level) { return sweep_channel_count(level, levels[level].ways, levels[level].rounds); }

static void add_inputs(sweep_case *c, uint64_t *random)
{
    sweep_channel_add_tensor(c, SWEEP_X);
    sweep_channel_add_tensor(c, SWEEP_D_O);
    /* read with an activation only */
    if (sweep_draw(random, 3) == 0)
        sweep_channel_add_tensor(c, SWEEP_Y);
    sweep_channel_add_weights(c, random);
}

/* Σdo1 and Σdo1 ⊙ (x - m) of parts, and dx and dy from the sum of all. dw and db are then the parts' own: the whole's, where one
 * part is all. */
static void draw_parts(sweep_case *c, uint64_t *random)
{
    c->parts = 1 + (int)sweep_draw(random, 4);
    sweep_add(c, SWEEP_WORKSPACE, SWEEP_I64, NRG_SUMS_WORDS, 2 * c->channel.channels);
    sweep_add(c, SWEEP_SUMS, SWEEP_I64, NRG_SUMS_WORDS, c->channel.channels);
}

/* Constant statistics; or saved ones, with or without sums in parts; or none. */
static void draw_source(sweep_case *c, uint64_t *random)
{
    unsigned way = sweep_draw(random, 6);
    if (way == 0 && sweep_channel_may_run(c)) {
        c->channel.statistics = NRG_STATISTICS_RUNNING;
        sweep_add(c, SWEEP_RUNNING_MEAN, NRG_F32, c->channel.channels, 1);
        sweep_add(c, SWEEP_RUNNING_VAR, NRG_F32, c->channel.channels, 1);
    } else if (way < 4 && c->rows) {
        c->saved = 1;
        sweep_channel_add_tensor(c, SWEEP_O);
        sweep_channel_add_statistics(c);
        if (way < 3 && c->channel.over == NRG_OVER_BATCH)
            draw_parts(c, random);
    }
}

/* As much as the library says. If it refuses to, its run will say why. */
static void add_workspace(sweep_case *c)
{
    static float any;
    size_t bytes;
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(c->rows, c->positions, NULL, NULL, NULL);
    args.dw = c->operands[SWEEP_DW].rows ? &any : NULL;
    args.db = c->operands[SWEEP_DB].rows ? &any : NULL;
    if (nrg_channel_norm_backward_workspace(&c->channel, &args, &bytes) == NRG_OK && bytes)
        sweep_add(c, SWEEP_WORKSPACE, SWEEP_F64, bytes / sizeof(double), 1);
}

/* Mostly all of them; dy also where there was no y, dw and db where there was no w or b. */
static void add_outputs(sweep_case *c, uint64_t *random)
{
    if (sweep_draw(random, 8))
        sweep_channel_add_tensor(c, SWEEP_DX);
    if (sweep_draw(random, 2))
        sweep_channel_add_tensor(c, SWEEP_DY);
    if (c->parts < 2 && sweep_draw(random, 3))
        sweep_add(c, SWEEP_DW, NRG_F32, c->channel.channels, 1);
    if (c->parts < 2 && sweep_draw(random, 3))
        sweep_add(c, SWEEP_DB, NRG_F32, c->channel.channels, 1);
    c->accumulate = sweep_draw(random, 3) == 0;
    if (!c->parts)
        add_workspace(c);
}

/* In place, as channel_norm_backward.h allows. */
static void draw_places(sweep_case *c, uint64_t *random)
{
    static const int dx[] = {SWEEP_D_O, SWEEP_X, SWEEP_Y}, dy[] = {SWEEP_D_O, SWEEP_Y};
    int x_place = dx[sweep_draw(random, 3)], y_place = dy[sweep_draw(random, 2)];
    if (sweep_draw(random, 3) == 0)
        sweep_share_place(c, SWEEP_DX, x_place);
    else
        x_place = -1;
    if (sweep_draw(random, 3) == 0 && y_place != x_place)
        sweep_share_place(c, SWEEP_DY, y_place);
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    uint64_t random = c->number;
    sweep_channel_draw(level, levels[level].ways, n, c, &random);
    add_inputs(c, &random);
    draw_source(c, &random);
    add_outputs(c, &random);
    for (int i = SWEEP_DW; i <= SWEEP_DB; i++)
        c->operands[i].may_stay = c->accumulate;
    sweep_lay_out(c, &random);
    draw_places(c, &random);
}

/* The operands of a part. */
static nrg_channel_norm_backward_args part_args(const sweep_case *c, const sweep_part *part, unsigned char *memory)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(
        part->n, part->s, sweep_part_tensor(c, part, SWEEP_X, memory), sweep_part_tensor(c, part, SWEEP_D_O, memory),
        sweep_part_tensor(c, part, SWEEP_DX, memory));
    args.y = sweep_part_tensor(c, part, SWEEP_Y, memory);
    args.w = sweep_place(c, SWEEP_W, memory);
    args.b = sweep_place(c, SWEEP_B, memory);
    args.dy = sweep_part_tensor(c, part, SWEEP_DY, memory);
    args.dw = sweep_place(c, SWEEP_DW, memory);
    args.db = sweep_place(c, SWEEP_DB, memory);
    args.running_mean = sweep_place(c, SWEEP_RUNNING_MEAN, memory);
    args.running_var = sweep_place(c, SWEEP_RUNNING_VAR, memory);
    args.d_o_stride = sweep_part_stride(c, part, SWEEP_D_O);
    args.x_stride = sweep_part_stride(c, part, SWEEP_X);
    args.y_stride = sweep_part_stride(c, part, SWEEP_Y);
    args.dx_stride = sweep_part_stride(c, part, SWEEP_DX);
    args.dy_stride = sweep_part_stride(c, part, SWEEP_DY);
    args.accumulate = c->accumulate;
    return args;
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_args args = sweep_channel_args(c, &whole, memory);
    args.statistics = sweep_place(c, SWEEP_STATISTICS, memory);
    return nrg_channel_norm_forward(&c->channel, &args, 0, 1);
}

static nrg_status run_sums(const sweep_case *c, const nrg_channel_norm_backward_args *args, int64_t *sums)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_channel_norm_backward_sums(&c->channel, args, sums, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static nrg_status run_phases(const sweep_case *c, const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_channel_norm_backward(spec, args, sweep_share(c, i, c->shares), c->shares);
    for (int i = 0; i < c->reduce_shares && status == NRG_OK; i++)
        status = nrg_channel_norm_backward_reduce(spec, args, sweep_share(c, i, c->reduce_shares), c->reduce_shares);
    return status;
}

static nrg_status run_parts(const sweep_case *c, const nrg_channel_statistics *statistics, unsigned char *memory)
{
    nrg_channel_norm_spec given = c->channel;
    size_t channels = given.channels, parts = sweep_channel_parts(c);
    int64_t *total = sweep_place(c, SWEEP_WORKSPACE, memory), *sums = total + channels * NRG_SUMS_WORDS;
    nrg_status status = NRG_OK;
    given.statistics = NRG_STATISTICS_GIVEN;
    memset(total, 0, channels * NRG_SUMS_WORDS * sizeof *total);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, parts - 1 - (size_t)sweep_share(c, (int)i, (int)parts));
        nrg_channel_norm_backward_args args = part_args(c, &part, memory);
        args.statistics = statistics;
        status = run_sums(c, &args, sums);
        if (status == NRG_OK)
            status = nrg_sums_add(channels, total, sums);
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
        spec.statistics = c->number % 2 ? NRG_STATISTICS_GIVEN : NRG_STATISTICS_COMPUTE;
    }
    if (!c->parts) {
        args.workspace = sweep_place(c, SWEEP_WORKSPACE, memory);
        args.workspace_size = c->operands[SWEEP_WORKSPACE].length * sizeof(double);
    }
    return run_phases(c, &spec, &args);
}

const sweep_family sweep_family_channel_norm_backward = {count, make, sweep_channel_fill, run, sweep_channel_describe, NULL};
