/* What channel_norm.h promises of values without another implementation at hand: fused equals unfused (norm, residual, activation
 * in turn), a 16-bit result is the f32 result rounded, statistics that are given make what they were computed from, a set does
 * not know the others, NaN and infinity stay in their set, constant sets without eps give b, running statistics, one position in
 * either layout, folded against running, NCHW against NHWC, layer norm against that of rows, shares.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "channel_problem.h"

static const char op[] = "channel_norm_forward";

/* The same problem in steps: the norm on f32 tensors; the residual; the activation; for a 16-bit dtype, one rounding. */
static void unfused(const channel_problem *p, nrg_isa isa)
{
    const size_t count = channel_count(p);
    channel_result fused, steps;
    channel_problem f32 = *p;
    f32.spec.dtype = f32.w_dtype = NRG_F32;
    f32.spec.w_dtype = NRG_DTYPE_SAME;
    f32.spec.activation = NRG_ACT_IDENTITY;
    f32.x = element_floats(p->x, count, p->spec.dtype);
    f32.y = NULL;
    f32.w = element_floats(p->w, p->spec.channels, p->w_dtype);
    f32.b = element_floats(p->b, p->spec.channels, p->w_dtype);
    channel_result_make(&fused, p);
    channel_result_make(&steps, &f32);
    channel_forward(p, &fused);
    channel_forward(&f32, &steps);
    float *o = steps.o;
    for (size_t i = 0; i < count && p->y; i++)
        o[i] += element_get(p->y, i, p->spec.dtype);
    ck_assert_int_eq(nrg_activation_forward(p->spec.activation, NRG_F32, count, o, o, 0, 1), NRG_OK);
    void *rounded = element_tensor(channel_count(p), p->spec.dtype);
    for (size_t i = 0; i < count; i++)
        element_set(rounded, i, p->spec.dtype, o[i]);
    free(steps.o);
    steps.o = rounded;
    channel_must_equal(p, isa, "fused", &steps, &fused);
    free(f32.x);
    free(f32.w);
    free(f32.b);
    channel_result_free(&fused);
    channel_result_free(&steps);
}

START_TEST(fused_is_unfused) { channel_each(op, _i, NULL, 0, NULL, unfused); }
END_TEST

static void compute(channel_problem *p) { p->spec.source = NRG_STATISTICS_COMPUTE; }

/* What is handed out, and handed in again, makes the same; and agrees with mean and rstd. */
static void given(const channel_problem *p, nrg_isa isa)
{
    channel_result computed, again;
    channel_problem saved = *p;
    channel_result_make(&computed, p);
    channel_result_make(&again, p);
    channel_forward(p, &computed);
    saved.spec.source = NRG_STATISTICS_GIVEN;
    saved.statistics = computed.statistics;
    saved.updates = 0;
    channel_forward(&saved, &again);
    channel_must_equal(&saved, isa, "statistics given", &computed, &again);
    for (size_t i = 0; i < p->sets.sets; i++) {
        const nrg_channel_statistics *s = &computed.statistics[i];
        const float mean = (float)(s->mean + s->mean_low), rstd = (float)s->rstd;
        int sound = s->count == (double)p->sets.size && element_equal(&mean, &computed.mean[i], 0, NRG_F32) &&
                    element_equal(&rstd, &computed.rstd[i], 0, NRG_F32) && !(s->variance < 0) && !(s->rstd < 0);
        if (isnan(mean))
            sound = sound && isnan(s->variance) && isnan(rstd);
        else
            sound = sound && fabs(s->mean_low) <= DBL_EPSILON * fabs(s->mean) && (p->spec.centred || s->mean == 0);
        if (!sound)
            ck_abort_msg("%s: set %zu has mean %.17g + %.17g (%.9g), variance %.17g, rstd %.17g (%.9g), count %g\n  case: %s",
                         nrg_isa_name(isa), i, s->mean, s->mean_low, (double)computed.mean[i], s->variance, s->rstd,
                         (double)computed.rstd[i], s->count, p->text);
    }
    channel_result_free(&computed);
    channel_result_free(&again);
}

static void of_any_kind(channel_problem *p) { p->spec.source = NRG_STATISTICS_GIVEN; }

/* Statistics that are no data's, up to the ends of what doubles hold, and weights likewise: every path gives the bits of scalar.
 */
