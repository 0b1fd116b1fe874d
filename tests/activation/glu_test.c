/* Gated linear units: the truth in double arithmetic, forward and by gradients; fused equals unfused; halves of rows and pairs
 * are the two tensors they stand for; limits. Bits over paths, shares and layouts are bits_test's.
 *
 *     glu_test --report    the worst errors
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../harness/element.h"
#include "../harness/rows.h"
#include "activation_double.h"

enum { ACTIVATIONS = NRG_ACTIVATION_COUNT, N = 1000 };

/* Errors as parts of what roundings add up to, u = 2^-24 each, a result's subnormals aside: g within 3 ulp, so 6u; its product
 * and b + offset; da has g' (4 ulp of the largest term of its formula: gradients_by_differences is what holds g' itself). */
static const double value_limit = 8, db_limit = 7;

/* Worst of value and db, in u, for each activation. */
static double (*worst)[2];

typedef struct inputs {
    float a[N], b[N], d_o[N];
} inputs;

/* From the first ordinary seed on, ordinary numbers of each kind in turn. */
enum { FIRST_ORDINARY = 2000 };

static void draw(inputs *in, int seed)
{
    uint64_t state = (uint64_t)seed + 77;
    if (seed >= FIRST_ORDINARY) {
        const enum row_kind kind = (enum row_kind)(ROW_ORDINARY + seed % ROW_ORDINARY_KINDS);
        row_fill(in->a, N, kind, NRG_F32, test_mix(state));
        row_fill(in->b, N, kind, NRG_F32, test_mix(state + 1000));
        row_fill(in->d_o, N, ROW_SD_1, NRG_F32, test_mix(state + 2000));
        return;
    }
    for (size_t i = 0; i < N; i++) {
        const double wide = test_draw(&state, 3) ? 4 : test_draw(&state, 2) ? 40 : 0x1p-20;
        in->a[i] = (float)(wide * test_uniform(&state));
        in->b[i] = (float)(4 * test_uniform(&state));
        in->d_o[i] = (float)test_uniform(&state);
    }
}

static nrg_glu_args args_of(nrg_activation g, float limit, float offset, const inputs *in, float *o)
{
    nrg_glu_args args = nrg_glu_args_init(g, NRG_F32, 1, N, in->a, in->b, o);
    args.limit = limit;
    args.b_offset = offset;
    return args;
}

static void run_back(nrg_glu_args args, const float *d_o, float *da, float *db)
{
    args.o = NULL;
    args.d_o = d_o;
    args.da = da;
    args.db = db;
    ck_assert_int_eq(nrg_glu_backward(&args, 0, 1), NRG_OK);
}

static double limited(double a, double limit) { return a > limit ? limit : a; }

/* An error of got in u·|exact|, beside what is lost among the subnormals: half of 2^-149 of g, times the other factor, and of the
 * result. */
static double error_of(double got, double exact, double factor)
{
    const double lost = 0x1p-149 * (1 + fabs(factor)), error = fabs(got - exact);
    return error <= lost ? 0 : (error - lost) / fabs(exact) * 0x1p24;
}

START_TEST(truth)
{
    static const float limits[] = {FLT_MAX, 1.5f, 7, 0}, offsets[] = {0, 1, -0.25f};
    const nrg_activation g = (nrg_activation)_i;
    static inputs in;
    static float o[N], da[N], db[N];
    const int seeds = test_small() ? 12 : 96;
    for (int n = 0; n < 2 * seeds; n++) {
        const int seed = n < seeds ? n : FIRST_ORDINARY + n - seeds;
        const float limit = limits[seed % 4], offset = offsets[seed / 4 % 3];
        draw(&in, seed);
        nrg_glu_args args = args_of(g, limit, offset, &in, o);
        if (args.alpha != 0 && seed / 4 % 2)
            args.alpha = 0.7f;
        const double alpha = (double)args.alpha;
        ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
        run_back(args, in.d_o, da, db);
        for (size_t i = 0; i < N; i++) {
            const double a = limited((double)in.a[i], (double)limit), b = (double)in.b[i],
                         value = activation_double_of(g, alpha, a);
            const double cut = fabs(b) > (double)limit ? copysign((double)limit, b) : b;
            const double error = error_of((double)o[i], value * (cut + (double)offset), cut + (double)offset);
            const double d_error = cut == b     ? error_of((double)db[i], (double)in.d_o[i] * value, (double)in.d_o[i])
                                   : db[i] == 0 ? 0
                                                : 1000;
            worst[g][0] = fmax(worst[g][0], error);
            worst[g][1] = fmax(worst[g][1], d_error);
            if (error > value_limit || d_error > db_limit)
                ck_abort_msg("%s of %a, %a, limit %g, offset %g: o %a (%.2f u), db %a (%.2f u)", nrg_activation_name(g),
                             (double)in.a[i], b, (double)limit, (double)offset, (double)o[i], error, (double)db[i], d_error);
        }
    }
}
END_TEST

