/* What channel_norm_backward.h promises of values without another implementation at hand: fused equals unfused (the activation's
 * slope first, then the norm), 16-bit results are the f32 results rounded, one position in either layout, a set does not know the
 * others, NaN and infinity stay in their set and are not lost, an accumulation to 0 is the sum itself, shares.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_norm_backward_case.h"
#include "channel_norm_sweep.h"
#include "../harness/element.h"

/* Calls body for problems of every path and dtype with one number of positions. */
typedef void body(const channel_backward_problem *problem, const channel_options *options, nrg_isa isa);
typedef void change(channel_options *options);

static void each_problem(size_t i, const enum row_kind *kinds, size_t kind_count, change *want, body *run)
{
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("channel_norm_backward", dtypes);
    const size_t s = channel_positions[i], most = test_small() ? 1000 : 8000;
    const int cases = test_small() ? 2 : 8;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int number = 0; number < cases; number++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)number + 999);
            channel_shape shape = channel_draw_shape(s, most, seed);
            for (uint64_t again = seed; shape.n == 0; shape = channel_draw_shape(s, most, again))
                again = test_mix(again);
            channel_options options;
            channel_backward_problem problem;
            channel_options_draw(&options, &shape, dtypes[dtype], seed + 1);
            if (want)
                want(&options);
            channel_options_settle(&options, &shape);
            channel_backward_problem_make(&problem, &options, &shape, kinds, kind_count, seed);
            for (size_t path = 0; path < path_count; path++) {
                snprintf(test_note, sizeof test_note, "%s: %s", nrg_isa_name(paths[path]), problem.text);
                ck_assert_msg(nrg_isa_set(paths[path]) == NRG_OK, "%s", nrg_isa_name(paths[path]));
                run(&problem, &options, paths[path]);
            }
            channel_backward_problem_free(&problem);
        }
}

/* Both phases of a plain call. */
static void backward(const channel_backward_problem *p, const channel_backward_result *out)
{
    const nrg_channel_norm_spec *spec = &p->forward.spec;
    nrg_channel_norm_backward_args args = channel_backward_args(p, out);
    nrg_status status = nrg_channel_norm_backward_workspace(spec, &args, &args.workspace_size);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    ck_assert(args.workspace || !args.workspace_size);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward_reduce(spec, &args, 0, 1);
    free(args.workspace);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

static void must_equal(const channel_backward_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                       const void *expected, const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->text);
}

static void must_be_the_same(const channel_backward_problem *p, nrg_isa isa, const channel_backward_result *expected,
                             const channel_backward_result *got)
{
    const size_t count = p->forward.rows * p->forward.dim, channels = p->forward.spec.channels;
    must_equal(p, isa, "dx", p->forward.spec.dtype, count, expected->dx, got->dx);
    must_equal(p, isa, "dy", p->forward.spec.dtype, count, expected->dy, got->dy);
    must_equal(p, isa, "dw", NRG_F32, channels, expected->dw, got->dw);
    must_equal(p, isa, "db", NRG_F32, channels, expected->db, got->db);
}

static float *as_f32(const void *tensor, size_t count, nrg_dtype dtype)
{
    if (!tensor)
        return NULL;
    float *copy = norm_tensor(1, count, NRG_F32);
    for (size_t i = 0; i < count; i++)
        copy[i] = element_get(tensor, i, dtype);
    return copy;
}

/* The same on f32 tensors: o1 + y of the forward pass, the activation's gradient there, the norm's gradient of that. */
static void unfused(const channel_backward_problem *p, const channel_options *options, nrg_isa isa)
{
    const channel_problem *f = &p->forward;
    const size_t count = f->rows * f->dim;
    channel_backward_result fused, steps;
    channel_result inner;
    channel_backward_problem f32 = *p;
    channel_problem *g = &f32.forward;
    g->spec.dtype = g->w_dtype = NRG_F32;
    g->spec.w_dtype = NRG_DTYPE_SAME;
    g->spec.activation = NRG_ACT_IDENTITY;
    g->x = as_f32(f->x, count, f->spec.dtype);
    g->y = as_f32(f->y, count, f->spec.dtype);
    g->w = as_f32(f->w, f->spec.channels, f->w_dtype);
    g->b = as_f32(f->b, f->spec.channels, f->w_dtype);
    f32.d_o = as_f32(p->d_o, count, f->spec.dtype);
    channel_result_make(&inner, g);
    nrg_channel_norm_args args = channel_args(g, &inner);
    ck_assert_int_eq(nrg_channel_norm_forward(&g->spec, &args, 0, 1), NRG_OK);
    if (options->activation != NRG_ACT_IDENTITY)
        ck_assert_int_eq(nrg_activation_backward(options->activation, NRG_F32, count, inner.o, f32.d_o, f32.d_o, 0, 1), NRG_OK);
    channel_backward_result_make(&fused, p);
    channel_backward_result_make(&steps, &f32);
    backward(p, &fused);
    backward(&f32, &steps);
    for (size_t i = 0; i < count; i++) {
        element_set(steps.dx, i, f->spec.dtype, element_get(steps.dx, i, NRG_F32));
        element_set(steps.dy, i, f->spec.dtype, element_get(f32.d_o, i, NRG_F32));
    }
    must_be_the_same(p, isa, &steps, &fused);
    free(f32.d_o);
    free(g->x);
    free(g->y);
    free(g->w);
    free(g->b);
    channel_result_free(&inner);
    channel_backward_result_free(&fused);
    channel_backward_result_free(&steps);
}