static void like_scalar(const channel_problem *p, nrg_isa isa)
{
    channel_result expected, got;
    channel_result_make(&expected, p);
    channel_result_make(&got, p);
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    channel_forward(p, &expected);
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    channel_forward(p, &got);
    channel_must_equal(p, isa, "statistics of any kind", &expected, &got);
    channel_result_free(&expected);
    channel_result_free(&got);
}

START_TEST(given_of_any_kind) { channel_each(op, _i, NULL, 0, of_any_kind, like_scalar); }
END_TEST

START_TEST(given_is_computed) { channel_each(op, _i, NULL, 0, compute, given); }
END_TEST

static void running(channel_problem *p)
{
    if (p->spec.over == NRG_CHANNEL_OVER_GROUP)
        p->spec.groups = p->spec.channels;
    p->spec.source = NRG_STATISTICS_RUNNING;
    p->spec.centred = 1;
}

/* The statistics that are handed out are the running ones. */
static void frozen(const channel_problem *p, nrg_isa isa)
{
    channel_result out, again;
    channel_problem saved = *p;
    channel_result_make(&out, p);
    channel_result_make(&again, p);
    channel_forward(p, &out);
    for (size_t i = 0; i < p->sets.sets; i++) {
        const size_t c = i % p->spec.channels;
        const nrg_channel_statistics *s = &out.statistics[i];
        /* + 0: the sign of a 0 is nothing that counts */
        const float mean = (float)(s->mean + s->mean_low), variance = (float)s->variance, kept = p->running_mean[c] + 0.0f;
        if (!element_equal(&kept, &out.mean[i], 0, NRG_F32) || !element_equal(&mean, &out.mean[i], 0, NRG_F32) ||
            !element_equal(&variance, &p->running_var[c], 0, NRG_F32))
            ck_abort_msg("%s: set %zu has mean %.9g, statistics %.9g and %.9g, and not %.9g and %.9g\n  case: %s",
                         nrg_isa_name(isa), i, (double)out.mean[i], (double)mean, (double)variance, (double)p->running_mean[c],
                         (double)p->running_var[c], p->text);
    }
    saved.spec.source = NRG_STATISTICS_GIVEN;
    saved.statistics = out.statistics;
    saved.updates = 0;
    channel_forward(&saved, &again);
    channel_must_equal(&saved, isa, "running statistics given", &out, &again);
    channel_result_free(&out);
    channel_result_free(&again);
}

START_TEST(running_is_given) { channel_each(op, _i, NULL, 0, running, frozen); }
END_TEST

/* A tensor of one position has one layout. */
static void either_layout(const channel_problem *p, nrg_isa isa)
{
    channel_result here, there;
    channel_problem other = *p;
    other.spec.layout = p->spec.layout == NRG_LAYOUT_NCHW ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
    channel_result_make(&here, p);
    channel_result_make(&there, p);
    channel_forward(p, &here);
    channel_forward(&other, &there);
    channel_must_equal(p, isa, "one position in the other layout", &here, &there);
    channel_result_free(&here);
    channel_result_free(&there);
}

static void one(channel_problem *p) { p->s = 1; }

START_TEST(one_position) { channel_each(op, _i, NULL, 0, one, either_layout); }
END_TEST

static void layer(channel_problem *p)
{
    p->spec.over = NRG_CHANNEL_OVER_GROUP;
    p->spec.groups = 1;
}

/* A set's elements, of a tensor. */
static void *gather(const channel_problem *p, const void *tensor, size_t set)
{
    if (!tensor)
        return NULL;
    void *alone = element_tensor(p->sets.size, p->spec.dtype);
    for (size_t i = 0; i < p->sets.size; i++)
        element_set(alone, i, p->spec.dtype, element_get(tensor, channel_at(p, set, i), p->spec.dtype));
    return alone;
}

/* As gather has them, of channels that are neighbours: the set as a tensor of its own in the problem's layout. */
static void *as_tensor(const channel_problem *one, void *gathered)
{
    if (!gathered)
        return NULL;
    void *tensor = element_tensor(one->sets.size, one->spec.dtype);
    for (size_t i = 0; i < one->sets.size; i++)
        element_set(tensor, channel_at(one, 0, i), one->spec.dtype, element_get(gathered, i, one->spec.dtype));
    free(gathered);
    return tensor;
}

static void without_update(channel_problem *p)
{
    p->spec.source = NRG_STATISTICS_COMPUTE;
    p->spec.cumulative = 0;
    p->updates = 0;
}

