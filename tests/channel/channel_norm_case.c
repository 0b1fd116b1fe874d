/* SPDX-License-Identifier: MIT */
#include "channel_norm_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"

size_t channel_draw_groups(size_t c, uint64_t seed)
{
    size_t divisors[64], count = 0;
    uint64_t state = seed;
    for (size_t g = 2; g < c && count < 64; g++)
        if (c % g == 0)
            divisors[count++] = g;
    return count ? divisors[test_draw(&state, count)] : test_draw(&state, 2) ? 1 : c;
}

/* Whether a set is a channel, of all samples or of one. */
static int sets_are_channels(const channel_options *o) { return o->kind == CHANNEL_BATCH || o->kind == CHANNEL_INSTANCE; }

void channel_options_settle(channel_options *o, const channel_shape *shape)
{
    if (o->source == NRG_STATISTICS_RUNNING && (!sets_are_channels(o) || !o->centred))
        o->source = NRG_STATISTICS_COMPUTE;
    if (o->source == NRG_STATISTICS_FOLDED)
        o->w = 1;
    /* a set of one element has no unbiased variance */
    if (o->source != NRG_STATISTICS_COMPUTE || !sets_are_channels(o) || !o->centred ||
        (o->kind == CHANNEL_BATCH ? shape->n : 1) * shape->s == 1)
        o->update = UPDATE_NONE;
    if (o->dtype == NRG_F32 || !(o->w || o->b))
        o->w_f32 = 0;
}

void channel_options_draw(channel_options *o, const channel_shape *shape, nrg_dtype dtype, uint64_t seed)
{
    static const size_t segments[] = {4096, 1, 7, 31, 32, 64, 100, 256, 1000, 4095};
    uint64_t state = seed;
    memset(o, 0, sizeof *o);
    o->dtype = dtype;
    o->layout = (nrg_channel_layout)test_draw(&state, CHANNEL_LAYOUTS);
    o->kind = (enum channel_kind)test_draw(&state, CHANNEL_KINDS);
    /* statistics that are computed have the most code */
    o->source = test_draw(&state, 2) ? NRG_STATISTICS_COMPUTE : (nrg_channel_source)test_draw(&state, CHANNEL_SOURCES);
    o->update = (enum channel_update)test_draw(&state, UPDATES);
    o->centred = test_draw(&state, 4) != 0;
    o->w = test_draw(&state, 3) != 0;
    o->b = test_draw(&state, 3) != 0;
    o->y = test_draw(&state, 3) == 0;
    o->w_f32 = (int)test_draw(&state, 2);
    o->activation = test_draw(&state, 2) ? NRG_ACT_IDENTITY : (nrg_activation)test_draw(&state, ACTIVATIONS);
    o->segment = test_draw(&state, 2) ? 0 : segments[test_draw(&state, sizeof segments / sizeof segments[0])];
    channel_options_settle(o, shape);
}

size_t channel_at(const channel_problem *p, size_t sample, size_t channel, size_t position)
{
    return p->spec.layout == NRG_NHWC ? (sample * p->s + position) * p->spec.channels + channel
                                      : (sample * p->spec.channels + channel) * p->s + position;
}

/* Channels of a set of one sample. */
static size_t group_channels(const channel_problem *p) { return p->spec.channels / (p->spec.groups ? p->spec.groups : 1); }

size_t channel_at_set(const channel_problem *p, size_t set, size_t i)
{
    if (p->kind == CHANNEL_BATCH)
        return channel_at(p, i / p->s, set, i % p->s);
    size_t channels = group_channels(p), groups = p->spec.channels / channels;
    return channel_at(p, set / groups, set % groups * channels + i / p->s, i % p->s);
}

size_t channel_of(const channel_problem *p, size_t at)
{
    return p->spec.layout == NRG_NHWC ? at % p->spec.channels : at / p->s % p->spec.channels;
}

size_t channel_set_of(const channel_problem *p, size_t at)
{
    size_t channel = channel_of(p, at), channels = group_channels(p);
    return p->kind == CHANNEL_BATCH ? channel
                                    : at / (p->spec.channels * p->s) * (p->spec.channels / channels) + channel / channels;
}

