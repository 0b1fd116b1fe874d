/* What channel_norm_backward.h promises of values without another implementation at hand: fused equals unfused (the activation's
 * slope first, then the norm), 16-bit results are the f32 results rounded, one position in either layout, a set does not know the
 * others, NaN and infinity stay in their set and are not lost, an accumulation to 0 is the sum itself, shares.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "channel_problem.h"

static const char op[] = "channel_norm_backward";

/* The same on f32 tensors: o1 + y of the forward pass, the activation's gradient there, the norm's gradient of that. */
static void unfused(const channel_problem *p, nrg_isa isa)
{
    const size_t count = channel_count(p);
    channel_gradients fused, steps;
    channel_result inner;
    channel_problem f32 = *p;
    f32.spec.dtype = f32.w_dtype = NRG_F32;
    f32.spec.w_dtype = NRG_DTYPE_SAME;
    f32.spec.activation = NRG_ACT_IDENTITY;
    f32.x = element_floats(p->x, count, p->spec.dtype);
    f32.y = element_floats(p->y, count, p->spec.dtype);
    f32.w = element_floats(p->w, p->spec.channels, p->w_dtype);
    f32.b = element_floats(p->b, p->spec.channels, p->w_dtype);
    f32.d_o = element_floats(p->d_o, count, p->spec.dtype);
    channel_result_make(&inner, &f32);
    channel_forward(&f32, &inner);
    if (p->spec.activation != NRG_ACT_IDENTITY)
        ck_assert_int_eq(nrg_activation_backward(p->spec.activation, NRG_F32, count, inner.o, f32.d_o, f32.d_o, 0, 1), NRG_OK);
    channel_gradients_make(&fused, p);
    channel_gradients_make(&steps, &f32);
    channel_backward(p, &fused);
    channel_backward(&f32, &steps);
    for (size_t i = 0; i < count; i++) {
        element_set(steps.dx, i, p->spec.dtype, element_get(steps.dx, i, NRG_F32));
        element_set(steps.dy, i, p->spec.dtype, element_get(f32.d_o, i, NRG_F32));
    }
    channel_gradients_must_equal(p, isa, "fused", &steps, &fused);
    free(f32.d_o);
    free(f32.x);
    free(f32.y);
    free(f32.w);
    free(f32.b);
    channel_result_free(&inner);
    channel_gradients_free(&fused);
    channel_gradients_free(&steps);
}

START_TEST(fused_is_unfused) { channel_each(op, _i, NULL, 0, NULL, unfused); }
END_TEST

static void of_any_kind(channel_problem *p) { p->spec.source = NRG_STATISTICS_GIVEN; }

/* Statistics that are no data's, up to the ends of what doubles hold, and weights likewise: every path gives the bits of scalar.
 */
static void like_scalar(const channel_problem *p, nrg_isa isa)
{
    channel_gradients expected, got;
    channel_gradients_make(&expected, p);
    channel_gradients_make(&got, p);
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    channel_backward(p, &expected);
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    channel_backward(p, &got);
    channel_gradients_must_equal(p, isa, "statistics of any kind", &expected, &got);
    channel_gradients_free(&expected);
    channel_gradients_free(&got);
}

START_TEST(given_of_any_kind) { channel_each(op, _i, NULL, 0, of_any_kind, like_scalar); }
END_TEST

/* All shares of both phases. */
static void in_shares(const channel_problem *p, const channel_gradients *out, int nth)
{
    nrg_channel_norm_backward_args args = channel_backward_args(p, out);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&p->spec, &args, &args.workspace_size), NRG_OK);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    for (int phase = 0; phase < 2; phase++)
        for (int ith = 0; ith < nth; ith++)
            ck_assert_int_eq((phase ? nrg_channel_norm_backward_reduce : nrg_channel_norm_backward)(&p->spec, &args, ith, nth),
                             NRG_OK);
    free(args.workspace);
}

