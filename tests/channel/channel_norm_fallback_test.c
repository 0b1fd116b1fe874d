/* Sets that the ordinary sums do not serve: constant channels, means from 2^8 to 2^30 σ, the largest and the smallest floats,
 * sums that two doubles do not hold, NaN and infinity, and sets of all these whose pieces lie across segments. Every path gives
 * the bits of scalar: o, statistics, gradients, and the integers of sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "channel_norm_backward_sweep.h"
#include "channel_norm_sweep.h"

/* The first of a list is every other set's: neighbours that are ordinary, that are alike, or that make a block overflow. */
static const enum row_kind lists[][13] = {
    {ROW_NORMAL, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_OUTLIER},
    {ROW_EQUAL, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
    {ROW_SCALES, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
    {ROW_LARGE_MEAN, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX,
     ROW_SUBNORMAL, ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
};
enum { LISTS = sizeof lists / sizeof lists[0], LIST = sizeof lists[0] / sizeof lists[0][0] };

/* The integers of sums in parts: of a whole tensor, set by set, on every path. */
static void compare_integers(const channel_problem *p)
{
    const size_t words = p->sets * NRG_SUMS_WORDS;
    int64_t *expected = malloc((words ? words : 1) * sizeof *expected), *got = malloc((words ? words : 1) * sizeof *got);
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const nrg_channel_norm_args args = nrg_channel_norm_args_init(p->n, p->s, p->x, NULL);
    ck_assert(expected && got);
    for (size_t path = 0; path < count; path++) {
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        memset(got, 0x5a, words * sizeof *got);
        ck_assert_int_eq(nrg_channel_norm_sums(&p->spec, &args, got, 0, 1), NRG_OK);
        if (paths[path] == NRG_ISA_SCALAR)
            memcpy(expected, got, words * sizeof *got);
        for (size_t i = 0; i < words; i++)
            if (got[i] != expected[i])
                ck_abort_msg("%s: integer %zu of set %zu is %lld and should be %lld\n  case: %s", nrg_isa_name(paths[path]),
                             i % NRG_SUMS_WORDS, i / NRG_SUMS_WORDS, (long long)got[i], (long long)expected[i], p->text);
    }
    free(expected);
    free(got);
}

/* The same of the backward sums, with statistics given. */
static void compare_backward_integers(const channel_backward_problem *p)
{
    const channel_problem *f = &p->forward;
    const size_t words = f->spec.channels * NRG_SUMS_WORDS;
    int64_t *expected = malloc(words * sizeof *expected), *got = malloc(words * sizeof *got);
    channel_backward_result out;
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    channel_backward_result_make(&out, p);
    nrg_channel_norm_backward_args args = channel_backward_args(p, &out);
    args.statistics = p->statistics;
    args.dx = args.dy = NULL;
    args.accumulate = 0;
    ck_assert(expected && got);
    for (size_t path = 0; path < count; path++) {
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        ck_assert_int_eq(nrg_channel_norm_backward_sums(&f->spec, &args, got, 0, 1), NRG_OK);
        if (paths[path] == NRG_ISA_SCALAR)
            memcpy(expected, got, words * sizeof *got);
        for (size_t i = 0; i < words; i++)
            if (got[i] != expected[i])
                ck_abort_msg("%s, backward: integer %zu of channel %zu is %lld and should be %lld\n  case: %s",
                             nrg_isa_name(paths[path]), i % NRG_SUMS_WORDS, i / NRG_SUMS_WORDS, (long long)got[i],
                             (long long)expected[i], p->text);
    }
    free(expected);
    free(got);
    channel_backward_result_free(&out);
}

static void forward_case(const channel_shape *shape, const channel_options *options, uint64_t seed, size_t list, int layouts)
{
    channel_problem problem;
    channel_problem_make(&problem, options, shape, lists[list], LIST, seed);
    channel_sweep(&problem, seed, layouts);
    if (problem.n && problem.spec.statistics == NRG_STATISTICS_COMPUTE)
        compare_integers(&problem);
    channel_problem_free(&problem);
}

static void backward_case(const channel_shape *shape, const channel_options *options, uint64_t seed, size_t list, int layouts)
{
    channel_backward_problem problem;
    channel_backward_problem_make(&problem, options, shape, lists[list], LIST, seed);
    channel_backward_sweep(&problem, seed, layouts);
    if (channel_backward_has_phases(&problem))
        compare_backward_integers(&problem);
    channel_backward_problem_free(&problem);
}

/* Statistics are computed, but for one case in eight: the elements of given ones are none of an ordinary channel either. */
static void draw_options(channel_options *options, const channel_shape *shape, nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = seed;
    channel_options_draw(options, shape, dtype, seed);
    if (test_draw(&state, 8))
        options->source = NRG_STATISTICS_COMPUTE;
    if (test_draw(&state, 4))
        options->centred = 1;
    channel_options_settle(options, shape);
}

typedef void one_case(const channel_shape *shape, const channel_options *options, uint64_t seed, size_t list, int layouts);

static void sweep_positions(size_t s, one_case *one, uint64_t salt)
{
    nrg_dtype dtypes[3];
    const size_t dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    const size_t most = test_small() ? 3000 : 30000;
    const int cases = test_small() ? 6 : s > 600 ? 30 : 60;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases; i++) {
            const uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i + salt);
            const channel_shape shape = channel_draw_shape(s, most, seed);
            channel_options options;
            draw_options(&options, &shape, dtypes[dtype], seed + 1);
            one(&shape, &options, seed, (size_t)i % LISTS, 2);
        }
}

START_TEST(forward) { sweep_positions(channel_positions[_i], forward_case, 1000); }
END_TEST

START_TEST(backward) { sweep_positions(channel_positions[_i], backward_case, 2000); }
END_TEST

/* Sets of several segments, of blocks of columns that are full and that are not, and of groups wider than a block. */
static const channel_shape large[] = {{.n = 33, .c = 10, .s = 784, .groups = 2},  {.n = 2, .c = 32, .s = 4097, .groups = 8},
                                      {.n = 3, .c = 300, .s = 256, .groups = 10}, {.n = 1, .c = 1030, .s = 257, .groups = 2},
                                      {.n = 1400, .c = 33, .s = 7, .groups = 3},  {.n = 2, .c = 2, .s = 70000, .groups = 1},
                                      {.n = 9000, .c = 17, .s = 1, .groups = 1},  {.n = 300, .c = 130, .s = 40, .groups = 26},
                                      {.n = 2, .c = 20000, .s = 3, .groups = 1}};
enum { LARGE = sizeof large / sizeof large[0] };

static void sweep_large(size_t shape, one_case *one, uint64_t salt)
{
    nrg_dtype dtypes[3];
    const size_t dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    const int cases = test_small() ? 1 : 8;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases; i++) {
            const uint64_t seed = test_mix((shape * 8 + dtype) * 4096 + (uint64_t)i + salt);
            channel_options options;
            draw_options(&options, &large[shape], dtypes[dtype], seed);
            options.layout = (nrg_channel_layout)(i % 2 ^ (int)(dtype % 2));
            options.kind = (enum channel_kind)(((size_t)i / 2 + dtype) % CHANNEL_KINDS);
            channel_options_settle(&options, &large[shape]);
            one(&large[shape], &options, seed, (size_t)i % LISTS, 1);
        }
}

