/* The cases of channel normalization: forward, with what is around it (sums, statistics, folding), and backward, both of its
 * phases, and with sums in parts.
 *
 * Every length, as a number of channels and as one of positions, meets every layout and every kind of set (on the quick level:
 * some of them); all else is drawn for each case. c->rows is the number of samples.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/channel_norm.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../own_memory.h"
#include "channel.h"

/* A way: bit 0 the layout, bits 1-2 what a set is, bit 3 whether a length counts channels or positions. */
enum { WAYS = 16 };

/* Samples, channels and positions beyond the lengths from 1 up: around the lengths at which sums are taken otherwise, and more
 * segments, samples or channels than are worked on at a time. */
static const size_t large[][3] = {
    {2, 5, 255},  {3, 4, 256},  {2, 6, 257},  {1, 2, 4095}, {1, 2, 4096}, {1, 2, 4097}, {1, 1, 9001}, {2, 4, 784},  {1, 12, 700},
    {40, 4, 49},  {130, 3, 7},  {4100, 1, 1}, {1500, 1, 3}, {66, 20, 4},  {200, 5, 2},  {1, 320, 16}, {1, 1030, 5}, {1, 128, 49},
    {1, 16, 300}, {1, 130, 65}, {70, 96, 1},  {12, 16, 33}, {2, 8, 513},  {65, 2, 100}, {1, 1, 20011}};
enum { LARGE = sizeof large / sizeof large[0] };

enum kind_of_set { BATCH, GROUP, INSTANCE, LAYER };

/* A divisor of c. */
static size_t draw_groups(size_t c, uint64_t *random)
{
    size_t groups = (const size_t[]){2, 3, 4, 8, 32}[sweep_draw(random, 5)];
    return c % groups ? 1 : groups;
}

/* c channels in groups. A short length is that of a group or, more rarely, their number, so that there is one of each. */
static void draw_grouped_channels(nrg_channel_norm_spec *s, size_t length, uint64_t *random)
{
    size_t other = (const size_t[]){2, 3, 4, 8}[sweep_draw(random, 4)];
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
    nrg_channel_norm_spec *s = &c->channel;
    s->centred = sweep_draw(random, 4) != 0;
    s->eps = (const double[]){1e-5, 1e-5, 1e-6, 0, 0.5}[sweep_draw(random, 5)];
    s->momentum = (const double[]){0.1, 0.1, 0, 1, 0.01}[sweep_draw(random, 5)];
    s->cumulative = sweep_draw(random, 4) == 0;
    s->segment = draw_segment(c, random);
    c->store = (nrg_store)sweep_draw(random, 3);
    s->w_dtype = sweep_draw(random, 2) ? s->dtype : NRG_F32;
    if (sweep_draw(random, 2))
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
}

static void draw_case(sweep_case *c, uint64_t *random)
{
    const uint64_t ways = sweep_family_of(c)->ways[c->level];
    nrg_channel_norm_spec *s = &c->channel;
    /* where not all ways are gone, neighbours go different ones */
    int way = (int)((c->way * (WAYS / ways) + c->n / ways) % WAYS);
    enum kind_of_set sets = (enum kind_of_set)(way >> 1 & 3);
    int is_layer = 0; /* also of one channel, where that could be instance norm */
    *s = nrg_channel_norm_spec_batch(c->spec.dtype, 1, 0);
    s->accuracy = c->spec.accuracy;
    s->layout = (nrg_layout)(way & 1);
    s->over = sets == BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    c->weights = NRG_BIT(SWEEP_W) | NRG_BIT(SWEEP_B);
    sweep_take_large(c, large[0], 3, (size_t *const[]){&c->rows, &s->channels, &c->positions});
    if (!c->large)
        draw_small(c, c->length, sets, way >> 3, random);
    else
        s->groups = sets == GROUP ? draw_groups(s->channels, random) : 1;
    if (sets == INSTANCE)
        s->groups = s->channels;
    else if (sets == LAYER)
        is_layer = sweep_draw(random, 2) == 0;
    draw_spec(c, random);
    c->may_run = s->centred && !is_layer && (s->over == NRG_CHANNEL_OVER_BATCH || s->groups == s->channels);
    sweep_draw_shares(random); /* no use: hashes depend on the number of draws */
    c->reduce_shares = sweep_draw_shares(random);
}

