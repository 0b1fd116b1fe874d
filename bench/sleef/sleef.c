/* Activations made of SLEEF's functions, by the formulas one would write, on whole vectors. bench/meson.build compiles this file
 * once a path, with the path's flags and
 *
 *     SLEEF_LOOPS       the name of the list
 *     LANES             floats of a vector; 1: of the scalar path
 *     WITHOUT_SLEEF     where the build has no SLEEF or no use for it on this path
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../rival.h"

#if LANES == 4 && !defined(__SSE2__) && !defined(__aarch64__) && !defined(WITHOUT_SLEEF)
#define WITHOUT_SLEEF
#endif

#ifdef WITHOUT_SLEEF
#define LOOP(name, expression) enum { name##_is_not_here };
#define RUN(name) NULL
#else
#include "../../tests/sleef/sleef_names.h"

/* SLEEF's exp, tanh, erf and log1p for a vector, within 1.0 ulp. The base instruction set of x86-64 lacks fused multiply-adds. */
#if LANES == 16
#define SLEEF(function) SLEEF_VECTOR(function##f16_u10avx512f)
#elif LANES == 8
#define SLEEF(function) SLEEF_VECTOR(function##f8_u10avx2)
#elif LANES == 4 && defined(__aarch64__)
#define SLEEF(function) SLEEF_VECTOR(function##f4_u10advsimd)
#elif LANES == 4
#define SLEEF(function) SLEEF_PLAIN_VECTOR(function##f4_u10sse2)
#else
#define SLEEF(function) SLEEF_FLOAT(function, u10)
#endif

#if LANES == 1
typedef float vec;
#define v_abs(v) fabsf(v)
#else
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int bits __attribute__((vector_size(4 * LANES)));
#define v_abs(v) ((vec)((bits)(v)&0x7fffffff))
#endif

#define LOOP(name, expression)                                                                                                   \
    static void name(const rival_job *job)                                                                                       \
    {                                                                                                                            \
        const float *in = job->x;                                                                                                \
        float *out = job->o;                                                                                                     \
        for (size_t i = 0; i + LANES <= job->dim; i += LANES) {                                                                  \
            vec x, o;                                                                                                            \
            memcpy(&x, in + i, sizeof x);                                                                                        \
            o = (expression);                                                                                                    \
            memcpy(out + i, &o, sizeof o);                                                                                       \
        }                                                                                                                        \
    }
#define RUN(name) name
#endif

LOOP(sigmoid, 1.0f / (1.0f + SLEEF(exp)(-x)))
LOOP(silu, x / (1.0f + SLEEF(exp)(-x)))
LOOP(hyperbolic, SLEEF(tanh)(x))
LOOP(gelu, x * 0.5f * (1.0f + SLEEF(erf)(x * 0.70710678f)))
LOOP(gelu_tanh, x * 0.5f * (1.0f + SLEEF(tanh)((x + x * x * x * 0.044715f) * 0.79788456f)))
LOOP(softplus, (x + v_abs(x)) * 0.5f + SLEEF(log1p)(SLEEF(exp)(-v_abs(x))))

const rival_loop SLEEF_LOOPS[] = {
    {"activation", "sigmoid", NRG_F32, RUN(sigmoid)},
    {"activation", "silu", NRG_F32, RUN(silu)},
    {"activation", "tanh", NRG_F32, RUN(hyperbolic)},
    {"activation", "gelu", NRG_F32, RUN(gelu)},
    {"activation", "gelu_tanh", NRG_F32, RUN(gelu_tanh)},
    {"activation", "softplus", NRG_F32, RUN(softplus)},
    {.kernel = NULL},
};
