/* One problem of the forward pass over channels on every path: scalar first, in the plainest way, then everything else against
 * it; and the account of what a sweep has met, so that a sweep that misses something fails.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_SWEEP_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_SWEEP_H

#include "channel_norm_harness.h"

/* To be called once in main, before anything runs. */
void channel_sweep_start(void);

/* Runs the problem on scalar, then with `layouts` layouts on each path, and ends the test at the first difference. */
void channel_sweep(const channel_problem *problem, uint64_t seed, int layouts);

/* Ends the test where a path has not met an option, a source of statistics for a kind of set and layout, an alias, a number of
 * shares, a store kind, a side, an output subset, or statistics in phases. */
void channel_sweep_check_coverage(void);

/* Ends the test where one of n counters is 0. */
void channel_all_met(nrg_isa isa, const char *what, const unsigned *counts, size_t n);

/* Which class a number of shares is in: CHANNEL_SHARES of them, the last for more than there is work. */
enum { CHANNEL_SHARES = 6 };
size_t channel_share_class(int nth, size_t work);

/* The numbers of positions that sweeps go through: around the sizes of vectors, lanes, segments; and a shape with as many samples
 * and channels, drawn, as keep a tensor at `most` elements where one sample of one channel does. */
enum { CHANNEL_POSITIONS = 24 };
extern const size_t channel_positions[CHANNEL_POSITIONS];
channel_shape channel_draw_shape(size_t positions, size_t most, uint64_t seed);

#endif
