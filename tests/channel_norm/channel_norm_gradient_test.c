/* Normalization over channels, through the whole public functions: forward against its definition, written in double, and
 * backward against central differences of that; every combination of options, on small tensors. The tolerance is far below what a
 * wrong sign, factor, set or a missing term makes.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../activation/activation_double.h"
#include "channel_norm_data.h"

enum { MOST = 24, CHANNELS = 4, ACTIVATIONS = NRG_ACTIVATION_COUNT };

/* n, s: so that a set has several elements, or, with groups of one channel and s = 1, one. */
static const struct {
    size_t n, s;
} shapes[] = {{2, 3}, {3, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Where the statistics come from. */
enum source { COMPUTED, SAVED, GIVEN, RUNNING, IN_PARTS, SOURCES };

static const size_t groups_of[] = {0, 1, 2, CHANNELS}; /* 0: batch norm */

static unsigned long *checked, *left_out;

/* Values in double; absent ones are what makes no difference. */
typedef struct values {
    double x[MOST], y[MOST], d_o[MOST], w[CHANNELS], b[CHANNELS], mean[CHANNELS], variance[CHANNELS];
} values;

typedef struct gradient_case {
    nrg_channel_norm_spec spec;
    exact_sets sets;
    enum source source;
    int with_w, with_b, with_y, accumulate, threads;
    values in;
    double before; /* dw and db, where they accumulate */
    char text[320];
} gradient_case;

/* What else is known once the loss has been computed. */
typedef struct facts {
    double least_s, kink; /* kink: the distance to where g' jumps */
    double o[MOST];
} facts;

/* Σ d_o·o: nrg/channel_norm.h, line by line. */
static double loss(const gradient_case *t, const values *in, facts *f)
{
    const exact_sets *sets = &t->sets;
    const double d = (double)sets->size;
    double sum = 0;
    for (size_t set = 0; set < sets->sets; set++) {
        double m = 0, variance = 0;
        for (size_t i = 0; i < sets->size && t->spec.centred; i++)
            m += in->x[exact_place_of(sets, set, i).at] / d;
        for (size_t i = 0; i < sets->size; i++) {
            const double q = in->x[exact_place_of(sets, set, i).at] - m;
            variance += q * q / d;
        }
        if (t->source == RUNNING) {
            m = in->mean[set % CHANNELS];
            variance = in->variance[set % CHANNELS];
        }
        const double s = sqrt(variance + t->spec.eps);
        f->least_s = fmin(f->least_s, s);
        for (size_t i = 0; i < sets->size; i++) {
            const exact_place place = exact_place_of(sets, set, i);
            const double h = s > 0 ? (in->x[place.at] - m) / s : 0;
            const double o = h * in->w[place.channel] + in->b[place.channel] + in->y[place.at];
            f->kink = fmin(f->kink, activation_double_kink(t->spec.activation, o));
            f->o[place.at] = activation_double(t->spec.activation, o);
            sum += f->o[place.at] * in->d_o[place.at];
        }
    }
    return sum;
}

static double difference(const gradient_case *t, values *in, double *by)
{
    const double step = 1e-5, at = *by;
    facts ignored = {1, 1, {0}};
    *by = at + step;
    const double above = loss(t, in, &ignored);
    *by = at - step;
    const double below = loss(t, in, &ignored);
    *by = at;
    return (above - below) / (2 * step);
}

/* ---- cases ---- */

/* Numbers of ordinary size, away from 0, in a dtype's grid. */
static void fill(double *to, size_t count, nrg_dtype dtype, double scale, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++) {
        const double size = scale * (0.3 + (double)test_draw(&state, 1000) / 1000);
        to[i] = (double)element_round((float)(test_draw(&state, 2) ? size : -size), dtype);
    }
}

/* One of the combinations of everything but activation and dtype, or 0 where the header rules it out. */
static int make_case(gradient_case *t, size_t number, nrg_activation g, nrg_dtype dtype)
{
    static const double eps[] = {1e-5, 0.25, 1.5};
    size_t left = number;
    memset(t, 0, sizeof *t);
    const size_t shape = left % SHAPES, groups = groups_of[left / SHAPES % 4];
    left /= SHAPES * 4;
    t->source = (enum source)(left % SOURCES);
    left /= SOURCES;
    t->spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, eps[test_mix(number) % 3]);
    t->spec.over = groups ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
    t->spec.groups = groups ? groups : 1;
    t->spec.dtype = dtype;
    t->spec.activation = g;
    t->spec.layout = left % 2 ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
    t->spec.centred = left / 2 % 2 == 0;
    t->with_w = left / 4 % 2 > 0;
    t->with_b = left / 8 % 2 > 0;
    t->with_y = left / 16 % 2 > 0;
    t->accumulate = left / 32 % 2 > 0;
    t->spec.w_dtype = test_mix(number + 1) % 2 ? NRG_F32 : dtype;
    t->threads = 1 + (int)(test_mix(number + 2) % 3);
    if (t->source == RUNNING)
        t->spec.source = NRG_STATISTICS_RUNNING;
    if (t->source == GIVEN || t->source == IN_PARTS)
        t->spec.source = NRG_STATISTICS_GIVEN;
    if ((t->source == RUNNING && (!t->spec.centred || (groups && groups != CHANNELS))) || (t->source == IN_PARTS && groups))
        return 0;
    t->sets = exact_sets_of(&t->spec, shapes[shape].n, shapes[shape].s);
    values *in = &t->in;
    const uint64_t seed = test_mix(number * 16 + g);
    fill(in->x, MOST, dtype, 1, seed);
    fill(in->d_o, MOST, dtype, 1, seed + 1);
    fill(in->mean, CHANNELS, NRG_F32, 0.5, seed + 2);
    fill(in->variance, CHANNELS, NRG_F32, 1, seed + 3);
    for (size_t c = 0; c < CHANNELS; c++) {
        in->variance[c] = fabs(in->variance[c]);
        in->w[c] = 1;
    }
    if (t->with_w)
        fill(in->w, CHANNELS, t->spec.w_dtype, 1, seed + 4);
    if (t->with_b)
        fill(in->b, CHANNELS, t->spec.w_dtype, 0.5, seed + 5);
    if (t->with_y)
        fill(in->y, MOST, dtype, 0.5, seed + 6);
    t->before = t->accumulate ? 0.75 : 0;
    snprintf(t->text, sizeof t->text,
             "%s, %s, %s, groups %zu, n %zu s %zu, source %d, centred %d, w %d b %d y %d, accumulate %d, eps %g, threads %d",
             nrg_activation_name(g), nrg_dtype_name(dtype), t->spec.layout == NRG_LAYOUT_NHWC ? "nhwc" : "nchw", groups,
             t->sets.n, t->sets.s, (int)t->source, t->spec.centred, t->with_w, t->with_b, t->with_y, t->accumulate, t->spec.eps,
             t->threads);
    return 1;
}