const unsigned char sweep_channel_slots[] = {
    SWEEP_X, SWEEP_Y,    SWEEP_W,    SWEEP_B,          SWEEP_NOWHERE,  SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR,
    SWEEP_O, SWEEP_MEAN, SWEEP_RSTD, SWEEP_STATISTICS, SWEEP_NEW_MEAN, SWEEP_NEW_VAR};

const unsigned char sweep_channel_sums_slots[] = {SWEEP_X, SWEEP_SUMS};

void sweep_channel_add_before(sweep_case *c, const nrg_call *call, const unsigned char *slots, uint32_t there)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    const void *more[2]; /* as much as any of these calls takes beside spec and args */
    sweep_add_before(c, call, (void *const[]){&c->channel, &args, more}, slots, there);
}

static void add_running(sweep_case *c, int mean, int var)
{
    const unsigned char slots[] = {SWEEP_NOWHERE,      SWEEP_NOWHERE, (unsigned char)mean,
                                   (unsigned char)var, SWEEP_NOWHERE, SWEEP_NOWHERE};
    sweep_channel_add_before(c, &nrg_call_channel_norm_fold, slots, 0);
}

static void add_parts(sweep_case *c)
{
    static const unsigned char slots[] = {SWEEP_PART_SUMS, SWEEP_TOTAL};
    nrg_channel_norm_sums_add_args args = {.sets = sweep_channel_sets(c)};
    sweep_add_before(c, &nrg_call_sums_add, (void *const[]){&args}, slots, 0);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const sources[] = {"computed", "given", "running", "folded"};
    const nrg_channel_norm_spec *s = &c->channel;
    sweep_append(text, " of %zux%zux%zu %s over %s, %zu groups%s, eps %g, %s of x: statistics %s, segments of %zu", c->rows,
                 s->channels, c->positions, s->layout == NRG_LAYOUT_NHWC ? "nhwc" : "nchw",
                 s->over == NRG_CHANNEL_OVER_BATCH ? "batch" : "group", s->groups, s->centred ? ", centred" : "", s->eps,
                 nrg_activation_name(s->activation), sources[s->source], s->segment);
    sweep_append(text, ", momentum %g%s, %d parts", s->momentum, s->cumulative ? ", cumulative" : "", c->parts);
}

/* ---- data ---- */

/* Which elements are of one kind. A set whose parts are of different kinds is ruled by the largest; one that is all of a kind is
 * not. */
enum alike { TENSOR, CHANNEL, SAMPLE, PLANE, ALIKE };

/* The positions of a channel in a sample: where the first is, and how far it is to the next. */
static unsigned char *plane(const sweep_case *c, const sweep_operand *o, size_t n, size_t channel, unsigned char *memory,
                            size_t *step)
{
    size_t element = sweep_type_size(o->type);
    if (c->channel.layout == NRG_LAYOUT_NHWC) {
        *step = o->stride;
        return memory + o->offset + n * c->positions * o->stride + channel * element;
    }
    *step = element;
    return memory + o->offset + n * o->stride + channel * c->positions * element;
}

/* A kind for each channel needs no memory when it is drawn from the channel's own numbers. */
static sweep_kind kind_of(enum alike alike, uint64_t seed, size_t n, size_t channel)
{
    uint64_t random =
        seed + (alike == CHANNEL || alike == PLANE ? channel * 0x10001 : 0) + (alike == SAMPLE || alike == PLANE ? n + 1 : 0);
    return sweep_draw_kind(0, &random);
}