/* The sums of a part, its dw and db, and then dx and dy from sums that are all parts' and these twice. */
static void in_parts(const channel_problem *p, const channel_gradients *out, int64_t *sums)
{
    nrg_channel_norm_backward_args args = channel_backward_args(p, out);
    ck_assert_int_eq(nrg_channel_norm_backward_sums(&p->spec, &args, sums, 0, 1), NRG_OK);
    int64_t *twice = malloc(p->sets.sets * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *twice);
    ck_assert_ptr_nonnull(twice);
    memcpy(twice, sums, p->sets.sets * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *twice);
    ck_assert_int_eq(nrg_channel_norm_sums_add(p->sets.sets, twice, sums), NRG_OK);
    args.dw = args.db = NULL;
    args.sums = twice;
    ck_assert_int_eq(nrg_channel_norm_backward(&p->spec, &args, 0, 1), NRG_OK);
    free(twice);
}

/* A forward pass's floats are its doubles rounded; and as statistics they are worth what doubles of the same value are. */
static void floats(const channel_problem *p, nrg_isa isa)
{
    const size_t sets = p->sets.sets;
    channel_gradients expected, got;
    channel_result saved;
    channel_problem doubles = *p, singles = *p;
    channel_result_make(&saved, p);
    channel_gradients_make(&expected, p);
    channel_gradients_make(&got, p);
    channel_forward(p, &saved);
    const nrg_channel_statistics *exact = p->statistics ? p->statistics : saved.statistics;
    nrg_channel_statistics *rounded = malloc(sets * sizeof *rounded);
    ck_assert_ptr_nonnull(rounded);
    for (size_t i = 0; i < sets; i++) {
        const float mean = (float)(exact[i].mean + exact[i].mean_low), rstd = (float)exact[i].rstd;
        /* uncentred, a NaN of x is in the mean that was saved, and in none that is left out */
        rounded[i] = (nrg_channel_statistics){p->spec.centred ? (double)saved.mean[i] : 0, 0, 0, (double)saved.rstd[i],
                                              (double)p->sets.size};
        if (!(isnan(mean) ? isnan(saved.mean[i]) : mean == saved.mean[i]) ||
            !(isnan(rstd) ? isnan(saved.rstd[i]) : rstd == saved.rstd[i]))
            ck_abort_msg("mean or rstd of set %zu is not that in double, rounded\n  case: %s", i, p->text);
    }
    doubles.spec.source = singles.spec.source = p->n % 2 ? NRG_STATISTICS_GIVEN : NRG_STATISTICS_COMPUTE;
    doubles.statistics = rounded;
    singles.statistics = NULL;
    singles.mean = p->spec.centred ? saved.mean : NULL;
    singles.rstd = saved.rstd;
    channel_backward(&doubles, &expected);
    channel_backward(&singles, &got);
    channel_gradients_must_equal(p, isa, "statistics as floats", &expected, &got);
    in_shares(&singles, &got, 3);
    channel_gradients_must_equal(p, isa, "statistics as floats, in shares", &expected, &got);
    if (p->spec.over == NRG_CHANNEL_OVER_BATCH) {
        int64_t *sums = malloc(2 * sets * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *sums),
                *others = sums + sets * NRG_CHANNEL_NORM_SUMS_WORDS;
        ck_assert_ptr_nonnull(sums);
        for (size_t i = 0; i < sets; i++)
            rounded[i].count *= 2;
        in_parts(&doubles, &expected, sums);
        in_parts(&singles, &got, others);
        ck_assert_mem_eq(sums, others, sets * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *sums);
        channel_gradients_must_equal(p, isa, "statistics as floats, sums in parts", &expected, &got);
        free(sums);
    }
    free(rounded);
    channel_gradients_free(&expected);
    channel_gradients_free(&got);
    channel_result_free(&saved);
}

static void not_constant(channel_problem *p)
{
    if (p->spec.source == NRG_STATISTICS_RUNNING)
        p->spec.source = NRG_STATISTICS_COMPUTE;
}

START_TEST(statistics_as_floats) { channel_each(op, _i, NULL, 0, not_constant, floats); }
END_TEST

/* A tensor of one position has one layout. */
static void either_layout(const channel_problem *p, nrg_isa isa)
{
    channel_gradients here, there;
    channel_problem other = *p;
    other.spec.layout = p->spec.layout == NRG_LAYOUT_NCHW ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
    channel_gradients_make(&here, p);
    channel_gradients_make(&there, p);
    channel_backward(p, &here);
    channel_backward(&other, &there);
    channel_gradients_must_equal(p, isa, "one position in the other layout", &here, &there);
    channel_gradients_free(&here);
    channel_gradients_free(&there);
}