enum { COMBINATIONS = SHAPES * 4 * SOURCES * 64 };

/* ---- calls ---- */

/* Operands in their dtypes, and results. */
typedef struct tensors {
    float x[MOST], y[MOST], d_o[MOST], w[CHANNELS], b[CHANNELS]; /* room for any dtype */
    float mean[CHANNELS], variance[CHANNELS];
    float o[MOST], dx[MOST], dy[MOST], dw[CHANNELS], db[CHANNELS];
    nrg_channel_statistics statistics[MOST];
} tensors;

static void put(void *to, const double *from, size_t count, nrg_dtype dtype)
{
    for (size_t i = 0; i < count; i++)
        element_set(to, i, dtype, (float)from[i]);
}

static void must(const gradient_case *t, const char *what, nrg_status status)
{
    if (status != NRG_OK)
        ck_abort_msg("%s: %s: %s", what, nrg_status_string(status), t->text);
}

static void run_forward(const gradient_case *t, tensors *all)
{
    nrg_channel_norm_spec spec = t->spec;
    nrg_channel_norm_args args =
        nrg_channel_norm_args_init(t->sets.n, t->sets.s, all->x, t->with_w ? all->w : NULL, t->with_b ? all->b : NULL, all->o);
    args.y = t->with_y ? all->y : NULL;
    args.statistics = all->statistics;
    if (t->source == RUNNING) {
        args.running_mean_in = all->mean;
        args.running_var_in = all->variance;
    } else
        spec.source = NRG_STATISTICS_COMPUTE;
    for (int ith = 0; ith < t->threads; ith++)
        must(t, "nrg_channel_norm_forward", nrg_channel_norm_forward(&spec, &args, ith, t->threads));
}

/* After run_forward, which saved the statistics. */
static void run_backward(const gradient_case *t, tensors *all)
{
    double workspace[2 * MOST];
    int64_t sums[CHANNELS * NRG_CHANNEL_NORM_SUMS_WORDS];
    const nrg_channel_norm_spec *spec = &t->spec;
    nrg_channel_norm_backward_args args =
        nrg_channel_norm_backward_args_init(t->sets.n, t->sets.s, all->x, t->with_w ? all->w : NULL, all->d_o, all->dx);
    args.y = spec->activation && t->with_y ? all->y : NULL;
    args.b = spec->activation && t->with_b ? all->b : NULL;
    args.statistics = t->source == COMPUTED || t->source == RUNNING ? NULL : all->statistics;
    args.running_mean = t->source == RUNNING ? all->mean : NULL;
    args.running_var = t->source == RUNNING ? all->variance : NULL;
    args.dy = all->dy;
    args.dw = all->dw;
    args.db = all->db;
    args.accumulate = t->accumulate;
    must(t, "nrg_channel_norm_backward_workspace", nrg_channel_norm_backward_workspace(spec, &args, &args.workspace_size));
    ck_assert_uint_le(args.workspace_size, sizeof workspace);
    args.workspace = args.workspace_size ? workspace : NULL;
    if (t->source == IN_PARTS) {
        for (int ith = 0; ith < t->threads; ith++)
            must(t, "nrg_channel_norm_backward_sums", nrg_channel_norm_backward_sums(spec, &args, sums, ith, t->threads));
        args.sums = sums;
        args.dw = args.db = NULL;
    }
    for (int ith = 0; ith < t->threads; ith++)
        must(t, "nrg_channel_norm_backward", nrg_channel_norm_backward(spec, &args, ith, t->threads));
    for (int ith = 0; ith < t->threads; ith++)
        must(t, "nrg_channel_norm_backward_reduce", nrg_channel_norm_backward_reduce(spec, &args, ith, t->threads));
}

