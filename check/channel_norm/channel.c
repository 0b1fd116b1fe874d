/* What the cases of channel normalization's forward and backward pass have in common: shapes, specs, operands.
 *
 * Every length, as a number of channels and as one of positions, meets every layout and every kind of set (on the quick level:
 * some of them); all else is drawn for each case.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Beyond the lengths from 1 up: around the lengths at which sums are taken otherwise, and more segments, samples or channels than
 * are worked on at a time. */
static const struct {
    size_t n, c, s;
} large[] = {{2, 5, 255},  {3, 4, 256},  {2, 6, 257},  {1, 2, 4095}, {1, 2, 4096}, {1, 2, 4097}, {1, 1, 9001},
             {2, 4, 784},  {1, 12, 700}, {40, 4, 49},  {130, 3, 7},  {4100, 1, 1}, {1500, 1, 3}, {66, 20, 4},
             {200, 5, 2},  {1, 320, 16}, {1, 1030, 5}, {1, 128, 49}, {1, 16, 300}, {1, 130, 65}, {70, 96, 1},
             {12, 16, 33}, {2, 8, 513},  {65, 2, 100}, {1, 1, 20011}};
_Static_assert(sizeof large / sizeof large[0] == SWEEP_CHANNEL_LARGE, "sweep_channel_draw knows them all");

enum kind_of_set { BATCH, GROUP, INSTANCE, LAYER };

/* A divisor of c. */
static size_t draw_groups(size_t c, uint64_t *random)
{
    static const size_t counts[] = {2, 3, 4, 8, 32};
    size_t groups = counts[sweep_draw(random, 5)];
    return c % groups ? 1 : groups;
}

/* c channels in groups. A short length is that of a group or, more rarely, their number, so that there is one of each. */
static void draw_grouped_channels(nrg_channel_norm_spec *s, size_t length, uint64_t *random)
{
    static const size_t others[] = {2, 3, 4, 8};
    size_t other = others[sweep_draw(random, 4)];
    s->channels = length;
    if (length > 80)
        s->groups = draw_groups(length, random);
    else {
        s->channels = length * other;
        s->groups = sweep_draw(random, 3) ? other : length;
    }
}

static size_t draw_samples(const sweep_case *c, uint64_t *random)
{
    if (sweep_draw(random, 12) == 0)
        return 0;
    if (c->channel.channels * c->positions <= 600 && sweep_draw(random, 8) == 0)
        return 33 + sweep_draw(random, 100);
    return 1 + sweep_draw(random, 4);
}

static void draw_small(sweep_case *c, size_t length, enum kind_of_set sets, int counts_channels, uint64_t *random)
{
    static const size_t positions[] = {1, 1, 2, 3, 4, 7, 9, 16, 25, 49};
    static const size_t group_channels[] = {1, 2, 3, 5, 8, 10};
    nrg_channel_norm_spec *s = &c->channel;
    if (counts_channels) {
        c->positions = positions[sweep_draw(random, sizeof positions / sizeof positions[0])];
        if (sets == GROUP)
            draw_grouped_channels(s, length, random);
        else
            s->channels = length;
    } else {
        c->positions = length;
        if (sets == GROUP)
            draw_grouped_channels(s, group_channels[sweep_draw(random, sizeof group_channels / sizeof group_channels[0])],
                                  random);
        else
            s->channels = 1 + sweep_draw(random, 12);
    }
    c->rows = draw_samples(c, random);
}

static size_t draw_segment(const sweep_case *c, uint64_t *random)
{
    static const size_t segments[] = {1, 2, 7, 64, 100, 512, 4095, 4096};
    switch (sweep_draw(random, 6)) {
    case 0:
        return segments[sweep_draw(random, sizeof segments / sizeof segments[0])];
    case 1:
        return 1 + sweep_draw(random, 4096);
    case 2: /* whole samples, or channels */
        return c->positions <= 1000 ? c->positions * (1 + sweep_draw(random, 4)) : NRG_CHANNEL_SEGMENT;
    default:
        return NRG_CHANNEL_SEGMENT;
    }
}

static void draw_spec(sweep_case *c, uint64_t *random)
{
    static const double eps[] = {1e-5, 1e-5, 1e-6, 0, 0.5}, momentums[] = {0.1, 0.1, 0, 1, 0.01};
    nrg_channel_norm_spec *s = &c->channel;
    s->centred = sweep_draw(random, 4) != 0;
    s->eps = eps[sweep_draw(random, 5)];
    s->momentum = momentums[sweep_draw(random, 5)];
    s->cumulative = sweep_draw(random, 4) == 0;
    s->segment = draw_segment(c, random);
    c->store = (nrg_store)sweep_draw(random, 3);
    s->w_dtype = sweep_draw(random, 2) ? s->dtype : NRG_F32;
    if (sweep_draw(random, 2))
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
}

