/* Normalization over channels: scalar against the exact value, on the stress set, with sets of 1 to 10,000,000 elements, and on
 * ordinary sets in numbers; and the other paths against scalar on the way. The formulas are written from the definition in
 * nrg/channel_norm.h, in 113-bit arithmetic.
 *
 * The bound of o1 is an ulp of the largest of o1 and b, and 2^-24 |w|, or in the fast grade three and twice that. + y adds half
 * an ulp of the sum; an activation multiplies by its slope and adds 3 ulp of its own. Of sets with more than a million elements
 * every thirteenth element is looked at, and the statistics of all.
 *
 * `channel_norm_truth_test --report` prints the worst errors as Markdown tables and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../harness/element.h"
#include "../harness/quad_activation.h"
#include "../harness/truth.h"
#include "channel_norm_data.h"

enum { ACTIVATIONS = NRG_ACTIVATION_COUNT };

/* What a g may be off by, in ulps of its own; and o1 with NRG_STATISTICS_FOLDED, in ulps of the larger term. */
static const double activation_limit = 3, folded_limit = 2.5;

/* The grades: what the mean and rstd may be off by, in 2^-24 σ beside an ulp, and in 2^-24 of its own; what in double the mean
 * and the variance, in 2^-40 σ and σ², the latter also from that of the other layout. */
enum { FAST, EXACT, GRADES };
static const struct {
    const char *name;
    double mean, rstd, double_mean, variance;
} grades[GRADES] = {{"fast", 3, 3, 0x3p16, 0x4p16}, {"exact", 1, 0, 1, 0x1p14}};

/* What the table has beside each kind of set. */
enum column {
    COLUMN_UNCENTRED,  /* o, as a part of the bound: COMPUTE and GIVEN */
    COLUMN_CENTRED,    /* likewise */
    COLUMN_RUNNING,    /* likewise */
    COLUMN_FOLDED,     /* in ulps of the larger of its terms */
    COLUMN_RESIDUAL,   /* + y */
    COLUMN_ACTIVATION, /* + y or not */
    COLUMN_F16,        /* in ulps of f16, without y and g */
    COLUMN_BF16,
    COLUMN_MEAN,
    COLUMN_RSTD,
    COLUMN_MEAN_DOUBLE, /* of nrg_channel_statistics, in 2^-40 σ */
    COLUMN_VARIANCE,    /* of nrg_channel_statistics, in 2^-40 σ² */
    COLUMN_UPDATED_MEAN,
    COLUMN_UPDATED_VAR,
    COLUMN_LAYOUT_VARIANCE, /* of NCHW from that of NHWC, in 2^-40 σ² */
    COLUMN_LAYOUT,          /* o of NCHW from that of NHWC, as a part of o1's bound */
    COLUMNS
};

static double (*worst)[COLUMNS];
static double *worst_activation;
static unsigned long *measured;

/* ---- cases ---- */

/* The floats are values of the dtypes they stand for. */
typedef struct truth_case {
    nrg_channel_norm_spec spec;
    int kind, grade;
    exact_sets sets;
    float *x, *y, *w, *b;              /* NULL where absent */
    float *running_mean, *running_var; /* [c] or NULL */
    uint64_t batches;
    char text[320];
} truth_case;

static int is_fixed(const truth_case *t)
{
    return t->spec.source == NRG_STATISTICS_RUNNING || t->spec.source == NRG_STATISTICS_FOLDED;
}

