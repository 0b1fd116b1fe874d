/* Errors of activations.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_ACTIVATION_ULP_H
#define NRG_BENCH_ACTIVATION_ULP_H

#include "../cases.h"
#include "../rival.h"

/* The error of an infinity or a NaN where a number should be; a report's JSON has no infinity. */
#define BENCH_NO_NUMBER 1e300

/* How far a number is from what it should be, in ulps of scale in its dtype: of the exact value itself where nothing is said
 * against it. 0 where it is as large as the dtype has, and what it should be is larger. */
double bench_ulps(float value, double exact, double scale, nrg_dtype dtype);

/* As a family's ulp. */
double bench_activation_ulp(const bench_case *c, const rival_loop *loop);

#endif
