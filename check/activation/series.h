/* Cases in two series of the same lengths: of the first activations, and of those that came later, so that a case that there was
 * stays what it is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_ACTIVATION_SERIES_H
#define NRG_CHECK_ACTIVATION_SERIES_H

#include "../../src/job/activation.h"
#include "../family.h"

enum { SERIES_WAYS = 9, SERIES = (NRG_ACTIVATION_COUNT + SERIES_WAYS - 1) / SERIES_WAYS };
_Static_assert(SERIES == 2, "the lengths below are of two");

/* As SWEEP_LENGTHS. */
#define SERIES_LENGTHS(quick, middle, full, large_)                                                                              \
    SWEEP_LENGTHS(SERIES_WAYS, 2 * (quick) + (large_), 2 * (middle) + (large_), 2 * (full) + (large_), large_)

/* Makes length, large and way those within the case's series; way is the activation. */
static inline void series_begin(sweep_case *c, size_t small, size_t large)
{
    const size_t n = c->length - 1, all = small + large;
    c->length = n % all + 1;
    c->large = c->length > small ? c->length - small : 0;
    c->way += n / all * SERIES_WAYS;
    if (c->way >= NRG_ACTIVATION_COUNT) /* where the last series has fewer */
        c->way -= SERIES_WAYS;
}

#endif