static void fill_tensor(const sweep_case *c, const sweep_operand *o, unsigned char *memory, uint64_t *random)
{
    enum alike alike = (enum alike)sweep_draw(random, ALIKE);
    uint64_t seed = sweep_random(random);
    size_t step;
    for (size_t n = 0; n < c->rows; n++)
        for (size_t channel = 0; channel < c->channel.channels; channel++) {
            unsigned char *first = plane(c, o, n, channel, memory, &step);
            sweep_fill_line(first, step, (nrg_dtype)o->type, c->positions, kind_of(alike, seed, n, channel), random);
        }
    /* few elements, so that most sets stay whole */
    for (unsigned i = sweep_draw(random, 6); i > 3; i--) {
        size_t n = (size_t)(sweep_random(random) % c->rows), channel = (size_t)(sweep_random(random) % c->channel.channels);
        unsigned char *first = plane(c, o, n, channel, memory, &step);
        first += sweep_random(random) % c->positions * step;
        sweep_fill_line(first, step, (nrg_dtype)o->type, 1, sweep_draw_poison(random), random);
    }
}

/* A variance is mostly no negative number. */
static void fill_running_var(const sweep_operand *o, unsigned char *memory, uint64_t *random)
{
    sweep_fill_row(memory + o->offset, NRG_F32, o->length, sweep_draw(random, 2) != 0, random);
    if (sweep_draw(random, 8))
        for (size_t i = 0; i < o->length; i++)
            memory[o->offset + 4 * i + 3] &= 0x7f; /* the sign */
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    if (operand == SWEEP_X || operand == SWEEP_Y || operand == SWEEP_D_O)
        fill_tensor(c, o, memory, random);
    else if (operand == SWEEP_RUNNING_VAR)
        fill_running_var(o, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

/* All shares of a function. */
static nrg_status run_shares(const sweep_case *c, const invoke_function *function, int shares, const nrg_channel_norm_spec *spec,
                             const void *args, int64_t *sums)
{
    nrg_channel_sums more = {sums};
    return sweep_run_shares(c, function, (void *const[]){own_memory(spec), own_memory(args), &more}, shares);
}

/* Adds up the sums of all parts, in an order of the case's. */
typedef nrg_status sum_part(const sweep_case *c, const sweep_part *part, int64_t *sums, unsigned char *memory);
static nrg_status sum_parts(const sweep_case *c, sum_part *sum, unsigned char *memory)
{
    const size_t parts = sweep_channel_parts(c);
    int64_t *total = sweep_place(c, SWEEP_TOTAL, memory), *sums = sweep_place(c, SWEEP_PART_SUMS, memory);
    nrg_status status = NRG_OK;
    memset(total, 0, sweep_channel_sets(c) * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *total);
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        const sweep_part part = sweep_channel_part(c, parts - 1 - (size_t)sweep_share(c, (int)i, (int)parts));
        status = sum(c, &part, sums, memory);
        if (status == NRG_OK)
            status = nrg_channel_norm_sums_add(part.sets, total + part.first_set * NRG_CHANNEL_NORM_SUMS_WORDS, sums);
    }
    return status;
}

/* ---- forward ---- */

static const unsigned char statistics_slots[] = {SWEEP_NOWHERE, SWEEP_NOWHERE,    SWEEP_NOWHERE, SWEEP_MEAN,
                                                 SWEEP_RSTD,    SWEEP_STATISTICS, SWEEP_NOWHERE, SWEEP_NOWHERE};
static const unsigned char fold_slots[] = {SWEEP_W, SWEEP_B, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR, SWEEP_SCALE, SWEEP_SHIFT};

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

static uint32_t draw_forward_source(sweep_case *c, uint32_t there, uint64_t *random)
{
    const unsigned way = sweep_draw(random, 8);
    const size_t sets = sweep_channel_sets(c);
    uint32_t statistics = 0;
    if (way == 0)
        return draw_folded(c, there, random);
    if (way == 1 && c->may_run) {
        c->channel.source = NRG_STATISTICS_RUNNING;
        add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
    } else {
        /* sums of parts, the sum of them, and the statistics: all that a call with NRG_STATISTICS_COMPUTE does at once */
        if (way < 4 && c->rows) {
            c->saved = 1;
            c->parts = 1 + (int)sweep_draw(random, 5);
            statistics = NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS);
            add_parts(c);
        }
        if (way % 2 && may_update(c)) {
            add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
            add_running(c, SWEEP_NEW_MEAN, SWEEP_NEW_VAR);
        }
    }
    statistics |= sets && sweep_draw(random, 2) ? NRG_BIT(NRG_CHANNEL_STATISTICS_MEAN) : 0;
    statistics |= sets && sweep_draw(random, 2) ? NRG_BIT(NRG_CHANNEL_STATISTICS_RSTD) : 0;
    statistics |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_CHANNEL_STATISTICS_STATISTICS) : 0;
    sweep_channel_add_before(c, &nrg_call_channel_norm_statistics, statistics_slots, statistics);
    return there;
}