/* A set is a tensor of its own, with its part of w and b. */
static void alone(const channel_problem *p, nrg_isa isa)
{
    channel_result all;
    const size_t channels = p->sets.groups ? p->spec.channels / p->sets.groups : 1;
    channel_result_make(&all, p);
    channel_forward(p, &all);
    for (size_t set = 0; set < p->sets.sets; set += 1 + p->sets.sets / 8) {
        channel_problem one = *p;
        channel_result single;
        const size_t first = channel_of(p, channel_at(p, set, 0));
        one.spec.channels = channels;
        one.spec.groups = 1;
        one.n = p->sets.groups ? 1 : p->n;
        one.sets = exact_sets_of(&one.spec, one.n, one.s);
        one.x = as_tensor(&one, gather(p, p->x, set));
        one.y = as_tensor(&one, gather(p, p->y, set));
        one.w = element_at(p->w, first, p->w_dtype);
        one.b = element_at(p->b, first, p->w_dtype);
        channel_result_make(&single, &one);
        channel_forward(&one, &single);
        void *expected = as_tensor(&one, gather(p, all.o, set));
        channel_arrays_must_equal(p, isa, "o of a set alone", p->spec.dtype, p->sets.size, expected, single.o);
        channel_arrays_must_equal(p, isa, "mean of a set alone", NRG_F32, 1, &all.mean[set], single.mean);
        channel_arrays_must_equal(p, isa, "rstd of a set alone", NRG_F32, 1, &all.rstd[set], single.rstd);
        ck_assert_msg(channel_statistics_equal(&all.statistics[set], single.statistics), "%s: statistics of set %zu alone; %s",
                      nrg_isa_name(isa), set, p->text);
        free(expected);
        free(one.x);
        free(one.y);
        channel_result_free(&single);
    }
    channel_result_free(&all);
}

START_TEST(a_set_does_not_know_the_others) { channel_each(op, _i, NULL, 0, without_update, alone); }
END_TEST

/* NaN or infinity in a set: all of it is NaN, and another is as if that were not there. */
static void poisoned(const channel_problem *p, nrg_isa isa)
{
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    const size_t count = channel_count(p), size = nrg_dtype_size(p->spec.dtype);
    channel_result clean, spoiled;
    channel_problem other = *p;
    uint64_t state = p->sets.size + count;
    other.x = element_tensor(channel_count(p), p->spec.dtype);
    channel_result_make(&clean, p);
    channel_result_make(&spoiled, p);
    channel_forward(p, &clean);
    for (size_t i = 0; i < 3; i++) {
        const size_t at = test_draw(&state, count), set = channel_set_of(p, at);
        memcpy(other.x, p->x, count * size);
        element_set(other.x, at, p->spec.dtype, poisons[i]);
        channel_forward(&other, &spoiled);
        for (size_t n = 0; n < count; n++) {
            const int inside = channel_set_of(p, n) == set;
            if (inside ? !isnan(element_get(spoiled.o, n, p->spec.dtype)) : !element_equal(clean.o, spoiled.o, n, p->spec.dtype))
                ck_abort_msg("%s: element %zu of set %zu is %g, with %g at element %zu of set %zu\n  case: %s", nrg_isa_name(isa),
                             n, channel_set_of(p, n), (double)element_get(spoiled.o, n, p->spec.dtype), (double)poisons[i], at,
                             set, p->text);
        }
        for (size_t n = 0; n < p->sets.sets; n++) {
            const nrg_channel_statistics *s = &spoiled.statistics[n];
            const int all_nan = isnan(s->mean) && isnan(s->mean_low) && isnan(s->variance) && isnan(s->rstd) &&
                                s->count == (double)p->sets.size && isnan(spoiled.mean[n]) && isnan(spoiled.rstd[n]);
            if (n == set ? !all_nan : !channel_statistics_equal(&clean.statistics[n], s))
                ck_abort_msg("%s: the statistics of set %zu, with %g in set %zu\n  case: %s", nrg_isa_name(isa), n,
                             (double)poisons[i], set, p->text);
        }
    }
    free(other.x);
    channel_result_free(&clean);
    channel_result_free(&spoiled);
}

/* Activations that are bounded on one side, and w, may make a number of an infinity, but not of a NaN. */
START_TEST(poison_stays_in_its_set)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_NEAR_MAX, ROW_HUGE, ROW_MEAN_1E3};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], without_update, poisoned);
}
END_TEST