static void make_case(truth_case *t, enum set_over over, int kind, nrg_dtype dtype, nrg_layout layout, size_t size, int grade,
                      uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0}, momentum[] = {0.1, 0.01, 0, 1};
    static const size_t segment[] = {4096, 4096, 4096, 1, 7, 64, 1000};
    static const uint64_t batches[] = {0, 1, 9, 99999};
    uint64_t state = seed;
    memset(t, 0, sizeof *t);
    nrg_channel_norm_spec *spec = &t->spec;
    *spec = nrg_channel_norm_spec_batch(dtype, 1, eps[test_draw(&state, 4)]);
    spec->layout = layout;
    t->kind = kind;
    t->grade = dtype == NRG_F32 ? grade : FAST;
    spec->accuracy = grade == EXACT ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    t->sets = set_draw_shape(spec, over, size, &state);
    t->x = set_tensor(&t->sets, kind, dtype, test_draw(&state, 1u << 30));
    const int of_channels = !t->sets.groups || t->sets.groups == t->sets.c, large = size > 25088;
    const size_t source = test_draw(&state, 8), features = test_draw(&state, 4), extra = test_draw(&state, large ? 2 : 4);
    spec->source = source < 5              ? NRG_STATISTICS_COMPUTE
                   : source == 5           ? NRG_STATISTICS_GIVEN
                   : large || !of_channels ? NRG_STATISTICS_COMPUTE
                   : source == 6           ? NRG_STATISTICS_RUNNING
                                           : NRG_STATISTICS_FOLDED;
    spec->centred = is_fixed(t) || test_draw(&state, 4) > 0;
    spec->segment = segment[test_draw(&state, large ? 3 : 7)];
    spec->momentum = momentum[test_draw(&state, 4)];
    spec->cumulative = test_draw(&state, 4) == 0;
    t->batches = batches[test_draw(&state, 4)];
    if (is_fixed(t) ||
        (spec->source == NRG_STATISTICS_COMPUTE && spec->centred && size > 1 && of_channels && test_draw(&state, 2)))
        set_running(spec, &t->sets, t->x, &t->running_mean, &t->running_var, test_draw(&state, 1u << 30));
    spec->cumulative &= t->running_mean != NULL;
    spec->w_dtype = test_draw(&state, 2) ? NRG_F32 : dtype;
    /* none; w; b; both */
    t->w = set_parameters(features & 1, spec->channels, spec->w_dtype, test_draw(&state, 1u << 30));
    t->b = set_parameters(features & 2, spec->channels, spec->w_dtype, test_draw(&state, 1u << 30));
    if (extra & 1 && !large)
        t->y = set_tensor(&t->sets, ROW_NORMAL, dtype, test_draw(&state, 1u << 30));
    if (extra & 2)
        spec->activation = (nrg_activation)test_draw(&state, ACTIVATIONS);
    snprintf(
        t->text, sizeof t->text,
        "%s, %s, %s, %s, %s, statistics %d, sets of %zu: n %zu c %zu s %zu groups %zu, segment %zu, centred %d, features %zu, "
        "extra %zu, %s, eps %g, momentum %g, running %d, seed 0x%llx",
        grades[grade].name, set_over_name(over), set_kind_name(kind), nrg_dtype_name(dtype),
        layout == NRG_LAYOUT_NHWC ? "nhwc" : "nchw", (int)spec->source, size, t->sets.n, t->sets.c, t->sets.s, t->sets.groups,
        spec->segment, spec->centred, features, extra, nrg_activation_name(spec->activation), spec->eps,
        spec->cumulative ? -1 : spec->momentum, t->running_mean != NULL, (unsigned long long)seed);
}

