/* g of one value, and its slope: for the kernels that fuse an activation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_ACTIVATION_H
#define NRG_SCALAR_ACTIVATION_H

#include "../internal.h"
#include "../job/activation.h"

static inline float activate(nrg_activation g, float x)
{
    float out;
    nrg_scalar_activate(g, &x, &out, 1);
    return out;
}

static inline float slope_of(nrg_activation g, float x)
{
    float out, slope;
    nrg_scalar_activate_both(g, &x, &out, &slope, 1);
    return slope;
}

/* g(x), and g' where slope is not NULL; alpha: of those that have a parameter. */
float nrg_scalar_activate_one(nrg_activation g, float alpha, float x, float *slope);

#endif
