/* SLEEF on the avx2 path.
 *
 * SPDX-License-Identifier: MIT */
#define SLEEF_LOOPS sleef_loops_avx2

#ifndef WITHOUT_SLEEF
#include <immintrin.h>

#include "../../tests/sleef/sleef_names.h"

typedef __m256 vec;
enum { LANES = 8 };
#define v_load(p) _mm256_loadu_ps(p)
#define v_store(p, v) _mm256_storeu_ps(p, v)
#define v_abs(v) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v)
#define SLEEF(function) SLEEF_VECTOR(function##f8_u10avx2)
#endif
#include "sleef_template.h"