START_TEST(fused_is_unfused) { each_problem((size_t)_i, NULL, 0, NULL, unfused); }
END_TEST

/* A tensor of one position has one layout. */
static void either_layout(const channel_backward_problem *p, const channel_options *options, nrg_isa isa)
{
    channel_backward_result here, there;
    channel_backward_problem other = *p;
    other.forward.spec.layout = options->layout == NRG_NCHW ? NRG_NHWC : NRG_NCHW;
    channel_backward_result_make(&here, p);
    channel_backward_result_make(&there, p);
    backward(p, &here);
    backward(&other, &there);
    must_be_the_same(p, isa, &here, &there);
    channel_backward_result_free(&here);
    channel_backward_result_free(&there);
}

START_TEST(one_position) { each_problem(0, NULL, 0, NULL, either_layout); }
END_TEST

static void *from(const void *tensor, size_t i, nrg_dtype dtype)
{
    return tensor ? (char *)(uintptr_t)tensor + i * nrg_dtype_size(dtype) : NULL;
}

static void not_batch(channel_options *o) { o->kind = o->kind == CHANNEL_BATCH ? CHANNEL_GROUP : o->kind; }

/* A sample of group norm is a tensor of its own. */
static void alone(const channel_backward_problem *p, const channel_options *options, nrg_isa isa)
{
    const channel_problem *f = &p->forward;
    const nrg_dtype dtype = options->dtype;
    const size_t sets = f->sets / f->n, count = f->spec.channels * f->s;
    channel_backward_result all, single;
    channel_backward_result_make(&all, p);
    channel_backward_result_make(&single, p);
    backward(p, &all);
    for (size_t n = 0; n < f->n; n += 1 + f->n / 5) {
        channel_backward_problem one = *p;
        one.forward.n = 1;
        one.forward.x = from(f->x, n * count, dtype);
        one.forward.y = from(f->y, n * count, dtype);
        one.forward.statistics = f->statistics ? f->statistics + n * sets : NULL;
        one.d_o = from(p->d_o, n * count, dtype);
        backward(&one, &single);
        must_equal(p, isa, "dx of a sample alone", dtype, count, from(all.dx, n * count, dtype), single.dx);
        must_equal(p, isa, "dy of a sample alone", dtype, count, from(all.dy, n * count, dtype), single.dy);
        if (f->n == 1)
            must_be_the_same(p, isa, &all, &single);
    }
    channel_backward_result_free(&all);
    channel_backward_result_free(&single);
}

START_TEST(a_sample_does_not_know_the_others) { each_problem((size_t)_i, NULL, 0, not_batch, alone); }
END_TEST

static int channel_is_in_set(const channel_problem *f, size_t channel, size_t set)
{
    if (f->kind == CHANNEL_BATCH)
        return channel == set;
    const size_t groups = f->spec.groups ? f->spec.groups : 1;
    return channel / (f->spec.channels / groups) == set % groups;
}

/* A NaN or an infinity in x or in d_o: dx of its set is no number, nor are dw and db of the channels they are sums of; everything
 * else is as if that were not there. */
static void poisoned(const channel_backward_problem *p, const channel_options *options, nrg_isa isa)
{
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    const channel_problem *f = &p->forward;
    const nrg_dtype dtype = options->dtype;
    const size_t count = f->rows * f->dim, bytes = count * nrg_dtype_size(dtype);
    channel_backward_result clean, spoiled;
    uint64_t state = count + f->set_size;
    channel_backward_problem other = *p;
    void *tensor = norm_tensor(f->rows, f->dim, dtype);
    channel_backward_result_make(&clean, p);
    channel_backward_result_make(&spoiled, p);
    backward(p, &clean);
    for (int where = 0; where < 2; where++)
        for (size_t i = 0; i < 3; i++) {
            const size_t at = test_draw(&state, count), set = channel_set_of(f, at), channel = channel_of(f, at);
            other = *p;
            memcpy(tensor, where ? p->d_o : f->x, bytes);
            element_set(tensor, at, dtype, poisons[i]);
            *(where ? &other.d_o : &other.forward.x) = tensor;
            backward(&other, &spoiled);
            for (size_t n = 0; n < count; n++) {
                const int inside = channel_set_of(f, n) == set;
                if (inside ? isfinite(element_get(spoiled.dx, n, dtype))
                           : !element_equal(clean.dx, spoiled.dx, n, dtype) || !element_equal(clean.dy, spoiled.dy, n, dtype))
                    ck_abort_msg("%s: dx %zu of set %zu is %g, with %g in %s %zu of set %zu\n  case: %s", nrg_isa_name(isa), n,
                                 channel_set_of(f, n), (double)element_get(spoiled.dx, n, dtype), (double)poisons[i],
                                 where ? "d_o" : "x", at, set, p->text);
            }
            for (size_t c = 0; c < f->spec.channels; c++) {
                const int touched = where ? c == channel : channel_is_in_set(f, c, set);
                if (touched
                        ? isfinite(spoiled.dw[c]) || (where && isfinite(spoiled.db[c]))
                        : !element_equal(clean.dw, spoiled.dw, c, NRG_F32) || !element_equal(clean.db, spoiled.db, c, NRG_F32))
                    ck_abort_msg("%s: dw %zu is %g and db %g, with %g in %s %zu of set %zu\n  case: %s", nrg_isa_name(isa), c,
                                 (double)spoiled.dw[c], (double)spoiled.db[c], (double)poisons[i], where ? "d_o" : "x", at, set,
                                 p->text);
            }
        }
    free(tensor);
    channel_backward_result_free(&clean);
    channel_backward_result_free(&spoiled);
}

