/* SLEEF on the scalar path.
 *
 * SPDX-License-Identifier: MIT */
#define SLEEF_LOOPS sleef_loops_scalar

#ifndef WITHOUT_SLEEF
#include <math.h>

#include "../../tests/sleef/sleef_names.h"

/* without fused multiply-adds (SLEEF 3), which the base instruction set of x86-64 lacks */
typedef float vec;
enum { LANES = 1 };
#define v_load(p) (*(p))
#define v_store(p, v) (*(p) = (v))
#define v_abs(v) fabsf(v)
#define SLEEF(function) SLEEF_FLOAT(function, u10)
#endif
#include "sleef_template.h"
