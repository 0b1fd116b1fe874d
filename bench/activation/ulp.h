/* Errors of activations.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_ACTIVATION_ULP_H
#define NRG_BENCH_ACTIVATION_ULP_H

#include "../cases.h"
#include "../rival.h"

/* As a family's ulp. */
double bench_activation_ulp(const bench_case *c, const rival_loop *loop);

#endif
