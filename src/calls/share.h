/* The part of a call's work that is one thread's.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_SHARE_H
#define NRG_CALLS_SHARE_H

#include <stddef.h>

/* Where share ith of nth of n units begins: n·ith/nth without the product, which may not fit. Most calls are one share, and a
 * division takes a tenth of a short row. */
static inline size_t nrg_share(size_t n, int ith, int nth)
{
    if (nth == 1)
        return ith ? n : 0;
    size_t i = (size_t)ith, count = (size_t)nth;
    size_t each = n / count, left = n % count;
    return each * i + (i < left ? i : left);
}

#endif