/* ---- comparison ---- */

static void hold(const gradient_case *t, const char *name, size_t i, double expected, double got, double tolerance)
{
    ++*checked;
    if (!(fabs(expected - got) <= tolerance))
        ck_abort_msg("%s: %s %zu is %.9g and should be %.9g (tolerance %.3g)\n  case: %s", nrg_isa_name(nrg_isa_active()), name,
                     i, got, expected, tolerance, t->text);
}

static void compare(gradient_case *t, const tensors *all)
{
    const nrg_dtype dtype = t->spec.dtype;
    const double grid = dtype == NRG_F32 ? 0 : dtype == NRG_F16 ? 0x1p-10 : 0x1p-7;
    values in = t->in;
    facts about = {INFINITY, INFINITY, {0}};
    loss(t, &in, &about);
    /* near a jump there is no derivative, and next to nothing of a set makes it too large */
    if (about.least_s < 0.05 || about.kink < 1e-3) {
        ++*left_out;
        return;
    }
    const size_t count = exact_count(&t->sets);
    const double tolerance = 4e-5 * (activation_double_is_steep(t->spec.activation) ? 10 : 1) * (1 + 1 / about.least_s);
    for (size_t i = 0; i < count; i++) {
        const double dx = difference(t, &in, &in.x[i]), dy = difference(t, &in, &in.y[i]);
        hold(t, "o", i, about.o[i], (double)element_get(all->o, i, dtype), tolerance + grid * fabs(about.o[i]));
        hold(t, "dx", i, dx, (double)element_get(all->dx, i, dtype), tolerance + grid * fabs(dx));
        hold(t, "dy", i, dy, (double)element_get(all->dy, i, dtype), tolerance + grid * fabs(dy));
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        hold(t, "dw", c, t->before + difference(t, &in, &in.w[c]), (double)all->dw[c], tolerance);
        hold(t, "db", c, t->before + difference(t, &in, &in.b[c]), (double)all->db[c], tolerance);
    }
}

static void check_one(gradient_case *t)
{
    const nrg_dtype dtype = t->spec.dtype;
    static tensors all;
    memset(&all, 0, sizeof all);
    put(all.x, t->in.x, MOST, dtype);
    put(all.y, t->in.y, MOST, dtype);
    put(all.d_o, t->in.d_o, MOST, dtype);
    put(all.w, t->in.w, CHANNELS, t->spec.w_dtype);
    put(all.b, t->in.b, CHANNELS, t->spec.w_dtype);
    put(all.mean, t->in.mean, CHANNELS, NRG_F32);
    put(all.variance, t->in.variance, CHANNELS, NRG_F32);
    for (size_t c = 0; c < CHANNELS; c++)
        all.dw[c] = all.db[c] = (float)t->before;
    run_forward(t, &all);
    run_backward(t, &all);
    compare(t, &all);
}

START_TEST(every_combination)
{
    nrg_dtype dtypes[3];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t dtype_count = test_kernel_dtypes("channel_norm_backward", dtypes), path_count = test_paths(paths);
    uint64_t state = (uint64_t)_i;
    for (size_t dtype = 0; dtype < dtype_count; dtype++) {
        /* the paths are compared elsewhere, and the dtypes differ in their loads: an odd part of the 16-bit combinations */
        const size_t step = (dtypes[dtype] == NRG_F32 ? 1 : 11) * (test_small() ? 13 : 1);
        for (size_t number = (size_t)_i % step; number < COMBINATIONS; number += step) {
            gradient_case t;
            if (!make_case(&t, number, (nrg_activation)_i, dtypes[dtype]))
                continue;
            ck_assert_int_eq(nrg_isa_set(paths[test_draw(&state, path_count)]), NRG_OK);
            check_one(&t);
        }
    }
}
END_TEST

START_TEST(most_were_checked)
{
    printf("%lu figures checked; %lu problems left out, where a derivative jumps or a set vanishes\n", *checked, *left_out);
    fflush(stdout);
    if (!getenv("CK_RUN_CASE") && !getenv("CK_RUN_SUITE"))
        ck_assert_uint_gt(*checked, 1000 * *left_out);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    checked = test_shared(sizeof *checked);
    left_out = test_shared(sizeof *left_out);
    Suite *suite = suite_create("channel_norm: against its definition, and against differences of that");
    tcase_add_loop_test(test_case(suite, "combinations"), every_combination, 0, ACTIVATIONS);
    tcase_add_test(test_case(suite, "account"), most_were_checked);
    return test_run(suite);
}