/* s = 0: o is b, or b + y, and rstd 0. */
static void constant(const channel_problem *p, nrg_isa isa)
{
    channel_problem exact = *p;
    channel_result out;
    exact.spec.eps = 0;
    channel_result_make(&out, p);
    channel_forward(&exact, &out);
    for (size_t set = 0; set < p->sets.sets; set++) {
        const float first = element_get(p->x, channel_at(p, set, 0), p->spec.dtype);
        int same = p->spec.centred || first == 0;
        for (size_t i = 1; i < p->sets.size; i++)
            same = same && element_get(p->x, channel_at(p, set, i), p->spec.dtype) == first;
        if (!same)
            continue;
        ck_assert_msg(out.rstd[set] == 0 && out.mean[set] == (p->spec.centred ? first : 0),
                      "%s: mean %.9g and rstd %.9g of a set of %.9g; %s", nrg_isa_name(isa), (double)out.mean[set],
                      (double)out.rstd[set], (double)first, p->text);
        for (size_t i = 0; i < p->sets.size; i++) {
            const size_t at = channel_at(p, set, i), c = channel_of(p, at);
            const float b = p->b ? element_get(p->b, c, p->w_dtype) : 0, w = p->w ? element_get(p->w, c, p->w_dtype) : 1;
            const float sum = p->y ? b + element_get(p->y, at, p->spec.dtype) : b;
            const float expected = element_round(sum, p->spec.dtype), got = element_get(out.o, at, p->spec.dtype);
            /* a weight, or a bias, that is no number leaves nothing to say */
            if (isfinite(w) && isfinite(b) && got != expected && !(isnan(got) && isnan(expected)))
                ck_abort_msg("%s: set %zu element %zu is %.9g and not %.9g\n  case: %s", nrg_isa_name(isa), set, i, (double)got,
                             (double)expected, p->text);
        }
    }
    channel_result_free(&out);
}

static void plain(channel_problem *p)
{
    without_update(p);
    p->spec.activation = NRG_ACT_IDENTITY;
}

START_TEST(constant_sets_without_eps)
{
    static const enum row_kind kinds[] = {ROW_EQUAL, ROW_ZEROS, ROW_NORMAL};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], plain, constant);
}
END_TEST

static void updating(channel_problem *p)
{
    running(p);
    p->spec.source = NRG_STATISTICS_COMPUTE;
    p->updates = 1;
}

/* docs/ops/channel_norm.md's formula, from the statistics that are handed out: the unbiased variance, and the average of instance
 * norm's samples. */
static void updated(const channel_problem *p, nrg_isa isa)
{
    channel_result out;
    if (!p->updates)
        return; /* sets of one element */
    const double f = p->spec.cumulative ? 1 / ((double)p->batches + 1) : p->spec.momentum;
    const size_t samples = p->spec.over == NRG_CHANNEL_OVER_BATCH ? 1 : p->n;
    channel_result_make(&out, p);
    channel_forward(p, &out);
    for (size_t c = 0; c < p->spec.channels; c++) {
        double mean = 0, variance = 0;
        for (size_t n = 0; n < samples; n++) {
            const nrg_channel_statistics *s = &out.statistics[n * p->spec.channels + c];
            mean += s->mean + s->mean_low;
            variance += s->variance * (s->count / (s->count - 1));
        }
        mean /= (double)samples;
        variance /= (double)samples;
        const float expected[] = {(float)((1 - f) * (double)p->running_mean[c] + f * mean),
                                  (float)((1 - f) * (double)p->running_var[c] + f * variance)};
        channel_arrays_must_equal(p, isa, "running_mean", NRG_F32, 1, &expected[0], &out.running_mean[c]);
        channel_arrays_must_equal(p, isa, "running_var", NRG_F32, 1, &expected[1], &out.running_var[c]);
    }
    channel_result_free(&out);
}

START_TEST(running_statistics) { channel_each(op, _i, NULL, 0, updating, updated); }
END_TEST

