/* What the calls of nrg/softmax.h and nrg/cross_entropy.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SOFTMAX_H
#define NRG_OPERANDS_SOFTMAX_H

#include <float.h>
#include <math.h>

#include "../../include/nrg/cross_entropy.h"
#include "../../include/nrg/softmax.h"
#include "heads.h"

/* Scale, cap and window, and a position that can be added to. A cap of 1 or more makes no number larger; the quotient of most is
 * subnormal, which takes 12 ns of a row of 64. */
static inline nrg_status nrg_softmax_check_numbers(float scale, float cap, int causal, size_t window, int64_t first)
{
    if (!(fabsf(scale) <= FLT_MAX) || !(cap >= 1 || (cap > 0 && fabsf(scale / cap) <= FLT_MAX)) || !window)
        return NRG_ERR_CONSTANT;
    const int is_read = causal || window != SIZE_MAX;
    return !is_read || (first >= -((int64_t)1 << 61) && first <= (int64_t)1 << 61) ? NRG_OK : NRG_ERR_POSITION;
}

/* Whether so many scores fit: no stride says so of rows that repeat. */
static inline int nrg_scores_fit(size_t batch, size_t heads, size_t queries, size_t keys)
{
    const uint64_t most = (uint64_t)1 << 61;
    size_t n;
    if ((batch | heads | queries | keys) >> (sizeof(size_t) * 2 - 1) == 0 || !batch || !heads || !queries || !keys)
        return 1;
    return queries <= SIZE_MAX - keys && (uint64_t)queries <= most && (uint64_t)keys <= most && nrg_product(batch, heads, &n) &&
           nrg_product(n, queries, &n) && nrg_product(n, keys, &n) && nrg_product(n, 4, &n);
}

#include "softmax_calls.def"
#include "cross_entropy_calls.def"

#endif