static void draw_forward(sweep_case *c, uint64_t *random)
{
    draw_case(c, random);
    uint32_t there = sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_CHANNEL_Y) : 0;
    there |= sweep_draw(random, 3) ? NRG_BIT(NRG_CHANNEL_W) : 0;
    there |= sweep_draw(random, 3) ? NRG_BIT(NRG_CHANNEL_B) : 0;
    const int cumulative = c->channel.cumulative;
    c->channel.cumulative = 0; /* until there are running statistics */
    there = draw_forward_source(c, there, random);
    nrg_channel_norm_args args = nrg_channel_norm_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    sweep_add_call(c, &nrg_call_channel_norm_forward, (void *const[]){&c->channel, &args}, sweep_channel_slots, there, 0);
    if (sweep_draw(random, 3) == 0)
        sweep_channel_add_before(c, &nrg_call_channel_norm_sums, sweep_channel_sums_slots, 0);
    c->channel.cumulative = cumulative && c->operands[SWEEP_NEW_MEAN].rows;
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH && !c->rows; i++)
        c->operands[i].may_stay = 1; /* of no samples there is nothing to say */
}

/* The operands of a forward pass over a part. */
static nrg_channel_norm_args forward_args(const sweep_case *c, const sweep_part *part, unsigned char *memory)
{
    nrg_channel_norm_spec spec = part->spec;
    nrg_channel_norm_args args = nrg_channel_norm_args_init(part->n, part->s, NULL, NULL, NULL, NULL);
    args.batches = spec.cumulative ? c->seed % 1000 : 0;
    args.store = c->store;
    sweep_channel_bind(c, part, &nrg_call_channel_norm_forward, (void *const[]){&spec, &args}, sweep_channel_slots, memory);
    return args;
}

static nrg_status sum_forward(const sweep_case *c, const sweep_part *part, int64_t *sums, unsigned char *memory)
{
    const nrg_channel_norm_args args = forward_args(c, part, memory);
    return run_shares(c, &invoke_channel_norm_sums, c->shares, &part->spec, &args, sums);
}

/* Statistics from the sums of all parts; then each part with them. */
static nrg_status run_forward_parts(const sweep_case *c, nrg_channel_norm_args *all, unsigned char *memory)
{
    const size_t parts = sweep_channel_parts(c);
    const int early = c->seed % 2 == 0; /* mean and rstd come with the statistics, or with the result */
    nrg_status status = sum_parts(c, sum_forward, memory);
    if (!early)
        all->mean = all->rstd = NULL;
    if (status == NRG_OK)
        status = run_shares(c, &invoke_channel_norm_statistics, c->reduce_shares, &c->channel, all,
                            sweep_place(c, SWEEP_TOTAL, memory));
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        sweep_part part = sweep_channel_part(c, i);
        nrg_channel_norm_args args = forward_args(c, &part, memory);
        part.spec.source = NRG_STATISTICS_GIVEN;
        args.statistics_in = args.statistics;
        args.statistics = NULL;
        args.running_mean = args.running_var = NULL;
        args.running_mean_in = args.running_var_in = NULL;
        if (early)
            args.mean = args.rstd = NULL;
        status = run_shares(c, &invoke_channel_norm_forward, c->shares, &part.spec, &args, NULL);
    }
    return status;
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    const sweep_part whole = sweep_channel_whole(c);
    nrg_channel_norm_spec spec = c->channel;
    nrg_channel_norm_args args = forward_args(c, &whole, memory);
    int64_t *sums = sweep_place(c, SWEEP_SUMS, memory);
    float *scale = sweep_place(c, SWEEP_SCALE, memory), *shift = sweep_place(c, SWEEP_SHIFT, memory);
    nrg_status status = sums ? sum_forward(c, &whole, sums, memory) : NRG_OK;
    if (status == NRG_OK && scale) {
        status = nrg_channel_norm_fold(&spec, &args, scale, shift);
        args.running_mean_in = args.running_var_in = NULL;
        args.w = scale;
        args.b = shift;
        spec.w_dtype = NRG_F32;
    }
    if (status != NRG_OK)
        return status;
    return c->saved && !c->recompute ? run_forward_parts(c, &args, memory)
                                     : run_shares(c, &invoke_channel_norm_forward, c->shares, &spec, &args, NULL);
}