void sweep_channel_draw(sweep_case *c, uint64_t ways, uint64_t *random)
{
    nrg_channel_norm_spec *s = &c->channel;
    /* where not all ways are gone, neighbours go different ones */
    int way = (int)((c->way * (SWEEP_CHANNEL_WAYS / ways) + c->n / ways) % SWEEP_CHANNEL_WAYS);
    enum kind_of_set sets = (enum kind_of_set)(way >> 1 & 3);
    int is_layer = 0; /* also of one channel, where that could be instance norm */
    *s = nrg_channel_norm_spec_batch(c->spec.dtype, 1, 0);
    s->accuracy = c->spec.accuracy;
    s->layout = (nrg_layout)(way & 1);
    s->over = sets == BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    c->weights = NRG_BIT(SWEEP_W) | NRG_BIT(SWEEP_B);
    if (!c->large)
        draw_small(c, c->length, sets, way >> 3, random);
    else {
        c->rows = large[c->large - 1].n;
        c->positions = large[c->large - 1].s;
        s->channels = large[c->large - 1].c;
        s->groups = sets == GROUP ? draw_groups(s->channels, random) : 1;
    }
    if (sets == INSTANCE)
        s->groups = s->channels;
    else if (sets == LAYER)
        is_layer = sweep_draw(random, 2) == 0;
    draw_spec(c, random);
    c->may_run = s->centred && !is_layer && (s->over == NRG_CHANNEL_OVER_BATCH || s->groups == s->channels);
    c->shares = sweep_draw_shares(random);
    c->reduce_shares = sweep_draw_shares(random);
}

size_t sweep_channel_sets(const sweep_case *c)
{
    const nrg_channel_norm_spec *s = &c->channel;
    return s->over == NRG_CHANNEL_OVER_BATCH ? s->channels : c->rows * s->groups;
}

const unsigned char sweep_channel_slots[] = {
    [NRG_CHANNEL_X] = SWEEP_X,
    [NRG_CHANNEL_Y] = SWEEP_Y,
    [NRG_CHANNEL_W] = SWEEP_W,
    [NRG_CHANNEL_B] = SWEEP_B,
    [NRG_CHANNEL_STATISTICS_IN] = SWEEP_NOWHERE, /* what another call has saved */
    [NRG_CHANNEL_RUNNING_MEAN_IN] = SWEEP_RUNNING_MEAN,
    [NRG_CHANNEL_RUNNING_VAR_IN] = SWEEP_RUNNING_VAR,
    [NRG_CHANNEL_O] = SWEEP_O,
    [NRG_CHANNEL_MEAN] = SWEEP_MEAN,
    [NRG_CHANNEL_RSTD] = SWEEP_RSTD,
    [NRG_CHANNEL_STATISTICS] = SWEEP_STATISTICS,
    [NRG_CHANNEL_RUNNING_MEAN] = SWEEP_NEW_MEAN,
    [NRG_CHANNEL_RUNNING_VAR] = SWEEP_NEW_VAR,
};

const unsigned char sweep_channel_sums_slots[] = {[NRG_CHANNEL_SUMS_X] = SWEEP_X, [NRG_CHANNEL_SUMS_SUMS] = SWEEP_SUMS};

void sweep_channel_add_before(sweep_case *c, const nrg_call *call, const unsigned char *slots, uint32_t there)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    const void *more[2]; /* as much as any of these calls takes beside spec and args */
    sweep_add_before(c, call, (void *const[]){&c->channel, &args, more}, slots, there);
}

void sweep_channel_add_running(sweep_case *c, int mean, int var)
{
    const unsigned char slots[] = {[NRG_CHANNEL_FOLD_W] = SWEEP_NOWHERE,
                                   [NRG_CHANNEL_FOLD_B] = SWEEP_NOWHERE,
                                   [NRG_CHANNEL_FOLD_RUNNING_MEAN] = (unsigned char)mean,
                                   [NRG_CHANNEL_FOLD_RUNNING_VAR] = (unsigned char)var,
                                   [NRG_CHANNEL_FOLD_SCALE] = SWEEP_NOWHERE,
                                   [NRG_CHANNEL_FOLD_SHIFT] = SWEEP_NOWHERE};
    sweep_channel_add_before(c, &nrg_call_channel_norm_fold, slots, 0);
}

void sweep_channel_add_parts(sweep_case *c)
{
    static const unsigned char slots[] = {[NRG_SUMS_ADD_FROM] = SWEEP_PART_SUMS, [NRG_SUMS_ADD_INTO] = SWEEP_TOTAL};
    nrg_channel_norm_sums_add_args args = {.sets = sweep_channel_sets(c)};
    sweep_add_before(c, &nrg_call_sums_add, (void *const[]){&args}, slots, 0);
}

void sweep_channel_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const sources[] = {"computed", "given", "running", "folded"};
    const nrg_channel_norm_spec *s = &c->channel;
    sweep_append(text, " of %zux%zux%zu %s over %s, %zu groups%s, eps %g, %s of x: statistics %s, segments of %zu", c->rows,
                 s->channels, c->positions, s->layout == NRG_LAYOUT_NHWC ? "nhwc" : "nchw",
                 s->over == NRG_CHANNEL_OVER_BATCH ? "batch" : "group", s->groups, s->centred ? ", centred" : "", s->eps,
                 nrg_activation_name(s->activation), sources[s->source], s->segment);
    sweep_append(text, ", momentum %g%s, %d parts", s->momentum, s->cumulative ? ", cumulative" : "", c->parts);
}
