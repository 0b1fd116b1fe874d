/* The order in which the exact grade sums a row is part of the definition (docs/numerics.md): lanes of 32, folded after every
 * 4096 elements, segments in their order, compensated. A result in f32 shows it once in millions of rows, so no sweep can tell a
 * segment that is not folded. Here eps, or the gradient, is made so that it shows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../check/norm/settle.h"
#include "../harness/element.h"
#include "../harness/rows.h"

enum { LANES = 32, SEGMENT = 4096, DIM_MOST = 3 * SEGMENT + 7 };

static const size_t dims[] = {SEGMENT + 1, 5000, 2 * SEGMENT, DIM_MOST};
enum { DIMS = sizeof dims / sizeof dims[0] };

/* ---- forward: 1/s ---- */

static double fold(double lanes[LANES])
{
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* Σ(x - pilot)^power, folded after every `segment` elements. */
static double sum_of(const float *x, size_t dim, double pilot, int power, size_t segment)
{
    double total = 0, lost = 0;
    for (size_t begin = 0; begin < dim; begin += segment) {
        double lanes[LANES] = {0};
        for (size_t i = begin; i < dim && i < begin + segment; i++) {
            const double t = (double)x[i] - pilot;
            lanes[i % LANES] += power == 2 ? t * t : t;
        }
        const double part = fold(lanes), sum = total + part, added = sum - total;
        lost += (total - (sum - added)) + (part - added);
        total = sum;
    }
    return total + lost;
}

/* σ², where the walk that decides it folds after `segment` elements, and every other one as it should. */
static double variance_of(const float *x, size_t dim, int centred, size_t segment)
{
    const double d = (double)dim, over = 1 / d, mean = centred ? sum_of(x, dim, 0, 1, SEGMENT) / d : 0;
    const double square = sum_of(x, dim, 0, 2, SEGMENT) * over, variance = square - mean * mean;
    if (mean * mean <= 0x1p20 * variance)
        return sum_of(x, dim, 0, 2, segment) * over - mean * mean;
    const double offset = sum_of(x, dim, mean, 1, SEGMENT) / d;
    return sum_of(x, dim, mean, 2, segment) * over - offset * offset;
}

static float rstd_of(double variance, double eps)
{
    const double square = variance + eps;
    return (float)(sqrt(square) * (1 / square));
}

/* An eps for which rstd tells one variance from the other, which is a few units of its last place away. 0: none is found. */
static double telling_eps(double variance, double other, uint64_t seed)
{
    uint64_t state = seed;
    for (int tries = 0; tries < 100; tries++) {
        double low = variance * ldexp((double)test_draw(&state, 1u << 30), -30), high = low + variance * 0x1p-22;
        if (rstd_of(variance, low) == rstd_of(variance, high))
            continue;
        for (int i = 0; i < 60; i++) {
            const double middle = low + (high - low) / 2;
            *(rstd_of(variance, middle) == rstd_of(variance, low) ? &low : &high) = middle;
        }
        for (int i = 0; i < 8; i++, low = nextafter(low, 0), high = nextafter(high, INFINITY)) {
            if (rstd_of(variance, low) != rstd_of(other, low))
                return low;
            if (rstd_of(variance, high) != rstd_of(other, high))
                return high;
        }
    }
    return 0;
}

static void expect_rstd(const float *x, size_t dim, int centred, double eps, float expected)
{
    static float o[DIM_MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;) {
        float rstd = 0;
        nrg_norm_spec spec = centred ? nrg_norm_spec_layer(NRG_F32, dim, eps) : nrg_norm_spec_rms(NRG_F32, dim, eps);
        nrg_norm_args args = nrg_norm_args_init(1, x, NULL, o);
        spec.accuracy = NRG_ACCURACY_EXACT;
        args.rstd = &rstd;
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
        if (rstd != expected)
            ck_abort_msg("%s, %s, dim %zu, eps %a: rstd is %a and should be %a", nrg_isa_name(paths[path]),
                         centred ? "layer" : "rms", dim, eps, (double)rstd, (double)expected);
    }
}

/* Σp² of rows that are summed once, and of those that are summed around their mean once more. */
START_TEST(segments_of_squares)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_NORMAL, ROW_MEAN_1E4};
    static float x[DIM_MOST];
    size_t told = 0;
    for (uint64_t round = 0; round < 8; round++)
        for (int kind = 0; kind < 3; kind++) {
            const size_t dim = dims[_i];
            const int centred = kind > 0;
            row_fill(x, dim, kinds[kind], NRG_F32, test_mix(round));
            const double variance = variance_of(x, dim, centred, SEGMENT), whole = variance_of(x, dim, centred, DIM_MOST);
            const double eps = variance != whole ? telling_eps(variance, whole, round) : 0;
            if (eps == 0)
                continue;
            told++;
            expect_rstd(x, dim, centred, eps, rstd_of(variance, eps));
        }
    ck_assert_uint_gt(told, 4);
}
END_TEST

/* ---- backward ---- */

/* d_o of numbers of very different sizes whose products with the row, of ±1, have a sum of 0: what remains of it in double are
 * its roundings, in the order they were made. Where d_o is 0, they are all of dx. The four numbers of a lane that are added up in
 * f32 are of one size. */