static enum row_kind draw_kind(uint64_t *state, const enum row_kind *kinds, size_t kind_count)
{
    /* ordinary sets must not lack neighbours: a poisoned one could leak into them */
    size_t draw = test_draw(state, 2) ? 0 : test_draw(state, kinds ? kind_count : (size_t)ROW_KINDS);
    return kinds ? kinds[draw] : (enum row_kind)draw;
}

static void put_set(const channel_problem *p, void *tensor, size_t set, const float *from)
{
    for (size_t i = 0; i < p->set_size; i++)
        element_set(tensor, channel_at_set(p, set, i), p->spec.dtype, from[i]);
}

void *channel_tensor(const channel_problem *p, channel_filler *fill, const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    uint64_t state = seed;
    void *tensor = norm_tensor(p->rows, p->dim, p->spec.dtype);
    float *set = norm_tensor(1, p->set_size, NRG_F32);
    for (size_t i = 0; i < p->sets && p->set_size; i++) {
        enum row_kind kind = draw_kind(&state, kinds, kind_count);
        fill(set, p->set_size, kind, p->spec.dtype, test_draw(&state, 1u << 30));
        put_set(p, tensor, i, set);
    }
    free(set);
    return tensor;
}

static void fill_x_and_y(channel_problem *p, const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    uint64_t state = seed;
    float *x = norm_tensor(1, p->set_size, NRG_F32), *y = norm_tensor(1, p->set_size, NRG_F32);
    for (size_t set = 0; set < p->sets && p->set_size; set++) {
        enum row_kind kind = draw_kind(&state, kinds, kind_count);
        row_fill(x, p->set_size, kind, p->spec.dtype, test_draw(&state, 1u << 30));
        put_set(p, p->x, set, x);
        if (!p->y)
            continue;
        norm_fill_y(y, x, p->set_size, kind, p->spec.dtype, test_draw(&state, 1u << 30));
        put_set(p, p->y, set, y);
    }
    free(x);
    free(y);
}

/* As those of rows; or with numbers among them where a channel is no longer plain. */
static void *weights(const channel_problem *p, uint64_t seed)
{
    static const float limits[] = {0x1p40f, -0x1p40f, 0x1.000002p40f, 0x1p-40f, -0x1p-40f, 0x1.fffffep-41f};
    uint64_t state = test_mix(seed);
    void *tensor = norm_tensor(1, p->spec.channels, p->w_dtype);
    float *row = norm_tensor(1, p->spec.channels, NRG_F32);
    norm_fill_weight(row, p->spec.channels, p->w_dtype, seed);
    if (test_draw(&state, 4) == 0)
        for (size_t c = test_draw(&state, 3); c < p->spec.channels; c += 1 + test_draw(&state, 9))
            row[c] = limits[test_draw(&state, sizeof limits / sizeof limits[0])];
    norm_put_row(tensor, 0, p->spec.channels, p->w_dtype, row);
    free(row);
    return tensor;
}

/* Running statistics: ordinary, or now and then none that a batch could have left. */
static void fill_running(channel_problem *p, uint64_t seed)
{
    static const float odd[] = {0.0f, -0.0f, 1e-30f, 1e30f, 3e38f, 1e-42f, INFINITY, NAN};
    uint64_t state = seed;
    p->running_mean = norm_tensor(1, p->spec.channels, NRG_F32);
    p->running_var = norm_tensor(1, p->spec.channels, NRG_F32);
    row_fill(p->running_mean, p->spec.channels, test_draw(&state, 4) ? ROW_NORMAL : ROW_ANY_MAGNITUDE, NRG_F32, state);
    row_fill(p->running_var, p->spec.channels, test_draw(&state, 4) ? ROW_NORMAL : ROW_ANY_MAGNITUDE, NRG_F32, state + 1);
    for (size_t i = 0; i < p->spec.channels; i++)
        p->running_var[i] = fabsf(p->running_var[i]);
    if (test_draw(&state, 3))
        return;
    for (size_t i = test_draw(&state, 5); i < p->spec.channels; i += 1 + test_draw(&state, 5))
        (test_draw(&state, 2) ? p->running_mean : p->running_var)[i] = odd[test_draw(&state, sizeof odd / sizeof odd[0])];
}

