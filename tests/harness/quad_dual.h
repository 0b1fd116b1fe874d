/* Automatic differentiation with 113 bits: a value and its derivative by one of the inputs, forward mode.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_QUAD_DUAL_H
#define NRG_TESTS_HARNESS_QUAD_DUAL_H

#include "quad_activation.h"

typedef struct dual {
    quad v, e;
} dual;

static inline dual dual_add(dual a, dual b) { return (dual){a.v + b.v, a.e + b.e}; }
static inline dual dual_sub(dual a, dual b) { return (dual){a.v - b.v, a.e - b.e}; }
static inline dual dual_mul(dual a, dual b) { return (dual){a.v * b.v, a.v * b.e + a.e * b.v}; }
static inline dual dual_div(dual a, dual b) { return (dual){a.v / b.v, (a.e - a.v / b.v * b.e) / b.v}; }
static inline dual dual_of(quad v) { return (dual){v, 0}; }

static inline dual dual_sqrt(dual a)
{
    quad root = quad_sqrt(a.v);
    return (dual){root, root > 0 ? a.e / (2 * root) : 0};
}

static inline dual dual_g(nrg_activation g, dual x)
{
    quad_g r = quad_activation(g, x.v);
    return (dual){r.value, r.slope * x.e};
}

#endif