static void free_case(truth_case *t)
{
    float *const all[] = {t->x, t->y, t->w, t->b, t->running_mean, t->running_var};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* ---- calls ---- */

/* A call's results, o as floats. What a call does not write is zero. */
typedef struct outputs {
    float *o;
    float *mean, *rstd;
    nrg_channel_statistics *statistics;
    float *running_mean, *running_var, *scale, *shift;
} outputs;

static outputs new_outputs(const truth_case *t)
{
    const size_t c = t->sets.c, sets = t->sets.sets;
    outputs out = {test_allocate(exact_count(&t->sets), sizeof(float)),
                   test_allocate(sets, sizeof(float)),
                   test_allocate(sets, sizeof(float)),
                   test_allocate(sets, sizeof(nrg_channel_statistics)),
                   test_allocate(c, sizeof(float)),
                   test_allocate(c, sizeof(float)),
                   test_allocate(c, sizeof(float)),
                   test_allocate(c, sizeof(float))};
    return out;
}

static void free_outputs(outputs *out)
{
    float *const all[] = {out->o, out->mean, out->rstd, out->running_mean, out->running_var, out->scale, out->shift};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(out->statistics);
}

/* From sums, as several machines would. */
static nrg_status give_statistics(const truth_case *t, const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args)
{
    int64_t *sums = test_allocate(t->sets.sets * NRG_CHANNEL_NORM_SUMS_WORDS, sizeof *sums);
    nrg_status status = nrg_channel_norm_sums(spec, args, sums, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_statistics(spec, args, sums, 0, 1);
    free(sums);
    return status;
}

/* spec: t's own, or that with f32 operands or in the other layout; x and y are in its layout. */
static const char *run(nrg_isa isa, const truth_case *t, const nrg_channel_norm_spec *spec, const float *x, const float *y,
                       outputs *out)
{
    const size_t count = exact_count(&t->sets), c = t->sets.c;
    const nrg_dtype w_dtype = spec->w_dtype;
    nrg_channel_norm_spec with = *spec;
    void *o = test_allocate(count, nrg_dtype_size(spec->dtype)), *xs = element_stored(x, count, spec->dtype),
         *ys = element_stored(y, count, spec->dtype);
    void *w = element_stored(t->w, c, w_dtype), *b = element_stored(t->b, c, w_dtype);
    nrg_channel_norm_args args = nrg_channel_norm_args_init(t->sets.n, t->sets.s, xs, w, b, o);
    args.y = ys;
    args.mean = out->mean;
    args.rstd = out->rstd;
    args.statistics = out->statistics;
    args.batches = t->spec.cumulative ? t->batches : 0;
    if (t->running_mean) {
        memcpy(out->running_mean, t->running_mean, c * sizeof(float));
        memcpy(out->running_var, t->running_var, c * sizeof(float));
        args.running_mean_in = out->running_mean;
        args.running_var_in = out->running_var;
        if (spec->source == NRG_STATISTICS_COMPUTE) {
            args.running_mean = out->running_mean;
            args.running_var = out->running_var;
        }
    }
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK && spec->source == NRG_STATISTICS_GIVEN) {
        with.source = NRG_STATISTICS_COMPUTE;
        status = give_statistics(t, &with, &args);
        with.source = NRG_STATISTICS_GIVEN;
        args.statistics_in = args.statistics;
        args.statistics = NULL;
    }
    if (status == NRG_OK && spec->source == NRG_STATISTICS_FOLDED) {
        with.source = NRG_STATISTICS_RUNNING;
        args.mean = args.rstd = NULL;
        args.statistics = NULL;
        status = nrg_channel_norm_fold(&with, &args, out->scale, out->shift);
        args.running_mean_in = args.running_var_in = NULL;
        args.w = out->scale;
        args.b = out->shift;
        with.source = NRG_STATISTICS_FOLDED;
        with.w_dtype = NRG_F32;
    }
    if (status == NRG_OK)
        status = nrg_channel_norm_forward(&with, &args, 0, 1);
    for (size_t i = 0; i < count; i++)
        out->o[i] = element_get(o, i, spec->dtype);
    free(o);
    free(xs);
    free(ys);
    free(w);
    free(b);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

static int same_floats(const float *a, const float *b, size_t count)
{
    int same = 1;
    for (size_t i = 0; i < count && same; i++)
        same = element_equal(a, b, i, NRG_F32);
    return same;
}

/* o is compared where it has to be the same; what is beside it always. */
static int same_outputs(const truth_case *t, const outputs *a, const outputs *b, int with_o)
{
    const size_t c = t->sets.c, sets = t->sets.sets;
    return same_floats(a->mean, b->mean, sets) && same_floats(a->rstd, b->rstd, sets) &&
           memcmp(a->statistics, b->statistics, sets * sizeof *a->statistics) == 0 &&
           same_floats(a->running_mean, b->running_mean, c) && same_floats(a->running_var, b->running_var, c) &&
           same_floats(a->scale, b->scale, c) && same_floats(a->shift, b->shift, c) &&
           (!with_o || same_floats(a->o, b->o, exact_count(&t->sets)));
}

/* ---- errors ---- */

/* got against exact: the error as a share of `bound`. An infinity is right where rounding reaches beyond the largest number. */
static double share_of(quad exact, float got, nrg_dtype dtype, double bound)
{
    if (isnan(got))
        return INFINITY;
    if (isinf(got)) {
        double largest = (double)element_max(dtype);
        return (exact > 0) == (got > 0) && quad_magnitude(exact) + bound >= largest ? 0 : INFINITY;
    }
    if (exact == got)
        return 0;
    return (double)(quad_abs(exact - got) / bound);
}

/* NULL where the share is within its limit; it is recorded either way. */
static const char *hold(const truth_case *t, enum column column, const char *name, size_t i, double share, double limit,
                        double got, quad exact)
{
    double *most = &worst[t->grade * SET_ALL_KINDS + t->kind][column];
    if (!(share <= *most))
        *most = share;
    ++*measured;
    if (share <= limit)
        return NULL;
    return truth_wrong("%s %zu is %.9g and should be %.17g: off by %.4f, limit %.2f", name, i, got, (double)exact, share, limit);
}

/* nrg_channel_statistics: doubles, exact where there is nothing to round. */
static const char *measure_doubles(const truth_case *t, const exact_statistics *exact, const nrg_channel_statistics *got,
                                   size_t set)
{
    const quad mean = (quad)got->mean + got->mean_low, mean_off = quad_abs(mean - exact->mean),
               off = quad_abs(got->variance - exact->variance);
    const quad mean_unit = (quad)0x1p-40 * exact->sigma + (quad)0x1p-100 * quad_abs(exact->mean),
               unit = (quad)0x1p-40 * exact->variance;
    const char *wrong =
        hold(t, COLUMN_MEAN_DOUBLE, "the statistics' mean", set, mean_off > 0 ? (double)(mean_off / mean_unit) : 0,
             grades[t->grade].double_mean, (double)mean, exact->mean);
    if (!wrong)
        wrong = hold(t, COLUMN_VARIANCE, "variance", set, off > 0 ? (double)(off / unit) : 0, grades[t->grade].variance,
                     got->variance, exact->variance);
    const quad square = (quad)got->variance + t->spec.eps, rstd = square > 0 ? 1 / quad_sqrt(square) : 0;
    if (!wrong && quad_abs(rstd - got->rstd) > (quad)0x1p-50 * rstd)
        wrong = truth_wrong("rstd %zu of the statistics is %.17g, and %.17g from their variance", set, got->rstd, (double)rstd);
    if (!wrong && !is_fixed(t) && got->count != (double)t->sets.size)
        wrong = truth_wrong("set %zu: count is %.17g", set, got->count);
    return wrong;
}

/* The statistics that a call made for a set, or took. */
static const char *measure_statistics(const truth_case *t, const exact_statistics *exact, const outputs *out, size_t set)
{
    const double unit = quad_ulp(exact->mean) + grades[t->grade].mean * 0x1p-24 * (double)exact->sigma,
                 rstd_unit = fmax(quad_ulp(exact->inverse), grades[t->grade].rstd * 0x1p-24 * (double)exact->inverse);
    const char *wrong = hold(t, COLUMN_MEAN, "mean", set, share_of(exact->mean, out->mean[set], NRG_F32, unit), 1,
                             (double)out->mean[set], exact->mean);
    if (!wrong)
        wrong = hold(t, COLUMN_RSTD, "rstd", set, share_of(exact->inverse, out->rstd[set], NRG_F32, rstd_unit), 1,
                     (double)out->rstd[set], exact->inverse);
    return wrong ? wrong : measure_doubles(t, exact, &out->statistics[set], set);
}

/* running = (1 - momentum)·running + momentum·batch, of batch norm, and of instance norm the average of the samples. */
static const char *measure_running(const truth_case *t, const exact_statistics *exact, const outputs *out)
{
    const size_t samples = t->sets.groups ? t->sets.n : 1;
    const quad momentum = t->spec.cumulative ? (quad)1 / (quad)(t->batches + 1) : (quad)t->spec.momentum;
    const quad d = (quad)t->sets.size;
    const char *wrong = NULL;
    for (size_t c = 0; c < t->sets.c && !wrong; c++) {
        quad mean = 0, variance = 0, sigma = 0;
        for (size_t n = 0; n < samples; n++) {
            const exact_statistics *stat = &exact[n * t->sets.c + c];
            mean += stat->mean / (quad)samples;
            variance += stat->variance * d / (d - 1) / (quad)samples;
            sigma += stat->sigma / (quad)samples;
        }
        mean = (1 - momentum) * t->running_mean[c] + momentum * mean;
        variance = (1 - momentum) * t->running_var[c] + momentum * variance;
        const double unit = quad_ulp(mean) + grades[t->grade].mean * 0x1p-24 * (double)(momentum * sigma),
                     variance_unit = fmax(quad_ulp(variance), 2 * grades[t->grade].rstd * 0x1p-24 * (double)variance);
        wrong = hold(t, COLUMN_UPDATED_MEAN, "running_mean", c, share_of(mean, out->running_mean[c], NRG_F32, unit), 1,
                     (double)out->running_mean[c], mean);
        if (!wrong)
            wrong = hold(t, COLUMN_UPDATED_VAR, "running_var", c, share_of(variance, out->running_var[c], NRG_F32, variance_unit),
                         1, (double)out->running_var[c], variance);
    }
    return wrong;
}

/* scale and shift, each rounded once from double. */
static const char *measure_fold(const truth_case *t, const exact_statistics *exact, const outputs *out)
{
    for (size_t c = 0; c < t->sets.c; c++) {
        const quad w = t->w ? t->w[c] : 1, b = t->b ? t->b[c] : 0, scale = exact[c].inverse * w,
                   shift = b - exact[c].mean * scale;
        const double size = fmax(quad_magnitude(shift), quad_magnitude(b));
        if (!(share_of(scale, out->scale[c], NRG_F32, quad_ulp(scale)) <= 0.5 + 0x1p-20) ||
            !(share_of(shift, out->shift[c], NRG_F32, quad_ulp(shift) / 2 + 0x1p-48 * size) <= 1 + 0x1p-20))
            return truth_wrong("channel %zu: scale %.9g should be %.17g, shift %.9g should be %.17g", c, (double)out->scale[c],
                               (double)scale, (double)out->shift[c], (double)shift);
    }
    return NULL;
}

/* The larger |g'| of `bound` below and above x; where that is far, the largest of all (of relu2 it is at an end). */
static double slope_beside(nrg_activation g, quad x, double bound)
{
    const double most = bound > 0.125 ? 1.25 : 0;
    return fmax(most, fmax(quad_magnitude(quad_activation(g, x - (quad)bound).slope),
                           quad_magnitude(quad_activation(g, x + (quad)bound).slope)));
}

/* What o should be, and what it may be off by. */
typedef struct expected {
    quad value;
    double bound; /* INFINITY where nothing can be said: a term beyond the floats, a factor that is subnormal */
} expected;

static int is_subnormal(float value) { return value != 0 && fabsf(value) < FLT_MIN; }

static expected expect(const truth_case *t, const exact_statistics *exact, const outputs *out, exact_place place)
{
    const quad x = t->x[place.at], w = t->w ? t->w[place.channel] : 1, b = t->b ? t->b[place.channel] : 0;
    expected e = {(x - exact->mean) * exact->inverse * w + b, 0};
    e.bound = exact_o1_bound(t->grade == FAST, e.value, w, b);
    if (t->spec.source == NRG_STATISTICS_FOLDED) {
        const float scale = out->scale[place.channel], shift = out->shift[place.channel];
        const double size = fmax(quad_magnitude(x * scale), fabs((double)shift));
        const int sound = size <= (double)FLT_MAX && !is_subnormal(scale) && !is_subnormal(shift);
        e.bound = sound ? folded_limit * element_ulp(size, NRG_F32) : INFINITY;
    }
    if (isinf(e.bound))
        return e;
    if (t->y) {
        e.value += t->y[place.at];
        e.bound += 0.5 * quad_ulp(quad_abs(e.value) + (quad)e.bound);
    }
    if (t->spec.activation != NRG_ACT_IDENTITY) {
        const quad_g g = quad_activation(t->spec.activation, e.value);
        if (quad_magnitude(e.value) + e.bound >= (double)FLT_MAX) { /* o1 + y is infinite, docs/ops/channel_norm.md */
            e.bound = INFINITY;
            return e;
        }
        e.bound *= fmax(quad_magnitude(g.slope), slope_beside(t->spec.activation, e.value, e.bound));
        e.value = g.value;
        e.bound += activation_limit * quad_ulp(quad_abs(e.value) + (quad)e.bound);
    }
    return e;
}

static enum column column_of(const truth_case *t)
{
    if (t->spec.activation != NRG_ACT_IDENTITY)
        return COLUMN_ACTIVATION;
    if (t->spec.source == NRG_STATISTICS_FOLDED)
        return COLUMN_FOLDED;
    if (t->y)
        return COLUMN_RESIDUAL;
    if (t->spec.source == NRG_STATISTICS_RUNNING)
        return COLUMN_RUNNING;
    return t->spec.centred ? COLUMN_CENTRED : COLUMN_UNCENTRED;
}

/* The f32 result against the exact one, and the result against the f32 one. */
static const char *measure_element(const truth_case *t, const exact_statistics *exact, const outputs *f32, const outputs *out,
                                   exact_place place)
{
    const expected e = expect(t, exact, f32, place);
    const nrg_dtype dtype = t->spec.dtype;
    const size_t at = place.at;
    const double share = isinf(e.bound) ? 0 : share_of(e.value, f32->o[at], NRG_F32, e.bound);
    const char *wrong = hold(t, column_of(t), "o", at, share, 1, (double)f32->o[at], e.value);
    if (t->spec.activation != NRG_ACT_IDENTITY && !(share <= worst_activation[t->spec.activation]))
        worst_activation[t->spec.activation] = share;
    if (t->spec.source == NRG_STATISTICS_FOLDED && !t->y && t->spec.activation == NRG_ACT_IDENTITY) {
        float one = fmaf(t->x[at], f32->scale[place.channel], f32->shift[place.channel]);
        if (!wrong && !element_equal(&one, &f32->o[at], 0, NRG_F32))
            wrong = "with FOLDED, o1 is no fused multiply-add";
    }
    if (wrong || dtype == NRG_F32)
        return wrong;
    const float rounded = element_round(f32->o[at], dtype);
    if (!element_equal(&out->o[at], &rounded, 0, NRG_F32))
        return truth_wrong("element %zu: %.9g is not %.9g, the f32 result, rounded", at, (double)out->o[at], (double)f32->o[at]);
    if (t->y || t->spec.activation != NRG_ACT_IDENTITY || t->spec.source == NRG_STATISTICS_FOLDED)
        return NULL;
    const double grid = element_ulp(fmax(quad_magnitude(e.value), fabs((double)rounded)), dtype);
    return hold(t, dtype == NRG_F16 ? COLUMN_F16 : COLUMN_BF16, "o", at, share_of(e.value, out->o[at], dtype, grid + e.bound), 1,
                (double)out->o[at], e.value);
}

/* One element of so many is looked at: an exact activation takes a hundred times as long as the rest. */
static size_t looked_at(const truth_case *t)
{
    const size_t size = t->sets.size, all = t->spec.activation != NRG_ACT_IDENTITY ? 20 : 100000;
    return size <= all ? 1 : size <= 20 * all ? 13 : 101;
}

/* NULL, or what broke its bound. f32: the call's results with f32 operands, of which 16-bit ones are the rounding. */
static const char *measure(const truth_case *t, const outputs *f32, const outputs *out)
{
    const exact_sets *sets = &t->sets;
    const size_t step = looked_at(t);
    exact_statistics *exact = test_allocate(sets->sets, sizeof *exact);
    const char *wrong = NULL;
    for (size_t set = 0; set < sets->sets && !wrong; set++) {
        if (is_fixed(t)) {
            const size_t c = set % sets->c;
            exact[set] = exact_statistics_given(&t->spec, t->running_mean[c], t->running_var[c]);
        } else
            exact[set] = exact_statistics_of(&t->spec, sets, set, t->x);
        if (t->spec.source != NRG_STATISTICS_FOLDED)
            wrong = measure_statistics(t, &exact[set], out, set);
        for (size_t i = 0; i < sets->size && !wrong; i += step)
            wrong = measure_element(t, &exact[set], f32, out, exact_place_of(sets, set, i));
    }
    if (!wrong && t->spec.source == NRG_STATISTICS_FOLDED)
        wrong = measure_fold(t, exact, f32);
    if (!wrong && t->spec.source == NRG_STATISTICS_COMPUTE && t->running_mean)
        wrong = measure_running(t, exact, out);
    free(exact);
    return wrong;
}

/* ---- the other layout ---- */

static float *transposed(const float *tensor, const exact_sets *from, const exact_sets *to)
{
    if (!tensor)
        return NULL;
    float *other = test_allocate(exact_count(from), sizeof *other);
    for (size_t set = 0; set < from->sets; set++)
        for (size_t i = 0; i < from->size; i++)
            other[exact_place_of(to, set, i).at] = tensor[exact_place_of(from, set, i).at];
    return other;
}

/* The same values in the other layout: statistics and results differ by what the header says. */
static const char *compare_layouts(const truth_case *t, const outputs *f32)
{
    nrg_channel_norm_spec spec = t->spec;
    spec.dtype = spec.w_dtype = NRG_F32;
    spec.accuracy = t->grade == EXACT ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    spec.layout = spec.layout == NRG_LAYOUT_NHWC ? NRG_LAYOUT_NCHW : NRG_LAYOUT_NHWC;
    const exact_sets to = exact_sets_of(&spec, t->sets.n, t->sets.s);
    const size_t step = looked_at(t);
    float *x = transposed(t->x, &t->sets, &to), *y = transposed(t->y, &t->sets, &to);
    outputs other = new_outputs(t);
    const char *wrong = run(NRG_ISA_SCALAR, t, &spec, x, y, &other);
    if (!wrong && t->sets.s == 1 && !same_outputs(t, f32, &other, 1))
        wrong = "s is 1, and the layouts have not the same bits";
    for (size_t set = 0; set < to.sets && !wrong; set++) {
        const double a = f32->statistics[set].variance, b = other.statistics[set].variance;
        wrong = hold(t, COLUMN_LAYOUT_VARIANCE, "variance", set, a != b ? fabs(a - b) / (0x1p-40 * fmin(a, b)) : 0,
                     grades[t->grade].variance, a, b);
        const int same = memcmp(&f32->statistics[set], &other.statistics[set], sizeof other.statistics[set]) == 0,
                  alone = !t->y && !spec.activation;
        for (size_t i = 0; i < to.size && !wrong && (same || alone); i += step) {
            const exact_place from = exact_place_of(&t->sets, set, i);
            const float p = f32->o[from.at], q = other.o[exact_place_of(&to, set, i).at];
            if (element_equal(&p, &q, 0, NRG_F32))
                continue;
            const double bound =
                exact_o1_bound(t->grade == FAST, p, t->w ? t->w[from.channel] : 1, t->b ? t->b[from.channel] : 0);
            wrong = hold(t, COLUMN_LAYOUT, "o of the other layout", from.at,
                         same ? INFINITY : fabs((double)p - (double)q) / bound, 1, (double)p, (quad)q);
        }
    }
    free(x);
    free(y);
    free_outputs(&other);
    return wrong;
}

/* ---- the sweep ---- */

/* NULL, or what is wrong. */
static const char *check(const truth_case *t)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    outputs out = new_outputs(t), other = new_outputs(t);
    const char *wrong = run(NRG_ISA_SCALAR, t, &t->spec, t->x, t->y, &out);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], t, &t->spec, t->x, t->y, &other);
        if (!wrong && !same_outputs(t, &out, &other, 1))
            wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    const outputs *f32 = &out;
    if (!wrong && t->spec.dtype != NRG_F32) {
        nrg_channel_norm_spec spec = t->spec;
        spec.dtype = spec.w_dtype = NRG_F32;
        spec.accuracy = NRG_ACCURACY_FAST;
        wrong = run(NRG_ISA_SCALAR, t, &spec, t->x, t->y, &other);
        if (!wrong && !same_outputs(t, &out, &other, 0))
            wrong = "the statistics are not those of the same values as f32";
        f32 = &other;
    }
    if (!wrong)
        wrong = measure(t, f32, &out);
    if (!wrong)
        wrong = compare_layouts(t, f32);
    free_outputs(&out);
    free_outputs(&other);
    return wrong;
}

