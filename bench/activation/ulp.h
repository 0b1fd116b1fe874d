/* Errors of activations.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_ACTIVATION_ULP_H
#define NRG_BENCH_ACTIVATION_ULP_H

#include "../cases.h"
#include "../rival.h"

/* How far a float is from what it should be, in ulps of scale: of the exact value itself where nothing is said against it. */
double bench_ulps(float value, double exact, double scale);

/* As a family's ulp. */
double bench_activation_ulp(const bench_case *c, const rival_loop *loop);

#endif
