/* The activations and their slopes as functions: special values; every path against scalar, bit by bit; scalar against the exact
 * value. Inputs are one in 61 of all floats, an odd stride, so that the low bits take all values in every binade.
 *
 *   activation_test --report   prints the largest errors as the Markdown table of docs/ops/activation.md, which this test reads
 *   activation_test --all      takes all 2^32 floats: vector paths against each other, one block in 61 against scalar; measures
 *                              all of magnitude 2^-30 to 2^7, and one in 7 of the blocks against scalar
 *   activation_test --all --scalar   compares every block with scalar, which takes hours
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../harness/element.h"
#include "job/activation.h"
#include "../harness/quad_activation.h"
#include "../harness/quad_ulp.h"
#include "../harness/rows.h"
#include "activation_double.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { ACTIVATIONS = NRG_ACTIVATION_COUNT, BLOCK = 4096, THREADS = 2 };

static int all_floats, all_by_scalar;

/* Truth is slower: one in so many of the inputs. */
enum { TRUTH_EVERY = 7, SCALAR_EVERY = 61 };

static uint32_t input_stride(void) { return all_floats ? 1 : test_small() ? 61 * 1021 : 61; }

/* ---- the functions of each path ---- */

typedef struct path_functions {
    nrg_isa isa;
    void (*activate)(nrg_activation g, const float *in, float *out, size_t n);
    void (*both)(nrg_activation g, const float *in, float *out, float *slope, size_t n);
} path_functions;

#define FUNCTIONS_OF(path, isa, unused) {isa, nrg_##path##_activate, nrg_##path##_activate_both},
static const path_functions functions[] = {NRG_EACH_PATH(FUNCTIONS_OF, )};

START_TEST(every_path_is_here)
{
    size_t found = 0;
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < COUNT(functions); i++)
        found += nrg_isa_supported(functions[i].isa) != 0;
    ck_assert_uint_eq(found, test_paths(paths));
}
END_TEST

/* ---- special values, written down by hand ---- */

typedef struct special_value {
    nrg_activation activation;
    float x, g, slope;
} special_value;

#define TINY 0x1p-148f

