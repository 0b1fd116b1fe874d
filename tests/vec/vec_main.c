/* Runs vec_test.c where the CPU can: this file is compiled without the path's flags.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "../harness/support.h"
#include "vec_suite.h"

static nrg_isa isa;

START_TEST(path_is_refused) { ck_assert_int_eq(nrg_isa_set(isa), NRG_ERR_ISA_UNSUPPORTED); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    if (nrg_isa_from_name(VEC_PATH, &isa) != NRG_OK) {
        printf("FAIL: the library knows no path named " VEC_PATH "\n");
        return EXIT_FAILURE;
    }
    if (nrg_isa_supported(isa))
        return test_run(vec_suite());
    printf("SKIP the vec.h of " VEC_PATH ": this machine cannot run it\n");
    Suite *suite = suite_create("vec.h of " VEC_PATH ": skipped");
    tcase_add_test(test_case(suite, "refusal"), path_is_refused);
    return test_run(suite) == EXIT_SUCCESS ? 77 : EXIT_FAILURE; /* meson's word for skipped */
}
