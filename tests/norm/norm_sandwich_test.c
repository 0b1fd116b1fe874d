/* nrg/norm_sandwich.h against 113-bit arithmetic: r and o, and all gradients against central differences of the whole function.
 * That it has the bits of two norms in turn, on every path and in any layout, is with the cases of norm_sandwich.
 *
 * With NRG_TEST_REPORT in the environment it prints the worst that was measured.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"
#include "norm_exact.h"

enum { ROWS = 3, MOST = 300, SMALL = 11 };

static float x[ROWS * MOST], y[ROWS * MOST], w[2][MOST], b[2][MOST], r[ROWS * MOST], o[ROWS * MOST];
static quad exact_x[MOST], exact_w[2][MOST], exact_b[2][MOST];

static float draw(uint64_t *random, double scale) { return (float)(scale * ((double)test_draw(random, 65536) / 32768 - 1)); }

static void set_up(size_t dim, double scale, uint64_t seed)
{
    uint64_t random = seed;
    for (size_t i = 0; i < ROWS * dim; i++) {
        x[i] = draw(&random, scale);
        y[i] = draw(&random, 2);
    }
    for (size_t i = 0; i < 2 * dim; i++) {
        w[i / dim][i % dim] = draw(&random, 1.5);
        b[i / dim][i % dim] = draw(&random, 0.5);
    }
}

/* norm(p)·w + b */
static void norm_of(const nrg_norm_spec *spec, size_t dim, const quad *p, const quad *weight, const quad *bias, quad *to)
{
    const norm_exact e = norm_exact_of(spec, dim, p);
    for (size_t i = 0; i < dim; i++)
        to[i] = norm_exact_k(spec, dim) * (p[i] - e.mean) / e.s * weight[i] + bias[i];
}

static nrg_norm_spec spec_of(size_t dim, int kind)
{
    nrg_norm_spec spec = kind == 0   ? nrg_norm_spec_rms(NRG_F32, dim, 1e-6)
                         : kind == 1 ? nrg_norm_spec_layer(NRG_F32, dim, 1e-5)
                                     : nrg_norm_spec_l2(NRG_F32, dim, 1e-12);
    spec.accuracy = kind == 3 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    return spec;
}

/* r is off by the first norm's promise and half an ulp of the sum; o of this r by the second's. As parts of these. */
static double forward_error(const nrg_norm_spec spec[2], size_t dim)
{
    quad exact_r[MOST], exact_o[MOST];
    double worst = 0;
    nrg_norm_sandwich_args args = nrg_norm_sandwich_args_init(ROWS, x, y, w[0], w[1], r, o);
    args.b1 = b[0];
    args.b2 = b[1];
    ck_assert_int_eq(nrg_norm_sandwich_forward(&spec[0], &spec[1], &args, 0, 1), NRG_OK);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < dim; i++) {
            exact_w[k][i] = (quad)w[k][i];
            exact_b[k][i] = (quad)b[k][i];
        }
    for (size_t n = 0; n < ROWS; n++) {
        for (size_t i = 0; i < dim; i++)
            exact_x[i] = (quad)x[n * dim + i];
        norm_of(&spec[0], dim, exact_x, exact_w[0], exact_b[0], exact_r);
        for (size_t i = 0; i < dim; i++) {
            const double one = fabs((double)exact_r[i]) + fabs((double)b[0][i]) + fabs((double)w[0][i]),
                         sum = one + fabs((double)y[n * dim + i]);
            const double off = fabs((double)((quad)r[n * dim + i] - (exact_r[i] + (quad)y[n * dim + i])));
            worst = fmax(worst, off / (0x1p-24 * (6 * one + sum)));
            exact_x[i] = (quad)r[n * dim + i];
        }
        norm_of(&spec[1], dim, exact_x, exact_w[1], exact_b[1], exact_o);
        for (size_t i = 0; i < dim; i++) {
            const double one = fabs((double)exact_o[i]) + fabs((double)b[1][i]) + fabs((double)w[1][i]);
            worst = fmax(worst, fabs((double)((quad)o[n * dim + i] - exact_o[i])) / (0x1p-24 * 7 * one));
        }
    }
    return worst;
}

START_TEST(forward_is_two_norms)
{
    static const size_t dims[] = {1, 2, 17, 64, 300};
    static const double scales[] = {1, 1e-3, 1e20};
    double worst = 0;
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        for (int kind = 0; kind < 16; kind++)
            for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
                const nrg_norm_spec spec[2] = {spec_of(dims[d], kind % 4), spec_of(dims[d], kind / 4)};
                set_up(dims[d], scales[s], 1 + d * 100 + (size_t)kind);
                const double error = forward_error(spec, dims[d]);
                ck_assert_msg(error <= 1, "dim %zu, kinds %d: %g of what is allowed", dims[d], kind, error);
                worst = fmax(worst, error);
            }
    if (getenv("NRG_TEST_REPORT"))
        printf("forward: %.3f of what is allowed\n", worst);
}
END_TEST

