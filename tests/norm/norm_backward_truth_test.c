/* The backward pass: scalar against the exact gradient, on the stress set of rows and on ordinary ones in numbers; and the other
 * paths against scalar on the way.
 *
 * The exact gradient is norm_backward_exact.h's, which the first test holds against automatic differentiation (dual numbers) of
 * the forward pass's definition. For a pre-gate p is r·g(z) rounded to f32, as the definition has it; the g(z) in it is the
 * library's own. The unit and the bound are norm_backward_measure.h's.
 *
 * `norm_backward_truth_test --report` prints the worst errors as a Markdown table and nothing else. norm_backward_climb_test.c
 * looks for worse ones than these rows have.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../../src/job/activation.h"
#include "../harness/quad_dual.h"
#include "../harness/quad_ulp.h"
#include "../harness/truth.h"
#include "norm_backward_exact.h"
#include "norm_backward_measure.h"

enum { GATES = NRG_GATE_POST + 1, ACTIVATIONS = NRG_ACTIVATION_COUNT };

static double (*worst)[BACKWARD_COLUMNS];
static unsigned long *measured;

/* ---- the formulas against automatic differentiation ---- */

/* Σ d_o·o of one group, straight from the definition in nrg/norm.h. */
static dual loss(const nrg_norm_spec *spec, size_t d, const dual *r, const dual *z, const dual *w, const dual *b, const quad *d_o)
{
    enum { MOST = 16 };
    dual p[MOST], m = dual_of(0), square = dual_of(0), n = dual_of((quad)d), eps = dual_of(spec->eps), s, sum = dual_of(0);
    for (size_t i = 0; i < d; i++) {
        p[i] = spec->gate == NRG_GATE_PRE ? dual_mul(r[i], dual_g(spec->activation, z[i])) : r[i];
        m = dual_add(m, p[i]);
    }
    m = spec->centred ? dual_div(m, n) : dual_of(0);
    for (size_t i = 0; i < d; i++) {
        dual q = dual_sub(p[i], m);
        square = dual_add(square, dual_mul(q, q));
    }
    switch (spec->eps_mode) {
    case NRG_EPS_MEAN:
        s = dual_sqrt(dual_add(dual_div(square, n), eps));
        break;
    case NRG_EPS_SUM:
        s = dual_div(dual_sqrt(dual_add(square, eps)), dual_sqrt(n));
        break;
    case NRG_EPS_SIGMA:
        s = dual_add(dual_sqrt(dual_div(square, n)), eps);
        break;
    case NRG_EPS_MAX:
        s = dual_sqrt(square);
        s = dual_div(s.v > eps.v ? s : eps, dual_sqrt(n));
        break;
    default:
        s = dual_sqrt(dual_div(square, n));
        break;
    }
    dual k = spec->c_mode == NRG_C_GIVEN ? dual_div(dual_of(spec->c), dual_sqrt(n)) : dual_of(1);
    for (size_t i = 0; i < d; i++) {
        dual o = s.v > 0 ? dual_mul(dual_mul(k, dual_div(dual_sub(p[i], m), s)), w[i]) : dual_of(0);
        o = dual_add(o, b[i]);
        if (spec->gate == NRG_GATE_POST)
            o = dual_mul(o, dual_g(spec->activation, z[i]));
        if (spec->gate == NRG_GATE_NONE)
            o = dual_g(spec->activation, o);
        sum = dual_add(sum, dual_mul(o, dual_of(d_o[i])));
    }
    return sum;
}