/* Without an activation, whose slope may be 0, and a weight, which may be: then nothing hides where a NaN went. */
static void bare(channel_options *o)
{
    o->source = NRG_STATISTICS_COMPUTE;
    o->activation = NRG_ACT_IDENTITY;
    o->w = 0;
}

START_TEST(poison_stays_and_is_not_lost)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_1E_20};
    each_problem((size_t)_i, kinds, sizeof kinds / sizeof kinds[0], bare, poisoned);
}
END_TEST

static void accumulation(const channel_backward_problem *p, const channel_options *options, nrg_isa isa)
{
    const size_t channels = p->forward.spec.channels;
    channel_backward_problem zero = *p, over = *p;
    channel_backward_result sums, added;
    (void)options;
    channel_backward_result_make(&sums, p);
    channel_backward_result_make(&added, p);
    over.accumulate = 0;
    zero.accumulate = 1;
    zero.dw = zero.db = calloc(channels, sizeof(float));
    ck_assert_ptr_nonnull(zero.dw);
    backward(&over, &sums);
    backward(&zero, &added);
    for (size_t c = 0; c < channels; c++) {
        sums.dw[c] += 0.0f; /* the sign of a 0 is another */
        sums.db[c] += 0.0f;
        added.dw[c] += 0.0f;
        added.db[c] += 0.0f;
    }
    must_be_the_same(p, isa, &sums, &added);
    free(zero.dw);
    channel_backward_result_free(&sums);
    channel_backward_result_free(&added);
}

START_TEST(added_to_zero) { each_problem((size_t)_i, NULL, 0, NULL, accumulation); }
END_TEST

/* Shares write each element once: of dx, and of dw and db in the phase that has them. */
static void shares_of(const channel_backward_problem *p, nrg_isa isa, int nth)
{
    const channel_problem *f = &p->forward;
    const size_t count = f->rows * f->dim, channels = f->spec.channels;
    channel_backward_result out;
    unsigned char *written = calloc(count + channels, 1);
    ck_assert_ptr_nonnull(written);
    channel_backward_result_make(&out, p);
    nrg_channel_norm_backward_args args = channel_backward_args(p, &out);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&f->spec, &args, &args.workspace_size), NRG_OK);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    for (int phase = 0; phase < 2; phase++)
        for (int ith = 0; ith < nth; ith++) {
            memset(out.dx, 0xff, count * sizeof(float));
            memset(out.dw, 0xff, channels * sizeof(float));
            ck_assert_int_eq((phase ? nrg_channel_norm_backward_reduce : nrg_channel_norm_backward)(&f->spec, &args, ith, nth),
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
    channel_backward_result_free(&out);
}

START_TEST(shares)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const enum row_kind kinds[] = {ROW_NORMAL};
    const size_t samples[] = {3, 65};
    for (size_t n = 0; n < 2; n++)
        for (int kind = 0; kind < CHANNEL_KINDS; kind++)
            for (int memory = 0; memory < CHANNEL_LAYOUTS; memory++) {
                const channel_shape shape = {.n = samples[n], .c = 6, .s = 5, .groups = 3};
                const channel_options options = {.dtype = NRG_F32,
                                                 .layout = (nrg_channel_layout)memory,
                                                 .kind = (enum channel_kind)kind,
                                                 .source = NRG_STATISTICS_COMPUTE,
                                                 .centred = 1};
                channel_backward_problem p;
                channel_backward_problem_make(&p, &options, &shape, kinds, 1, 1);
                p.accumulate = 0;
                for (size_t path = 0; path < count; path++)
                    for (int nth = 1; nth < 24; nth++) {
                        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                        shares_of(&p, paths[path], nth);
                    }
                channel_backward_problem_free(&p);
            }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("channel_norm_backward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, fused_is_unfused, 0, CHANNEL_POSITIONS);
    tcase_add_test(tests, one_position);
    tcase_add_loop_test(tests, a_sample_does_not_know_the_others, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(tests, poison_stays_and_is_not_lost, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(tests, added_to_zero, 0, CHANNEL_POSITIONS);
    tcase_add_test(tests, shares);
    return test_run(suite);
}