/* Cumulative: after k batches of one size, the average of what these had, to a rounding a batch. */
START_TEST(average_of_all_batches)
{
    enum { BATCHES = 10, CHANNELS = 5 };
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const enum row_kind kinds[] = {ROW_NORMAL};
    for (size_t path = 0; path < count; path++)
        for (int over = NRG_CHANNEL_OVER_BATCH; over <= NRG_CHANNEL_OVER_GROUP; over++) {
            float mean[CHANNELS], variance[CHANNELS];
            double means[CHANNELS] = {0}, variances[CHANNELS] = {0};
            for (size_t c = 0; c < CHANNELS; c++)
                mean[c] = 77, variance[c] = 88; /* before the first batch: to be forgotten */
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            for (uint64_t batch = 0; batch < BATCHES; batch++) {
                channel_problem p = {.spec = over == NRG_CHANNEL_OVER_BATCH
                                                 ? nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5)
                                                 : nrg_channel_norm_spec_group(NRG_F32, CHANNELS, CHANNELS, 1e-5),
                                     .n = 4,
                                     .s = 19,
                                     .updates = 1,
                                     .batches = batch};
                channel_result out;
                p.spec.cumulative = 1;
                channel_problem_fill(&p, kinds, 1, batch);
                channel_result_make(&out, &p);
                nrg_channel_norm_args args = channel_args(&p, &out);
                args.running_mean_in = args.running_mean = mean;
                args.running_var_in = args.running_var = variance;
                ck_assert_int_eq(nrg_channel_norm_forward(&p.spec, &args, 0, 1), NRG_OK);
                for (size_t set = 0; set < p.sets.sets; set++) {
                    const nrg_channel_statistics *s = &out.statistics[set];
                    means[set % CHANNELS] += s->mean / (double)p.sets.sets * CHANNELS / BATCHES;
                    variances[set % CHANNELS] +=
                        s->variance * s->count / (s->count - 1) / (double)p.sets.sets * CHANNELS / BATCHES;
                }
                channel_problem_free(&p);
                channel_result_free(&out);
            }
            for (size_t c = 0; c < CHANNELS; c++) {
                ck_assert_msg(fabs((double)mean[c] - means[c]) <= BATCHES * 0x1p-24, "%s: mean %.9g and not %.9g",
                              nrg_isa_name(paths[path]), (double)mean[c], means[c]);
                ck_assert_msg(fabs((double)variance[c] - variances[c]) <= BATCHES * 0x1p-24 * 4, "%s: variance %.9g and not %.9g",
                              nrg_isa_name(paths[path]), (double)variance[c], variances[c]);
            }
        }
}
END_TEST

/* No momentum: nothing changes. All of it: nothing is left. */
START_TEST(ends_of_the_momentum)
{
    enum { CHANNELS = 4 };
    const enum row_kind kinds[] = {ROW_NORMAL};
    channel_problem p = {.spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5), .n = 3, .s = 10, .updates = 1};
    channel_result out;
    channel_problem_fill(&p, kinds, 1, 3);
    channel_result_make(&out, &p);
    for (size_t c = 0; c < CHANNELS; c++)
        p.running_mean[c] = p.running_var[c] = 5;
    p.spec.momentum = 0;
    channel_forward(&p, &out);
    for (size_t c = 0; c < CHANNELS; c++)
        ck_assert(out.running_mean[c] == 5 && out.running_var[c] == 5);
    p.spec.momentum = 1;
    channel_forward(&p, &out);
    for (size_t c = 0; c < CHANNELS; c++)
        ck_assert(out.running_mean[c] == out.mean[c] && out.running_var[c] != 5);
    channel_problem_free(&p);
    channel_result_free(&out);
}
END_TEST

static double largest(double a, double b) { return a > b ? a : b; }

/* Scale and shift made once, against running statistics in every call: 2.5 ulp of the larger term, and what running itself is
 * allowed. */
