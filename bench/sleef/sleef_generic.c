/* SLEEF on the generic path: SSE2 or Advanced SIMD, and elsewhere none.
 *
 * SPDX-License-Identifier: MIT */
#define SLEEF_LOOPS sleef_loops_generic

#if !defined(__SSE2__) && !defined(__aarch64__) && !defined(WITHOUT_SLEEF)
#define WITHOUT_SLEEF
#endif
#ifndef WITHOUT_SLEEF
#include <string.h>

#include "../../tests/sleef/sleef_names.h"

typedef float vec __attribute__((vector_size(16)));
enum { LANES = 4 };

static inline vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void store(float *p, vec v) { memcpy(p, &v, sizeof v); }
static inline vec absolute(vec v)
{
    typedef int bits __attribute__((vector_size(16)));
    return (vec)((bits)v & 0x7fffffff);
}

#define v_load(p) load(p)
#define v_store(p, v) store(p, v)
#define v_abs(v) absolute(v)
#if defined(__aarch64__)
#define SLEEF(function) SLEEF_VECTOR(function##f4_u10advsimd)
#else
#define SLEEF(function) SLEEF_PLAIN_VECTOR(function##f4_u10sse2)
#endif
#endif
#include "sleef_template.h"