static const special_value special_values[] = {
    {NRG_ACT_IDENTITY, 0, 0, 1},
    {NRG_ACT_IDENTITY, -0.0f, -0.0f, 1},
    {NRG_ACT_IDENTITY, TINY, TINY, 1},
    {NRG_ACT_IDENTITY, -INFINITY, -INFINITY, 1},
    {NRG_ACT_IDENTITY, INFINITY, INFINITY, 1},
    {NRG_ACT_SIGMOID, 0, 0.5f, 0.25f},
    {NRG_ACT_SIGMOID, -0.0f, 0.5f, 0.25f},
    {NRG_ACT_SIGMOID, -TINY, 0.5f, 0.25f},
    {NRG_ACT_SIGMOID, 30, 1, 0x1.a56e0cp-44f}, /* e^-30 */
    {NRG_ACT_SIGMOID, -30, 0x1.a56e0cp-44f, 0x1.a56e0cp-44f},
    {NRG_ACT_SIGMOID, -100, 0x1.bp-145f, 0x1.bp-145f}, /* e^-100: 26.5 · 2^-149 */
    {NRG_ACT_SIGMOID, 100, 1, 0x1.bp-145f},
    {NRG_ACT_SIGMOID, FLT_MAX, 1, 0},
    {NRG_ACT_SIGMOID, -FLT_MAX, 0, 0},
    {NRG_ACT_SIGMOID, INFINITY, 1, 0},
    {NRG_ACT_SIGMOID, -INFINITY, 0, 0},
    {NRG_ACT_SILU, 0, 0, 0.5f},
    {NRG_ACT_SILU, -0.0f, -0.0f, 0.5f},
    {NRG_ACT_SILU, TINY, TINY / 2, 0.5f},
    {NRG_ACT_SILU, -TINY, -TINY / 2, 0.5f},
    {NRG_ACT_SILU, -100, -0x1.4bep-138f, -0x1.488p-138f}, /* -100·e^-100, -99·e^-100: 2654.7 and 2628.2 · 2^-149 */
    {NRG_ACT_SILU, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_SILU, -FLT_MAX, -0.0f, -0.0f},
    {NRG_ACT_SILU, INFINITY, INFINITY, 1},
    {NRG_ACT_SILU, -INFINITY, -0.0f, -0.0f},
    {NRG_ACT_RELU, 0, 0, 0},
    {NRG_ACT_RELU, -0.0f, -0.0f, 0},
    {NRG_ACT_RELU, TINY, TINY, 1},
    {NRG_ACT_RELU, -TINY, 0, 0},
    {NRG_ACT_RELU, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_RELU, -FLT_MAX, 0, 0},
    {NRG_ACT_RELU, INFINITY, INFINITY, 1},
    {NRG_ACT_RELU, -INFINITY, 0, 0},
    {NRG_ACT_RELU2, 0, 0, 0},
    {NRG_ACT_RELU2, -0.0f, 0, -0.0f},
    {NRG_ACT_RELU2, 3, 9, 6},
    {NRG_ACT_RELU2, TINY, 0, 2 * TINY},
    {NRG_ACT_RELU2, -3, 0, 0},
    {NRG_ACT_RELU2, FLT_MAX, INFINITY, INFINITY},
    {NRG_ACT_RELU2, -FLT_MAX, 0, 0},
    {NRG_ACT_RELU2, INFINITY, INFINITY, INFINITY},
    {NRG_ACT_RELU2, -INFINITY, 0, 0},
    {NRG_ACT_TANH, 0, 0, 1},
    {NRG_ACT_TANH, -0.0f, -0.0f, 1},
    {NRG_ACT_TANH, TINY, TINY, 1},
    {NRG_ACT_TANH, -TINY, -TINY, 1},
    {NRG_ACT_TANH, 0x1p-14f, 0x1p-14f, 1},    /* minus x³/3: a third of an ulp, and less */
    {NRG_ACT_TANH, -15, -1, 0x1.a56e0cp-42f}, /* 4·e^-30 */
    {NRG_ACT_TANH, 50, 1, 0x1.a8p-143f},      /* 4·e^-100: 106.2 · 2^-149 */
    {NRG_ACT_TANH, FLT_MAX, 1, 0},
    {NRG_ACT_TANH, -FLT_MAX, -1, 0},
    {NRG_ACT_TANH, INFINITY, 1, 0},
    {NRG_ACT_TANH, -INFINITY, -1, 0},
    {NRG_ACT_GELU, 0, 0, 0.5f},
    {NRG_ACT_GELU, -0.0f, -0.0f, 0.5f},
    {NRG_ACT_GELU, TINY, TINY / 2, 0.5f},
    {NRG_ACT_GELU, -TINY, -TINY / 2, 0.5f},
    {NRG_ACT_GELU, 20, 20, 1},
    {NRG_ACT_GELU, -20, -0.0f, -0.0f},
    {NRG_ACT_GELU, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_GELU, -FLT_MAX, -0.0f, -0.0f},
    {NRG_ACT_GELU, INFINITY, INFINITY, 1},
    {NRG_ACT_GELU, -INFINITY, -0.0f, -0.0f},
    {NRG_ACT_GELU_TANH, 0, 0, 0.5f},
    {NRG_ACT_GELU_TANH, -0.0f, -0.0f, 0.5f},
    {NRG_ACT_GELU_TANH, TINY, TINY / 2, 0.5f},
    {NRG_ACT_GELU_TANH, -TINY, -TINY / 2, 0.5f},
    {NRG_ACT_GELU_TANH, 20, 20, 1},
    {NRG_ACT_GELU_TANH, -20, -0.0f, -0.0f},
    {NRG_ACT_GELU_TANH, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_GELU_TANH, -FLT_MAX, -0.0f, -0.0f},
    {NRG_ACT_GELU_TANH, INFINITY, INFINITY, 1},
    {NRG_ACT_GELU_TANH, -INFINITY, -0.0f, -0.0f},
    {NRG_ACT_SOFTPLUS, 0, 0x1.62e43p-1f, 0.5f}, /* ln 2 */
    {NRG_ACT_SOFTPLUS, -0.0f, 0x1.62e43p-1f, 0.5f},
    {NRG_ACT_SOFTPLUS, TINY, 0x1.62e43p-1f, 0.5f},
    {NRG_ACT_SOFTPLUS, 100, 100, 1},
    {NRG_ACT_SOFTPLUS, -30, 0x1.a56e0cp-44f, 0x1.a56e0cp-44f},
    {NRG_ACT_SOFTPLUS, -100, 0x1.bp-145f, 0x1.bp-145f},
    {NRG_ACT_SOFTPLUS, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_SOFTPLUS, -FLT_MAX, 0, 0},
    {NRG_ACT_SOFTPLUS, INFINITY, INFINITY, 1},
    {NRG_ACT_SOFTPLUS, -INFINITY, 0, 0},
    {NRG_ACT_GELU_QUICK, 0, 0, 0.5f},
    {NRG_ACT_GELU_QUICK, -0.0f, -0.0f, 0.5f},
    {NRG_ACT_GELU_QUICK, TINY, TINY / 2, 0.5f},
    {NRG_ACT_GELU_QUICK, -TINY, -TINY / 2, 0.5f},
    {NRG_ACT_GELU_QUICK, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_GELU_QUICK, -FLT_MAX, -0.0f, -0.0f},
    {NRG_ACT_GELU_QUICK, INFINITY, INFINITY, 1},
    {NRG_ACT_GELU_QUICK, -INFINITY, -0.0f, -0.0f},
    {NRG_ACT_HARD_SWISH, 0, 0, 0.5f},
    {NRG_ACT_HARD_SWISH, -0.0f, -0.0f, 0.5f},
    {NRG_ACT_HARD_SWISH, TINY, TINY / 2, 0.5f},
    {NRG_ACT_HARD_SWISH, 3, 3, 1},
    {NRG_ACT_HARD_SWISH, -3, -0.0f, 0},
    {NRG_ACT_HARD_SWISH, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_HARD_SWISH, -FLT_MAX, -0.0f, 0},
    {NRG_ACT_HARD_SWISH, INFINITY, INFINITY, 1},
    {NRG_ACT_HARD_SWISH, -INFINITY, -0.0f, 0},
    {NRG_ACT_HARD_SIGMOID, 0, 0.5f, 0x1.555556p-3f},
    {NRG_ACT_HARD_SIGMOID, -0.0f, 0.5f, 0x1.555556p-3f},
    {NRG_ACT_HARD_SIGMOID, 3, 1, 0},
    {NRG_ACT_HARD_SIGMOID, -3, 0, 0},
    {NRG_ACT_HARD_SIGMOID, -0x1.7ffffep1f, 0x1.555556p-25f, 0x1.555556p-3f}, /* 2^-22 above -3 */
    {NRG_ACT_HARD_SIGMOID, FLT_MAX, 1, 0},
    {NRG_ACT_HARD_SIGMOID, -FLT_MAX, 0, 0},
    {NRG_ACT_HARD_SIGMOID, INFINITY, 1, 0},
    {NRG_ACT_HARD_SIGMOID, -INFINITY, 0, 0},
    {NRG_ACT_ELU, 0, 0, 1},
    {NRG_ACT_ELU, -0.0f, -0.0f, 1},
    {NRG_ACT_ELU, TINY, TINY, 1},
    {NRG_ACT_ELU, -TINY, -TINY, 1},
    {NRG_ACT_ELU, -30, -1, 0x1.a56e0cp-44f}, /* e^-30 */
    {NRG_ACT_ELU, -100, -1, 0x1.bp-145f},
    {NRG_ACT_ELU, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_ELU, -FLT_MAX, -1, 0},
    {NRG_ACT_ELU, INFINITY, INFINITY, 1},
    {NRG_ACT_ELU, -INFINITY, -1, 0},
    {NRG_ACT_LEAKY_RELU, 0, 0, 0.01f},
    {NRG_ACT_LEAKY_RELU, -0.0f, -0.0f, 0.01f},
    {NRG_ACT_LEAKY_RELU, TINY, TINY, 1},
    {NRG_ACT_LEAKY_RELU, -TINY, -0.0f, 0.01f},
    {NRG_ACT_LEAKY_RELU, -2, -0.02f, 0.01f},
    {NRG_ACT_LEAKY_RELU, INFINITY, INFINITY, 1},
    {NRG_ACT_LEAKY_RELU, -INFINITY, -INFINITY, 0.01f},
    {NRG_ACT_MISH, 0, 0, 0.6f}, /* tanh ln 2 = 3/5 */
    {NRG_ACT_MISH, -0.0f, -0.0f, 0.6f},
    {NRG_ACT_MISH, TINY, TINY / 2, 0.6f},
    {NRG_ACT_MISH, -TINY, -TINY / 2, 0.6f},
    {NRG_ACT_MISH, -100, -0x1.4bep-138f, -0x1.488p-138f}, /* as silu */
    {NRG_ACT_MISH, FLT_MAX, FLT_MAX, 1},
    {NRG_ACT_MISH, -FLT_MAX, -0.0f, -0.0f},
    {NRG_ACT_MISH, INFINITY, INFINITY, 1},
    {NRG_ACT_MISH, -INFINITY, -0.0f, -0.0f},
    {NRG_ACT_EXP, 0, 1, 1},
    {NRG_ACT_EXP, -0.0f, 1, 1},
    {NRG_ACT_EXP, TINY, 1, 1},
    {NRG_ACT_EXP, -30, 0x1.a56e0cp-44f, 0x1.a56e0cp-44f},
    {NRG_ACT_EXP, -100, 0x1.bp-145f, 0x1.bp-145f},
    {NRG_ACT_EXP, -103.9f, 0x1p-149f, 0x1p-149f},                   /* 0.54 of it */
    {NRG_ACT_EXP, -104, 0, 0},                                      /* 0.49 */
    {NRG_ACT_EXP, 0x1.62e42ep6f, 0x1.ffff08p127f, 0x1.ffff08p127f}, /* 88.72283: the last */
    {NRG_ACT_EXP, 0x1.62e43p6f, INFINITY, INFINITY},
    {NRG_ACT_EXP, FLT_MAX, INFINITY, INFINITY},
    {NRG_ACT_EXP, -FLT_MAX, 0, 0},
    {NRG_ACT_EXP, INFINITY, INFINITY, INFINITY},
    {NRG_ACT_EXP, -INFINITY, 0, 0},
    {NRG_ACT_EXPM1, 0, 0, 1},
    {NRG_ACT_EXPM1, -0.0f, -0.0f, 1},
    {NRG_ACT_EXPM1, TINY, TINY, 1},
    {NRG_ACT_EXPM1, -TINY, -TINY, 1},
    {NRG_ACT_EXPM1, -30, -1, 0x1.a56e0cp-44f},
    {NRG_ACT_EXPM1, -100, -1, 0x1.bp-145f},
    {NRG_ACT_EXPM1, 0x1.62e42ep6f, 0x1.ffff08p127f, 0x1.ffff08p127f},
    {NRG_ACT_EXPM1, 0x1.62e43p6f, INFINITY, INFINITY},
    {NRG_ACT_EXPM1, FLT_MAX, INFINITY, INFINITY},
    {NRG_ACT_EXPM1, -FLT_MAX, -1, 0},
    {NRG_ACT_EXPM1, INFINITY, INFINITY, INFINITY},
    {NRG_ACT_EXPM1, -INFINITY, -1, 0},
    {NRG_ACT_SOFTSIGN, 0, 0, 1},
    {NRG_ACT_SOFTSIGN, -0.0f, -0.0f, 1},
    {NRG_ACT_SOFTSIGN, TINY, TINY, 1},
    {NRG_ACT_SOFTSIGN, -1, -0.5f, 0.25f},
    {NRG_ACT_SOFTSIGN, -0x1p70f, -1, 0x1p-140f},
    {NRG_ACT_SOFTSIGN, FLT_MAX, 1, 0},
    {NRG_ACT_SOFTSIGN, INFINITY, 1, 0},
    {NRG_ACT_SOFTSIGN, -INFINITY, -1, 0},
};