#define CASES(quick) .ways = {quick, WAYS, WAYS}, .small = {70, 150, 400}, .large = LARGE, .fill = fill, .describe = describe

const sweep_family sweep_family_channel_norm_forward = {CASES(4), .rounds = {1, 1, 4}, .draw = draw_forward, .run = run_forward};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static const unsigned char backward_slots[] = {
    SWEEP_X,       SWEEP_Y,       SWEEP_W,       SWEEP_B,  SWEEP_D_O, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR, SWEEP_NOWHERE,
    SWEEP_NOWHERE, SWEEP_NOWHERE, SWEEP_NOWHERE, SWEEP_DX, SWEEP_DY,  SWEEP_DW,           SWEEP_DB,          SWEEP_WORKSPACE};

static const unsigned char backward_sums_slots[] = {SWEEP_X,    SWEEP_Y,          SWEEP_W,       SWEEP_B,
                                                    SWEEP_D_O,  SWEEP_STATISTICS, SWEEP_NOWHERE, SWEEP_NOWHERE,
                                                    SWEEP_SUMS, SWEEP_NOWHERE,    SWEEP_NOWHERE};

#define OPERAND(name) NRG_BIT(NRG_CHANNEL_BACKWARD_##name)

void sweep_channel_add_backward(sweep_case *c, uint32_t there)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(c->rows, c->positions, NULL, NULL, NULL, NULL);
    sweep_add_call(c, &nrg_call_channel_norm_backward, (void *const[]){&c->channel, &args}, backward_slots, there, 0);
    c->operands[SWEEP_DW].is_read = c->operands[SWEEP_DB].is_read = 0; /* what there is before them is not drawn */
}

/* Constant statistics; or saved ones, with or without sums in parts; or none. */
static void draw_backward_source(sweep_case *c, uint64_t *random)
{
    unsigned way = sweep_draw(random, 6);
    if (way == 0 && c->may_run) {
        c->channel.source = NRG_STATISTICS_RUNNING;
        add_running(c, SWEEP_RUNNING_MEAN, SWEEP_RUNNING_VAR);
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
        add_parts(c);
        sweep_add_before(c, &nrg_call_channel_norm_backward_sums, (void *const[]){&c->channel, &args, &sums}, backward_sums_slots,
                         NRG_BIT(NRG_CHANNEL_BACKWARD_SUMS_STATISTICS));
    }
}

/* Mostly all outputs; dy also where there was no y, dw and db where there was no w or b. */
static void draw_backward(sweep_case *c, uint64_t *random)
{
    draw_case(c, random);
    c->channel.cumulative = 0;                                    /* forward passes here have no running statistics to update */
    uint32_t there = sweep_draw(random, 3) == 0 ? OPERAND(Y) : 0; /* read with an activation only */
    there |= sweep_draw(random, 3) ? OPERAND(W) : 0;
    there |= sweep_draw(random, 3) ? OPERAND(B) : 0;
    draw_backward_source(c, random);
    there |= c->channel.source == NRG_STATISTICS_RUNNING ? OPERAND(RUNNING_MEAN) | OPERAND(RUNNING_VAR) : 0;
    there |= sweep_draw(random, 8) ? OPERAND(DX) : 0;
    there |= sweep_draw(random, 2) ? OPERAND(DY) : 0;
    there |= c->parts < 2 && sweep_draw(random, 3) ? OPERAND(DW) : 0;
    there |= c->parts < 2 && sweep_draw(random, 3) ? OPERAND(DB) : 0;
    c->accumulate = sweep_draw(random, 3) == 0;
    sweep_channel_add_backward(c, there);
    if (c->saved)
        add_saved(c);
}