/* ---- gradients ---- */

static float d_o[ROWS * SMALL], dr_in[ROWS * SMALL], dx[ROWS * SMALL], dy[ROWS * SMALL], dw[2][SMALL], db[2][SMALL];
static quad all_x[ROWS * SMALL], all_y[ROWS * SMALL];

/* Σ d_o⊙o + Σ dr_in⊙r */
static quad loss(const nrg_norm_spec spec[2])
{
    quad sum = 0, row_r[SMALL], row_o[SMALL];
    for (size_t n = 0; n < ROWS; n++) {
        norm_of(&spec[0], SMALL, all_x + n * SMALL, exact_w[0], exact_b[0], row_r);
        for (size_t i = 0; i < SMALL; i++)
            row_r[i] += all_y[n * SMALL + i];
        norm_of(&spec[1], SMALL, row_r, exact_w[1], exact_b[1], row_o);
        for (size_t i = 0; i < SMALL; i++)
            sum += (quad)d_o[n * SMALL + i] * row_o[i] + (quad)dr_in[n * SMALL + i] * row_r[i];
    }
    return sum;
}

static double gradient_error(const nrg_norm_spec spec[2], quad *at, const float *gradient, size_t count)
{
    double worst = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        const quad value = at[i], step = (quad)0x1p-30;
        at[i] = value + step;
        const quad above = loss(spec);
        at[i] = value - step;
        const double slope = (double)((above - loss(spec)) / (2 * step));
        at[i] = value;
        worst = fmax(worst, fabs((double)gradient[i] - slope));
        size = fmax(size, fabs(slope));
    }
    return worst / (1 + size);
}

START_TEST(gradients_are_slopes)
{
    double worst = 0;
    for (int kind = 0; kind < 16; kind++) {
        const nrg_norm_spec spec[2] = {spec_of(SMALL, kind % 4), spec_of(SMALL, kind / 4)};
        uint64_t random = 77 + (uint64_t)kind;
        static double space[4 * SMALL];
        size_t bytes;
        set_up(SMALL, 1, 5 + (uint64_t)kind);
        nrg_norm_sandwich_args args = nrg_norm_sandwich_args_init(ROWS, x, y, w[0], w[1], r, o);
        float mean1[ROWS], mean2[ROWS];
        args.b1 = b[0];
        args.b2 = b[1];
        args.mean1 = mean1;
        args.mean2 = mean2;
        ck_assert_int_eq(nrg_norm_sandwich_forward(&spec[0], &spec[1], &args, 0, 1), NRG_OK);
        for (size_t i = 0; i < ROWS * SMALL; i++) {
            d_o[i] = draw(&random, 1);
            dr_in[i] = draw(&random, 1);
            all_x[i] = (quad)x[i];
            all_y[i] = (quad)y[i];
        }
        for (size_t i = 0; i < 2 * SMALL; i++) {
            exact_w[i / SMALL][i % SMALL] = (quad)w[i / SMALL][i % SMALL];
            exact_b[i / SMALL][i % SMALL] = (quad)b[i / SMALL][i % SMALL];
        }
        nrg_norm_sandwich_backward_args back = nrg_norm_sandwich_backward_args_init(ROWS, x, w[0], w[1], r, d_o, dx);
        back.dr_in = dr_in;
        back.dy = dy;
        back.mean1 = spec[0].centred && kind & 4 ? mean1 : NULL;
        back.mean2 = spec[1].centred && kind & 1 ? mean2 : NULL;
        back.dw1 = dw[0];
        back.dw2 = dw[1];
        back.db1 = db[0];
        back.db2 = db[1];
        ck_assert_int_eq(nrg_norm_sandwich_backward_workspace(&spec[0], &spec[1], &back, &bytes), NRG_OK);
        ck_assert_uint_eq(bytes, sizeof space);
        back.workspace = space;
        back.workspace_size = bytes;
        ck_assert_int_eq(nrg_norm_sandwich_backward(&spec[0], &spec[1], &back, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_norm_sandwich_backward_reduce(&spec[0], &spec[1], &back, 0, 1), NRG_OK);
        double error = fmax(gradient_error(spec, all_x, dx, ROWS * SMALL), gradient_error(spec, all_y, dy, ROWS * SMALL));
        for (int k = 0; k < 2; k++)
            error =
                fmax(error, fmax(gradient_error(spec, exact_w[k], dw[k], SMALL), gradient_error(spec, exact_b[k], db[k], SMALL)));
        ck_assert_msg(error <= 0x1p-19, "kinds %d: %g", kind, error);
        worst = fmax(worst, error);
    }
    if (getenv("NRG_TEST_REPORT"))
        printf("gradients: %.3g of 1 + the largest\n", worst);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm: sandwich");
    TCase *tests = test_case(suite, "sandwich");
    tcase_add_test(tests, forward_is_two_norms);
    tcase_add_test(tests, gradients_are_slopes);
    return test_run(suite);
}