/* Equal bits, or both NaN. */
static int same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

static void check_special(const path_functions *path, nrg_activation g, float x, float value, float slope)
{
    /* more than a step, so that the loop and what is left over are in it */
    float in[131], out[131], both[131], slopes[131];
    for (size_t i = 0; i < COUNT(in); i++)
        in[i] = x;
    path->activate(g, in, out, COUNT(in));
    path->both(g, in, both, slopes, COUNT(in));
    for (size_t i = 0; i < COUNT(in); i++)
        if (!same(out[i], value) || !same(both[i], value) || !same(slopes[i], slope))
            ck_abort_msg("%s, %s(%a), element %zu: %a, with its slope %a and %a; expected %a and %a", nrg_isa_name(path->isa),
                         nrg_activation_name(g), (double)x, i, (double)out[i], (double)both[i], (double)slopes[i], (double)value,
                         (double)slope);
}

START_TEST(special_values_are_right)
{
    for (size_t p = 0; p < COUNT(functions); p++) {
        if (!nrg_isa_supported(functions[p].isa))
            continue;
        for (size_t i = 0; i < COUNT(special_values); i++) {
            const special_value *v = &special_values[i];
            check_special(&functions[p], v->activation, v->x, v->g, v->slope);
        }
        for (int g = 0; g < ACTIVATIONS; g++) {
            check_special(&functions[p], (nrg_activation)g, NAN, NAN, NAN);
            check_special(&functions[p], (nrg_activation)g, -NAN, NAN, NAN);
        }
    }
}
END_TEST