static void folded(const channel_problem *p, nrg_isa isa)
{
    const size_t c = p->spec.channels;
    channel_result out, fold;
    channel_problem once = *p;
    nrg_channel_norm_args args = nrg_channel_norm_args_init(0, 0, NULL, p->w, p->b, NULL);
    float *scale = element_tensor(c, NRG_F32), *shift = element_tensor(c, NRG_F32);
    channel_result_make(&out, p);
    channel_result_make(&fold, p);
    channel_forward(p, &out);
    args.running_mean_in = p->running_mean;
    args.running_var_in = p->running_var;
    ck_assert_int_eq(nrg_channel_norm_fold(&p->spec, &args, scale, shift), NRG_OK);
    once.spec.source = NRG_STATISTICS_FOLDED;
    once.spec.w_dtype = once.w_dtype = NRG_F32;
    once.w = scale;
    once.b = shift;
    channel_forward(&once, &fold);
    for (size_t i = 0; i < channel_count(p); i++) {
        const size_t channel = channel_of(p, i);
        const double x = (double)element_get(p->x, i, p->spec.dtype), a = (double)element_get(out.o, i, p->spec.dtype),
                     o = (double)element_get(fold.o, i, p->spec.dtype);
        const double w = p->w ? (double)element_get(p->w, channel, p->w_dtype) : 1,
                     b = p->b ? (double)element_get(p->b, channel, p->w_dtype) : 0;
        const double term = largest(fabs(x * (double)scale[channel]), fabs((double)shift[channel]));
        /* a 16-bit result is the f32 result rounded once: half an ulp each */
        const double bound = 2.5 * element_ulp(term, NRG_F32) + exact_o1_bound(exact_is_fast(&p->spec), a, w, b) +
                             (p->spec.dtype == NRG_F32 ? 0 : element_ulp(largest(fabs(a), fabs(o)), p->spec.dtype));
        /* of factors that are normal floats: others have lost bits before they are used */
        const int normal = fabsf(scale[channel]) >= FLT_MIN || w == 0;
        if (isfinite(a) && isfinite(term) && normal && !(fabs(a - o) <= bound))
            ck_abort_msg("%s: element %zu is %.9g folded and %.9g with running statistics, %g of the bound\n  case: %s",
                         nrg_isa_name(isa), i, o, a, fabs(a - o) / bound, p->text);
    }
    free(scale);
    free(shift);
    channel_result_free(&out);
    channel_result_free(&fold);
}

static void running_only(channel_problem *p)
{
    running(p);
    p->has_y = 0;
    p->spec.activation = NRG_ACT_IDENTITY;
}

START_TEST(folded_is_running)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_OUTLIER};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], running_only, folded);
}
END_TEST

/* The tensor in the other layout: statistics to 2^-26 of σ², or 2^-40 where the mean is small; results to an ulp, of o1, b or w.
 * In the fast grade, where one layout may be summed in floats: to 2^-22, and to as much as either may be off. */
static void transposed(const channel_problem *p, nrg_isa isa)
{
    channel_result here, there;
    channel_problem other = *p;
    const int fast = exact_is_fast(&p->spec);
    other.spec.layout = p->spec.layout == NRG_LAYOUT_NCHW ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
    other.sets = exact_sets_of(&other.spec, p->n, p->s);
    other.x = element_tensor(channel_count(p), p->spec.dtype);
    for (size_t set = 0; set < p->sets.sets; set++)
        for (size_t i = 0; i < p->sets.size; i++)
            element_set(other.x, channel_at(&other, set, i), p->spec.dtype,
                        element_get(p->x, channel_at(p, set, i), p->spec.dtype));
    channel_result_make(&here, p);
    channel_result_make(&there, &other);
    channel_forward(p, &here);
    channel_forward(&other, &there);
    for (size_t set = 0; set < p->sets.sets; set++) {
        const nrg_channel_statistics *a = &here.statistics[set], *b = &there.statistics[set];
        const double mean = (a->mean - b->mean) + (a->mean_low - b->mean_low), sigma = sqrt(a->variance);
        const double limit = fast ? 0x1p-22 : fabs(a->mean) < 10 * sigma ? 0x1p-40 : 0x1p-26;
        if (!(fabs(a->variance - b->variance) <= limit * a->variance) || !(fabs(mean) <= limit * sigma))
            ck_abort_msg("%s: set %zu has mean %.17g + %.17g, variance %.17g and %.17g + %.17g, %.17g\n  case: %s",
                         nrg_isa_name(isa), set, a->mean, a->mean_low, a->variance, b->mean, b->mean_low, b->variance, p->text);
        for (size_t i = 0; i < p->sets.size; i++) {
            const size_t at = channel_at(p, set, i), c = channel_of(p, at);
            const double w = p->w ? fabs((double)element_get(p->w, c, p->w_dtype)) : 1,
                         shift = p->b ? fabs((double)element_get(p->b, c, p->w_dtype)) : 0,
                         o = (double)element_get(here.o, at, p->spec.dtype),
                         q = (double)element_get(there.o, channel_at(&other, set, i), p->spec.dtype);
            const double bound = (fast ? 2 * exact_o1_bound(1, largest(fabs(o), fabs(q)), w, shift) : 0) +
                                 largest(element_ulp(largest(fabs(o), fabs(q)), p->spec.dtype),
                                         element_ulp(largest(largest(fabs(o), w), shift), NRG_F32));
            if (isfinite(o) && isfinite(w) && !(fabs(o - q) <= bound))
                ck_abort_msg("%s: set %zu element %zu is %.9g, transposed %.9g: %g of the bound\n  case: %s", nrg_isa_name(isa),
                             set, i, o, q, fabs(o - q) / bound, p->text);
        }
    }
    free(other.x);
    channel_result_free(&here);
    channel_result_free(&there);
}

