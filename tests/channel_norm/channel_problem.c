/* SPDX-License-Identifier: MIT */
#include "channel_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *statistics_tensor(size_t sets) { return element_tensor(sets * sizeof(nrg_channel_statistics), NRG_F32); }

/* ---- where elements are ---- */

size_t channel_count(const channel_problem *p) { return exact_count(&p->sets); }

size_t channel_at(const channel_problem *p, size_t set, size_t i) { return exact_place_of(&p->sets, set, i).at; }

size_t channel_of(const channel_problem *p, size_t at) { return p->sets.nhwc ? at % p->sets.c : at / p->s % p->sets.c; }

size_t channel_set_of(const channel_problem *p, size_t at)
{
    const size_t channel = channel_of(p, at), groups = p->sets.groups;
    return groups ? at / (p->sets.c * p->s) * groups + channel / (p->sets.c / groups) : channel;
}

int channel_has_running(const channel_problem *p)
{
    return p->spec.centred && (p->spec.over == NRG_CHANNEL_OVER_BATCH || p->spec.groups == p->spec.channels);
}

/* ---- what they hold ---- */

/* Ordinary sets must not lack neighbours: what spoils one could leak into them. */
static enum row_kind draw_kind(uint64_t *state, const enum row_kind *kinds, size_t kind_count)
{
    const size_t draw = test_draw(state, 2) ? 0 : test_draw(state, kinds ? kind_count : (size_t)ROW_KINDS);
    return kinds ? kinds[draw] : (enum row_kind)draw;
}

void channel_fill(const exact_sets *t, void *tensor, nrg_dtype dtype, const enum row_kind *kinds, size_t kind_count,
                  uint64_t seed)
{
    uint64_t state = seed;
    float *set = element_tensor(t->size, NRG_F32);
    for (size_t k = 0; k < t->sets && t->size; k++) {
        const enum row_kind kind = draw_kind(&state, kinds, kind_count);
        row_fill(set, t->size, kind, dtype, test_draw(&state, 1u << 30));
        for (size_t i = 0; i < t->size; i++)
            element_set(tensor, exact_place_of(t, k, i).at, dtype, set[i]);
    }
    free(set);
}

static void *sets_of_kinds(const channel_problem *p, const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    void *tensor = element_tensor(channel_count(p), p->spec.dtype);
    channel_fill(&p->sets, tensor, p->spec.dtype, kinds, kind_count, seed);
    return tensor;
}

/* Ordinary, or with some of a list among them. */
static void fill_line(float *line, size_t count, nrg_dtype dtype, const float *odd, size_t odd_count, uint64_t seed)
{
    uint64_t state = seed;
    row_fill(line, count, test_draw(&state, 8) ? ROW_NORMAL : ROW_ANY_MAGNITUDE, dtype, test_mix(seed));
    if (test_draw(&state, 4) == 0)
        for (size_t i = test_draw(&state, 3); i < count; i += 1 + test_draw(&state, 9))
            line[i] = odd[test_draw(&state, odd_count)];
}

/* w or b: numbers among them at which a channel is done in double, or that are none. */
static void *weights(const channel_problem *p, uint64_t seed)
{
    static const float odd[] = {0.0f,    -0.0f,    1.0f,           3e38f,    1e-40f,    INFINITY,       NAN,
                                0x1p40f, -0x1p40f, 0x1.000002p40f, 0x1p-40f, -0x1p-40f, 0x1.fffffep-41f};
    void *tensor = element_tensor(p->spec.channels, p->w_dtype);
    float *line = element_tensor(p->spec.channels, NRG_F32);
    fill_line(line, p->spec.channels, p->w_dtype, odd, sizeof odd / sizeof odd[0], seed);
    for (size_t c = 0; c < p->spec.channels; c++)
        element_set(tensor, c, p->w_dtype, line[c]);
    free(line);
    return tensor;
}

