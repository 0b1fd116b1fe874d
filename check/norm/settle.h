/* Options of norms that were drawn.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_NORM_SETTLE_H
#define NRG_CHECK_NORM_SETTLE_H

#include <nrg/nrg.h>

/* Makes options fit each other: c says how it counts, and what has no use is 0. */
static inline void norm_settle(nrg_norm_spec *s, int has_w)
{
    s->c_mode = s->c != 0 ? NRG_C_GIVEN : NRG_C_SQRT_DIM;
    if (s->eps_mode == NRG_EPS_NONE)
        s->eps = 0;
    if (!has_w)
        s->weight_offset = 0;
}

/* The weights of a tensor that has none beside one that has them: with an offset of 1, these are all 1. */
static inline const void *norm_weights(const nrg_norm_spec *s, const void *w)
{
    static const float zeros[1 << 13];
    return w || s->weight_offset == 0 ? w : zeros;
}

#endif
