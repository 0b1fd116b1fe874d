/* SPDX-License-Identifier: MIT */
#include "share.h"

size_t nrg_share_of_many(size_t n, int ith, int nth)
{
    const size_t i = (size_t)ith, count = (size_t)nth, each = n / count, left = n % count;
    return each * i + (i < left ? i : left);
}