/* da against a central difference of the definition in double, where that has no kink nearby. */
START_TEST(gradients_by_differences)
{
    const nrg_activation g = (nrg_activation)_i;
    static inputs in;
    static float da[N], db[N];
    for (int seed = 0; seed < 6; seed++) {
        const float limit = seed % 2 ? 2.5f : FLT_MAX, offset = seed % 3 ? 1 : 0;
        draw(&in, seed);
        run_back(args_of(g, limit, offset, &in, NULL), in.d_o, da, db);
        for (size_t i = 0; i < N; i++) {
            const double a = (double)in.a[i], b = (double)in.b[i], h = 1e-5 * fmax(1, fabs(a));
            const double cut = fabs(b) > (double)limit ? copysign((double)limit, b) : b;
            if (fabs(a) < 2 * h || fabs(a - (double)limit) < 2 * h)
                continue;
            const double slope =
                (activation_double(g, limited(a + h, (double)limit)) - activation_double(g, limited(a - h, (double)limit))) /
                (2 * h);
            const double exact = (double)in.d_o[i] * (cut + (double)offset) * slope;
            if (fabs((double)da[i] - exact) > 1e-6 * fmax(1, fabs(a)) * (1 + fabs(exact)))
                ck_abort_msg("%s′ at %a: da %a and not %a", nrg_activation_name(g), a, (double)da[i], exact);
        }
    }
}
END_TEST

/* One call is nrg_activation_forward in f32 and a product, each rounded to f32, and one rounding to the dtype. */
START_TEST(fused_is_unfused)
{
    const nrg_activation g = (nrg_activation)(_i / 3);
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    static inputs in;
    static float a[N], value[N];
    draw(&in, _i);
    void *ta = element_stored(in.a, N, dtype), *tb = element_stored(in.b, N, dtype), *o = element_tensor(N, dtype);
    void *expected = element_tensor(N, dtype);
    const nrg_glu_args args = nrg_glu_args_init(g, dtype, 1, N, ta, tb, o);
    for (size_t i = 0; i < N; i++)
        a[i] = element_get(ta, i, dtype);
    ck_assert_int_eq(nrg_activation_forward(g, NRG_F32, N, a, value, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
    for (size_t i = 0; i < N; i++) {
        element_set(expected, i, dtype, value[i] * element_get(tb, i, dtype));
        if (!element_equal(o, expected, i, dtype))
            ck_abort_msg("%s of %s: element %zu", nrg_activation_name(g), nrg_dtype_name(dtype), i);
    }
    free(ta);
    free(tb);
    free(o);
    free(expected);
}
END_TEST

/* Halves of rows, in either order, in place or not, and pairs: the bits of two tensors. */
START_TEST(other_layouts)
{
    enum { DIM = 37, ROWS = 9, ALL = DIM * ROWS };
    const nrg_activation g = (nrg_activation)_i;
    static inputs in;
    static float halves[2][2 * ALL], pairs[2 * ALL], o[ALL], got[ALL], da[ALL], db[ALL], dx[2 * ALL], back[2 * ALL];
    draw(&in, 1000 + _i);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < DIM; i++) {
            const size_t n = row * DIM + i;
            halves[0][row * 2 * DIM + i] = halves[1][row * 2 * DIM + DIM + i] = pairs[2 * n] = in.a[n];
            halves[0][row * 2 * DIM + DIM + i] = halves[1][row * 2 * DIM + i] = pairs[2 * n + 1] = in.b[n];
        }
    nrg_glu_args args = nrg_glu_args_init(g, NRG_F32, ROWS, DIM, in.a, in.b, o);
    args.limit = _i % 2 ? 2.0f : FLT_MAX;
    ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
    nrg_glu_args whole = args;
    run_back(whole, in.d_o, da, db);

    nrg_glu_args x = args;
    x.a = x.b = NULL;
    x.x = pairs;
    x.o = got;
    ck_assert_int_eq(nrg_glu_forward(&x, 0, 1), NRG_OK);
    ck_assert_mem_eq(got, o, sizeof o);
    x.o = NULL;
    x.d_o = in.d_o;
    x.dx = dx;
    ck_assert_int_eq(nrg_glu_backward(&x, 0, 1), NRG_OK);
    for (size_t i = 0; i < ALL; i++)
        ck_assert(memcmp(&dx[2 * i], &da[i], 4) == 0 && memcmp(&dx[2 * i + 1], &db[i], 4) == 0);

    for (int swapped = 0; swapped < 2; swapped++) {
        const nrg_glu_args planned = nrg_glu_args_halves(g, NRG_F32, ROWS, DIM, NRG_UNALLOCATED, swapped, NRG_UNALLOCATED);
        ck_assert_int_eq(nrg_glu_forward_check(&planned), NRG_OK);
        ck_assert_int_eq(nrg_glu_forward(&planned, 0, 1), NRG_ERR_UNALLOCATED);
        nrg_glu_args half = nrg_glu_args_halves(g, NRG_F32, ROWS, DIM, halves[swapped], swapped, got);
        half.limit = args.limit;
        memset(got, 0, sizeof got);
        ck_assert_int_eq(nrg_glu_forward(&half, 0, 1), NRG_OK);
        ck_assert_mem_eq(got, o, sizeof o);
        /* gradients in a tensor like x, and then in x itself */
        for (int in_place = 0; in_place < 2; in_place++) {
            float *to = in_place ? halves[swapped] : back;
            half.o = NULL;
            half.d_o = in.d_o;
            half.da = to + (swapped ? DIM : 0);
            half.db = to + (swapped ? 0 : DIM);
            half.da_stride[0] = half.db_stride[0] = half.a_stride[0];
            ck_assert_int_eq(nrg_glu_backward(&half, 0, 1), NRG_OK);
            for (size_t n = 0; n < ALL; n++) {
                const size_t first = n / DIM * 2 * DIM + n % DIM;
                ck_assert(memcmp(&to[first], swapped ? &db[n] : &da[n], 4) == 0);
                ck_assert(memcmp(&to[first + DIM], swapped ? &da[n] : &db[n], 4) == 0);
            }
        }
    }
}
END_TEST

/* A limit of 0 leaves of a what is below it and of b the offset; an infinite one is none. On every path. */
START_TEST(limits_at_the_ends)
{
    enum { COUNT = 9 };
    static const float a[COUNT] = {2, 1, 0, -0.0f, -1, -2, INFINITY, -3, 5},
                       b[COUNT] = {3, -3, 0, -0.0f, 1, INFINITY, 1, -1, -0.5f};
    static const float d_o[COUNT] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int g = 0; g < 2; g++) {
            float o[COUNT], da[COUNT], db[COUNT], none[COUNT];
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_glu_args args = nrg_glu_args_init(g ? NRG_ACT_SILU : NRG_ACT_IDENTITY, NRG_F32, 1, COUNT, a, b, o);
            args.b_offset = 2;
            args.limit = INFINITY;
            ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
            args.limit = FLT_MAX;
            args.o = none;
            ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
            ck_assert_mem_eq(o, none, sizeof o);
            ck_assert(o[6] == INFINITY && o[5] == -INFINITY);
            args.limit = 0;
            args.o = o;
            ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
            run_back(args, d_o, da, db);
            for (int i = 0; i < COUNT; i++) {
                const float at = a[i] > 0 ? 0 : a[i];
                float value;
                ck_assert_int_eq(nrg_activation_forward(args.activation, NRG_F32, 1, &at, &value, 0, 1), NRG_OK);
                ck_assert(o[i] == value * 2 && (a[i] <= 0 || da[i] == 0) && db[i] == (b[i] == 0 ? value : 0));
            }
        }
}
END_TEST

