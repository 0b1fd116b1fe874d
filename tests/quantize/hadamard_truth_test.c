/* The Hadamard rotation against 113-bit arithmetic, from the definition of H: the bounds that docs/ops/hadamard.md states, and
 * that the backward pass is the transpose.
 *
 * --report prints the worst errors.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad.h"
#include "../harness/rows.h"

enum { MOST = 512, DIMS = 4 };

static int reporting;
static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

static quad power_of(quad a, int n)
{
    quad product = 1;
    while (n-- > 0)
        product *= a;
    return product;
}

static int is_minus(size_t i, size_t j)
{
    int minus = 0;
    for (size_t both = i & j; both; both &= both - 1)
        minus = !minus;
    return minus;
}

typedef nrg_status rotation(const nrg_hadamard_args *args, int ith, int nth);

/* Returns the larger of both errors, in units of their bounds. */
static double check_row(const float *row, size_t dim, nrg_dtype dtype, rotation *rotate, const char *what)
{
    static const int roundings[DIMS] = {6, 9, 8, 11};
    const int n = roundings[dim == 64 ? 0 : dim == 128 ? 1 : dim == 256 ? 2 : 3];
    static unsigned char x[4 * MOST], o[4 * MOST];
    const quad e = power_of(1 + (quad)0x1p-24, n) - 1, root = quad_sqrt((quad)dim);
    quad sum = 0, squares = 0, errors = 0;
    double worst = 0;
    for (size_t i = 0; i < dim; i++) {
        element_set(x, i, dtype, row[i]);
        const quad value = element_get(x, i, dtype);
        sum += quad_abs(value);
        squares += value * value;
    }
    if (sum > (quad)FLT_MAX)
        return 0;
    const nrg_hadamard_args args = nrg_hadamard_args_init(dtype, 1, dim, x, o);
    ck_assert_int_eq(rotate(&args, 0, 1), NRG_OK);
    for (size_t j = 0; j < dim; j++) {
        quad exact = 0;
        for (size_t i = 0; i < dim; i++)
            exact += is_minus(i, j) ? -(quad)element_get(x, i, dtype) : (quad)element_get(x, i, dtype);
        exact /= root;
        quad bound = e * sum / root + (quad)0x1p-150;
        if (dtype != NRG_F32) /* rounded once more, which may cross a power of two */
            bound += (quad)element_ulp((double)(quad_abs(exact) + bound), dtype) / 2;
        if (quad_abs(exact) + bound > (quad)element_max(dtype))
            return worst;
        const quad error = quad_abs((quad)element_get(o, j, dtype) - exact);
        if (!(error <= bound))
            ck_abort_msg("%s, %s, dim %zu, element %zu: off by %g, the bound is %g", what, nrg_dtype_name(dtype), dim, j,
                         (double)error, (double)bound);
        errors += error * error;
        worst = error > worst * bound ? (double)(error / bound) : worst;
    }
    const quad length = e * quad_sqrt(squares) + (quad)0x1p-150 * root;
    if (dtype == NRG_F32 && squares > (quad)DBL_MIN && !(errors <= length * length))
        ck_abort_msg("%s, dim %zu: the vector of errors is longer than its bound", what, dim);
    return worst;
}

START_TEST(bounds)
{
    static float row[MOST];
    const nrg_dtype dtype = dtypes[_i];
    for (size_t dim = 64; dim <= MOST; dim *= 2) {
        double worst = 0;
        for (int kind = 0; kind < ROW_ALL_KINDS; kind++) {
            if (kind == ROW_ONE_INF || kind == ROW_ONE_NAN)
                continue;
            for (uint64_t seed = 0; seed < (test_small() ? 1 : 5); seed++) {
                row_fill(row, dim, (enum row_kind)kind, dtype, seed);
                const double forward = check_row(row, dim, dtype, nrg_hadamard_forward, row_kind_name((enum row_kind)kind));
                const double back = check_row(row, dim, dtype, nrg_hadamard_backward, row_kind_name((enum row_kind)kind));
                ck_assert(forward == back);
                worst = forward > worst ? forward : worst;
            }
        }
        if (reporting)
            printf("%-4s dim %3zu: at most %.3f of the bound\n", nrg_dtype_name(dtype), dim, worst);
    }
}
END_TEST

/* Each column of H: one element of x that is not 0. All results are ±c, the nearest float to 1/√dim; back, it is one again. */
START_TEST(columns)
{
    static float x[MOST], o[MOST], back[MOST];
    for (size_t dim = 64; dim <= MOST; dim *= 2) {
        const float c = (float)(1 / quad_sqrt((quad)dim));
        for (size_t i = 0; i < dim; i++) {
            memset(x, 0, sizeof x);
            x[i] = 1;
            nrg_hadamard_args args = nrg_hadamard_args_init(NRG_F32, 1, dim, x, o);
            ck_assert_int_eq(nrg_hadamard_forward(&args, 0, 1), NRG_OK);
            for (size_t j = 0; j < dim; j++)
                ck_assert_msg(o[j] == (is_minus(i, j) ? -c : c), "dim %zu, %zu, %zu: %a", dim, i, j, (double)o[j]);
            args.x = o;
            args.o = back;
            ck_assert_int_eq(nrg_hadamard_backward(&args, 0, 1), NRG_OK);
            for (size_t j = 0; j < dim; j++)
                ck_assert(fabsf(back[j] - x[j]) < 0x1p-23f);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    reporting = argc > 1 && strcmp(argv[1], "--report") == 0;
    test_note_crashes();
    Suite *suite = suite_create("the Hadamard rotation against 113 bits");
    TCase *rows = test_case(suite, "rows");
    tcase_add_loop_test(rows, bounds, 0, 3);
    tcase_add_test(rows, columns);
    return test_run(suite);
}