/* ---- the exact value: double arithmetic, 2^29 times as fine. No formula here subtracts what is nearly equal, but for slopes
 * where they cross 0; their unit is the largest term ---- */

typedef struct exact {
    double g, slope;
    double unit; /* of the slope: the magnitude whose ulp it is measured in */
} exact;

static exact of_terms(double g, double a, double b)
{
    exact e = {g, a + b, fmax(fabs(a), fabs(b))};
    return e;
}

/* σ(h) and 1 - σ(h) */
static void logistic(double h, double *s, double *other)
{
    double e = exp(-fabs(h)), small = e / (1 + e), large = 1 / (1 + e);
    *s = h < 0 ? small : large;
    *other = h < 0 ? large : small;
}

static exact exact_at(nrg_activation g, double alpha, double x)
{
    const double c1 = 1.5957691216057307, c3 = c1 * 0.044715; /* √(8/π) */
    double s, other;
    switch (g) {
    case NRG_ACT_SIGMOID:
        logistic(x, &s, &other);
        return of_terms(s, s * other, 0);
    case NRG_ACT_SILU:
        logistic(x, &s, &other);
        return of_terms(x * s, s, x * s * other);
    case NRG_ACT_RELU:
        return of_terms(x > 0 ? x : 0, x > 0, 0);
    case NRG_ACT_RELU2:
        return of_terms(x > 0 ? x * x : 0, x > 0 ? 2 * x : 0, 0);
    case NRG_ACT_TANH:
        logistic(2 * x, &s, &other);
        return of_terms(tanh(x), 4 * s * other, 0);
    case NRG_ACT_GELU:
        s = erfc(-x * 0.70710678118654752) / 2;
        return of_terms(x * s, s, x * exp(-x * x / 2) * 0.39894228040143268);
    case NRG_ACT_GELU_TANH:
        logistic(x * (c1 + c3 * x * x), &s, &other);
        return of_terms(x * s, s, x * s * other * (c1 + 3 * c3 * x * x));
    case NRG_ACT_SOFTPLUS:
        logistic(x, &s, &other);
        return of_terms(fmax(x, 0) + log1p(exp(-fabs(x))), s, 0);
    case NRG_ACT_GELU_QUICK:
        logistic(alpha * x, &s, &other);
        return of_terms(x * s, s, alpha * x * s * other);
    case NRG_ACT_HARD_SWISH:
        return of_terms(x * fmin(1, fmax(0, (x + 3) / 6)), x <= -3 ? 0 : x >= 3 ? 1 : x / 3, fabs(x) < 3 ? 0.5 : 0);
    case NRG_ACT_HARD_SIGMOID:
        return of_terms(fmin(1, fmax(0, (x + 3) / 6)), fabs(x) < 3 ? 1 / 6.0 : 0, 0);
    case NRG_ACT_ELU:
        return of_terms(x > 0 ? x : alpha * expm1(x), x > 0 ? 1 : alpha * exp(x), 0);
    case NRG_ACT_LEAKY_RELU:
        return of_terms(x > 0 ? x : alpha * x, x > 0 ? 1 : alpha, 0);
    case NRG_ACT_MISH: {
        /* w = e^-|x|, and tanh(ln(1 + e^x)) is above/below, its slope 4·w(1 + w)/below², either side of 0 */
        const double w = exp(-fabs(x)), below = x < 0 ? w * (2 + w) + 2 : 1 + 2 * w * (1 + w);
        const double above = x < 0 ? w * (2 + w) : 1 + 2 * w;
        return of_terms(x * (above / below), above / below, x * 4 * w * (1 + w) * (x < 0 ? 1 : w) / (below * below));
    }
    case NRG_ACT_EXP:
        return of_terms(exp(x), exp(x), 0);
    case NRG_ACT_EXPM1:
        return of_terms(expm1(x), exp(x), 0);
    case NRG_ACT_SOFTSIGN:
        return of_terms(x / (1 + fabs(x)), 1 / ((1 + fabs(x)) * (1 + fabs(x))), 0);
    case NRG_ACT_IDENTITY:
        break;
    }
    return of_terms(x, 1, 0);
}

/* Where the exact formulas stop: beyond it g is x or 0 in double as well, and x² overflows nothing. */
static double cut_off(nrg_activation g, double x)
{
    const int has_no_end = g == NRG_ACT_IDENTITY || g == NRG_ACT_RELU || g == NRG_ACT_RELU2 || g >= NRG_ACT_HARD_SWISH;
    const double end = has_no_end ? INFINITY : 0x1p60;
    return fmin(fmax(x, -end), end);
}

/* ---- what docs/ops/activation.md states: the largest errors in ulps, to three decimals, and their inputs ---- */

#ifndef NRG_DOCS
#error "NRG_DOCS: the folder docs"
#endif

typedef struct statement {
    double g, slope;
    float g_at, slope_at;
} statement;

static statement stated[ACTIVATIONS];

/* Three decimals, and what double arithmetic adds to an error. */
#define HALF_A_DIGIT 0.000501

/* A cell of a table as a number, 0 where it is empty. Returns the end of the cell. */
static const char *read_cell(const char *cell, double *number)
{
    char *end;
    *number = strtod(cell, &end);
    const char *next = strchr(cell, '|');
    ck_assert_msg(next && strspn(end, " ") == (size_t)(next - end), "docs/ops/activation.md: no number in %.40s", cell);
    return next + 1;
}

