/* Our exp, tanh, erf, log1p, sin and cos against SLEEF's in double, on every path: a second witness beside the 113-bit arithmetic
 * of the truth tests, which is this project's own. SLEEF's are within one ulp of double (erfc: one and a half), so that what is
 * beyond the promised bound is ours.
 *
 *   sleef_test --report   prints the largest distances
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"
#include "sleef_names.h"

/* ---- SLEEF's functions of one double ---- */

#define WITNESS(name, function, bound)                                                                                           \
    static double name(double x) { return SLEEF_DOUBLE(function, bound)(x); }
WITNESS(its_exp, exp, u10)
WITNESS(its_tanh, tanh, u10)
WITNESS(its_erf, erf, u10)
WITNESS(its_erfc, erfc, u15)
WITNESS(its_log1p, log1p, u10)
WITNESS(its_sin, sin, u10)
WITNESS(its_cos, cos, u10)

/* ---- activations ---- */

static double logistic(double x)
{
    const double e = its_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static double gelu(double x)
{
    const double u = x * 0x1.6a09e667f3bcdp-1;
    return x / 2 * (x < -0.5 ? its_erfc(-u) : 1 + its_erf(u));
}

/* On the left 1 + tanh would cancel. */
static double gelu_tanh(double x)
{
    const double u = 0x1.9884533d43651p-1 * (x + 0.044715 * x * x * x);
    return x < 0 ? x * logistic(2 * u) : x / 2 * (1 + its_tanh(u));
}

static double witness_of(nrg_activation g, double x)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        return logistic(x);
    case NRG_ACT_SILU:
        return x * logistic(x);
    case NRG_ACT_TANH:
        return its_tanh(x);
    case NRG_ACT_GELU:
        return gelu(x);
    case NRG_ACT_GELU_TANH:
        return gelu_tanh(x);
    default: /* softplus */
        return (x > 0 ? x : 0) + its_log1p(its_exp(-fabs(x)));
    }
}

static const nrg_activation activations[] = {NRG_ACT_SIGMOID, NRG_ACT_SILU,      NRG_ACT_TANH,
                                             NRG_ACT_GELU,    NRG_ACT_GELU_TANH, NRG_ACT_SOFTPLUS};
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

/* In ulps; nrg/activation.h promises no more. */
static const double most_ulps = 3;

/* Largest distances, for --report. */
static struct distances {
    double g[ACTIVATIONS], turned;
} * distances;

/* Finite inputs, so many bits apart: an odd number, so that the low bits take all values in every binade. */
enum { BLOCK = 4096 };
static uint32_t apart(void) { return test_small() ? 61 * 1021 : 61 * 31; }

START_TEST(activations_agree)
{
    static float in[BLOCK], out[BLOCK];
    static double expected[BLOCK];
    nrg_isa paths[NRG_ISA_COUNT];
    const nrg_activation g = activations[_i];
    const size_t count = test_paths(paths);
    for (uint64_t bits = 0; bits >> 32 == 0;) {
        for (size_t i = 0; i < BLOCK; i++, bits += apart()) {
            const uint32_t low = (uint32_t)bits;
            memcpy(&in[i], &low, sizeof low);
            in[i] = isfinite(in[i]) ? in[i] : 0;
            expected[i] = witness_of(g, (double)in[i]);
        }
        for (size_t p = 0; p < count; p++) {
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            ck_assert_int_eq(nrg_activation_forward(g, NRG_F32, BLOCK, in, out, 0, 1), NRG_OK);
            for (size_t i = 0; i < BLOCK; i++) {
                const double d = fabs((double)out[i] - expected[i]) / element_ulp(expected[i], NRG_F32);
                if (!(d <= most_ulps))
                    ck_abort_msg("%s, %s(%a) is %a, by SLEEF %a: %g ulp", nrg_isa_name(paths[p]), nrg_activation_name(g),
                                 (double)in[i], (double)out[i], expected[i], d);
                if (d > distances->g[_i])
                    distances->g[_i] = d;
            }
        }
    }
}
END_TEST

/* ---- cosines and sines ---- */

