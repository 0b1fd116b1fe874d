/* One problem on every path: scalar first, in the plainest way, then everything else against it; and the account of what a
 * sweep has met, so that a sweep that misses something fails.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_SWEEP_H
#define NRG_TESTS_NORM_NORM_SWEEP_H

#include "norm_harness.h"

/* To be called once in main, before anything runs. */
void norm_sweep_start(void);

/* Runs the problem on scalar, then with `layouts` layouts on each path, and ends the test at the first difference. */
void norm_sweep(const norm_problem *problem, uint64_t seed, int layouts);

/* Ends the test where a path has not met an alias, a number of shares, a store kind, a side, an output subset, or a gate with an
 * activation, with groups and without; long_rows: nor (but at small scale) a long row with a pre-gate of each dtype, in
 * place of each operand. */
void norm_sweep_check_coverage(int long_rows);

/* The row counts to draw from: around the numbers of rows that kernels take at a time. */
size_t norm_sweep_rows(uint64_t seed, size_t dim);

#endif
