/* Gates and output activations: scalar against the exact value, on the stress set of rows and on ordinary ones; and the other
 * paths against scalar on the way. f32 only: norm_properties_test.c has it that a 16-bit result is the f32 result rounded.
 *
 * The bound of o1 is that of the norm without a gate (norm_truth_test.c): three ulps, four with a weight offset, for centred
 * norms 2^-23·|k·w| more, and half an ulp of the largest term for + b; in the exact grade an ulp and 2^-24. Then
 *
 *     post     |g(z)|·bound(o1) + |o1|·3 ulp(g) + ulp(o)/2      g is good to 3 ulp, and the product rounds
 *     output   max|g'|·bound(o1) + 3 ulp(o)                     the largest slope within the bound of o1
 *     pre      p has an error δ of |r|·3 ulp(g) + ulp(p)/2 itself before the norm sees it. o1 = k·w·(p - m)/s follows it by
 *                  |k·w|/s·(δ + mean δ) + |o1|·δs/s,   mean δ only for centred norms,
 *              where δs is at most mean(|q|·(δ + mean δ))/σ, and never more than the root of mean (δ + mean δ)². That is added to
 *              the bound of o1. Where δs/s is above 1/8 (a row that is constant but for the rounding of p), nothing can be said.
 *
 * and half an ulp of the largest term for + y. What is recorded, of cases without + b and + y, is the error as a
 * part of this bound.
 *
 * `norm_gate_truth_test --report` prints the worst of them as a Markdown table and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../../src/job/activation.h"
#include "../harness/element.h"
#include "../harness/quad_activation.h"
#include "../harness/quad_ulp.h"
#include "../harness/rows.h"
#include "../harness/truth.h"
#include "norm_exact.h"

enum { GATES = NRG_GATE_POST + 1, ACTIVATIONS = NRG_ACTIVATION_COUNT };

/* What a g may be off by, in ulps of its own. */
static const double activation_limit = 3;

static double (*worst)[GATES];
static unsigned long (*measured)[GATES];
static unsigned long *beyond; /* groups of which nothing can be said */

typedef struct gate_case {
    nrg_norm_spec spec;
    enum row_kind kind;
    float *x, *y, *z, *w, *b; /* NULL where absent */
    char text[256];
} gate_case;