static void differentiate(const nrg_norm_spec *spec, size_t d, uint64_t seed)
{
    enum { MOST = 16 };
    exact_element e[MOST];
    dual inputs[4][MOST]; /* r, z, w, b */
    quad d_o[MOST], scratch[MOST];
    uint64_t state = seed;
    memset(e, 0, sizeof e);
    for (size_t i = 0; i < d; i++) {
        for (int which = 0; which < 4; which++)
            inputs[which][i] = dual_of(2 * test_uniform(&state));
        d_o[i] = test_uniform(&state);
        e[i].r = inputs[0][i].v;
        e[i].z = inputs[1][i].v;
        e[i].w = inputs[2][i].v;
        e[i].b = inputs[3][i].v;
        e[i].d_o = d_o[i];
        e[i].p = spec->gate == NRG_GATE_PRE ? e[i].r * quad_activation(spec->activation, e[i].z).value : e[i].r;
    }
    exact_group group = exact_backward(spec, d, e, scratch);
    for (size_t i = 0; i < d; i++)
        for (int which = 0; which < 4; which++) {
            inputs[which][i].e = 1;
            quad derivative = loss(spec, d, inputs[0], inputs[1], inputs[2], inputs[3], d_o).e;
            inputs[which][i].e = 0;
            const quad formula[] = {e[i].dr, e[i].dz, e[i].dw, e[i].db};
            quad size = 1 + group.inverse * (1 + group.a);
            if (quad_abs(derivative - formula[which]) > (quad)0x1p-70 * size)
                ck_abort_msg("by %s %zu: %.17g, and by the formula %.17g; gate %d, %s, centred %d, eps mode %d %g, c %g, d %zu",
                             (const char *[]){"r", "z", "w", "b"}[which], i, (double)derivative, (double)formula[which],
                             (int)spec->gate, nrg_activation_name(spec->activation), spec->centred, (int)spec->eps_mode,
                             spec->eps, spec->c, d);
        }
}

START_TEST(formulas)
{
    static const double eps[] = {1e-5, 0.25, 3};
    for (size_t d = 1; d <= 7; d += d < 3 ? 1 : 2)
        for (int gate = 0; gate < GATES; gate++)
            for (int g = 0; g < ACTIVATIONS; g++)
                for (int centred = 0; centred < 2; centred++)
                    for (int mode = 0; mode <= NRG_EPS_NONE; mode++)
                        for (int n = 0; n < 3; n++) {
                            nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, d, eps[n]);
                            spec.centred = centred;
                            spec.eps_mode = (nrg_eps_mode)mode;
                            spec.gate = (nrg_gate)gate;
                            spec.activation = (nrg_activation)g;
                            spec.c = n - 1;
                            norm_settle(&spec, 1);
                            differentiate(&spec, d, test_mix(d * 100 + (size_t)n));
                        }
}
END_TEST

/* g' against differences of g, which no formula of it goes into. */
START_TEST(slopes)
{
    const quad step = 0x1p-32;
    for (int g = 0; g < ACTIVATIONS; g++)
        for (double x = -12; x <= 12; x += 0.0625 + 0x1p-20) {
            quad_g at = quad_activation((nrg_activation)g, x);
            quad difference =
                (quad_activation((nrg_activation)g, x + step).value - quad_activation((nrg_activation)g, x - step).value) /
                (2 * step);
            if (fabs(x) > 0x1p-30 && quad_abs(difference - at.slope) > (quad)0x1p-55 * (1 + quad_abs(at.slope)))
                ck_abort_msg("%s at %g: %.17g and not %.17g", nrg_activation_name((nrg_activation)g), x, (double)at.slope,
                             (double)difference);
        }
}
END_TEST

/* ---- the library against the formulas ---- */

