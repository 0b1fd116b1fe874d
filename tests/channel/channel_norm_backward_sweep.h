/* One problem of the backward pass over channels on every path: scalar first, in the plainest way, then everything else against
 * it; and the account of what a sweep has met, so that a sweep that misses something fails.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_SWEEP_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_SWEEP_H

#include "channel_norm_backward_harness.h"

/* To be called once in main, before anything runs. */
void channel_backward_sweep_start(void);

/* Runs the problem on scalar, then with `layouts` layouts on each path, and ends the test at the first difference. */
void channel_backward_sweep(const channel_backward_problem *problem, uint64_t seed, int layouts);

/* Ends the test where a path has not met an option, a source of statistics for a kind of set and layout, an alias, a number of
 * shares, a store kind, a side, an output subset, saved statistics, or sums in phases. */
void channel_backward_sweep_check_coverage(void);

#endif