/* What scalar makes of x: every path stores the same. */
static void save_statistics(channel_problem *p)
{
    channel_result result;
    nrg_isa active = nrg_isa_active();
    nrg_channel_norm_spec spec = p->spec;
    spec.statistics = NRG_STATISTICS_COMPUTE;
    channel_result_make(&result, p);
    nrg_channel_norm_args args = channel_args(p, &result);
    args.statistics = p->statistics;
    if (nrg_isa_set(NRG_ISA_SCALAR) != NRG_OK || nrg_channel_norm_forward(&spec, &args, 0, 1) != NRG_OK ||
        nrg_isa_set(active) != NRG_OK)
        ck_abort_msg("the statistics cannot be had; %s", p->text);
    channel_result_free(&result);
}

/* Statistics of no data at hand: ordinary ones, and such as no float arithmetic can use. */
static void invent_statistics(channel_problem *p, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < p->sets; i++) {
        nrg_channel_statistics *s = &p->statistics[i];
        int wild = test_draw(&state, 4) == 0, exponent = wild ? (int)test_draw(&state, 240) - 120 : 0;
        double mean = p->spec.centred ? (double)test_draw(&state, 1u << 20) / 0x1p18 - 2 : 0;
        s->rstd = ldexp(1 + (double)test_draw(&state, 1u << 20) / 0x1p20, exponent);
        s->mean = wild && test_draw(&state, 2) ? mean * 0x1p100 : mean / s->rstd;
        s->mean_low = test_draw(&state, 2) ? 0 : s->mean * 0x1.8p-55;
        s->variance = 1 / s->rstd / s->rstd;
        s->count = (double)p->set_size;
        if (test_draw(&state, 8) == 0) { /* where a channel is no longer plain */
            s->rstd = test_draw(&state, 2) ? 0x1p40 : 0x1p-40;
            s->mean = p->spec.centred ? 1024 / s->rstd : 0;
            s->mean_low = 0;
            if (test_draw(&state, 2))
                s->rstd = nextafter(s->rstd, test_draw(&state, 2) ? 0 : INFINITY);
        }
        if (test_draw(&state, 16) == 0)
            s->rstd = s->variance = 0;
        if (test_draw(&state, 16) == 0)
            s->mean = s->mean_low = s->rstd = s->variance = NAN;
    }
}

static void name(channel_problem *p, const channel_options *o, uint64_t seed)
{
    static const char *const kinds[CHANNEL_KINDS] = {"batch", "group", "instance", "layer"},
                             *const layouts[CHANNEL_LAYOUTS] = {"nchw", "nhwc"},
                             *const sources[CHANNEL_SOURCES] = {"compute", "given", "running", "folded"},
                             *const updates[UPDATES] = {"", " momentum", " cumulative"};
    snprintf(p->text, sizeof p->text,
             "%s %s %s %s%s%s%s%s%s%s %s n %zu c %zu s %zu groups %zu segment %zu eps %g f %g batches %llu seed 0x%llx",
             nrg_dtype_name(o->dtype), layouts[o->layout], kinds[o->kind], sources[o->source], updates[o->update],
             o->centred ? " centred" : "", o->w ? " w" : "", o->b ? " b" : "", o->w_f32 ? " (f32)" : "", o->y ? " y" : "",
             nrg_activation_name(o->activation), p->n, p->spec.channels, p->s, p->spec.groups, p->spec.segment, p->spec.eps,
             p->spec.momentum, (unsigned long long)p->batches, (unsigned long long)seed);
}