/* The operands of a part, with statistics if there are some. */
static nrg_channel_norm_backward_args backward_args(const sweep_case *c, const sweep_part *part,
                                                    const nrg_channel_statistics *statistics, unsigned char *memory)
{
    nrg_channel_norm_spec spec = part->spec;
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(part->n, part->s, NULL, NULL, NULL, NULL);
    args.accumulate = c->accumulate;
    args.store = c->store;
    sweep_channel_bind(c, part, &nrg_call_channel_norm_backward, (void *const[]){&spec, &args}, backward_slots, memory);
    args.statistics = statistics;
    if (!spec.activation)
        args.y = args.b = NULL; /* of the forward pass only */
    return args;
}

static nrg_status sum_backward(const sweep_case *c, const sweep_part *part, int64_t *sums, unsigned char *memory)
{
    const nrg_channel_norm_backward_args args = backward_args(c, part, sweep_place(c, SWEEP_STATISTICS, memory), memory);
    return run_shares(c, &invoke_channel_norm_backward_sums, c->shares, &c->channel, &args, sums);
}

static nrg_status run_phases(const sweep_case *c, const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    const nrg_status status = run_shares(c, &invoke_channel_norm_backward, c->shares, spec, args, NULL);
    return status == NRG_OK ? run_shares(c, &invoke_channel_norm_backward_reduce, c->reduce_shares, spec, args, NULL) : status;
}

static nrg_status run_backward_parts(const sweep_case *c, const nrg_channel_statistics *statistics, unsigned char *memory)
{
    const size_t parts = sweep_channel_parts(c);
    nrg_channel_norm_spec given = c->channel;
    nrg_status status = sum_parts(c, sum_backward, memory);
    given.source = NRG_STATISTICS_GIVEN;
    for (size_t i = 0; i < parts && status == NRG_OK; i++) {
        const sweep_part part = sweep_channel_part(c, i);
        nrg_channel_norm_backward_args args = backward_args(c, &part, statistics, memory);
        args.sums = sweep_place(c, SWEEP_TOTAL, memory);
        args.dw = args.db = NULL;
        status = run_phases(c, &given, &args);
    }
    return status;
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    const sweep_part whole = sweep_channel_whole(c);
    const int has_saved = c->saved && !c->recompute;
    nrg_channel_norm_spec spec = c->channel;
    const nrg_channel_statistics *statistics = sweep_place(c, SWEEP_STATISTICS, memory);
    int64_t *sums = sweep_place(c, SWEEP_SUMS, memory);
    nrg_status status = NRG_OK;
    if (c->saved) {
        const nrg_channel_norm_args forward = forward_args(c, &whole, memory);
        status = nrg_channel_norm_forward(&spec, &forward, 0, 1);
    }
    if (status == NRG_OK && sums) {
        nrg_channel_norm_backward_args args = backward_args(c, &whole, statistics, memory);
        args.dw = args.db = NULL;
        status = run_shares(c, &invoke_channel_norm_backward_sums, c->shares, &c->channel, &args, sums);
    }
    if (status != NRG_OK)
        return status;
    if (has_saved && c->parts)
        return run_backward_parts(c, statistics, memory);
    if (has_saved)
        spec.source = c->seed % 2 ? NRG_STATISTICS_GIVEN : NRG_STATISTICS_COMPUTE;
    const nrg_channel_norm_backward_args args = backward_args(c, &whole, has_saved ? statistics : NULL, memory);
    return run_phases(c, &spec, &args);
}

const sweep_family sweep_family_channel_norm_backward = {CASES(3), .rounds = {1, 1, 3}, .draw = draw_backward,
                                                         .run = run_backward};
#endif
