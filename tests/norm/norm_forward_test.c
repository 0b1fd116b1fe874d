/* Every path gives the bits of scalar: every row length from 1 to 1100, with options, layouts and data that rotate so that each
 * length class meets all of them. norm_options_test.c turns it around: all options, some lengths.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_sweep.h"

#include <string.h>

enum { DIMS = 1100, CHUNK = 20, CHUNKS = DIMS / CHUNK };

static int takes_part(size_t dim)
{
    /* small scale: every length up to 130, then one of 9, which is odd to every vector length */
    return !test_small() || dim <= 130 || dim % 9 == 0;
}

START_TEST(every_length)
{
    nrg_dtype dtypes[3];
    size_t dtype_count = test_kernel_dtypes("norm_forward", dtypes);
    int cases = test_small() ? 4 : 24;
    for (size_t dim = (size_t)_i * CHUNK + 1; dim <= ((size_t)_i + 1) * CHUNK; dim++)
        for (size_t dtype = 0; dtype < dtype_count && takes_part(dim); dtype++)
            for (int i = 0; i < cases; i++) {
                uint64_t seed = test_mix((dim * 8 + dtype) * 256 + (uint64_t)i), state = seed;
                norm_options options;
                while (!norm_options_at(&options, test_draw(&state, norm_option_count()), dtypes[dtype]))
                    continue;
                norm_options_draw_gate(&options, dim, state);
                norm_problem problem;
                norm_problem_make(&problem, &options, dim, norm_sweep_rows(state, dim), NULL, 0, seed);
                norm_sweep(&problem, seed, 3);
                norm_problem_free(&problem);
            }
}
END_TEST

START_TEST(sweep_met_everything) { norm_sweep_check_coverage(0); }
END_TEST

START_TEST(every_op_has_a_sweep)
{
    /* a line in kernels.def whose op is not in this list has no test: write one, and add it */
    /* clang-format off */
    static const char *const swept[] = {
        "norm_forward",
        "norm_backward",
        "activation",
        "activation_backward",
        "channel_norm_forward",
        "channel_norm_backward",
        "recurrent",
        "recurrent_backward",
        "recurrent_reduce",
        "rope",
        "position_table",
        "norm_rope",
        "embed",
        "embed_backward",
        "relative_scores",
        "relative_values",
        "relative_backward",
        "relative_shift",
        "head_bias_pair",
        "head_bias_pair_backward",
        "score_bias",
        "score_bias_backward",
    };
    /* clang-format on */
    static const char *const ops[] = {
#define NRG_KERNEL(family, op, job) #op,
#include "../../src/kernels.def"
#undef NRG_KERNEL
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        int found = 0;
        for (size_t j = 0; j < sizeof swept / sizeof swept[0]; j++)
            found |= strcmp(ops[i], swept[j]) == 0;
        if (!found)
            ck_abort_msg("no test compares the paths of %s", ops[i]);
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    norm_sweep_start();
    Suite *suite = suite_create("norm_forward: paths against scalar, every length");
    tcase_add_loop_test(test_case(suite, "lengths"), every_length, 0, CHUNKS);
    TCase *account = test_case(suite, "account");
    tcase_add_test(account, sweep_met_everything);
    tcase_add_test(account, every_op_has_a_sweep);
    return test_run(suite);
}