static void make_case(gate_case *t, nrg_gate gate, nrg_activation g, enum row_kind kind, size_t dim, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    uint64_t state = seed;
    size_t op = test_draw(&state, 3), features = test_draw(&state, 8), groups = 1 + test_draw(&state, 4);
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->spec = op == 0   ? nrg_norm_spec_layer(NRG_F32, dim, 0)
              : op == 1 ? nrg_norm_spec_l2(NRG_F32, dim, 0)
                        : nrg_norm_spec_rms(NRG_F32, dim, 0);
    if (test_draw(&state, 3) == 0)
        t->spec.eps_mode = (nrg_eps_mode)test_draw(&state, NRG_EPS_NONE + 1);
    t->spec.eps = eps[test_draw(&state, 4)];
    t->spec.gate = gate;
    t->spec.activation = g;
    t->spec.groups = dim % groups == 0 ? groups : 1;
    t->x = row_new(dim, kind, NRG_F32, test_draw(&state, 1u << 30));
    if (features & 3)
        t->w = row_new(dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    if (features == 3 || features == 4)
        t->b = row_new(dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    if (features == 5)
        t->y = row_new(dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    t->spec.weight_offset = features == 2 ? 1 : 0;
    norm_settle(&t->spec, t->w != NULL);
    t->spec.residual_mode = t->y ? NRG_RESIDUAL_AFTER : NRG_RESIDUAL_BEFORE;
    if (gate != NRG_GATE_NONE) {
        t->z = row_new(dim, test_draw(&state, 8) ? ROW_NORMAL : ROW_1E_20, NRG_F32, test_draw(&state, 1u << 30));
        float scale = test_draw(&state, 2) ? 1 : 4;
        for (size_t i = 0; i < dim; i++)
            t->z[i] *= scale;
    }
    snprintf(t->text, sizeof t->text, "gate %d, %s, %s, %s, dim %zu groups %zu, features %zu, eps mode %d %g, seed 0x%llx",
             (int)gate, nrg_activation_name(g),
             op == 0   ? "layer"
             : op == 1 ? "l2"
                       : "rms",
             row_kind_name(kind), dim, t->spec.groups, features, (int)t->spec.eps_mode, t->spec.eps, (unsigned long long)seed);
}

static void free_case(gate_case *t)
{
    free(t->x);
    free(t->y);
    free(t->z);
    free(t->w);
    free(t->b);
}

static const char *run(nrg_isa isa, const gate_case *t, float *o)
{
    nrg_norm_args args = nrg_norm_args_init(1, t->x, t->w, o);
    args.y = t->y;
    args.z = t->z;
    args.b = t->b;
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = nrg_norm_forward(&t->spec, &args, 0, 1);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

/* What an error of p does to a group: δ of every element, and of s. */
typedef struct input_error {
    double mean, s; /* mean δ, δs */
} input_error;

static double error_of_input(quad r, quad g, quad p)
{
    return quad_magnitude(r) * activation_limit * quad_ulp(g) + quad_ulp(p) / 2;
}

static input_error error_of_inputs(const gate_case *t, size_t at, size_t d, const quad *p, const quad_g *gate,
                                   const norm_exact *exact)
{
    input_error e = {0, 0};
    double product = 0, square = 0;
    for (size_t i = 0; i < d && t->spec.centred; i++)
        e.mean += error_of_input(t->x[at + i], gate[i].value, p[i]) / (double)d;
    for (size_t i = 0; i < d; i++) {
        double delta = error_of_input(t->x[at + i], gate[i].value, p[i]) + e.mean;
        product += quad_magnitude(p[i] - exact->mean) * delta / (double)d;
        square += delta * delta / (double)d;
    }
    e.s = sqrt(square);
    if (exact->sigma > 0)
        e.s = fmin(e.s, product / (double)exact->sigma);
    return e;
}

/* The largest |g'| within `bound` of x. */
static double largest_slope(nrg_activation g, quad x, double bound)
{
    double slope = 0;
    for (int side = -1; side <= 1; side++)
        slope = fmax(slope, quad_magnitude(quad_activation(g, x + side * (quad)bound).slope));
    return slope;
}

/* One group, from element `at` on. NULL, or what broke the bound. */
static const char *measure(const gate_case *t, const float *o, size_t at, size_t d, quad *p, quad_g *gate)
{
    const nrg_gate mode = t->spec.gate;
    const nrg_activation g = t->spec.activation;
    int overflow = 0;
    for (size_t i = 0; i < d; i++) {
        gate[i] = mode != NRG_GATE_NONE ? quad_activation(g, t->z[at + i]) : (quad_g){1, 0, 0};
        p[i] = mode == NRG_GATE_PRE ? t->x[at + i] * gate[i].value : t->x[at + i];
        overflow |= quad_magnitude(p[i]) > 0x1.fffffp127;
    }
    const norm_exact exact = norm_exact_of(&t->spec, d, p);
    const quad k = norm_exact_k(&t->spec, d), factor = exact.s > 0 ? k / exact.s : 0;
    input_error error = {0, 0};
    if (mode == NRG_GATE_PRE)
        error = error_of_inputs(t, at, d, p, gate, &exact);
    if (overflow || error.s > (double)exact.s / 8 || (exact.s == 0 && mode == NRG_GATE_PRE)) {
        ++*beyond;
        return NULL;
    }
    const double follow = exact.s > 0 ? error.s / (double)exact.s * (1 + 2 * error.s / (double)exact.s) : 0;
    for (size_t i = 0; i < d; i++) {
        const quad w = t->w ? (quad)t->w[at + i] + t->spec.weight_offset : 1, o1 = (p[i] - exact.mean) * factor * w;
        const int fast = t->spec.accuracy == NRG_ACCURACY_FAST;
        const double ulps = !fast ? 1 : t->w && t->spec.weight_offset != 0 ? 4 : 3, around = fast ? 0x1p-23 : 0x1p-24;
        double bound =
            ulps * quad_ulp(o1) + 0x1p-148 * quad_magnitude(factor) + (t->spec.centred ? around * quad_magnitude(k * w) : 0);
        if (mode == NRG_GATE_PRE)
            bound += quad_magnitude(factor * w) * (error_of_input(t->x[at + i], gate[i].value, p[i]) + error.mean) +
                     quad_magnitude(o1) * follow;
        quad value = o1;
        if (t->b) {
            value += t->b[at + i];
            bound +=
                0.5 * element_ulp(fmax(fmax(quad_magnitude(o1), quad_magnitude(t->b[at + i])), quad_magnitude(value)), NRG_F32);
        }
        if (mode == NRG_GATE_POST) {
            bound = quad_magnitude(gate[i].value) * bound + quad_magnitude(value) * activation_limit * quad_ulp(gate[i].value);
            value *= gate[i].value;
            bound += quad_ulp(value) / 2;
        } else if (mode == NRG_GATE_NONE) {
            const double slope = largest_slope(g, value, bound);
            value = quad_activation(g, value).value;
            bound = slope * bound + activation_limit * quad_ulp(value);
        }
        if (t->y) {
            double size = fmax(quad_magnitude(value), quad_magnitude(t->y[at + i]));
            value += t->y[at + i];
            bound += 0.5 * element_ulp(fmax(size, quad_magnitude(value)), NRG_F32);
        }
        if (isinf(o[at + i]) && quad_magnitude(value) >= 0x1.fffffep127)
            continue;
        double share = quad_magnitude(value - o[at + i]) / bound;
        if (!t->b && !t->y && !(share <= worst[g][mode]))
            worst[g][mode] = share;
        ++measured[g][mode];
        if (!(share <= 1))
            return truth_wrong("element %zu of o is %.9g and should be %.17g: %.3f of the bound", at + i, (double)o[at + i],
                               (double)value, share);
    }
    return NULL;
}

static void check_one(nrg_gate gate, nrg_activation g, enum row_kind kind, size_t dim, uint64_t round)
{
    gate_case t;
    make_case(&t, gate, g, kind, dim, test_mix((((dim * ACTIVATIONS + g) * GATES + gate) * ROW_KINDS + kind) * 16 + round));
    /* one in four the exact way */
    t.spec.accuracy = (dim + (size_t)g + (size_t)kind + round) % 4 == 3 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths), d = dim / t.spec.groups;
    float *o = row_new(dim, ROW_ZEROS, NRG_F32, 0), *other = row_new(dim, ROW_ZEROS, NRG_F32, 0);
    quad *p = test_allocate(d, sizeof *p);
    quad_g *gates = test_allocate(d, sizeof *gates);
    const char *wrong = run(NRG_ISA_SCALAR, &t, o);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], &t, other);
        for (size_t n = 0; n < dim && !wrong; n++)
            if (!element_equal(o, other, n, NRG_F32))
                wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    for (size_t at = 0; at < dim && !wrong; at += d)
        wrong = measure(&t, o, at, d, p, gates);
    truth_judge(wrong, t.text);
    free(o);
    free(other);
    free(p);
    free(gates);
    free_case(&t);
}

static const size_t dims[] = {1, 2, 5, 8, 17, 32, 60, 64, 100, 129, 256, 513, 1000, 3000, 4096};
enum { DIMS = sizeof dims / sizeof dims[0] };

static void check_dim(int n)
{
    const size_t dim = dims[n];
    int rounds = test_small() ? dim < 100 : dim < 100 ? 3 : dim < 600 ? 2 : 1;
    for (int gate = 0; gate < GATES; gate++)
        for (int g = 0; g < ACTIVATIONS; g++)
            for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
                /* the long ones take turns */
                if ((dim < 600 && rounds) || (size_t)(gate + g + kind) % (test_small() ? 31 : 4) == dim % 4)
                    for (uint64_t round = 0; round < (uint64_t)(rounds ? rounds : 1); round++)
                        check_one((nrg_gate)gate, (nrg_activation)g, (enum row_kind)kind, dim, round);
}

/* Ordinary rows, each another one. */
static void check_ordinary(int n)
{
    static const size_t some[] = {64, 128, 200};
    for (uint64_t round = 0; round < (test_small() ? 1 : 3); round++)
        for (int gate = 0; gate < GATES; gate++)
            for (int g = 0; g < ACTIVATIONS; g++)
                check_one((nrg_gate)gate, (nrg_activation)g, (enum row_kind)(ROW_ORDINARY + n), some[((size_t)g + round) % 3],
                          round);
}

static void print_table(void)
{
    printf("| g | pre-gate | post-gate | on the output |\n| --- | ---: | ---: | ---: |\n");
    for (int g = 0; g < ACTIVATIONS; g++)
        printf("| %s | %.3f | %.3f | %.3f |\n", nrg_activation_name((nrg_activation)g), worst[g][NRG_GATE_PRE],
               worst[g][NRG_GATE_POST], worst[g][NRG_GATE_NONE]);
    fflush(stdout);
}

START_TEST(lengths) { check_dim(_i); }
END_TEST

START_TEST(ordinary_rows) { check_ordinary(_i); }
END_TEST

START_TEST(worst_cases)
{
    printf("gates: worst errors as parts of their bound (%lu groups beyond it):\n", *beyond);
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int g = 0; g < ACTIVATIONS; g++)
        for (int gate = 0; gate < GATES; gate++)
            if (!measured[g][gate])
                ck_abort_msg("%s, gate %d, was never measured", nrg_activation_name((nrg_activation)g), gate);
}
END_TEST

static void report(void)
{
    for (int n = 0; n < DIMS; n++)
        check_dim(n);
    for (int n = 0; n < ROW_ORDINARY_KINDS; n++)
        check_ordinary(n);
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("norm_forward with gates: scalar against the exact value");
    tcase_add_loop_test(test_case(suite, "lengths"), lengths, 0, DIMS);
    tcase_add_loop_test(test_case(suite, "ordinary"), ordinary_rows, 0, ROW_ORDINARY_KINDS);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(ACTIVATIONS * sizeof *worst);
    measured = test_shared(ACTIVATIONS * sizeof *measured);
    beyond = test_shared(sizeof *beyond);
    return truth_main(argc, argv, report, make_suite);
}