static void one(channel_problem *p) { p->s = 1; }

START_TEST(one_position) { channel_each(op, _i, NULL, 0, one, either_layout); }
END_TEST

static void not_batch(channel_problem *p) { p->spec.over = NRG_CHANNEL_OVER_GROUP; }

/* A sample of group norm is a tensor of its own. */
static void alone(const channel_problem *p, nrg_isa isa)
{
    const nrg_dtype dtype = p->spec.dtype;
    const size_t sets = p->sets.sets / p->n, count = p->spec.channels * p->s;
    channel_gradients all, single;
    channel_gradients_make(&all, p);
    channel_gradients_make(&single, p);
    channel_backward(p, &all);
    for (size_t n = 0; n < p->n; n += 1 + p->n / 5) {
        channel_problem one = *p;
        one.n = 1;
        one.sets = exact_sets_of(&one.spec, 1, one.s);
        one.x = element_at(p->x, n * count, dtype);
        one.y = element_at(p->y, n * count, dtype);
        one.statistics = p->statistics ? p->statistics + n * sets : NULL;
        one.d_o = element_at(p->d_o, n * count, dtype);
        channel_backward(&one, &single);
        channel_arrays_must_equal(p, isa, "dx of a sample alone", dtype, count, element_at(all.dx, n * count, dtype), single.dx);
        channel_arrays_must_equal(p, isa, "dy of a sample alone", dtype, count, element_at(all.dy, n * count, dtype), single.dy);
        if (p->n == 1)
            channel_gradients_must_equal(p, isa, "a sample alone", &all, &single);
    }
    channel_gradients_free(&all);
    channel_gradients_free(&single);
}

START_TEST(a_sample_does_not_know_the_others) { channel_each(op, _i, NULL, 0, not_batch, alone); }
END_TEST

static int channel_is_in_set(const channel_problem *p, size_t channel, size_t set)
{
    const size_t groups = p->sets.groups;
    return groups ? channel / (p->spec.channels / groups) == set % groups : channel == set;
}

/* A NaN or an infinity in x or in d_o: dx of its set is no number, nor are dw and db of the channels they are sums of; everything
 * else is as if that were not there. */
static void poisoned(const channel_problem *p, nrg_isa isa)
{
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    const nrg_dtype dtype = p->spec.dtype;
    const size_t count = channel_count(p), bytes = count * nrg_dtype_size(dtype);
    channel_gradients clean, spoiled;
    uint64_t state = count + p->sets.size;
    channel_problem other = *p;
    void *tensor = element_tensor(count, dtype);
    channel_gradients_make(&clean, p);
    channel_gradients_make(&spoiled, p);
    channel_backward(p, &clean);
    for (int where = 0; where < 2; where++)
        for (size_t i = 0; i < 3; i++) {
            const size_t at = test_draw(&state, count), set = channel_set_of(p, at), channel = channel_of(p, at);
            other = *p;
            memcpy(tensor, where ? p->d_o : p->x, bytes);
            element_set(tensor, at, dtype, poisons[i]);
            *(where ? &other.d_o : &other.x) = tensor;
            channel_backward(&other, &spoiled);
            for (size_t n = 0; n < count; n++) {
                const int inside = channel_set_of(p, n) == set;
                if (inside ? isfinite(element_get(spoiled.dx, n, dtype))
                           : !element_equal(clean.dx, spoiled.dx, n, dtype) || !element_equal(clean.dy, spoiled.dy, n, dtype))
                    ck_abort_msg("%s: dx %zu of set %zu is %g, with %g in %s %zu of set %zu\n  case: %s", nrg_isa_name(isa), n,
                                 channel_set_of(p, n), (double)element_get(spoiled.dx, n, dtype), (double)poisons[i],
                                 where ? "d_o" : "x", at, set, p->text);
            }
            for (size_t c = 0; c < p->spec.channels; c++) {
                const int touched = where ? c == channel : channel_is_in_set(p, c, set);
                if (touched
                        ? isfinite(spoiled.dw[c]) || (where && isfinite(spoiled.db[c]))
                        : !element_equal(clean.dw, spoiled.dw, c, NRG_F32) || !element_equal(clean.db, spoiled.db, c, NRG_F32))
                    ck_abort_msg("%s: dw %zu is %g and db %g, with %g in %s %zu of set %zu\n  case: %s", nrg_isa_name(isa), c,
                                 (double)spoiled.dw[c], (double)spoiled.db[c], (double)poisons[i], where ? "d_o" : "x", at, set,
                                 p->text);
            }
        }
    free(tensor);
    channel_gradients_free(&clean);
    channel_gradients_free(&spoiled);
}