static void check_one(enum set_over over, int kind, nrg_dtype dtype, nrg_layout layout, size_t size, int grade, uint64_t round)
{
    truth_case t;
    uint64_t seed = (((size * 4 + dtype) * SET_KINDS + (uint64_t)kind) * SET_OVERS + over) * 2 + layout;
    make_case(&t, over, kind, dtype, layout, size, grade, test_mix(seed * 64 + round));
    truth_judge(check(&t), t.text);
    free_case(&t);
}

static const size_t sizes[] = {1,    2,    3,    4,    5,    7,     8,     9,     12,    15,     16,      24,
                               31,   32,   33,   48,   49,   60,    63,    64,    65,    98,     100,     127,
                               128,  129,  192,  255,  256,  257,   392,   512,   784,   1000,   1024,    2048,
                               3136, 4095, 4096, 4097, 8192, 10000, 12288, 25088, 65536, 100352, 1000003, 10000000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Kinds whose sums lose most, or whose segments are summed in another way than their neighbours. */
static int is_hard(int kind)
{
    return kind == ROW_MEAN_1E3 || kind == ROW_ALTERNATING || kind == ROW_NEARLY_EQUAL || kind == ROW_EXTREMES ||
           kind == SET_RELU || kind == SET_TWO_VALUES;
}

static void check_size(int n)
{
    const size_t size = sizes[n];
    if (test_small() && size > 4096) {
        printf("SKIP sets of %zu: small scale\n", size);
        fflush(stdout);
        return;
    }
    const uint64_t rounds = test_small() ? 1 : size <= 33 ? 8 : size <= 300 ? 3 : size <= 1024 ? 2 : 1;
    /* the large ones take turns */
    const int of = size > 1000003 || (test_small() && size > 33) ? 8 : size > 65536 ? 4 : size > 4097 ? 2 : 1;
    for (int kind = 0; kind < SET_KINDS; kind++)
        for (int over = 0; over < SET_OVERS; over++)
            for (int layout = 0; layout < 2; layout++)
                for (uint64_t round = 0; round < rounds; round++) {
                    const int turn = (kind + over + 4 * layout + n) % 8;
                    if (turn % of || (size > 1000003 && !truth_reporting() && !is_hard(kind)))
                        continue;
                    for (int grade = 0; grade < GRADES; grade++)
                        check_one((enum set_over)over, kind, NRG_F32, (nrg_layout)layout, size, grade, round);
                    if ((size + round + (size_t)turn) % 3 == 0 && size <= 100352)
                        check_one((enum set_over)over, kind, (size + (size_t)kind) % 2 ? NRG_F16 : NRG_BF16, (nrg_layout)layout,
                                  size, (int)(round + (size_t)turn) % GRADES, round);
                }
}

/* Ordinary sets, each another one, of sizes that images have. */
static void check_ordinary(int n)
{
    static const size_t some[] = {64, 196, 784};
    for (uint64_t round = 0; round < (test_small() ? 1 : 4); round++)
        for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
            for (int over = 0; over < SET_OVERS; over++)
                check_one((enum set_over)over, SET_ORDINARY + n,
                          round % 4 < 3    ? NRG_F32
                          : (n + over) % 2 ? NRG_F16
                                           : NRG_BF16,
                          (nrg_layout)(round / 2 % 2), some[i], (int)(round % 2), round);
}

static const char *ordinary_name(int kind) { return set_kind_name(SET_ORDINARY + kind); }

static void print_tables(void)
{
    static const char *const names[COLUMNS] = {"o, not centred",
                                               "o, centred",
                                               "o, running",
                                               "o, folded",
                                               "o with y",
                                               "o with g",
                                               "f16",
                                               "bf16",
                                               "mean",
                                               "rstd",
                                               "mean, double, 2^-40 σ",
                                               "σ², double, 2^-40",
                                               "running_mean",
                                               "running_var",
                                               "σ² of NCHW and NHWC, 2^-40",
                                               "o of NCHW and NHWC"};
    for (int grade = 0; grade < GRADES; grade++) {
        const truth_table table = {grades[grade].name, SET_KINDS, COLUMNS, set_kind_name, names, worst[grade * SET_ALL_KINDS]};
        const truth_table ordinary = {
            grades[grade].name, ROW_ORDINARY_KINDS, COLUMNS, ordinary_name, names, worst[grade * SET_ALL_KINDS + SET_ORDINARY]};
        truth_print(&table);
        printf("\n");
        truth_print(&ordinary);
        printf("\n");
    }
    printf("| g | of the bound |\n| --- | ---: |\n");
    for (int g = 1; g < ACTIVATIONS; g++)
        printf("| %s | %.3f |\n", nrg_activation_name((nrg_activation)g), worst_activation[g]);
    fflush(stdout);
}

START_TEST(sets) { check_size(_i); }
END_TEST

START_TEST(ordinary_sets) { check_ordinary(_i); }
END_TEST

START_TEST(worst_cases)
{
    printf("worst errors as parts of their bounds; %lu figures:\n", *measured);
    print_tables();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int column = 0; column < COLUMN_MEAN_DOUBLE; column++) {
        double any = 0;
        for (int i = 0; i < GRADES * SET_KINDS; i++) {
            const int kind = i % SET_KINDS, half = column == COLUMN_F16 || column == COLUMN_BF16;
            const double error = worst[i / SET_KINDS * SET_ALL_KINDS + kind][column];
            any = fmax(any, error);
            /* a short sweep does not meet every kind with every option; sets of equal numbers can be without an error */
            if (error == 0 && !test_small() && kind != ROW_EQUAL && (!half || i < SET_KINDS))
                ck_abort_msg("%s: column %d was never measured", set_kind_name(kind), column);
        }
        if (any == 0)
            ck_abort_msg("column %d was never measured", column);
    }
}
END_TEST

static void report(void)
{
    for (int n = 0; n < SIZES; n++)
        check_size(n);
    for (int n = 0; n < ROW_ORDINARY_KINDS; n++)
        check_ordinary(n);
    print_tables();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("channel_norm_forward: scalar against the exact value");
    tcase_add_loop_test(test_case(suite, "sets"), sets, 0, SIZES);
    tcase_add_loop_test(test_case(suite, "ordinary"), ordinary_sets, 0, ROW_ORDINARY_KINDS);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(GRADES * SET_ALL_KINDS * sizeof *worst);
    worst_activation = test_shared(ACTIVATIONS * sizeof *worst_activation);
    measured = test_shared(sizeof *measured);
    return truth_main(argc, argv, report, make_suite);
}
