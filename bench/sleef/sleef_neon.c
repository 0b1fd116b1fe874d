/* SLEEF on the neon path.
 *
 * SPDX-License-Identifier: MIT */
#define SLEEF_LOOPS sleef_loops_neon

#ifndef WITHOUT_SLEEF
#include <arm_neon.h>

#include "../../tests/sleef/sleef_names.h"

typedef float32x4_t vec;
enum { LANES = 4 };
#define v_load(p) vld1q_f32(p)
#define v_store(p, v) vst1q_f32(p, v)
#define v_abs(v) vabsq_f32(v)
#define SLEEF(function) SLEEF_VECTOR(function##f4_u10advsimd)
#endif
#include "sleef_template.h"
