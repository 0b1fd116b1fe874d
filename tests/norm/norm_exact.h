/* The statistics of a row or group with 113 bits, from the definition in nrg/norm.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_EXACT_H
#define NRG_TESTS_NORM_NORM_EXACT_H

#include <nrg/nrg.h>

#include "../harness/quad.h"

typedef struct norm_exact {
    quad mean, squares; /* m and Σq² */
    quad sigma, s;
} norm_exact;

/* p: the d elements that are normalized. */
static inline norm_exact norm_exact_of(const nrg_norm_spec *spec, size_t dim, const quad *p)
{
    norm_exact exact = {0, 0, 0, 0};
    quad d = (quad)dim, eps = spec->eps;
    if (spec->centred) {
        for (size_t i = 0; i < dim; i++)
            exact.mean += p[i];
        exact.mean /= d;
    }
    for (size_t i = 0; i < dim; i++) {
        quad q = p[i] - exact.mean;
        exact.squares += q * q;
    }
    exact.sigma = quad_sqrt(exact.squares / d);
    switch (spec->eps_mode) {
    case NRG_EPS_MEAN:
        exact.s = quad_sqrt(exact.squares / d + eps);
        break;
    case NRG_EPS_SUM:
        exact.s = quad_sqrt(exact.squares + eps) / quad_sqrt(d);
        break;
    case NRG_EPS_SIGMA:
        exact.s = exact.sigma + eps;
        break;
    case NRG_EPS_MAX:
        exact.s = quad_sqrt(exact.squares);
        exact.s = (exact.s > eps ? exact.s : eps) / quad_sqrt(d);
        break;
    case NRG_EPS_NONE:
        exact.s = exact.sigma;
        break;
    }
    return exact;
}

/* c/√d */
static inline quad norm_exact_k(const nrg_norm_spec *spec, size_t dim)
{
    return spec->c_mode == NRG_C_GIVEN ? spec->c / quad_sqrt((quad)dim) : 1;
}

#endif
