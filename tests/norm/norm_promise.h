/* What nrg/norm.h promises of a forward pass in f32, in one place for the tests that measure it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_PROMISE_H
#define NRG_TESTS_NORM_NORM_PROMISE_H

#include "norm_exact.h"
#include "../harness/quad_ulp.h"

/* An error is at most `ulps` of the result (or of the largest term, where + b or + y is in it), and what is `beside`. */
typedef struct norm_promise {
    double ulps, beside;
} norm_promise;

/* Of o1 before b. w: with its offset, 1 where absent; factor: (c/√d)/s. What is lost below the normal floats on the way is beside
 * as well: of the element before it is multiplied by w; in the exact way of the error of r·w, which is multiplied by factor, and
 * of what is added to it. A row whose factor is beyond 2^40 is done in double. */
static inline norm_promise norm_promise_of(const nrg_norm_spec *spec, quad w, quad k, quad factor, int has_offset)
{
    const int fast = spec->dtype != NRG_F32 || spec->accuracy == NRG_ACCURACY_FAST;
    const double size = quad_magnitude(factor), lost = 0x1p-149 * (1 + quad_magnitude(w) + (size <= 0x1p40 ? size : 0)),
                 centred = spec->centred ? quad_magnitude(k * w) : 0;
    if (fast)
        return (norm_promise){has_offset ? 4 : 3, 0x1p-23 * centred + lost};
    return (norm_promise){spec->centred ? 1 : 0.501, 0x1p-24 * centred + lost};
}

/* The statistics'. */
static inline double norm_mean_bound(int fast, const norm_exact *exact)
{
    const double mean = quad_magnitude(exact->mean), sigma = 0x1p-24 * (double)exact->sigma;
    return fast ? fmax(0x1p-149, 3 * (0x1p-24 * mean + sigma)) : element_ulp(mean, NRG_F32) + sigma;
}

static inline double norm_rstd_bound(int fast, quad rstd)
{
    const double size = quad_magnitude(rstd);
    return fast ? fmax(0x1p-149, 3 * 0x1p-24 * size) : element_ulp(size, NRG_F32);
}

#endif