static void plain_norm(channel_problem *p)
{
    plain(p);
    p->has_y = 0;
}

START_TEST(nchw_is_nhwc)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_MEAN_1E4, ROW_OUTLIER, ROW_SORTED};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], plain_norm, transposed);
}
END_TEST

/* Layer norm over (c, s) is that of rows, to the bounds of both; not centred, it is RMS norm. */
static void as_row(const channel_problem *p, nrg_isa isa)
{
    const size_t dim = p->spec.channels * p->s;
    channel_result out;
    float *o = element_tensor(p->n * dim, NRG_F32);
    nrg_norm_spec spec =
        p->spec.centred ? nrg_norm_spec_layer(NRG_F32, dim, p->spec.eps) : nrg_norm_spec_rms(NRG_F32, dim, p->spec.eps);
    nrg_norm_args args = nrg_norm_args_init(p->n, p->x, NULL, o);
    channel_result_make(&out, p);
    channel_forward(p, &out);
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    for (size_t i = 0; i < p->n * dim; i++) {
        const double a = (double)o[i], b = (double)element_get(out.o, i, NRG_F32);
        /* rows: as much */
        if (!(fabs(a - b) <= 2 * exact_o1_bound(1, largest(fabs(a), fabs(b)), 1, 0)))
            ck_abort_msg("%s: element %zu is %.9g and in a row %.9g\n  case: %s", nrg_isa_name(isa), i, b, a, p->text);
    }
    free(o);
    channel_result_free(&out);
}

static void layer_of_rows(channel_problem *p)
{
    plain_norm(p);
    layer(p);
    p->spec.dtype = NRG_F32;
    p->spec.w_dtype = NRG_DTYPE_SAME;
    p->has_w = p->has_b = 0;
}

START_TEST(layer_norm_is_that_of_rows)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_1E_20, ROW_HUGE};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], layer_of_rows, as_row);
}
END_TEST

/* Shares write each element and each set once, and a share whole sets where these are computed. */
static void shares_of(const channel_problem *p, nrg_isa isa, int nth)
{
    const size_t count = channel_count(p);
    channel_result out;
    int *written = calloc(count, sizeof *written), *sets = calloc(p->sets.sets, sizeof *sets);
    ck_assert(written && sets);
    channel_result_make(&out, p);
    for (int ith = 0; ith < nth; ith++) {
        nrg_channel_norm_args args = channel_args(p, &out);
        memset(out.o, 0xff, count * nrg_dtype_size(p->spec.dtype));
        memset(out.mean, 0xff, p->sets.sets * sizeof(float));
        ck_assert_int_eq(nrg_channel_norm_forward(&p->spec, &args, ith, nth), NRG_OK);
        for (size_t set = 0; set < p->sets.sets; set++)
            sets[set] += args.mean && !isnan(out.mean[set]);
        for (size_t i = 0; i < count; i++) {
            const int mine = !isnan(element_get(out.o, i, p->spec.dtype));
            written[i] += mine;
            if (p->spec.source == NRG_STATISTICS_COMPUTE && mine != !isnan(out.mean[channel_set_of(p, i)]))
                ck_abort_msg("%s: share %d of %d has a part of set %zu\n  case: %s", nrg_isa_name(isa), ith, nth,
                             channel_set_of(p, i), p->text);
        }
    }
    for (size_t i = 0; i < count; i++)
        if (written[i] != 1)
            ck_abort_msg("%s: %d shares of %d write element %zu\n  case: %s", nrg_isa_name(isa), written[i], nth, i, p->text);
    for (size_t set = 0; set < p->sets.sets && p->spec.source != NRG_STATISTICS_FOLDED; set++)
        if (sets[set] != 1)
            ck_abort_msg("%s: %d shares of %d write the mean of set %zu\n  case: %s", nrg_isa_name(isa), sets[set], nth, set,
                         p->text);
    free(written);
    free(sets);
    channel_result_free(&out);
}

