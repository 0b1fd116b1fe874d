/* Normalization over channels: every path gives the bits of scalar. Numbers of positions around the sizes of vectors, lanes and
 * segments; numbers of samples and channels, options, layouts and data drawn beside them, so that each number of positions meets
 * all of them; and sets of many segments.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm_sweep.h"

static void one(const channel_shape *shape, const channel_options *options, uint64_t seed, int layouts)
{
    channel_problem problem;
    channel_problem_make(&problem, options, shape, NULL, 0, seed);
    channel_sweep(&problem, seed, layouts);
    channel_problem_free(&problem);
}

START_TEST(positions)
{
    nrg_dtype dtypes[3];
    const size_t s = channel_positions[_i], dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    const size_t most = test_small() ? 3000 : 30000;
    const int cases = test_small() ? 12 : s > 600 ? 90 : 160;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases; i++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i);
            channel_shape shape = channel_draw_shape(s, most, seed);
            channel_options options;
            channel_options_draw(&options, &shape, dtypes[dtype], seed + 1);
            one(&shape, &options, seed, 2);
        }
}
END_TEST

/* Every activation, residual or not, in both layouts, with statistics from every source: on a tensor whose rows end within
 * vectors. */
START_TEST(activations)
{
    nrg_dtype dtypes[3];
    const size_t dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (size_t i = 0; i < (size_t)CHANNEL_LAYOUTS * CHANNEL_SOURCES * 2; i++) {
            uint64_t seed = test_mix(((size_t)_i * 8 + dtype) * 4096 + i);
            const channel_shape shape = {.n = 2, .c = 21, .s = 37, .groups = 3};
            channel_options options;
            channel_options_draw(&options, &shape, dtypes[dtype], seed);
            options.activation = (nrg_activation)_i;
            options.layout = (nrg_channel_layout)(i % CHANNEL_LAYOUTS);
            options.source = (nrg_channel_source)(i / CHANNEL_LAYOUTS % CHANNEL_SOURCES);
            options.y = (int)(i / CHANNEL_LAYOUTS / CHANNEL_SOURCES);
            channel_options_settle(&options, &shape);
            one(&shape, &options, seed, 2);
        }
}
END_TEST

/* Sets of more than a segment of the usual length, and of more than a kernel keeps in a cache. */
static const channel_shape large[] = {{.n = 33, .c = 10, .s = 784, .groups = 2},  {.n = 2, .c = 32, .s = 4097, .groups = 8},
                                      {.n = 3, .c = 300, .s = 256, .groups = 10}, {.n = 1, .c = 1030, .s = 257, .groups = 2},
                                      {.n = 5, .c = 64, .s = 1000, .groups = 16}, {.n = 700, .c = 33, .s = 7, .groups = 3},
                                      {.n = 2, .c = 2, .s = 70000, .groups = 1},  {.n = 5000, .c = 17, .s = 1, .groups = 1}};
enum { LARGE = sizeof large / sizeof large[0] };

START_TEST(large_sets)
{
    nrg_dtype dtypes[3];
    const size_t dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    const int cases = test_small() ? 1 : 8;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases; i++) {
            uint64_t seed = test_mix(((size_t)_i * 8 + dtype) * 4096 + (uint64_t)i);
            channel_options options;
            channel_options_draw(&options, &large[_i], dtypes[dtype], seed);
            options.layout = (nrg_channel_layout)(i % 2 ^ (int)(dtype % 2));
            options.kind = (enum channel_kind)(((size_t)i / 2 + dtype) % CHANNEL_KINDS);
            options.source = i < 6 ? NRG_STATISTICS_COMPUTE : options.source;
            channel_options_settle(&options, &large[_i]);
            one(&large[_i], &options, seed, 1);
        }
}
END_TEST

START_TEST(sweep_met_everything) { channel_sweep_check_coverage(); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    channel_sweep_start();
    Suite *suite = suite_create("channel_norm_forward: paths against scalar");
    tcase_add_loop_test(test_case(suite, "positions"), positions, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(test_case(suite, "activations"), activations, 0, ACTIVATIONS);
    tcase_add_loop_test(test_case(suite, "large sets"), large_sets, 0, LARGE);
    tcase_add_test(test_case(suite, "account"), sweep_met_everything);
    return test_run(suite);
}
