/* 113-bit numbers as doubles: how large one is, and the distance of the f32 numbers there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_QUAD_ULP_H
#define NRG_TESTS_HARNESS_QUAD_ULP_H

#include "element.h"
#include "quad.h"

static inline double quad_magnitude(quad value) { return (double)quad_abs(value); }
static inline double quad_ulp(quad value) { return element_ulp(quad_magnitude(value), NRG_F32); }

#endif