static void read_statements(void)
{
    static char line[4096];
    FILE *file = fopen(NRG_DOCS "/ops/activation.md", "rb");
    ck_assert_msg(file != NULL, NRG_DOCS "/ops/activation.md cannot be read");
    int found = 0, in_table = 0;
    while (fgets(line, sizeof line, file)) {
        in_table = line[0] == '|' && (in_table || strncmp(line, "| activation | g, ulp |", 23) == 0);
        for (int g = 0; in_table && g < ACTIVATIONS; g++) {
            char name[32];
            snprintf(name, sizeof name, "| %s | ", nrg_activation_name((nrg_activation)g));
            if (strncmp(line, name, strlen(name)) != 0)
                continue;
            double cells[4];
            const char *cell = line + strlen(name);
            for (int i = 0; i < 4; i++)
                cell = read_cell(cell, &cells[i]);
            const statement row = {cells[0], cells[2], (float)cells[1], (float)cells[3]};
            stated[g] = row;
            found++;
        }
    }
    fclose(file);
    ck_assert_int_eq(found, ACTIVATIONS);
}

/* The largest errors, and where. */
typedef struct worst_errors {
    double g, slope;
    float g_at, slope_at;
    uint64_t inputs;
} worst_errors;

static worst_errors *worst; /* of each activation, in shared memory */

static void worse(double *largest, float *at, double error, float x)
{
    if (!(error <= *largest)) {
        *largest = error;
        *at = x;
    }
}

/* In ulps. What is beyond the floats and came out as infinity is right. */
static double error_of(float got, double value, double unit)
{
    if (isinf(got) && fabs(value) >= 0x1.ffffffp127)
        return 0;
    return fabs((double)got - value) / element_ulp(fmin(unit, FLT_MAX), NRG_F32);
}

/* ---- a sweep: every THREADSth block of inputs ---- */

typedef struct sweep {
    nrg_activation activation;
    unsigned thread;
    worst_errors worst;
    char failure[400];
} sweep;

static void compare(sweep *s, const path_functions *path, const float *x, const float *expected, const float *got,
                    const char *what)
{
    if (memcmp(expected, got, BLOCK * sizeof *got) == 0)
        return;
    for (size_t i = 0; i < BLOCK && !s->failure[0]; i++)
        if (!same(expected[i], got[i]))
            snprintf(s->failure, sizeof s->failure, "%s: %s of %s at %a: %a and not %a", nrg_isa_name(path->isa), what,
                     nrg_activation_name(s->activation), (double)x[i], (double)got[i], (double)expected[i]);
}

static void measure(sweep *s, const float *x, const float *out, const float *slope, size_t i)
{
    if (isnan(x[i])) {
        if (!isnan(out[i]) || !isnan(slope[i]))
            snprintf(s->failure, sizeof s->failure, "%s of NaN is a number", nrg_activation_name(s->activation));
        return;
    }
    if (isinf(x[i]))
        return; /* the special values have it */
    exact e = exact_at(s->activation, activation_double_alpha(s->activation), cut_off(s->activation, (double)x[i]));
    if (fabs((double)x[i]) > 0x1p60 && s->activation <= NRG_ACT_GELU_QUICK && s->activation != NRG_ACT_SIGMOID &&
        s->activation != NRG_ACT_TANH)
        e.g = x[i] > 0 ? (s->activation == NRG_ACT_RELU2 ? (double)x[i] * x[i] : (double)x[i]) : s->activation ? 0 : (double)x[i];
    worse(&s->worst.g, &s->worst.g_at, error_of(out[i], e.g, fabs(e.g)), x[i]);
    worse(&s->worst.slope, &s->worst.slope_at, error_of(slope[i], e.slope, e.unit), x[i]);
    s->worst.inputs++;
}

/* Scalar where this CPU has none. */
static size_t first_vector_path(void)
{
    for (size_t p = 1; p < COUNT(functions); p++)
        if (nrg_isa_supported(functions[p].isa))
            return p;
    return 0;
}

static void *run_sweep(void *argument)
{
    static const uint64_t floats = (uint64_t)1 << 32;
    sweep *s = argument;
    float *memory = malloc(5 * BLOCK * sizeof *memory);
    if (!memory)
        abort();
    float *x = memory, *out = x + BLOCK, *slope = out + BLOCK, *got = slope + BLOCK, *got_slope = got + BLOCK;
    const uint64_t stride = input_stride(), inputs = floats / stride, blocks = (inputs + BLOCK - 1) / BLOCK;
    uint64_t number = 0;
    for (uint64_t b = s->thread; b < blocks && !s->failure[0]; b += THREADS) {
        for (size_t i = 0; i < BLOCK; i++) {
            /* beyond the last: from the first on again */
            uint32_t bits = (uint32_t)((b * BLOCK + i) % inputs * stride);
            memcpy(&x[i], &bits, sizeof bits);
        }
        /* of all floats the vector paths are held against each other, and against scalar, a hundred times as slow, in some blocks
         */
        const int by_scalar = !all_floats || all_by_scalar || b % SCALAR_EVERY == 0;
        const size_t reference = by_scalar ? 0 : first_vector_path();
        functions[reference].both(s->activation, x, out, slope, BLOCK);
        if (b % 64 == s->thread) {
            nrg_scalar_activate(s->activation, x, got, BLOCK);
            compare(s, &functions[0], x, out, got, "g alone");
        }
        for (size_t p = 1; p < COUNT(functions); p++) {
            if (!nrg_isa_supported(functions[p].isa))
                continue;
            functions[p].activate(s->activation, x, got, BLOCK);
            compare(s, &functions[p], x, out, got, "g");
            functions[p].both(s->activation, x, got, got_slope, BLOCK);
            compare(s, &functions[p], x, out, got, "g beside its slope");
            compare(s, &functions[p], x, slope, got_slope, "the slope");
        }
        for (size_t i = 0; i < BLOCK; i++)
            if ((by_scalar && number++ % TRUTH_EVERY == 0) || (all_floats && fabsf(x[i]) >= 0x1p-30f && fabsf(x[i]) <= 0x1p7f))
                measure(s, x, out, slope, i);
    }
    free(memory);
    return NULL;
}

