/* The part of a call's work that is one thread's.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_SHARE_H
#define NRG_CALLS_SHARE_H

#include <stddef.h>

/* n·ith/nth without the product, which may not fit. Out of line: inlined in each call it takes 4 KB of the library. */
size_t nrg_share_of_many(size_t n, int ith, int nth);

/* Returns where share ith of nth of n units begins. One thread divides nothing: two divisions cost as much as a short row. */
static inline size_t nrg_share(size_t n, int ith, int nth) { return nth != 1 ? nrg_share_of_many(n, ith, nth) : ith ? n : 0; }

#endif