/* Running statistics: some that no batch could have left. */
static void fill_running(channel_problem *p, uint64_t seed)
{
    static const float odd[] = {0.0f, -0.0f, 1e-30f, 1e30f, 3e38f, 1e-42f, INFINITY, NAN};
    const size_t count = p->spec.channels;
    p->running_mean = element_tensor(count, NRG_F32);
    p->running_var = element_tensor(count, NRG_F32);
    fill_line(p->running_mean, count, NRG_F32, odd, sizeof odd / sizeof odd[0], seed + 1);
    fill_line(p->running_var, count, NRG_F32, odd, sizeof odd / sizeof odd[0], seed + 2);
    for (size_t i = 0; i < count; i++)
        p->running_var[i] = fabsf(p->running_var[i]);
}

/* Statistics of no data at hand: ordinary ones, such as no float arithmetic can use, and those at which a channel begins to be
 * done in double. */
static void invent_statistics(channel_problem *p, uint64_t seed)
{
    uint64_t state = seed;
    p->statistics = statistics_tensor(p->sets.sets);
    for (size_t i = 0; i < p->sets.sets; i++) {
        nrg_channel_statistics *s = &p->statistics[i];
        const int wild = test_draw(&state, 4) == 0, exponent = wild ? (int)test_draw(&state, 240) - 120 : 0;
        const double mean = p->spec.centred ? (double)test_draw(&state, 1u << 20) / 0x1p18 - 2 : 0;
        s->rstd = ldexp(1 + (double)test_draw(&state, 1u << 20) / 0x1p20, exponent);
        s->mean = wild && test_draw(&state, 2) ? mean * 0x1p100 : mean / s->rstd;
        s->mean_low = test_draw(&state, 2) ? 0 : s->mean * 0x1.8p-55;
        s->variance = 1 / s->rstd / s->rstd;
        s->count = (double)p->sets.size;
        if (test_draw(&state, 8) == 0) {
            s->rstd = test_draw(&state, 2) ? 0x1p40 : 0x1p-40;
            s->mean = p->spec.centred ? (exact_is_fast(&p->spec) ? 0x1p20 : 1024) / s->rstd : 0;
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

/* A sum of nothing, where x is a number. */
static void cancel(channel_problem *p)
{
    for (size_t i = 0; i < channel_count(p); i++) {
        const float x = element_get(p->x, i, p->spec.dtype);
        element_set(p->y, i, p->spec.dtype, isfinite(x) ? -x : 1);
    }
}

void channel_problem_fill(channel_problem *p, const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    uint64_t state = test_mix(seed);
    p->sets = exact_sets_of(&p->spec, p->n, p->s);
    p->w_dtype = p->spec.w_dtype == NRG_DTYPE_SAME ? p->spec.dtype : p->spec.w_dtype;
    p->x = sets_of_kinds(p, kinds, kind_count, test_mix(state));
    p->d_o = sets_of_kinds(p, kinds, kind_count, test_mix(state + 1));
    if (p->has_y) {
        p->y = sets_of_kinds(p, kinds, kind_count, test_mix(state + 2));
        if (test_draw(&state, 8) == 0)
            cancel(p);
    }
    p->w = p->has_w ? weights(p, test_mix(state + 3)) : NULL;
    p->b = p->has_b ? weights(p, test_mix(state + 4)) : NULL;
    fill_running(p, test_mix(state + 5));
    if (p->spec.source == NRG_STATISTICS_GIVEN)
        invent_statistics(p, test_mix(state + 6));
    p->dw = element_tensor(p->spec.channels, NRG_F32);
    p->db = element_tensor(p->spec.channels, NRG_F32);
    row_fill(p->dw, p->spec.channels, ROW_NORMAL, NRG_F32, state + 7);
    row_fill(p->db, p->spec.channels, ROW_NORMAL, NRG_F32, state + 8);
}

void channel_problem_free(channel_problem *p)
{
    free(p->x);
    free(p->y);
    free(p->d_o);
    free(p->w);
    free(p->b);
    free(p->statistics);
    free(p->running_mean);
    free(p->running_var);
    free(p->dw);
    free(p->db);
}

/* Where statistics come from: computed, half of the time. */
static void draw_source(channel_problem *p, uint64_t seed)
{
    uint64_t state = seed;
    p->spec.source = test_draw(&state, 2) ? NRG_STATISTICS_COMPUTE : (nrg_statistics_source)test_draw(&state, 4);
    p->updates = test_draw(&state, 2) == 0;
}

/* Takes out what the header does not allow. */
static void settle(channel_problem *p, int is_backward)
{
    nrg_statistics_source *source = &p->spec.source;
    if ((*source == NRG_STATISTICS_RUNNING && !channel_has_running(p)) || (*source == NRG_STATISTICS_FOLDED && is_backward))
        *source = NRG_STATISTICS_COMPUTE;
    if (*source == NRG_STATISTICS_FOLDED)
        p->has_w = 1;
    /* a set of one element has no unbiased variance */
    if (is_backward || *source != NRG_STATISTICS_COMPUTE || !channel_has_running(p) ||
        (p->spec.over == NRG_CHANNEL_OVER_BATCH ? p->n : 1) * p->s == 1)
        p->updates = 0;
    p->spec.cumulative &= p->updates;
}

/* The problem of a case: its shape, and its options but for statistics. */
static channel_problem problem_of(const sweep_case *c)
{
    channel_problem p = {.spec = c->channel,
                         .n = c->rows,
                         .s = c->positions,
                         .has_y = c->operands[SWEEP_Y].rows != 0,
                         .has_w = c->operands[SWEEP_W].rows != 0,
                         .has_b = c->operands[SWEEP_B].rows != 0,
                         .batches = c->number % 1000,
                         .accumulate = c->accumulate};
    draw_source(&p, c->number);
    return p;
}

static void on_each_path(sweep_case *c, channel_problem *p, channel_body *body)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    c->channel = p->spec;
    sweep_describe(c, p->text);
    for (size_t path = 0; path < count; path++) {
        snprintf(test_note, sizeof test_note, "%s: %.400s", nrg_isa_name(paths[path]), p->text);
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        body(p, paths[path]);
    }
}

void channel_each(const char *op, int i, const enum row_kind *kinds, size_t kind_count, channel_change *change,
                  channel_body *body)
{
    const sweep_level level = test_small() ? SWEEP_QUICK : SWEEP_DEFAULT;
    const uint64_t most = test_small() ? 48 : 240;
    const int is_backward = strcmp(op, "channel_norm_backward") == 0;
    for (int kernel = 0; kernel < sweep_kernels; kernel++) {
        const uint64_t first = sweep_first(level, kernel), end = sweep_first(level, kernel + 1);
        const uint64_t step = (end - first) / most | 1; /* the numbers of layouts and kinds of sets, which take turns, are even */
        sweep_case c;
        for (uint64_t n = first + (uint64_t)i * step; strcmp(sweep_kernel_op(kernel), op) == 0 && n < end;
             n += CHANNEL_PARTS * step) {
            sweep_make(level, n, &c);
            if (!c.rows || (test_small() && c.rows * c.channel.channels * c.positions > 3000))
                continue;
            channel_problem p = problem_of(&c);
            if (change)
                change(&p);
            settle(&p, is_backward);
            channel_problem_fill(&p, kinds, kind_count, c.seed);
            on_each_path(&c, &p, body);
            channel_problem_free(&p);
        }
    }
}

/* ---- calls ---- */

void channel_result_make(channel_result *result, const channel_problem *p)
{
    result->o = element_tensor(channel_count(p), p->spec.dtype);
    result->mean = element_tensor(p->sets.sets, NRG_F32);
    result->rstd = element_tensor(p->sets.sets, NRG_F32);
    result->statistics = statistics_tensor(p->sets.sets);
    result->running_mean = element_tensor(p->spec.channels, NRG_F32);
    result->running_var = element_tensor(p->spec.channels, NRG_F32);
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
    nrg_channel_norm_args args = nrg_channel_norm_args_init(p->n, p->s, p->x, p->w, p->b, result->o);
    args.y = p->y;
    args.batches = p->spec.cumulative ? p->batches : 0;
    if (p->spec.source == NRG_STATISTICS_RUNNING) {
        args.running_mean_in = p->running_mean;
        args.running_var_in = p->running_var;
    } else if (p->updates) {
        const size_t bytes = p->spec.channels * sizeof(float);
        const int in_place = p->batches % 2 != 0;
        args.running_mean = result->running_mean;
        args.running_var = result->running_var;
        args.running_mean_in = in_place ? memcpy(args.running_mean, p->running_mean, bytes) : p->running_mean;
        args.running_var_in = in_place ? memcpy(args.running_var, p->running_var, bytes) : p->running_var;
    }
    if (p->spec.source == NRG_STATISTICS_FOLDED)
        return args;
    args.mean = result->mean;
    args.rstd = result->rstd;
    args.statistics_in = p->statistics;
    args.statistics = p->statistics ? NULL : result->statistics;
    return args;
}

void channel_forward(const channel_problem *p, const channel_result *result)
{
    const nrg_channel_norm_args args = channel_args(p, result);
    const nrg_status status = nrg_channel_norm_forward(&p->spec, &args, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

void channel_arrays_must_equal(const channel_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                               const void *expected, const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->text);
}

static int doubles_equal(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

int channel_statistics_equal(const nrg_channel_statistics *a, const nrg_channel_statistics *b)
{
    return doubles_equal(a->mean, b->mean) && doubles_equal(a->mean_low, b->mean_low) &&
           doubles_equal(a->variance, b->variance) && doubles_equal(a->rstd, b->rstd) && doubles_equal(a->count, b->count);
}

void channel_must_equal(const channel_problem *p, nrg_isa isa, const char *what, const channel_result *expected,
                        const channel_result *got)
{
    channel_arrays_must_equal(p, isa, what, p->spec.dtype, channel_count(p), expected->o, got->o);
    if (p->spec.source == NRG_STATISTICS_FOLDED)
        return;
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->sets.sets, expected->mean, got->mean);
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->sets.sets, expected->rstd, got->rstd);
    for (size_t i = 0; i < p->sets.sets && !p->statistics; i++)
        if (!channel_statistics_equal(&expected->statistics[i], &got->statistics[i]))
            ck_abort_msg("%s, %s: the statistics of set %zu\n  case: %s", nrg_isa_name(isa), what, i, p->text);
    if (!p->updates)
        return;
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->spec.channels, expected->running_mean, got->running_mean);
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->spec.channels, expected->running_var, got->running_var);
}