void channel_problem_make(channel_problem *p, const channel_options *o, const channel_shape *shape, const enum row_kind *kinds,
                          size_t kind_count, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-3, 1e-12, 0, 1e-5, 1e-38, 300, 1e-310}, momenta[] = {0.1, 0, 1, 0.01, 1.0 / 3};
    uint64_t state = seed;
    memset(p, 0, sizeof *p);
    const size_t groups = o->kind == CHANNEL_GROUP      ? shape->groups
                          : o->kind == CHANNEL_INSTANCE ? shape->c
                                                        : test_draw(&state, 2); /* 0 says 1 as well */
    p->spec = o->kind == CHANNEL_BATCH ? nrg_batch_norm_spec(shape->c, 0) : nrg_group_norm_spec(shape->c, groups, 0);
    p->spec.eps = eps[test_draw(&state, sizeof eps / sizeof eps[0])];
    p->spec.momentum = momenta[test_draw(&state, sizeof momenta / sizeof momenta[0])];
    p->spec.cumulative = o->update == UPDATE_CUMULATIVE;
    p->spec.dtype = o->dtype;
    p->spec.layout = o->layout;
    p->spec.statistics = o->source;
    p->spec.centred = o->centred;
    p->spec.activation = o->activation;
    p->spec.segment = o->segment;
    p->w_dtype = o->w_f32 ? NRG_F32 : o->dtype;
    p->spec.w_dtype = o->w_f32 || test_draw(&state, 2) ? p->w_dtype : NRG_DTYPE_SAME;
    p->kind = o->kind;
    p->n = shape->n;
    p->s = shape->s;
    p->batches = test_draw(&state, 3) ? test_draw(&state, 1000) : 0;
    p->sets = o->kind == CHANNEL_BATCH ? shape->c : shape->n * (groups ? groups : 1);
    p->set_size = o->kind == CHANNEL_BATCH ? shape->n * shape->s : shape->c / (groups ? groups : 1) * shape->s;
    p->rows = o->layout == NRG_NHWC ? shape->n * shape->s : shape->n;
    p->dim = o->layout == NRG_NHWC ? shape->c : shape->c * shape->s;
    name(p, o, seed);

    p->x = norm_tensor(p->rows, p->dim, o->dtype);
    p->y = o->y ? norm_tensor(p->rows, p->dim, o->dtype) : NULL;
    fill_x_and_y(p, kinds, kind_count, test_draw(&state, 1u << 30));
    p->w = o->w ? weights(p, test_draw(&state, 1u << 30)) : NULL;
    p->b = o->b ? weights(p, test_draw(&state, 1u << 30)) : NULL;
    if (o->source == NRG_STATISTICS_RUNNING || o->update != UPDATE_NONE)
        fill_running(p, test_draw(&state, 1u << 30));
    if (o->source == NRG_STATISTICS_GIVEN) {
        p->statistics = norm_tensor(p->sets, sizeof *p->statistics / sizeof(float), NRG_F32);
        if (test_draw(&state, 2))
            save_statistics(p);
        else
            invent_statistics(p, test_draw(&state, 1u << 30));
    }
}

void channel_problem_free(channel_problem *p)
{
    free(p->x);
    free(p->y);
    free(p->w);
    free(p->b);
    free(p->statistics);
    free(p->running_mean);
    free(p->running_var);
}

void channel_result_make(channel_result *result, const channel_problem *p)
{
    result->o = norm_tensor(p->rows, p->dim, p->spec.dtype);
    result->mean = norm_tensor(1, p->sets, NRG_F32);
    result->rstd = norm_tensor(1, p->sets, NRG_F32);
    result->statistics = norm_tensor(p->sets, sizeof *result->statistics / sizeof(float), NRG_F32);
    result->running_mean = norm_tensor(1, p->spec.channels, NRG_F32);
    result->running_var = norm_tensor(1, p->spec.channels, NRG_F32);
}

void channel_result_free(channel_result *result)
{
    free(result->o);
    free(result->mean);
    free(result->rstd);
    free(result->statistics);
    free(result->running_mean);
    free(result->running_var);
}

nrg_channel_norm_args channel_args(const channel_problem *p, const channel_result *result)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(p->n, p->s, p->x, result->o);
    args.y = p->y;
    args.w = p->w;
    args.b = p->b;
    args.batches = p->batches;
    args.running_mean = p->running_mean;
    args.running_var = p->running_var;
    if (p->running_mean && p->spec.statistics == NRG_STATISTICS_COMPUTE) {
        const size_t bytes = p->spec.channels * sizeof(float);
        args.running_mean = memcpy(result->running_mean, p->running_mean, bytes);
        args.running_var = memcpy(result->running_var, p->running_var, bytes);
    }
    if (p->spec.statistics == NRG_STATISTICS_FOLDED)
        return args;
    args.mean = result->mean;
    args.rstd = result->rstd;
    args.statistics = p->statistics ? p->statistics : result->statistics;
    return args;
}

static int doubles_equal(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

int channel_statistics_equal(const nrg_channel_statistics *a, const nrg_channel_statistics *b)
{
    return doubles_equal(a->mean, b->mean) && doubles_equal(a->mean_low, b->mean_low) &&
           doubles_equal(a->variance, b->variance) && doubles_equal(a->rstd, b->rstd) && doubles_equal(a->count, b->count);
}
