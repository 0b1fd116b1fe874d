/* What the descriptions of nrg/norm.h and nrg/norm_backward.h do not say: shortcuts, constructors, sizes of workspaces, sums
 * of no rows, and the second phase where it has nothing to do. All bad input beside this: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../harness/support.h"

enum { ROWS = 3, TWO_BLOCKS = 40, DIM = 8 };
enum { X, Y, W, B, O, R, TENSORS };

static float memory[TENSORS][TWO_BLOCKS * DIM], expected[TENSORS][TWO_BLOCKS * DIM];

/* Of few bits: as 16-bit elements they are finite too. */
static void set_up(void)
{
    for (size_t i = 0; i < TENSORS * TWO_BLOCKS * DIM; i++)
        memory[i / (TWO_BLOCKS * DIM)][i % (TWO_BLOCKS * DIM)] = (float)(test_mix(i) % 128) / 64 - 1;
}

/* What the general call makes of the memory is expected of a shortcut. */
static void general(nrg_norm_spec spec, const float *y, const float *w, const float *b, float *r)
{
    nrg_norm_args args = nrg_norm_args_init(ROWS, memory[X], w, memory[O]);
    args.y = y;
    args.b = b;
    args.r = r;
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    memcpy(expected, memory, sizeof expected);
    set_up();
}

static void shortcut(nrg_status status)
{
    ck_assert_int_eq(status, NRG_OK);
    ck_assert_mem_eq(expected, memory, sizeof memory);
    set_up();
}

START_TEST(shortcuts_are_the_general_call)
{
    float *x = memory[X], *y = memory[Y], *o = memory[O];
    const nrg_norm_spec rms = nrg_norm_spec_rms(NRG_F32, DIM, 1e-3), layer = nrg_norm_spec_layer(NRG_F32, DIM, 1e-3);
    for (int with = 0; with < 8; with++) {
        float *w = with & 1 ? memory[W] : NULL, *b = with & 2 ? memory[B] : NULL, *r = with & 4 ? memory[R] : NULL;
        general(rms, NULL, w, NULL, NULL);
        shortcut(nrg_rms_norm_f32(ROWS, DIM, x, w, o, 1e-3));
        general(rms, y, w, NULL, r);
        shortcut(nrg_add_rms_norm_f32(ROWS, DIM, x, y, w, r, o, 1e-3));
        general(layer, NULL, w, b, NULL);
        shortcut(nrg_layer_norm_f32(ROWS, DIM, x, w, b, o, 1e-3));
        general(layer, y, w, b, r);
        shortcut(nrg_add_layer_norm_f32(ROWS, DIM, x, y, w, b, r, o, 1e-3));
        general(nrg_norm_spec_l2(NRG_F32, DIM, 1e-3), NULL, NULL, NULL, NULL);
        shortcut(nrg_l2_norm_f32(ROWS, DIM, x, o, 1e-3));
    }
    /* r in the place of x or y, as the header allows */
    general(rms, y, NULL, NULL, x);
    shortcut(nrg_add_rms_norm_f32(ROWS, DIM, x, y, NULL, x, o, 1e-3));
    general(layer, y, NULL, NULL, y);
    shortcut(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, y, o, 1e-3));
}
END_TEST

