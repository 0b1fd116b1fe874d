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

#endif
