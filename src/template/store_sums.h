/* Sums in double that become floats.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_STORE_SUMS_H
#define NRG_TEMPLATE_STORE_SUMS_H

#include "step.h"

/* n sums, whole vectors of them, rounded, or added to what is there. */
NRG_INLINE void store_sums(float *to, const double *sums, size_t n, int accumulate)
{
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vd low = vd_ld(sums + i), high = vd_ld(sums + i + VN / 2);
        if (accumulate) {
            const vf before = load_lanes(to + i, lanes);
            low = vd_add(vd_low(before), low);
            high = vd_add(vd_high(before), high);
        }
        store_lanes(to + i, v_from_vd(low, high), lanes);
    }
}

#endif