START_TEST(shortcuts_refuse)
{
    float *x = memory[X], *y = memory[Y], *o = memory[O], *r = memory[R];
    memcpy(expected, memory, sizeof expected);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, DIM, NULL, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, DIM, x, NULL, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, NULL, NULL, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, x, NULL, NULL, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, x, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_rms_norm_f32(ROWS, DIM, x, NULL, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_rms_norm_f32(ROWS, DIM, NULL, y, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, NULL, NULL, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, r, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, 0, x, NULL, o, 1e-5), NRG_ERR_DIM);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, DIM, x, NULL, x + 1, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_add_rms_norm_f32(ROWS, DIM, x, y, NULL, o, o, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, x, NULL, o, o, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, o, o, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, x, x + 1, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_rms_norm_f32(SIZE_MAX, DIM, x, NULL, o, 1e-5), NRG_ERR_OVERFLOW);
    ck_assert_int_eq(nrg_add_rms_norm_f32(SIZE_MAX, DIM, x, y, NULL, r, o, 1e-5), NRG_ERR_OVERFLOW);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, SIZE_MAX, x, NULL, NULL, o, 1e-5), NRG_ERR_OVERFLOW);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, SIZE_MAX, x, y, NULL, NULL, r, o, 1e-5), NRG_ERR_OVERFLOW);
    ck_assert_int_eq(nrg_l2_norm_f32(SIZE_MAX, DIM, x, o, 1e-5), NRG_ERR_OVERFLOW);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, x, o, -1), NRG_ERR_EPS);
    ck_assert_int_eq(nrg_rms_norm_f32(0, DIM, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_add_rms_norm_f32(0, DIM, NULL, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_layer_norm_f32(0, DIM, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_add_layer_norm_f32(0, DIM, NULL, NULL, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_l2_norm_f32(0, DIM, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_mem_eq(expected, memory, sizeof memory);
}
END_TEST

START_TEST(constructors)
{
    nrg_norm_spec rms = nrg_norm_spec_rms(NRG_F32, 7, 0.5), layer = nrg_norm_spec_layer(NRG_F32, 7, 0.5),
                  l2 = nrg_norm_spec_l2(NRG_F32, 7, 0.5);
    ck_assert_uint_eq(rms.size, sizeof rms);
    ck_assert_uint_eq(rms.dim, 7);
    ck_assert(rms.eps == 0.5 && rms.c == 0 && rms.weight_offset == 0 && rms.dtype == NRG_F32);
    ck_assert(!rms.centred && rms.eps_mode == NRG_EPS_MEAN && rms.c_mode == NRG_C_SQRT_DIM);
    ck_assert(rms.gate == NRG_GATE_NONE && rms.activation == NRG_ACT_IDENTITY && rms.groups == 1);
    ck_assert(layer.centred && layer.eps_mode == NRG_EPS_MEAN && layer.c == 0 && layer.dim == 7 && layer.eps == 0.5);
    ck_assert(!l2.centred && l2.eps_mode == NRG_EPS_MAX && l2.c_mode == NRG_C_GIVEN && l2.c == 1 && l2.dim == 7 && l2.eps == 0.5);
    nrg_norm_args a;
    memset(&a, 0xff, sizeof a);
    a = nrg_norm_args_init(3, &rms, &l2, &layer);
    ck_assert(a.size == sizeof a && a.rows == 3 && a.rows2 == 1 && a.rows3 == 1 && a.x == &rms && a.w == &l2 && a.o == &layer);
    ck_assert(!a.y && !a.b && !a.z && !a.r && !a.mean && !a.rstd && !a.packed && !a.scales && !a.y_repeat && !a.z_repeat);
    for (int k = 0; k < 3; k++)
        ck_assert(!a.x_stride[k] && !a.y_stride[k] && !a.z_stride[k] && !a.o_stride[k] && !a.r_stride[k]);
}
END_TEST

START_TEST(workspace)
{
    static const size_t dims[] = {1, 7, 4096};
    nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    nrg_norm_backward_args args =
        nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL); /* pointers and strides are not looked at */
    float some;
    for (size_t dim = 0; dim < 3; dim++)
        for (size_t rows = 0; rows < 20000; rows += rows < 5000 ? 1 : 97)
            for (int asked = 0; asked < 4; asked++) {
                const size_t blocks = rows <= 2048 ? (rows + 31) / 32 : 64, sums = (asked & 1) + (size_t)(asked >> 1),
                             most = sums * blocks * 8 * dims[dim];
                size_t bytes = 1;
                spec.dim = dims[dim];
                args.rows = rows;
                args.dw = asked & 1 ? &some : NULL;
                args.db = asked & 2 ? &some : NULL;
                ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
                /* beyond 2048 rows the header's number is the most there can be */
                ck_assert_msg(bytes <= most && (rows > 2048 ? bytes > most / 2 || !sums : bytes == most), "%zu rows: %zu bytes",
                              rows, bytes);
            }
}
END_TEST

/* dw and db are sums of nothing, which the second phase writes, or one thread in the first. */
START_TEST(no_rows)
{
    static const float zero[DIM];
    const nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int nth = 1; nth < 7; nth++) {
            nrg_norm_backward_args args = nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL);
            args.dw = memory[W];
            args.db = memory[B];
            args.accumulate = accumulate;
            memcpy(expected, memory, sizeof expected);
            for (int ith = 0; ith < nth; ith++)
                ck_assert_int_eq(nrg_norm_backward(&spec, &args, ith, nth), NRG_OK);
            for (int phase = 1; phase <= 2; phase++) {
                if (!accumulate && (phase == 2 || nth == 1)) {
                    memcpy(expected[W], zero, sizeof zero);
                    memcpy(expected[B], zero, sizeof zero);
                }
                ck_assert_mem_eq(expected, memory, sizeof memory);
                for (int ith = 0; ith < nth && phase == 1; ith++)
                    ck_assert_int_eq(nrg_norm_backward_reduce(&spec, &args, ith, nth), NRG_OK);
            }
            set_up();
        }
}
END_TEST

/* Both phases, each in so many shares: the second does what is left, which after a single block of rows, or after one thread, is
 * nothing. All must give what one thread gives. */
static void phases(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int first, int second, size_t blocks)
{
    static float once[TENSORS][TWO_BLOCKS * DIM];
    for (int ith = first; ith-- > 0;)
        ck_assert_int_eq(nrg_norm_backward(spec, args, ith, first), NRG_OK);
    memcpy(expected, memory, sizeof expected);
    ck_assert_int_eq(nrg_norm_backward_reduce_check(spec, args), NRG_OK);
    for (int ith = second; ith-- > 0;)
        ck_assert_int_eq(nrg_norm_backward_reduce(spec, args, ith, second), NRG_OK);
    ck_assert((memcmp(expected, memory, sizeof memory) != 0) == (first > 1 && blocks > 1 && args->workspace_size));
    if (first > 1 || second > 1)
        ck_assert_mem_eq(once, memory, sizeof memory);
    memcpy(once, memory, sizeof memory);
    set_up();
}

static void second_phase(size_t rows, size_t blocks)
{
    static double space[2 * 2 * DIM];
    for (int asked = 0; asked < 16; asked++)
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
            const nrg_norm_spec spec = nrg_norm_spec_layer(dtype, DIM, 1e-5);
            nrg_norm_backward_args args = nrg_norm_backward_args_init(rows, memory[X], NULL, memory[Y], NULL);
            args.dx = asked & 4 ? memory[O] : NULL;
            args.dw = asked & 1 ? memory[W] : NULL;
            args.db = asked & 2 ? memory[B] : NULL;
            args.accumulate = asked >> 3;
            ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &args.workspace_size), NRG_OK);
            ck_assert_uint_le(args.workspace_size, sizeof space);
            ck_assert_uint_eq(args.workspace_size, blocks * ((asked & 1) + (asked >> 1 & 1)) * DIM * sizeof *space);
            args.workspace = args.workspace_size ? space : NULL;
            for (int first = 1; first <= 3; first++)
                for (int second = 1; second <= 3; second += 2)
                    phases(&spec, &args, first, second, blocks);
        }
}

