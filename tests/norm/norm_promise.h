/* What nrg/norm.h promises of a forward pass in f32, in one place for the tests that measure it; and what the stress set of
 * docs/numerics.md keeps to, where that is less.
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

/* Of every row, or of the stress set: the latter is measured, the former is derived in docs/numerics.md. */
enum norm_rows { NORM_EVERY_ROW, NORM_STRESS_SET };

/* Of o1 before b. Magnitudes: w with its offset, 1 where absent; factor: (c/√d)/s. What is lost below the normal floats on the
 * way is beside as well: of the element before it is multiplied by w; in the exact way of the error of r·w, which is multiplied
 * by factor, and of what is added to it. A row whose factor is beyond 2^40 is done in double. */
static inline norm_promise norm_promise_of(const nrg_norm_spec *spec, enum norm_rows rows, double w, double k, double factor,
                                           int has_offset)
{
    const int fast = spec->dtype != NRG_F32 || spec->accuracy == NRG_ACCURACY_FAST;
    const double lost = 0x1p-149 * (1 + w + (factor <= 0x1p40 ? factor : 0)), centred = spec->centred ? k * w : 0;
    if (!fast)
        return (norm_promise){spec->centred ? 1 : 0.501, 0x1p-24 * centred + lost};
    if (rows == NORM_STRESS_SET)
        return (norm_promise){has_offset ? 4 : 3, 0x1p-23 * centred + lost};
    return (norm_promise){(spec->centred ? 12 : 5.5) + has_offset, 0x1p-21 * centred + lost};
}

/* The statistics'. */
static inline double norm_mean_bound(int fast, enum norm_rows rows, double mean, double sigma)
{
    if (!fast)
        return element_ulp(mean, NRG_F32) + 0x1p-24 * sigma;
    return fmax(0x1p-149, 0x1p-24 * (rows == NORM_STRESS_SET ? 3 * (mean + sigma) : mean + 7 * sigma));
}

static inline double norm_rstd_bound(int fast, enum norm_rows rows, int centred, double rstd)
{
    const double units = rows == NORM_STRESS_SET ? 3 : centred ? 10 : 4;
    return fast ? fmax(0x1p-149, units * 0x1p-24 * rstd) : element_ulp(rstd, NRG_F32);
}

#endif