/* Without an activation, whose slope may be 0, and a weight, which may be: then nothing hides where a NaN went. */
static void bare(channel_problem *p)
{
    p->spec.source = NRG_STATISTICS_COMPUTE;
    p->spec.activation = NRG_ACT_IDENTITY;
    p->has_w = 0;
}

START_TEST(poison_stays_and_is_not_lost)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_1E_20};
    channel_each(op, _i, kinds, sizeof kinds / sizeof kinds[0], bare, poisoned);
}
END_TEST

static void accumulation(const channel_problem *p, nrg_isa isa)
{
    const size_t channels = p->spec.channels;
    channel_problem zero = *p, over = *p;
    channel_gradients sums, added;
    channel_gradients_make(&sums, p);
    channel_gradients_make(&added, p);
    over.accumulate = 0;
    zero.accumulate = 1;
    zero.dw = zero.db = calloc(channels, sizeof(float));
    ck_assert_ptr_nonnull(zero.dw);
    channel_backward(&over, &sums);
    channel_backward(&zero, &added);
    for (size_t c = 0; c < channels; c++) {
        sums.dw[c] += 0.0f; /* the sign of a 0 is another */
        sums.db[c] += 0.0f;
        added.dw[c] += 0.0f;
        added.db[c] += 0.0f;
    }
    channel_gradients_must_equal(p, isa, "added to 0", &sums, &added);
    free(zero.dw);
    channel_gradients_free(&sums);
    channel_gradients_free(&added);
}

START_TEST(added_to_zero) { channel_each(op, _i, NULL, 0, NULL, accumulation); }
END_TEST

/* Shares write each element once: of dx, and of dw and db in the phase that has them. */
static void shares_of(const channel_problem *p, nrg_isa isa, int nth)
{
    const size_t count = channel_count(p), channels = p->spec.channels;
    channel_gradients out;
    int *written = calloc(count + channels, sizeof *written);
    ck_assert_ptr_nonnull(written);
    channel_gradients_make(&out, p);
    nrg_channel_norm_backward_args args = channel_backward_args(p, &out);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&p->spec, &args, &args.workspace_size), NRG_OK);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    for (int phase = 0; phase < (nth == 1 ? 1 : 2); phase++)
        for (int ith = 0; ith < nth; ith++) {
            memset(out.dx, 0xff, count * sizeof(float));
            memset(out.dw, 0xff, channels * sizeof(float));
            ck_assert_int_eq((phase ? nrg_channel_norm_backward_reduce : nrg_channel_norm_backward)(&p->spec, &args, ith, nth),
                             NRG_OK);
            for (size_t i = 0; i < count; i++)
                written[i] += !isnan(element_get(out.dx, i, NRG_F32));
            for (size_t c = 0; c < channels; c++)
                written[count + c] += !isnan(out.dw[c]);
        }
    for (size_t i = 0; i < count + channels; i++)
        if (written[i] != 1)
            ck_abort_msg("%s: %d shares of %d write %s %zu\n  case: %s", nrg_isa_name(isa), written[i], nth,
                         i < count ? "dx" : "dw", i < count ? i : i - count, p->text);
    free(args.workspace);
    free(written);
    channel_gradients_free(&out);
}

START_TEST(shares)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    enum { CHANNELS = 6 };
    const enum row_kind kinds[] = {ROW_NORMAL};
    static const size_t samples[] = {3, 65}, groups[] = {0, 3, CHANNELS, 1}; /* 0: over the batch */
    for (size_t n = 0; n < 2; n++)
        for (size_t kind = 0; kind < 4; kind++)
            for (int memory = 0; memory <= NRG_LAYOUT_NHWC; memory++) {
                channel_problem p = {.spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5), .n = samples[n], .s = 5};
                p.spec.layout = (nrg_layout)memory;
                p.spec.over = groups[kind] ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
                p.spec.groups = groups[kind] ? groups[kind] : 1;
                channel_problem_fill(&p, kinds, 1, 1);
                for (size_t path = 0; path < count; path++)
                    for (int nth = 1; nth < 24; nth++) {
                        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                        shares_of(&p, paths[path], nth);
                    }
                channel_problem_free(&p);
            }
}
END_TEST