/* ---- backward ---- */

void channel_gradients_make(channel_gradients *result, const channel_problem *p)
{
    result->dx = element_tensor(channel_count(p), p->spec.dtype);
    result->dy = element_tensor(channel_count(p), p->spec.dtype);
    result->dw = element_tensor(p->spec.channels, NRG_F32);
    result->db = element_tensor(p->spec.channels, NRG_F32);
}

void channel_gradients_free(channel_gradients *result)
{
    free(result->dx);
    free(result->dy);
    free(result->dw);
    free(result->db);
}

nrg_channel_norm_backward_args channel_backward_args(const channel_problem *p, const channel_gradients *result)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(p->n, p->s, p->x, p->w, p->d_o, result->dx);
    args.b = p->spec.activation ? p->b : NULL;
    args.y = p->spec.activation ? p->y : NULL;
    args.statistics = p->statistics;
    args.mean = p->mean;
    args.rstd = p->rstd;
    if (p->spec.source == NRG_STATISTICS_RUNNING) {
        args.running_mean = p->running_mean;
        args.running_var = p->running_var;
    }
    args.dy = result->dy;
    args.dw = result->dw;
    args.db = result->db;
    args.accumulate = p->accumulate;
    if (p->accumulate) {
        memcpy(result->dw, p->dw, p->spec.channels * sizeof(float));
        memcpy(result->db, p->db, p->spec.channels * sizeof(float));
    }
    return args;
}

void channel_backward(const channel_problem *p, const channel_gradients *result)
{
    nrg_channel_norm_backward_args args = channel_backward_args(p, result);
    nrg_status status = nrg_channel_norm_backward_workspace(&p->spec, &args, &args.workspace_size);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    ck_assert(args.workspace || !args.workspace_size);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(&p->spec, &args, 0, 1);
    free(args.workspace);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

void channel_gradients_must_equal(const channel_problem *p, nrg_isa isa, const char *what, const channel_gradients *expected,
                                  const channel_gradients *got)
{
    channel_arrays_must_equal(p, isa, what, p->spec.dtype, channel_count(p), expected->dx, got->dx);
    channel_arrays_must_equal(p, isa, what, p->spec.dtype, channel_count(p), expected->dy, got->dy);
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->spec.channels, expected->dw, got->dw);
    channel_arrays_must_equal(p, isa, what, NRG_F32, p->spec.channels, expected->db, got->db);
}
