/* Σx and Σx² in double, in the order that every path keeps (docs/numerics.md): element i belongs to lane i mod 32, and the lanes
 * fold by halves.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_EXACT_LANES_H
#define NRG_TEMPLATE_EXACT_LANES_H

#include "step.h"

enum {
    EXACT_LANES = 32,
    EXACT_CHUNK = 512,                    /* stays in L1 for the next lanes */
    EXACT_VECTORS = EXACT_LANES / VN,     /* vectors of floats that fill the lanes once */
    EXACT_LANE_VDS = 2 * EXACT_LANES / VN /* vectors of doubles that hold them */
};

NRG_INLINE void accumulate_exact(vd *t, vd *tt, vd low, vd high, int has_mean)
{
    if (has_mean) {
        t[0] = vd_add(t[0], low);
        t[1] = vd_add(t[1], high);
    }
    tt[0] = vd_fma(low, low, tt[0]);
    tt[1] = vd_fma(high, high, tt[1]);
}

/* 32 lanes to 8: lane l takes l + 16, then l + 8. */
NRG_INLINE vd8 fold_exact(const vd *lanes)
{
    enum { Q = EXACT_LANE_VDS / 4 };
    vd8 folded;
    NRG_UNROLL
    for (int j = 0; j < Q; j++)
        folded.v[j] = vd_add(vd_add(lanes[j], lanes[j + 2 * Q]), vd_add(lanes[j + Q], lanes[j + 3 * Q]));
    return folded;
}

#endif