START_TEST(the_second_phase_in_every_case)
{
    second_phase(ROWS, 1);
    second_phase(TWO_BLOCKS, 2);
}
END_TEST

/* One thread needs no second phase, and one that is called adds nothing. */
START_TEST(the_second_phase_of_a_sandwich)
{
    static double space[4 * 2 * DIM];
    static float once[TENSORS][TWO_BLOCKS * DIM];
    const nrg_norm_spec first = nrg_norm_spec_rms(NRG_F32, DIM, 1e-5), second = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int shares = 1; shares <= 3; shares++) {
            nrg_norm_sandwich_backward_args args =
                nrg_norm_sandwich_backward_args_init(TWO_BLOCKS, memory[X], NULL, NULL, memory[R], memory[Y], memory[O]);
            args.dw1 = memory[W];
            args.dw2 = memory[W] + DIM;
            args.db1 = memory[B];
            args.db2 = memory[B] + DIM;
            args.accumulate = accumulate;
            args.workspace = space;
            args.workspace_size = sizeof space;
            for (int ith = 0; ith < shares; ith++)
                ck_assert_int_eq(nrg_norm_sandwich_backward(&first, &second, &args, ith, shares), NRG_OK);
            if (shares == 1)
                memcpy(once, memory, sizeof memory);
            for (int ith = 0; ith < 2; ith++)
                ck_assert_int_eq(nrg_norm_sandwich_backward_reduce(&first, &second, &args, ith, 2), NRG_OK);
            ck_assert_mem_eq(once, memory, sizeof memory);
            set_up();
        }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm: calls");
    TCase *tests = test_case(suite, "calls");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, shortcuts_are_the_general_call);
    tcase_add_test(tests, shortcuts_refuse);
    tcase_add_test(tests, constructors);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, no_rows);
    tcase_add_test(tests, the_second_phase_in_every_case);
    tcase_add_test(tests, the_second_phase_of_a_sandwich);
    return test_run(suite);
}