/* What is cut off has no gradient; what is on the limit has one, as torch's clamp has; a NaN comes through. */
START_TEST(on_the_limit)
{
    enum { COUNT = 6 };
    static const float a[COUNT] = {7, 7.5f, 1, 1, (float)NAN, 1}, b[COUNT] = {2, 2, 7, -7, 2, -8};
    static const int has_da[COUNT] = {1, 0, 1, 1, 1, 1}, has_db[COUNT] = {1, 1, 1, 1, 1, 0};
    static const float d_o[COUNT] = {1, 1, 1, 1, 1, 1};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;) {
        float o[COUNT], da[COUNT], db[COUNT];
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        nrg_glu_args args = nrg_glu_args_init(NRG_ACT_SILU, NRG_F32, 1, COUNT, a, b, o);
        args.limit = 7;
        args.b_offset = 1;
        ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
        run_back(args, d_o, da, db);
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(da[i] != 0, has_da[i]);
            ck_assert_int_eq(db[i] != 0, has_db[i]);
        }
        ck_assert(isnan(o[4]) && isnan(da[4]) && isnan(db[4]));
        ck_assert(o[5] < 0 && o[1] == o[0]);
    }
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    test_note_crashes();
    worst = test_shared(ACTIVATIONS * sizeof *worst);
    Suite *suite = suite_create("gated linear units");
    TCase *all = test_case(suite, "glu");
    tcase_add_loop_test(all, truth, 0, ACTIVATIONS);
    tcase_add_loop_test(all, gradients_by_differences, 0, ACTIVATIONS);
    tcase_add_loop_test(all, fused_is_unfused, 0, 3 * ACTIVATIONS);
    tcase_add_loop_test(all, other_layouts, 0, ACTIVATIONS);
    tcase_add_test(all, limits_at_the_ends);
    tcase_add_test(all, on_the_limit);
    const int status = test_run(suite);
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        for (int g = 0; g < ACTIVATIONS; g++)
            printf("| %s | %.2f | %.2f |\n", nrg_activation_name((nrg_activation)g), worst[g][0], worst[g][1]);
    return status;
}