enum { PAIRS = 64, ROWS = 64 };

/* What a table holds is the float nearest to the exact value, or one half of an ulp and a trace away from it. */
static const double most_turned = 0.501;

static void compare_turned(const char *path, const char *name, float got, double expected, double angle)
{
    const double d = fabs((double)got - expected) / element_ulp(expected, NRG_F32);
    if (!(d <= most_turned))
        ck_abort_msg("%s, %s(%a) is %a, by SLEEF %a: %g ulp", path, name, angle, (double)got, expected, d);
    if (d > distances->turned)
        distances->turned = d;
}

/* Frequencies are in turns, as sums of two doubles. Of position · frequency whole turns are taken away; what is left is an angle
 * in double and what rounding took from it, whose sum is as good as twice a double. */
static void compare_row(const char *path, const float *row, const double *frequencies, int32_t position)
{
    const double two_pi = 0x1.921fb54442d18p+2, two_pi_rest = 0x1.1a62633145c07p-52;
    for (size_t p = 0; p < PAIRS; p++) {
        const double turns = position * frequencies[p], part = turns - rint(turns);
        const double turns_rest = fma(position, frequencies[p], -turns) + position * frequencies[PAIRS + p];
        const double high = part * two_pi, low = fma(part, two_pi, -high) + part * two_pi_rest + turns_rest * two_pi;
        const double angle = high + low, rest = fabs(high) > fabs(low) ? low - (angle - high) : high - (angle - low);
        const double sine = its_sin(angle), cosine = its_cos(angle);
        compare_turned(path, "cos", row[p], cosine - rest * sine, angle);
        compare_turned(path, "sin", row[PAIRS + p], sine + rest * cosine, angle);
    }
}

/* From 0, around a million, and up to the last position there is. */
static const int32_t firsts[] = {0, -5, 1000000 - ROWS / 2, 1048576 - ROWS / 2, INT32_MAX - (1 << 16)};

START_TEST(positions_agree)
{
    static double frequencies[2 * PAIRS];
    static float table[ROWS * 2 * PAIRS];
    double magnitude;
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths), blocks = test_small() ? 2 : 400;
    const nrg_rope_spec spec = nrg_rope_spec_init(2 * PAIRS, NRG_ROPE_NEOX, 10000);
    ck_assert_int_eq(nrg_rope_frequencies(&spec, frequencies, &magnitude), NRG_OK);
    for (size_t block = 0; block < blocks; block++) {
        nrg_rope_table_args args = nrg_rope_table_args_init(ROWS, frequencies, magnitude, table);
        args.first_position = firsts[_i] + (int32_t)block * ROWS;
        for (size_t p = 0; p < count; p++) {
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            ck_assert_int_eq(nrg_rope_table(&spec, &args, 0, 1), NRG_OK);
            for (int32_t row = 0; row < ROWS; row++)
                compare_row(nrg_isa_name(paths[p]), table + row * 2 * PAIRS, frequencies, args.first_position + row);
        }
    }
}
END_TEST

static void report(void)
{
    printf("SLEEF %d.%d; in ulps of f32:\n", SLEEF_VERSION_MAJOR, SLEEF_VERSION_MINOR);
    for (int i = 0; i < ACTIVATIONS; i++)
        printf("%-10s %.3f\n", nrg_activation_name(activations[i]), distances->g[i]);
    printf("%-10s %.3f\n", "sin, cos", distances->turned);
}

int main(int argc, char **argv)
{
    int reports = 0;
    argc = test_arguments(argc, argv);
    for (int i = 1; i < argc; i++)
        reports |= strcmp(argv[i], "--report") == 0;
    distances = test_shared(sizeof *distances);
    Suite *suite = suite_create("SLEEF beside our functions");
    TCase *agree = test_case(suite, "agree");
    tcase_add_loop_test(agree, activations_agree, 0, ACTIVATIONS);
    tcase_add_loop_test(agree, positions_agree, 0, (int)(sizeof firsts / sizeof firsts[0]));
    const int status = test_run(suite);
    if (reports)
        report();
    return status;
}