static void make_case(backward_case *t, enum row_kind kind, nrg_dtype dtype, size_t dim, size_t rows, int gated, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    uint64_t state = seed;
    size_t features = test_draw(&state, 8), groups = 1 + test_draw(&state, 4), gradient = test_draw(&state, 4);
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->rows = rows;
    t->limit = BACKWARD_LIMIT;
    t->worst = worst;
    t->measured = measured;
    t->spec = test_draw(&state, 2) ? nrg_norm_spec_layer(NRG_F32, dim, 0) : nrg_norm_spec_rms(NRG_F32, dim, 0);
    t->spec.eps_mode = (nrg_eps_mode)(test_draw(&state, 2) ? test_draw(&state, NRG_EPS_NONE + 1) : 0);
    t->spec.eps = eps[test_draw(&state, 4)];
    t->spec.c = test_draw(&state, 4) ? 0 : 1;
    t->spec.groups = dim % groups == 0 ? groups : 1;
    if (dtype == NRG_F32 && seed % 2) /* which moves the mean that is taken, and nothing else */
        t->spec.accuracy = NRG_ACCURACY_EXACT;
    if (gated) {
        t->spec.gate = (nrg_gate)test_draw(&state, GATES);
        t->spec.activation = (nrg_activation)test_draw(&state, ACTIVATIONS);
    }
    t->x = backward_rows(rows, dim, kind, dtype, test_draw(&state, 1u << 30));
    if (features & 3)
        t->w = backward_rows(1, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    t->spec.weight_offset = features == 2 ? 1 : 0;
    norm_settle(&t->spec, t->w != NULL);
    if (features == 3 || features == 4)
        t->b = backward_rows(1, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    if (t->spec.gate != NRG_GATE_NONE)
        t->z = backward_rows(rows, dim, ROW_NORMAL, dtype, test_draw(&state, 1u << 30));
    t->d_o = backward_rows(rows, dim, gradient == 0 ? ROW_EQUAL : ROW_NORMAL, dtype, test_draw(&state, 1u << 30));
    for (size_t i = 0; i < rows * dim && gradient == 1; i++)
        if (i % dim != i / dim % dim) /* one of a row that is not 0 */
            t->d_o[i] = 0;
    if (test_draw(&state, 4) == 0)
        t->dr_in = backward_rows(rows, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    backward_results(t);
    static const char *const gradients[] = {"constant", "one-hot", "random", "random"};
    snprintf(t->text, sizeof t->text,
             "%s, %s, accuracy %d, d_o %s, gate %d, %s, %s, dim %zu groups %zu rows %zu, features %zu, eps mode %d %g, c %g, "
             "seed 0x%llx",
             row_kind_name(kind), nrg_dtype_name(dtype), (int)t->spec.accuracy, gradients[gradient], (int)t->spec.gate,
             nrg_activation_name(t->spec.activation), t->spec.centred ? "layer" : "rms", dim, t->spec.groups, rows, features,
             (int)t->spec.eps_mode, t->spec.eps, t->spec.c, (unsigned long long)seed);
}

static const char *check(backward_case *t)
{
    const char *wrong = backward_run(t);
    wrong = wrong ? wrong : backward_compare_paths(t);
    return wrong ? wrong : backward_measure(t);
}

static void check_one(enum row_kind kind, nrg_dtype dtype, size_t dim, size_t rows, int gated, uint64_t round)
{
    backward_case t;
    make_case(&t, kind, dtype, dim, rows, gated,
              test_mix(((dim * 8192 + rows) * ROW_KINDS + kind) * 64 + round * 2 + (uint64_t)gated));
    const char *wrong = check(&t);
    if (!wrong && dtype != NRG_F32)
        wrong = backward_measure_16(&t, dtype);
    truth_judge(wrong, t.text);
    backward_free(&t);
}

static const size_t dims[] = {1, 2, 3, 8, 17, 32, 60, 64, 100, 129, 256, 513, 1000, 4096, 65536};
enum { DIMS = sizeof dims / sizeof dims[0] };

static void check_dim(int n)
{
    const size_t dim = dims[n];
    if (test_small() && dim > 1000)
        return;
    uint64_t rounds = test_small() ? 2 : dim <= 100 ? 30 : dim <= 1000 ? 8 : dim <= 4096 ? 4 : 2;
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (uint64_t round = 0; round < rounds; round++) {
            size_t rows = dim > 1000 ? 1 : round % 4 == 0 ? 37 : 3;
            check_one((enum row_kind)kind, NRG_F32, dim, test_small() ? 3 : rows, 0, round);
            if (dim <= 4096 && round % 2 == 0)
                check_one((enum row_kind)kind, NRG_F32, dim, dim > 100 ? 1 : 3, 1, round);
            if (dim <= 1000 && round % 4 == 1)
                check_one((enum row_kind)kind, (kind + round / 4) % 2 ? NRG_F16 : NRG_BF16, dim, 3, (int)(round / 4 % 2), round);
        }
}

START_TEST(lengths) { check_dim(_i); }
END_TEST

/* Ordinary rows, each another one: of a few lengths, and in the numbers that decide how dw and db are summed. */
static void check_ordinary(int n)
{
    static const size_t some[] = {64, 96, 128, 200, 256, 768};
    for (uint64_t round = 0; round < (test_small() ? 2 : 6); round++)
        for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
            const size_t rows = some[i] > 256 ? 3 : round % 4 ? 5 : 40;
            check_one((enum row_kind)(ROW_ORDINARY + n), NRG_F32, some[i], rows, round % 4 == 3, 64 + round);
        }
}

START_TEST(ordinary_rows) { check_ordinary(_i); }
END_TEST

/* A million rows of three, whose gradients cancel nearly: what is left of dw and db shows how they are summed. */
static void check_million(void)
{
    const size_t dim = 3, rows = test_small() ? 20000 : 1000000;
    backward_case t;
    memset(&t, 0, sizeof t);
    t.spec = nrg_norm_spec_rms(NRG_F32, dim, 1e-5);
    t.kind = ROW_NORMAL;
    t.rows = rows;
    t.limit = BACKWARD_LIMIT;
    t.worst = worst;
    t.measured = measured;
    t.x = backward_rows(1, rows * dim, ROW_NORMAL, NRG_F32, 1);
    t.d_o = backward_rows(1, rows * dim, ROW_NORMAL, NRG_F32, 2);
    for (size_t row = 1; row < rows; row += 2)
        for (size_t i = 0; i < dim; i++) {
            /* column 0 alternates exactly, column 1 but for a millionth, column 2 does not */
            t.x[row * dim + i] = t.x[(row - 1) * dim + i];
            if (i < 2)
                t.d_o[row * dim + i] = -t.d_o[(row - 1) * dim + i] * (i ? 1 - 0x1p-20f : 1);
        }
    backward_results(&t);
    snprintf(t.text, sizeof t.text, "%zu rows of %zu that cancel", rows, dim);
    truth_judge(check(&t), t.text);
    backward_free(&t);
}

START_TEST(a_million_rows) { check_million(); }
END_TEST

/* ---- where a row begins to be done in double ---- */

/* By the rule of docs/numerics.md; -1 where it is too close to say. */
static int is_in_double(const backward_case *t, exact_element *e, quad *scratch)
{
    const size_t d = t->spec.dim;
    quad cross = 0;
    for (size_t i = 0; i < d; i++) {
        memset(&e[i], 0, sizeof e[i]);
        e[i].r = e[i].p = t->x[i];
        e[i].w = 1;
        e[i].d_o = t->d_o[i];
    }
    const exact_group group = exact_backward(&t->spec, d, e, scratch);
    for (size_t i = 0; i < d; i++)
        cross += e[i].d_o * e[i].h / (quad)d;
    const double inverse = (double)group.inverse, square = (double)(group.stat.squares / (quad)d);
    const double a = quad_magnitude(group.k * group.inverse), b = quad_magnitude(group.k * group.inverse * cross * group.inverse);
    const double over[] = {0x1p-40 / inverse, inverse / 0x1p40, 0x1p-80 / square, 0x1p-100 / a, 0x1p-100 / b, b / 0x1p100};
    int outside = 0;
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        if (fabs(over[i] - 1) < 1e-5)
            return -1;
        outside |= over[i] > 1;
    }
    return outside;
}

/* One of the quantities that decide is moved across its limit; the others stay inside theirs. */
static void make_near_limit(backward_case *t, int limit, size_t dim, uint64_t seed)
{
    uint64_t state = seed;
    memset(t, 0, sizeof *t);
    t->kind = ROW_NORMAL;
    t->rows = 1;
    t->limit = BACKWARD_LIMIT;
    t->spec = test_draw(&state, 2) ? nrg_norm_spec_layer(NRG_F32, dim, 0) : nrg_norm_spec_rms(NRG_F32, dim, 0);
    t->x = backward_rows(1, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    t->d_o = backward_rows(1, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    backward_results(t);
    const int beyond = (int)test_draw(&state, 49) - 24;
    int x_exponent = 0, gradient_exponent = 0;
    t->spec.c_mode = NRG_C_GIVEN;
    t->spec.c = sqrt((double)dim);
    switch (limit) {
    case 0: /* 1/s, either end */
        x_exponent = (test_draw(&state, 2) ? 40 : -40) + beyond / 2;
        break;
    case 1: /* the mean square, where eps is s */
        x_exponent = -40 + beyond / 2;
        t->spec.eps = 0x1p-60;
        break;
    case 2: /* A */
        t->spec.c = ldexp(t->spec.c, -100 + beyond);
        gradient_exponent = 30;
        break;
    default: /* B, either end */
        gradient_exponent = (test_draw(&state, 2) ? 100 : -100) + beyond;
        break;
    }
    for (size_t i = 0; i < dim; i++) {
        t->x[i] = ldexpf(t->x[i], x_exponent);
        t->d_o[i] = ldexpf(t->d_o[i], gradient_exponent);
    }
    snprintf(t->text, sizeof t->text, "limit %d, %+d; %s, dim %zu, seed 0x%llx", limit, beyond, t->spec.centred ? "layer" : "rms",
             dim, (unsigned long long)seed);
}

/* Rows beyond a limit have gradients that are rounded once, and those within it what floats give; at either side of it paths have
 * scalar's bits. */
START_TEST(limits_of_floats)
{
    enum { MOST = 129 };
    static const size_t some[] = {5, 32, 60, MOST};
    static exact_element e[MOST];
    static quad scratch[MOST];
    size_t sides[2] = {0, 0};
    for (uint64_t round = 0; round < (test_small() ? 60 : 400); round++)
        for (size_t n = 0; n < sizeof some / sizeof some[0]; n++) {
            backward_case t;
            make_near_limit(&t, _i, some[n], test_mix(round * 64 + n * 8 + (uint64_t)_i));
            const int in_double = is_in_double(&t, e, scratch);
            t.once = in_double == 1;
            truth_judge(check(&t), t.text);
            if (in_double >= 0)
                sides[in_double]++;
            backward_free(&t);
        }
    ck_assert_uint_gt(sides[0], 50);
    ck_assert_uint_gt(sides[1], 50);
}
END_TEST

static void print_table(void)
{
    static const char *const names[BACKWARD_COLUMNS] = {"dx, rms", "dx, layer", "dx with g", "dz", "dw", "db"};
    truth_print_rows("row", BACKWARD_COLUMNS, names, worst[0]);
}

START_TEST(worst_cases)
{
    printf("backward: worst errors in 2^-24 of the sum of the terms' magnitudes; %lu figures:\n", *measured);
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (int column = 0; column < BACKWARD_COLUMNS; column++)
            if (worst[kind][column] == 0 && (column == COLUMN_DX_RMS || column == COLUMN_DW))
                ck_abort_msg("%s: column %d was never measured", row_kind_name((enum row_kind)kind), column);
}
END_TEST

static void report(void)
{
    for (int n = 0; n < DIMS; n++)
        check_dim(n);
    for (int n = 0; n < ROW_ORDINARY_KINDS; n++)
        check_ordinary(n);
    check_million();
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("norm_backward: scalar against the exact gradient");
    TCase *formula = test_case(suite, "formulas");
    tcase_add_test(formula, formulas);
    tcase_add_test(formula, slopes);
    tcase_add_loop_test(test_case(suite, "lengths"), lengths, 0, DIMS);
    tcase_add_loop_test(test_case(suite, "ordinary"), ordinary_rows, 0, ROW_ORDINARY_KINDS);
    tcase_add_loop_test(test_case(suite, "limits"), limits_of_floats, 0, 4);
    tcase_add_test(test_case(suite, "sums"), a_million_rows);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(ROW_ALL_KINDS * sizeof *worst);
    measured = test_shared(sizeof *measured);
    return truth_main(argc, argv, report, make_suite);
}