/* No error so far is larger than docs/ops/activation.md states. */
static void check_against_statement(nrg_activation g)
{
    read_statements();
    ck_assert_msg(worst[g].g <= stated[g].g + HALF_A_DIGIT, "%s(%a): %g ulp, more than docs/ops/activation.md states",
                  nrg_activation_name(g), (double)worst[g].g_at, worst[g].g);
    ck_assert_msg(worst[g].slope <= stated[g].slope + HALF_A_DIGIT,
                  "the slope of %s at %a: %g ulp, more than docs/ops/activation.md states", nrg_activation_name(g),
                  (double)worst[g].slope_at, worst[g].slope);
}

START_TEST(paths_and_truth)
{
    sweep sweeps[THREADS];
    pthread_t threads[THREADS];
    memset(sweeps, 0, sizeof sweeps);
    for (unsigned t = 0; t < THREADS; t++) {
        sweeps[t].activation = (nrg_activation)_i;
        sweeps[t].thread = t;
        ck_assert_int_eq(pthread_create(&threads[t], NULL, run_sweep, &sweeps[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    worst_errors *w = &worst[_i];
    for (unsigned t = 0; t < THREADS; t++) {
        const worst_errors *part = &sweeps[t].worst;
        if (sweeps[t].failure[0])
            ck_abort_msg("%s", sweeps[t].failure);
        worse(&w->g, &w->g_at, part->g, part->g_at);
        worse(&w->slope, &w->slope_at, part->slope, part->slope_at);
        w->inputs += part->inputs;
    }
    check_against_statement((nrg_activation)_i);
}
END_TEST

/* g and g' of scalar at an input, measured with 113 bits. */
static void measure_exactly(nrg_activation g, float at, double *error, double *slope_error)
{
    float value, slope;
    nrg_scalar_activate_both(g, &at, &value, &slope, 1);
    const quad_g truth = quad_activation(g, (quad)at);
    *error = quad_magnitude((quad)value - truth.value) / quad_ulp(truth.value);
    *slope_error = quad_magnitude((quad)slope - truth.slope) / quad_ulp(truth.size);
}

/* At the inputs that docs/ops/activation.md names, errors are what it states. */
START_TEST(stated_errors)
{
    double error, slope_error, unused;
    read_statements();
    measure_exactly((nrg_activation)_i, stated[_i].g_at, &error, &unused);
    measure_exactly((nrg_activation)_i, stated[_i].slope_at, &unused, &slope_error);
    if (!(fabs(error - stated[_i].g) <= HALF_A_DIGIT) || !(fabs(slope_error - stated[_i].slope) <= HALF_A_DIGIT))
        ck_abort_msg("%s: %.4f ulp at %a, and its slope %.4f at %a; docs/ops/activation.md states %.3f and %.3f",
                     nrg_activation_name((nrg_activation)_i), error, (double)stated[_i].g_at, slope_error,
                     (double)stated[_i].slope_at, stated[_i].g, stated[_i].slope);
}
END_TEST

/* Ordinary numbers, whose last bits the sweep's stride does not choose. */
START_TEST(ordinary_inputs)
{
    const nrg_activation g = (nrg_activation)_i;
    static float x[BLOCK], value[BLOCK], slope[BLOCK];
    for (int turn = 0; turn < (test_small() ? 1 : 12); turn++)
        for (int kind = ROW_ORDINARY; kind < ROW_ALL_KINDS; kind++) {
            row_fill(x, BLOCK, (enum row_kind)kind, NRG_F32, test_mix((uint64_t)(turn * ROW_ALL_KINDS + kind)));
            nrg_scalar_activate_both(g, x, value, slope, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) {
                const exact e = exact_at(g, activation_double_alpha(g), (double)x[i]);
                worse(&worst[g].g, &worst[g].g_at, error_of(value[i], e.g, fabs(e.g)), x[i]);
                worse(&worst[g].slope, &worst[g].slope_at, error_of(slope[i], e.slope, e.unit), x[i]);
            }
        }
    check_against_statement(g);
}
END_TEST

/* Every length, in place and not, and the floats beside the outputs. */
START_TEST(every_length)
{
    enum { LONGEST = 300, ROOM = LONGEST + 2 };
    float x[LONGEST], expected[LONGEST], slopes[LONGEST], out[ROOM], slope[ROOM];
    for (size_t i = 0; i < LONGEST; i++)
        x[i] = (float)(test_mix(i) % 4000) / 100 - 20;
    for (size_t p = 0; p < COUNT(functions); p++) {
        if (!nrg_isa_supported(functions[p].isa))
            continue;
        for (int g = 0; g < ACTIVATIONS; g++) {
            nrg_scalar_activate_both((nrg_activation)g, x, expected, slopes, LONGEST);
            for (size_t n = 0; n <= LONGEST; n++) {
                for (size_t i = 0; i < ROOM; i++)
                    out[i] = slope[i] = -77;
                functions[p].both((nrg_activation)g, x, out + 1, slope + 1, n);
                ck_assert(memcmp(out + 1, expected, n * sizeof *x) == 0 && memcmp(slope + 1, slopes, n * sizeof *x) == 0);
                ck_assert(out[0] == -77 && slope[0] == -77 && out[n + 1] == -77 && slope[n + 1] == -77);
                memcpy(out + 1, x, n * sizeof *x);
                functions[p].activate((nrg_activation)g, out + 1, out + 1, n);
                ck_assert(memcmp(out + 1, expected, n * sizeof *x) == 0 && out[0] == -77 && out[n + 1] == -77);
                memcpy(out + 1, x, n * sizeof *x);
                functions[p].both((nrg_activation)g, out + 1, out + 1, slope + 1, n);
                ck_assert(memcmp(out + 1, expected, n * sizeof *x) == 0 && out[n + 1] == -77 && slope[n + 1] == -77);
            }
        }
    }
}
END_TEST

/* ---- parameters ---- */

static const struct {
    nrg_activation g;
    float alpha;
} alphas[] = {
    {NRG_ACT_GELU_QUICK, 1.702f}, {NRG_ACT_GELU_QUICK, 1},        {NRG_ACT_GELU_QUICK, 0.3f},    {NRG_ACT_GELU_QUICK, 40},
    {NRG_ACT_GELU_QUICK, 1e-3f},  {NRG_ACT_GELU_QUICK, 0x1p-24f}, {NRG_ACT_GELU_QUICK, 0x1p24f}, {NRG_ACT_ELU, 1.6732632f},
    {NRG_ACT_ELU, 1e-6f},         {NRG_ACT_ELU, -0.5f},           {NRG_ACT_ELU, 0x1p24f},        {NRG_ACT_LEAKY_RELU, 0.2f},
    {NRG_ACT_LEAKY_RELU, -3},     {NRG_ACT_LEAKY_RELU, 0x1p-24f},
};

static void run_rows(nrg_isa isa, nrg_activation g, float alpha, size_t n, const float *x, const float *d_o, float *out)
{
    nrg_activation_args args = nrg_activation_args_init(g, NRG_F32, 1, n, x, d_o ? NULL : out);
    args.alpha = alpha;
    args.d_o = d_o;
    args.dx = d_o ? out : NULL;
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    ck_assert_int_eq(d_o ? nrg_activation_rows_backward(&args, 0, 1) : nrg_activation_rows_forward(&args, 0, 1), NRG_OK);
}

/* Bits of every path and errors of scalar, of floats of all magnitudes and of many between 0 and where g is a straight line. */
START_TEST(other_alphas)
{
    enum { N = 4096 };
    const nrg_activation g = alphas[_i].g;
    const float alpha = alphas[_i].alpha;
    static float x[N], ones[N], value[N], slope[N], got[N];
    uint64_t random = (uint64_t)_i;
    for (int turn = 0; turn < (test_small() ? 4 : 60); turn++) {
        for (size_t i = 0; i < N; i++) {
            const uint32_t bits = (uint32_t)test_draw(&random, 0xff800001);
            ones[i] = 1;
            memcpy(&x[i], &bits, sizeof bits);
            if (i % 2 || isnan(x[i]) || isinf(x[i]))
                x[i] = (float)(test_uniform(&random) * 24 / (g == NRG_ACT_GELU_QUICK ? alpha : 1));
        }
        run_rows(NRG_ISA_SCALAR, g, alpha, N, x, NULL, value);
        run_rows(NRG_ISA_SCALAR, g, alpha, N, x, ones, slope);
        for (size_t p = 1; p < COUNT(functions); p++) {
            if (!nrg_isa_supported(functions[p].isa))
                continue;
            run_rows(functions[p].isa, g, alpha, N, x, NULL, got);
            ck_assert_mem_eq(got, value, sizeof got);
            run_rows(functions[p].isa, g, alpha, N, x, ones, got);
            ck_assert_mem_eq(got, slope, sizeof got);
        }
        for (size_t i = 0; i < N; i++) {
            const exact e = exact_at(g, (double)alpha, (double)x[i]);
            const double error = error_of(value[i], e.g, fabs(e.g)), slope_error = error_of(slope[i], e.slope, e.unit);
            if (!(error <= (g == NRG_ACT_LEAKY_RELU ? 0.5 : 3)) || !(slope_error <= (g == NRG_ACT_LEAKY_RELU ? 0 : 4)))
                ck_abort_msg("%s, alpha %g, at %a: %a (%g ulp), slope %a (%g ulp)", nrg_activation_name(g), (double)alpha,
                             (double)x[i], (double)value[i], error, (double)slope[i], slope_error);
        }
    }
}
END_TEST

/* What the constructors set is what calls without a parameter have. */
START_TEST(default_alphas)
{
    enum { N = 100 };
    float x[N], named[N], flat[N];
    for (size_t i = 0; i < N; i++)
        x[i] = (float)i / 10 - 5;
    for (int i = 0; i < NRG_ACTIVATION_COUNT; i++) {
        const nrg_activation g = (nrg_activation)i;
        const float alpha = nrg_activation_alpha(g);
        ck_assert(nrg_activation_args_init(g, NRG_F32, 1, N, x, flat).alpha == alpha);
        ck_assert(nrg_glu_args_init(g, NRG_F32, 1, N, x, x, flat).alpha == alpha);
        if (g != NRG_ACT_GELU_QUICK && g != NRG_ACT_ELU && g != NRG_ACT_LEAKY_RELU) {
            ck_assert(alpha == 0);
            continue;
        }
        ck_assert((double)alpha == activation_double_alpha(g));
        for (size_t p = 0; p < COUNT(functions); p++) {
            if (!nrg_isa_supported(functions[p].isa))
                continue;
            run_rows(functions[p].isa, g, alpha, N, x, NULL, named);
            ck_assert_int_eq(nrg_activation_forward(g, NRG_F32, N, x, flat, 0, 1), NRG_OK);
            ck_assert_mem_eq(named, flat, sizeof flat);
        }
    }
}
END_TEST

/* Leaky ReLU and ELU with a slope of 0 are ReLU, of infinities too; alone, and in a gated linear unit. */
START_TEST(alpha_of_zero)
{
    enum { N = 104 };
    static const nrg_activation of[] = {NRG_ACT_ELU, NRG_ACT_LEAKY_RELU};
    float x[N], ones[N], wanted[N], got[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)i / 10 - 5;
        ones[i] = 1;
    }
    x[1] = INFINITY;
    x[2] = -INFINITY;
    x[3] = -0.0f;
    x[4] = NAN;
    for (size_t p = 0; p < COUNT(functions); p++)
        for (size_t i = 0; i < 2 * COUNT(of) && nrg_isa_supported(functions[p].isa); i++) {
            const nrg_activation g = of[i / 2];
            const float alpha = i % 2 ? -0.0f : 0;
            run_rows(functions[p].isa, NRG_ACT_RELU, 0, N, x, NULL, wanted);
            run_rows(functions[p].isa, g, alpha, N, x, NULL, got);
            ck_assert_mem_eq(got, wanted, sizeof got);
            ck_assert(got[1] == INFINITY && got[2] == 0 && isnan(got[4]) && got[0] == 0 && got[N - 1] == x[N - 1]);
            nrg_glu_args glu = nrg_glu_args_init(g, NRG_F32, 1, N, x, ones, got);
            glu.alpha = alpha;
            ck_assert_int_eq(nrg_glu_forward(&glu, 0, 1), NRG_OK);
            ck_assert_mem_eq(got, wanted, sizeof got);
            run_rows(functions[p].isa, NRG_ACT_RELU, 0, N, x, ones, wanted);
            run_rows(functions[p].isa, g, alpha, N, x, ones, got);
            ck_assert_mem_eq(got, wanted, sizeof got);
        }
}
END_TEST

START_TEST(alphas_out_of_range)
{
    static const struct {
        nrg_activation g;
        float alpha;
        nrg_status status;
    } cases[] = {
        {NRG_ACT_GELU_QUICK, 0x1p-24f, NRG_OK},
        {NRG_ACT_GELU_QUICK, 0x1.fp-25f, NRG_ERR_CONSTANT},
        {NRG_ACT_GELU_QUICK, -1, NRG_ERR_CONSTANT},
        {NRG_ACT_GELU_QUICK, 0, NRG_ERR_CONSTANT},
        {NRG_ACT_ELU, 0, NRG_OK},
        {NRG_ACT_GELU_QUICK, 0x1.1p24f, NRG_ERR_CONSTANT},
        {NRG_ACT_ELU, -0x1p24f, NRG_OK},
        {NRG_ACT_ELU, 0x1p24f, NRG_OK},
        {NRG_ACT_ELU, -0x1.1p24f, NRG_ERR_CONSTANT},
        {NRG_ACT_LEAKY_RELU, (float)NAN, NRG_ERR_CONSTANT},
        {NRG_ACT_LEAKY_RELU, -0.5f, NRG_OK},
        {NRG_ACT_LEAKY_RELU, INFINITY, NRG_ERR_CONSTANT},
        {NRG_ACT_SILU, 1, NRG_ERR_COMBINATION},
        {NRG_ACT_SILU, (float)NAN, NRG_ERR_CONSTANT},
        {NRG_ACT_HARD_SWISH, 1.702f, NRG_ERR_COMBINATION},
        {NRG_ACT_SOFTSIGN, -0.0f, NRG_OK},
    };
    float x[1] = {1}, o[1];
    for (size_t i = 0; i < COUNT(cases); i++) {
        nrg_activation_args args = nrg_activation_args_init(cases[i].g, NRG_F32, 1, 1, x, o);
        nrg_glu_args glu = nrg_glu_args_init(cases[i].g, NRG_F32, 1, 1, x, x, o);
        args.alpha = glu.alpha = cases[i].alpha;
        ck_assert_int_eq(nrg_activation_rows_forward(&args, 0, 1), cases[i].status);
        ck_assert_int_eq(nrg_glu_forward(&glu, 0, 1), cases[i].status);
    }
}
END_TEST

static void print_error(double error, float at)
{
    if (error > 0)
        printf(" %.3f | %a |", error, (double)at);
    else
        printf(" 0 | |");
}

static void report(void)
{
    printf("| activation | g, ulp | at | g′, ulp | at |\n| --- | ---: | ---: | ---: | ---: |\n");
    for (int g = 0; g < ACTIVATIONS; g++) {
        double error, slope_error, unused;
        measure_exactly((nrg_activation)g, worst[g].g_at, &error, &unused);
        measure_exactly((nrg_activation)g, worst[g].slope_at, &unused, &slope_error);
        printf("| %s |", nrg_activation_name((nrg_activation)g));
        print_error(error, worst[g].g_at);
        print_error(slope_error, worst[g].slope_at);
        printf("\n");
    }
    printf("\n%llu inputs each against the exact value, one in %u of all floats for the paths\n",
           (unsigned long long)worst[NRG_ACT_SILU].inputs, (unsigned)input_stride());
}

int main(int argc, char **argv)
{
    int reports = 0;
    argc = test_arguments(argc, argv);
    for (int i = 1; i < argc; i++) {
        reports |= strcmp(argv[i], "--report") == 0;
        all_floats |= strcmp(argv[i], "--all") == 0;
        all_by_scalar |= strcmp(argv[i], "--scalar") == 0;
    }
    worst = test_shared(ACTIVATIONS * sizeof *worst);
    Suite *suite = suite_create("activation: g and its slope");
    TCase *values = test_case(suite, "values");
    tcase_add_test(values, every_path_is_here);
    tcase_add_test(values, special_values_are_right);
    tcase_add_test(values, every_length);
    tcase_add_loop_test(values, stated_errors, 0, ACTIVATIONS);
    tcase_add_loop_test(values, other_alphas, 0, COUNT(alphas));
    tcase_add_test(values, default_alphas);
    tcase_add_test(values, alpha_of_zero);
    tcase_add_test(values, alphas_out_of_range);
    TCase *sweeps = test_case(suite, "sweeps");
    tcase_set_timeout(sweeps, all_floats ? 36000 : 1200);
    tcase_add_loop_test(sweeps, paths_and_truth, 0, ACTIVATIONS);
    tcase_add_loop_test(sweeps, ordinary_inputs, 0, ACTIVATIONS);
    int status = test_run(suite);
    if (reports)
        report();
    return status;
}