START_TEST(large_sets_forward) { sweep_large((size_t)_i, forward_case, 3000); }
END_TEST

START_TEST(large_sets_backward) { sweep_large((size_t)_i, backward_case, 4000); }
END_TEST

/* The segment of a group with NHWC may have so many elements that its sums around the mean are not exact, where a few of them lie
 * far from the others: only then does the order of the sums count. */
START_TEST(order_of_wide_segments)
{
    const channel_shape shape = {.n = 1, .c = 150001, .s = 2, .groups = 1};
    channel_options options = {.dtype = NRG_F32, .layout = NRG_NHWC, .kind = CHANNEL_LAYER, .centred = 1, .segment = 64};
    channel_problem p;
    uint64_t state = (uint64_t)_i;
    channel_problem_make(&p, &options, &shape, NULL, 0, (uint64_t)_i);
    for (size_t i = 0; i < shape.c * shape.s; i++)
        element_set(p.x, i, NRG_F32, 1000 + (float)test_draw(&state, 4096) / 8192);
    for (size_t segment = 0; segment < 2; segment++)
        for (int i = 0; i <= _i % 3; i++)
            element_set(p.x, segment * shape.c + test_draw(&state, shape.c), NRG_F32,
                        (float)test_draw(&state, 1u << 20) * 0x1p-30f);
    channel_sweep(&p, (uint64_t)_i, 1);
    compare_integers(&p);
    channel_problem_free(&p);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    channel_sweep_start();
    channel_backward_sweep_start();
    Suite *suite = suite_create("channel norms: sets that ordinary sums do not serve");
    tcase_add_loop_test(test_case(suite, "forward"), forward, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(test_case(suite, "backward"), backward, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(test_case(suite, "large sets, forward"), large_sets_forward, 0, LARGE);
    tcase_add_loop_test(test_case(suite, "large sets, backward"), large_sets_backward, 0, LARGE);
    tcase_add_loop_test(test_case(suite, "order"), order_of_wide_segments, 0, 6);
    return test_run(suite);
}