static void make_gradient(float *x, float *d_o, size_t dim, nrg_dtype dtype, uint64_t seed)
{
    static uint32_t order[DIM_MOST];
    uint64_t state = seed;
    for (size_t i = 0; i < dim; i++) {
        x[i] = test_draw(&state, 2) ? 1 : -1;
        d_o[i] = 0;
        order[i] = (uint32_t)i;
    }
    for (size_t i = dim - 1; i > 0; i--) {
        const size_t j = test_draw(&state, i + 1);
        const uint32_t other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
    for (size_t i = 0; i + 1 < dim - dim / 8; i += 2) {
        const size_t a = order[i], b = order[i + 1];
        const int size = (int)(test_mix((a / 128 * LANES + a % LANES) ^ seed << 20) % 70) - 35;
        d_o[a] = element_round(ldexpf(1 + (float)test_draw(&state, 1 << 23) * 0x1p-23f, size), dtype);
        d_o[b] = -d_o[a] * x[a] * x[b];
    }
}

typedef struct gradients {
    float dx[DIM_MOST], dw[DIM_MOST];
} gradients;

static void backward(nrg_isa isa, const nrg_norm_spec *spec, const void *x, const void *d_o, gradients *g)
{
    static double workspace[2 * DIM_MOST];
    static uint16_t half[DIM_MOST];
    nrg_norm_backward_args args = nrg_norm_backward_args_init(1, x, NULL, d_o, spec->dtype == NRG_F32 ? (void *)g->dx : half);
    args.dw = g->dw;
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    ck_assert_int_eq(nrg_norm_backward(spec, &args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_backward_reduce(spec, &args, 0, 1), NRG_OK);
    for (size_t i = 0; i < spec->dim && spec->dtype != NRG_F32; i++)
        g->dx[i] = element_get(half, i, spec->dtype);
}

static void compare(const nrg_norm_spec *spec, const void *x, const void *d_o, const char *what)
{
    static gradients expected, got;
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    backward(NRG_ISA_SCALAR, spec, x, d_o, &expected);
    for (size_t path = 1; path < count; path++) {
        backward(paths[path], spec, x, d_o, &got);
        for (size_t i = 0; i < spec->dim; i++)
            if (!element_equal(expected.dx, got.dx, i, NRG_F32) || !element_equal(expected.dw, got.dw, i, NRG_F32))
                ck_abort_msg("%s, %s, %s, dim %zu: element %zu: dx %a and dw %a should be %a and %a", what,
                             nrg_isa_name(paths[path]), spec->centred ? "layer" : "rms", spec->dim, i, (double)got.dx[i],
                             (double)got.dw[i], (double)expected.dx[i], (double)expected.dw[i]);
    }
}

/* Rows of ±1, and of ±2^60, which are done in double. */
START_TEST(segments_of_products)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_BF16};
    static float x[DIM_MOST], d_o[DIM_MOST];
    static unsigned char x_elements[4 * DIM_MOST], d_o_elements[4 * DIM_MOST];
    const size_t dim = dims[_i];
    for (uint64_t n = 0; n < 8 * 3; n++) {
        const nrg_dtype dtype = dtypes[n & 1];
        nrg_norm_spec spec = n & 2 ? nrg_norm_spec_layer(NRG_F32, dim, 1e-5) : nrg_norm_spec_rms(NRG_F32, dim, 1e-5);
        spec.dtype = dtype;
        make_gradient(x, d_o, dim, dtype, test_mix(n));
        for (size_t i = 0; i < dim; i++) {
            element_set(x_elements, i, dtype, ldexpf(x[i], n & 4 ? 60 : 0));
            element_set(d_o_elements, i, dtype, d_o[i]);
        }
        compare(&spec, x_elements, d_o_elements, "products");
    }
}
END_TEST

/* 1/s once more: dw of d_o of ones is the normalized row, in f32. */
START_TEST(segments_of_squares_backward)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_NORMAL, ROW_MEAN_1E4};
    static float x[DIM_MOST], d_o[DIM_MOST];
    const size_t dim = dims[_i];
    for (uint64_t n = 0; n < 4 * 6; n++) {
        const int centred = n % 3 > 0, tiny = n / 3 % 2;
        row_fill(x, dim, kinds[n % 3], NRG_F32, test_mix(n));
        for (size_t i = 0; i < dim; i++)
            d_o[i] = 1;
        x[0] = 1;
        const double variance = variance_of(x, dim, centred, SEGMENT), whole = variance_of(x, dim, centred, DIM_MOST);
        const double eps = variance != whole ? telling_eps(variance, whole, n) : 0;
        nrg_norm_spec spec = centred ? nrg_norm_spec_layer(NRG_F32, dim, eps) : nrg_norm_spec_rms(NRG_F32, dim, eps);
        spec.c = tiny ? 0x1p-110 : 0; /* in double */
        norm_settle(&spec, 0);
        compare(&spec, x, d_o, "squares");
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("norms: the order of sums");
    TCase *tests = test_case(suite, "order");
    tcase_add_loop_test(tests, segments_of_squares, 0, DIMS);
    tcase_add_loop_test(tests, segments_of_products, 0, DIMS);
    tcase_add_loop_test(tests, segments_of_squares_backward, 0, DIMS);
    return test_run(suite);
}
