/* Every path gives the bits of scalar: every subset of options, at lengths around the sizes of vectors, lanes, blocks, segments
 * and of the stack that long rows with a pre-gate are kept on. Gates and groups are drawn beside the subsets.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_sweep.h"

static const size_t dims[] = {1,   7,   8,   15,  16,  17,  31,   32,   33,   63,   64,   65,   80,   96,   127,  128,  129,
                              255, 256, 257, 511, 512, 513, 1024, 2559, 2560, 2561, 3075, 4095, 4096, 4097, 8192, 12289};
enum { DIMS = sizeof dims / sizeof dims[0] };

START_TEST(every_option_subset)
{
    nrg_dtype dtypes[3];
    size_t dim = dims[_i], dtype_count = test_kernel_dtypes("norm_forward", dtypes), met = 0;
    /* small scale: an odd part of the subsets, another one for each length */
    size_t step = !test_small() ? 1 : dim > 600 ? 251 : 23;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (size_t number = step > 1 ? (size_t)_i : 0; number < norm_option_count(); number += step) {
            norm_options options;
            if (!norm_options_at(&options, number, dtypes[dtype]))
                continue;
            uint64_t seed = test_mix((dim * 8 + dtype) * 65536 + number);
            norm_options_draw_gate(&options, dim, seed);
            norm_problem problem;
            norm_problem_make(&problem, &options, dim, norm_sweep_rows(seed, dim), NULL, 0, seed);
            norm_sweep(&problem, seed, 2);
            norm_problem_free(&problem);
            met++;
        }
    ck_assert_uint_gt(met, 0);
}
END_TEST

START_TEST(sweep_met_everything) { norm_sweep_check_coverage(1); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    norm_sweep_start();
    Suite *suite = suite_create("norm_forward: paths against scalar, every option subset");
    tcase_add_loop_test(test_case(suite, "options"), every_option_subset, 0, DIMS);
    tcase_add_test(test_case(suite, "account"), sweep_met_everything);
    return test_run(suite);
}
