/* SLEEF on the avx512 path.
 *
 * SPDX-License-Identifier: MIT */
#define SLEEF_LOOPS sleef_loops_avx512

#ifndef WITHOUT_SLEEF
#include <immintrin.h>

#include "../../tests/sleef/sleef_names.h"

typedef __m512 vec;
enum { LANES = 16 };
#define v_load(p) _mm512_loadu_ps(p)
#define v_store(p, v) _mm512_storeu_ps(p, v)
#define v_abs(v) _mm512_abs_ps(v)
#define SLEEF(function) SLEEF_VECTOR(function##f16_u10avx512f)
#endif
#include "sleef_template.h"
