/* Every path gives the bits of scalar, and touches nothing that is not its own: the cases of nrg check between fences, in any
 * layout, place, number and order of shares. One suite for all ops; an op that is added has its cases in check/, and nothing to
 * do here.
 *
 *     bits_test OP ...    these ops of kernels.def; without one, all
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/case_call.h"

/* Parts of a kernel's cases, each a test of its own: they run side by side, and one that fails does not hide the others. */
enum { PARTS = 4 };

static int *wanted, wanted_count; /* kernels */

static int is_wanted(const char *op, char **ops)
{
    for (int i = 0; ops[i]; i++)
        if (strcmp(ops[i], op) == 0)
            return 1;
    return !*ops;
}

START_TEST(cases)
{
    /* the full level of an op with many options would take hours */
    const uint64_t most = test_small() ? UINT64_MAX : 2000;
    case_sweep(wanted[_i / PARTS], _i % PARTS, PARTS, most, NULL);
}
END_TEST

START_TEST(everything_was_met)
{
    const char *last = "";
    for (int i = 0; i < wanted_count; i++) {
        const char *op = sweep_kernel_op(wanted[i]);
        if (strcmp(op, last) != 0)
            call_check_account(op);
        last = op;
    }
}
END_TEST

int main(int argc, char **argv)
{
    argv[test_arguments(argc, argv)] = NULL;
    wanted = calloc((size_t)sweep_kernels, sizeof *wanted);
    for (int i = 0; wanted && i < sweep_kernels; i++)
        if (is_wanted(sweep_kernel_op(i), argv + 1))
            wanted[wanted_count++] = i;
    if (!wanted_count) {
        fprintf(stderr, "bits_test: no such op\n");
        return EXIT_FAILURE;
    }
    call_start();
    Suite *suite = suite_create("bits: every path is scalar");
    TCase *all = test_case(suite, "cases");
    tcase_add_loop_test(all, cases, 0, wanted_count * PARTS);
    tcase_add_test(all, everything_was_met);
    return test_run(suite);
}
