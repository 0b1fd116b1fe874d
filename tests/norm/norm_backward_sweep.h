/* One problem of the backward pass on every path: scalar first, in the plainest way, then everything else against it; and the
 * account of what a sweep has met, so that a sweep that misses something fails.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_BACKWARD_SWEEP_H
#define NRG_TESTS_NORM_NORM_BACKWARD_SWEEP_H

#include "norm_backward_harness.h"

/* To be called once in main, before anything runs. */
void norm_backward_sweep_start(void);

/* Runs the problem on scalar, then with `layouts` layouts on each path, and ends the test at the first difference. */
void norm_backward_sweep(const norm_backward_problem *problem, uint64_t seed, int layouts);

/* Ends the test where a path has not met an alias, a number of shares, a store kind, an output subset, a gate with an activation
 * (in groups and without), or one of the problem's options. */
void norm_backward_sweep_check_coverage(void);

/* The row counts to draw from: around the numbers of rows that kernels take at a time, and around blocks of rows. */
size_t norm_backward_sweep_rows(uint64_t seed, size_t dim);

#endif
