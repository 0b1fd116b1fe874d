/* The backward pass: every path gives the bits of scalar. Row lengths from 1 to 1100 and around the sizes of vectors, blocks and
 * segments; options, layouts and data that rotate so that each length class meets all of them; every subset of options at some
 * lengths; and numbers of rows around those of blocks.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_backward_sweep.h"

enum { DIMS = 1100, CHUNK = 20, CHUNKS = DIMS / CHUNK };

static void one(size_t dim, size_t rows, nrg_dtype dtype, size_t number, uint64_t seed, int layouts)
{
    norm_options options;
    norm_backward_problem problem;
    if (!norm_options_at(&options, number, dtype))
        return;
    norm_options_draw_gate(&options, dim, seed);
    norm_backward_problem_make(&problem, &options, dim, rows, NULL, 0, seed);
    norm_backward_sweep(&problem, seed, layouts);
    norm_backward_problem_free(&problem);
}

START_TEST(lengths)
{
    nrg_dtype dtypes[3];
    size_t dtype_count = test_kernel_dtypes("norm_backward", dtypes);
    for (size_t dim = (size_t)_i * CHUNK + 1; dim <= ((size_t)_i + 1) * CHUNK; dim++) {
        if (test_small() && dim > 70 && dim % 13)
            continue;
        int cases = test_small() ? 6 : dim <= 300 ? 30 : 8;
        for (size_t dtype = 0; dtype < dtype_count; dtype++)
            for (int i = 0; i < cases; i++) {
                uint64_t seed = test_mix((dim * 8 + dtype) * 256 + (uint64_t)i), state = seed;
                size_t number = test_draw(&state, norm_option_count());
                one(dim, norm_backward_sweep_rows(state, dim), dtypes[dtype], number, seed, 3);
            }
    }
}
END_TEST

static const size_t dims[] = {1, 16, 33, 64, 129, 255, 256, 257, 511, 512, 513, 2561, 4095, 4096, 4097, 8192};
enum { SOME_DIMS = sizeof dims / sizeof dims[0] };

START_TEST(every_option_subset)
{
    nrg_dtype dtypes[3];
    size_t dim = dims[_i], dtype_count = test_kernel_dtypes("norm_backward", dtypes);
    /* above, another part of the subsets for each length */
    size_t step = test_small() ? (dim > 600 ? 307 : 41) : dim > 2000 ? 29 : dim > 200 ? 7 : 1;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (size_t number = step > 1 ? ((size_t)_i + dtype) % step : 0; number < norm_option_count(); number += step) {
            uint64_t seed = test_mix((dim * 8 + dtype) * 65536 + number);
            one(dim, norm_backward_sweep_rows(seed, dim), dtypes[dtype], number, seed, 2);
        }
}
END_TEST

static const size_t many_rows[] = {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 2047, 2048, 2049, 2304, 4097};
enum { MANY_ROWS = sizeof many_rows / sizeof many_rows[0] };

START_TEST(numbers_of_rows)
{
    static const size_t narrow[] = {1, 3, 8, 20, 33};
    nrg_dtype dtypes[3];
    size_t rows = many_rows[_i], dtype_count = test_kernel_dtypes("norm_backward", dtypes);
    int cases = test_small() ? (rows > 200 ? 1 : 3) : rows > 200 ? 12 : 40;
    for (size_t dim = 0; dim < sizeof narrow / sizeof narrow[0]; dim++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++)
            for (int i = 0; i < cases; i++) {
                uint64_t seed = test_mix((rows * 64 + dim * 8 + dtype) * 256 + (uint64_t)i), state = seed;
                one(narrow[dim], rows, dtypes[dtype], test_draw(&state, norm_option_count()), seed, 2);
            }
}
END_TEST

START_TEST(sweep_met_everything) { norm_backward_sweep_check_coverage(); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    norm_backward_sweep_start();
    Suite *suite = suite_create("norm_backward: paths against scalar");
    tcase_add_loop_test(test_case(suite, "lengths"), lengths, 0, CHUNKS);
    tcase_add_loop_test(test_case(suite, "options"), every_option_subset, 0, SOME_DIMS);
    tcase_add_loop_test(test_case(suite, "rows"), numbers_of_rows, 0, MANY_ROWS);
    tcase_add_test(test_case(suite, "account"), sweep_met_everything);
    return test_run(suite);
}
