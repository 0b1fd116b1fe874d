/* What vec_main.c asks of vec_test.c, which must not run before main has looked at the CPU.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_VEC_VEC_SUITE_H
#define NRG_TESTS_VEC_VEC_SUITE_H

#include <check.h>

Suite *vec_suite(void);

#endif
