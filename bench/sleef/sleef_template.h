/* Activations made of SLEEF's functions, by the formulas one would write, on whole vectors. The including file defines
 *
 *     SLEEF_LOOPS               name of the list
 *     vec, LANES                a vector of floats, or a float; the compiler's operators work on it
 *     v_load(p), v_store(p, v)
 *     v_abs(v)
 *     SLEEF(function)           SLEEF's for this vector: exp, tanh, erf, log1p within 1.0 ulp
 *
 * or, where the build has no SLEEF or no use for it on this path, WITHOUT_SLEEF and the first of these alone.
 *
 * SPDX-License-Identifier: MIT */
#include "../rival.h"

#ifdef WITHOUT_SLEEF
#define LOOP(name, expression) enum { name##_is_not_here };
#define RUN(name) NULL
#else
#define LOOP(name, expression)                                                                                                   \
    static void name(const rival_job *job)                                                                                       \
    {                                                                                                                            \
        const float *in = job->x;                                                                                                \
        float *out = job->o;                                                                                                     \
        for (size_t i = 0; i + LANES <= job->dim; i += LANES) {                                                                  \
            const vec x = v_load(in + i);                                                                                        \
            v_store(out + i, (expression));                                                                                      \
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