/* Sets that have no more elements than the norm takes away, of one element or, without an eps, of two: dx is 0 whatever d_o is,
 * and o of a set of one element is b. Over the batch and in groups, of few channels and of many, in both layouts and grades. */
START_TEST(zero_by_structure)
{
    enum { CHANNELS = 70, SAMPLES = 5, ALL = SAMPLES * CHANNELS };
    static const struct {
        size_t channels, groups, n, s; /* groups 0: over the batch */
        int centred;
        double eps;
    } cases[] = {
        {3, 0, 1, 1, 1, 1e-5},       {CHANNELS, 0, 1, 1, 1, 1e-5}, {CHANNELS, CHANNELS, SAMPLES, 1, 1, 1e-5},
        {3, 3, SAMPLES, 1, 1, 0.25}, {3, 3, SAMPLES, 1, 0, 0},     {CHANNELS, CHANNELS, SAMPLES, 1, 0, 0},
        {CHANNELS, 0, 1, 1, 0, 0},   {35, 35, SAMPLES, 2, 1, 0},   {CHANNELS, CHANNELS / 2, SAMPLES, 1, 1, 0},
        {CHANNELS, 0, 2, 1, 1, 0},   {35, 0, 1, 2, 1, 0},          {20, 10, SAMPLES, 1, 1, 0},
    };
    static float x[ALL], d_o[ALL], w[CHANNELS], b[CHANNELS], o[ALL], dx[ALL], dw[CHANNELS], db[CHANNELS];
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = 5;
    for (size_t i = 0; i < ALL; i++) {
        x[i] = (float)(100 * test_uniform(&state));
        d_o[i] = (float)(300 * test_uniform(&state));
        w[i % CHANNELS] = (float)test_uniform(&state);
        b[i % CHANNELS] = (float)test_uniform(&state);
    }
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 4 * sizeof cases / sizeof cases[0]; n++) {
            const size_t k = n / 4, count = cases[k].n * cases[k].channels * cases[k].s;
            const size_t each = cases[k].groups ? cases[k].channels / cases[k].groups * cases[k].s : cases[k].n * cases[k].s;
            double workspace[2 * CHANNELS * 8];
            nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, cases[k].channels, cases[k].eps);
            spec.over = cases[k].groups ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
            spec.groups = cases[k].groups ? cases[k].groups : 1;
            spec.layout = n % 2 ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
            spec.accuracy = n / 2 % 2 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
            spec.centred = cases[k].centred;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(cases[k].n, cases[k].s, x, w, d_o, dx);
            args.dw = dw;
            args.db = db;
            ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &args.workspace_size), NRG_OK);
            ck_assert_uint_le(args.workspace_size, sizeof workspace);
            args.workspace = args.workspace_size ? workspace : NULL;
            ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, 0, 1), NRG_OK);
            for (size_t i = 0; i < count; i++)
                if (dx[i] != 0)
                    ck_abort_msg("%s, case %zu: dx %zu is %a", nrg_isa_name(paths[path]), n, i, (double)dx[i]);
            for (size_t c = 0; c < cases[k].channels; c++)
                ck_assert(db[c] != 0 && (cases[k].centred && each == 1 ? dw[c] == 0 : dw[c] != 0));
            if (!(cases[k].centred && each == 1))
                continue;
            nrg_channel_norm_args forward = nrg_channel_norm_args_init(cases[k].n, cases[k].s, x, w, b, o);
            ck_assert_int_eq(nrg_channel_norm_forward(&spec, &forward, 0, 1), NRG_OK);
            for (size_t i = 0; i < count; i++) /* one position: both layouts are the same */
                ck_assert(o[i] == b[i % cases[k].channels]);
        }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("channel_norm_backward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, fused_is_unfused, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, given_of_any_kind, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, statistics_as_floats, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, one_position, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, a_sample_does_not_know_the_others, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, poison_stays_and_is_not_lost, 0, CHANNEL_PARTS);
    tcase_add_loop_test(tests, added_to_zero, 0, CHANNEL_PARTS);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, zero_by_structure);
    return test_run(suite);
}