START_TEST(shares)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const enum row_kind kinds[] = {ROW_NORMAL};
    enum { CHANNELS = 6 };
    static const size_t groups[] = {0, 3, CHANNELS, 1}; /* 0: over the batch */
    for (size_t kind = 0; kind < 4; kind++)
        for (int source = 0; source <= NRG_STATISTICS_FOLDED; source++)
            for (int memory = 0; memory <= NRG_LAYOUT_NHWC; memory++) {
                channel_problem p = {.spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5), .n = 3, .s = 5};
                p.spec.layout = (nrg_layout)memory;
                p.spec.over = groups[kind] ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
                p.spec.groups = groups[kind] ? groups[kind] : 1;
                if (source != NRG_STATISTICS_RUNNING || channel_has_running(&p))
                    p.spec.source = (nrg_statistics_source)source;
                p.has_w = source == NRG_STATISTICS_FOLDED;
                channel_problem_fill(&p, kinds, 1, 1);
                /* statistics, running ones, weights: ordinary, so that a NaN is an element nobody wrote */
                for (size_t i = 0; i < p.sets.sets && p.statistics; i++)
                    p.statistics[i] = (nrg_channel_statistics){0.5, 0, 4, 0.5, (double)p.sets.size};
                for (size_t c = 0; c < CHANNELS; c++)
                    p.running_mean[c] = p.running_var[c] = 1;
                for (size_t c = 0; c < CHANNELS && p.w; c++)
                    element_set(p.w, c, NRG_F32, 2);
                for (size_t path = 0; path < count; path++)
                    for (int nth = 1; nth < 24; nth++) {
                        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                        shares_of(&p, paths[path], nth);
                    }
                channel_problem_free(&p);
            }
}
END_TEST

/* An eps below 2^-600 is none: where σ is 0, so is 1/s. From 2^-600 on it is an eps. */
START_TEST(eps_about_the_smallest_that_counts)
{
    enum { N = 2, C = 4, S = 33 };
    static const struct {
        double eps, rstd;
    } cases[] = {{0x1p-1074, 0},      {0x1p-700, 0},      {0x1p-650, 0}, {0x1.fffffffffffffp-601, 0},
                 {0x1p-600, 0x1p300}, {0x1p-580, 0x1p290}};
    float x[N * C * S], o[N * C * S];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < N * C * S; i++)
        x[i] = 3;
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 4 * sizeof cases / sizeof cases[0]; n++) {
            const double eps = cases[n / 4].eps, rstd = cases[n / 4].rstd;
            nrg_channel_norm_spec spec =
                n % 2 ? nrg_channel_norm_spec_batch(NRG_F32, C, eps) : nrg_channel_norm_spec_group(NRG_F32, C, 2, eps);
            spec.layout = n / 2 % 2 ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
            nrg_channel_statistics statistics[N * C];
            nrg_channel_norm_args args = nrg_channel_norm_args_init(N, S, x, NULL, NULL, o);
            args.statistics = statistics;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_channel_norm_forward(&spec, &args, 0, 1), NRG_OK);
            for (size_t set = 0; set < (n % 2 ? C : N * 2); set++)
                if (statistics[set].rstd != rstd)
                    ck_abort_msg("%s, eps %a: 1/s is %a", nrg_isa_name(paths[path]), eps, statistics[set].rstd);
            for (size_t i = 0; i < N * C * S; i++)
                ck_assert(o[i] == 0);
        }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("channel_norm_forward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, fused_is_unfused, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, given_is_computed, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, given_of_any_kind, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, running_is_given, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, one_position, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, a_set_does_not_know_the_others, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, poison_stays_in_its_set, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, constant_sets_without_eps, 0, CHANNEL_PARTS);
    tcase_add_test(tests, eps_about_the_smallest_that_counts);
    tcase_add_loop_test(tests, running_statistics, 0, CHANNEL_PARTS);
    tcase_add_test(tests, average_of_all_batches);
    tcase_add_test(tests, ends_of_the_momentum);
    tcase_add_loop_test(tests, folded_is_running, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, nchw_is_nhwc, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, layer_norm_is_that_of_rows, 0, CHANNEL_PARTS);
    tcase_add_test(tests, shares);
    return test_run(suite);
}
