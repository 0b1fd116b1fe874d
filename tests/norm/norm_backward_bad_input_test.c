/* Bad input for the backward pass: every refusal norm_backward.h lists gives its status, in both phases, and writes nothing; what
 * the header allows is not refused. bad_input_test.c does this for the forward pass.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* A call that is right, with every operand in a zone of its own, and room around each for others to be moved into it. 33 rows:
 * two blocks. */
enum { DIM = 4, ROWS = 33, BLOCKS = 2, ZONE = 2048, FIRST = 768, ZONES = 15 };
enum { D_O, DR_IN, X, Y, R, Z, W, B, MEAN, DX, DY, DZ, DW, DB, WORKSPACE };
enum { TENSOR = ROWS * DIM * sizeof(float), VECTOR = DIM * sizeof(float), SPACE = 2 * BLOCKS * DIM * sizeof(double) };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_norm_spec spec;
static nrg_norm_backward_args args;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }

static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    spec = nrg_layer_norm_spec(DIM, 1e-5);
    spec.gate = NRG_GATE_POST;
    spec.activation = NRG_ACT_RELU;
    args = nrg_norm_backward_args_init(ROWS, zone(X), zone(D_O), zone(DX));
    args.dr_in = zone(DR_IN);
    args.y = zone(Y);
    args.z = zone(Z);
    args.w = zone(W);
    args.b = zone(B);
    args.mean = floats(MEAN);
    args.dy = zone(DY);
    args.dz = zone(DZ);
    args.dw = floats(DW);
    args.db = floats(DB);
    args.workspace = zone(WORKSPACE);
    args.workspace_size = SPACE;
}

/* The same with r in the place of x and y. */
static void with_r(void)
{
    args.r = zone(R);
    args.x = args.y = NULL;
}

typedef nrg_status phase(const nrg_norm_spec *, const nrg_norm_backward_args *, int, int);
static phase *const phases[] = {nrg_norm_backward, nrg_norm_backward_reduce};

static void refused_share(nrg_status status, int ith, int nth, int line)
{
    for (int i = 0; i < 2; i++) {
        memcpy(before, memory, sizeof before);
        nrg_status got = phases[i](&spec, &args, ith, nth);
        if (got != status)
            ck_abort_msg("line %d, phase %d: status %d (%s) and not %d (%s)", line, i + 1, (int)got, nrg_status_string(got),
                         (int)status, nrg_status_string(status));
        if (memcmp(before, memory, sizeof before) != 0)
            ck_abort_msg("line %d, phase %d: a refused call wrote something", line, i + 1);
    }
}

/* The call as it stands now is refused, whichever share asks; then everything is right again. */
static void refused(nrg_status status, int line)
{
    refused_share(status, 0, 1, line);
    refused_share(status, 2, 3, line);
    refused_share(status, 39, 40, line); /* a share without rows and columns checks all the same */
    set_up();
}

static void accepted(int line)
{
    for (int i = 0; i < 2; i++) {
        nrg_status got = phases[i](&spec, &args, 0, 1);
        if (got != NRG_OK)
            ck_abort_msg("line %d, phase %d: status %d (%s)", line, i + 1, (int)got, nrg_status_string(got));
    }
    set_up();
}

#define REFUSED(status) refused(status, __LINE__)
#define ACCEPTED() accepted(__LINE__)

static size_t bytes_of(int operand)
{
    return operand == WORKSPACE                                             ? SPACE
           : operand == MEAN                                                ? ROWS * sizeof(float)
           : operand == W || operand == B || operand == DW || operand == DB ? VECTOR
                                                                            : TENSOR;
}

START_TEST(right_call)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_norm_backward(&spec, &args, 0, 1), NRG_OK);
    ck_assert_mem_eq(zone(DW), before + (zone(DW) - memory), VECTOR); /* dw and db are the second phase's */
    ck_assert_mem_eq(zone(DB), before + (zone(DB) - memory), VECTOR);
    ck_assert_int_eq(nrg_norm_backward_reduce(&spec, &args, 0, 1), NRG_OK);
    for (int operand = 0; operand < ZONES; operand++) {
        int changed = memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0;
        ck_assert_int_eq(changed, operand >= DX);
        memcpy(before + operand * ZONE + FIRST, zone(operand), bytes_of(operand));
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
}
END_TEST

START_TEST(null)
{
    memcpy(before, memory, sizeof before);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(phases[i](NULL, &args, 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(phases[i](&spec, NULL, 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(phases[i](NULL, NULL, 0, 1), NRG_ERR_NULL);
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
    args.d_o = NULL;
    REFUSED(NRG_ERR_NULL);
    args.x = NULL;
    REFUSED(NRG_ERR_NULL);
    args.z = NULL;
    REFUSED(NRG_ERR_NULL);
    args.workspace = NULL;
    REFUSED(NRG_ERR_NULL);
    args.workspace = NULL;
    args.dw = NULL;
    REFUSED(NRG_ERR_NULL);
    args.workspace = NULL;
    args.db = NULL;
    REFUSED(NRG_ERR_NULL);
    /* what may be absent */
    args.workspace = NULL;
    args.workspace_size = 0;
    args.dw = args.db = NULL;
    ACCEPTED();
    args.dr_in = args.y = args.w = args.b = NULL;
    ACCEPTED();
    args.mean = NULL;
    ACCEPTED();
    args.dx = args.dy = args.dz = NULL;
    ACCEPTED();
    args.dx = args.dy = args.dz = NULL;
    args.dw = args.db = NULL;
    ACCEPTED();
    with_r();
    ACCEPTED();
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = args.y = NULL;
    ACCEPTED();
}
END_TEST

/* With r, x and y are not looked at, wherever they point. */
START_TEST(what_is_not_read)
{
    with_r();
    args.x = zone(DX) + 3;
    args.y = (const void *)(UINTPTR_MAX - 1);
    args.x_stride = 1;
    ACCEPTED();
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    args.y = zone(DX) + 3;
    ACCEPTED();
    /* the mean of a norm that has none */
    spec.centred = 0;
    args.mean = (const float *)(const void *)(zone(DX) + 4);
    ACCEPTED();
}
END_TEST

START_TEST(spec_errors)
{
    spec.dim = 0;
    REFUSED(NRG_ERR_DIM);
    spec.groups = 3;
    REFUSED(NRG_ERR_DIM);
    spec.groups = 2;
    ACCEPTED();
    spec.dtype = NRG_DTYPE_SAME;
    REFUSED(NRG_ERR_ENUM);
    spec.eps_mode = (nrg_eps_mode)5;
    REFUSED(NRG_ERR_ENUM);
    spec.store = (nrg_store)3;
    REFUSED(NRG_ERR_ENUM);
    spec.gate = (nrg_gate)-1;
    REFUSED(NRG_ERR_ENUM);
    spec.activation = (nrg_activation)9;
    REFUSED(NRG_ERR_ENUM);
    spec.residual_mode = (nrg_residual_mode)2;
    REFUSED(NRG_ERR_ENUM);
    spec.r_dtype = (nrg_dtype)4;
    REFUSED(NRG_ERR_ENUM);
    spec.w_dtype = NRG_BF16;
    REFUSED(NRG_ERR_DTYPE);
    spec.dtype = NRG_F16;
    spec.y_dtype = NRG_BF16;
    REFUSED(NRG_ERR_DTYPE);
    spec.eps = -1;
    REFUSED(NRG_ERR_EPS);
    spec.eps = NAN;
    REFUSED(NRG_ERR_EPS);
    spec.c = INFINITY;
    REFUSED(NRG_ERR_CONSTANT);
    spec.weight_offset = NAN;
    REFUSED(NRG_ERR_CONSTANT);
    for (int sign = -1; sign <= 1; sign += 2) {
        spec.c = sign * nextafter(FLT_MAX, INFINITY);
        REFUSED(NRG_ERR_CONSTANT);
        spec.c = sign * (double)FLT_MAX;
        spec.weight_offset = (float)-sign * FLT_MAX;
        ACCEPTED();
    }
}
END_TEST

START_TEST(combination)
{
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    REFUSED(NRG_ERR_COMBINATION); /* dr_in */
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    args.r = zone(R);
    REFUSED(NRG_ERR_COMBINATION);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    ACCEPTED();
    spec.gate = NRG_GATE_NONE;
    REFUSED(NRG_ERR_COMBINATION);
    spec.gate = NRG_GATE_NONE;
    args.z = NULL;
    REFUSED(NRG_ERR_COMBINATION); /* dz */
    spec.gate = NRG_GATE_NONE;
    args.dz = NULL;
    REFUSED(NRG_ERR_COMBINATION); /* z */
    spec.gate = NRG_GATE_NONE;
    args.z = NULL;
    args.dz = NULL;
    ACCEPTED();
}
END_TEST

static void move(int operand, unsigned char *to)
{
    switch (operand) {
    case D_O:
        args.d_o = to;
        break;
    case DR_IN:
        args.dr_in = to;
        break;
    case X:
        args.x = to;
        break;
    case Y:
        args.y = to;
        break;
    case R:
        args.r = to;
        break;
    case Z:
        args.z = to;
        break;
    case W:
        args.w = to;
        break;
    case B:
        args.b = to;
        break;
    case MEAN:
        args.mean = (const float *)(const void *)to;
        break;
    case DX:
        args.dx = to;
        break;
    case DY:
        args.dy = to;
        break;
    case DZ:
        args.dz = to;
        break;
    case DW:
        args.dw = (float *)(void *)to;
        break;
    case DB:
        args.db = (float *)(void *)to;
        break;
    default:
        args.workspace = to;
        break;
    }
}

START_TEST(workspace)
{
    size_t bytes = 1;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, SPACE);
    for (size_t less = 1; less <= SPACE; less++) {
        args.workspace_size = SPACE - less;
        REFUSED(NRG_ERR_WORKSPACE);
    }
    args.workspace_size = SPACE / 2;
    args.db = NULL;
    ACCEPTED();
    args.workspace_size = SPACE / 2;
    args.dw = NULL;
    ACCEPTED();
    args.workspace_size = SPACE / 2 - 1;
    args.dw = NULL;
    REFUSED(NRG_ERR_WORKSPACE);
    args.workspace_size = SIZE_MAX;
    ACCEPTED();

    memset(&args, 0, sizeof args); /* only these are looked at */
    args.size = sizeof args;
    float some;
    static const size_t dims[] = {1, 7, 4096};
    for (size_t dim = 0; dim < 3; dim++)
        for (size_t rows = 0; rows < 20000; rows += rows < 5000 ? 1 : 97)
            for (int asked = 0; asked < 4; asked++) {
                size_t blocks = rows <= 2048 ? (rows + 31) / 32 : 64, one = 8 * dims[dim],
                       sums = (size_t)(asked & 1) + (size_t)(asked >> 1);
                spec.dim = dims[dim];
                args.rows = rows;
                args.dw = asked & 1 ? &some : NULL;
                args.db = asked & 2 ? &some : NULL;
                ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
                /* beyond 2048 rows the header's number is the most there can be */
                ck_assert_msg(bytes <= sums * blocks * one && (rows > 2048 || bytes == sums * blocks * one) &&
                                  (rows <= 2048 || bytes > sums * blocks * one / 2 || !sums),
                              "%zu rows: %zu bytes", rows, bytes);
            }
}
END_TEST

START_TEST(workspace_errors)
{
    size_t bytes = 12345;
    ck_assert_int_eq(nrg_norm_backward_workspace(NULL, &args, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, NULL), NRG_ERR_NULL);
    args.size--;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_STRUCT_SIZE);
    set_up();
    spec.size = 3;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_STRUCT_SIZE);
    set_up();
    spec.dim = 0;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_DIM);
    spec.dim = SIZE_MAX / 8;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_OVERFLOW);
    set_up();
    spec.dtype = (nrg_dtype)9;
    ck_assert_int_eq(nrg_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_ENUM);
    ck_assert_uint_eq(bytes, 12345);
}
END_TEST

START_TEST(overlap_of_three)
{
    /* dy is dx, both over one input */
    static const int hosts[] = {D_O, DR_IN, R};
    for (size_t i = 0; i < 3; i++) {
        with_r();
        move(DX, zone(hosts[i]));
        move(DY, zone(hosts[i]));
        ACCEPTED();
    }
    move(DX, zone(X));
    move(DY, zone(Y));
    move(DZ, zone(Z));
    ACCEPTED();
    move(DX, zone(X));
    move(DY, zone(X));
    REFUSED(NRG_ERR_OVERLAP);
    /* inputs may be one another */
    args.d_o = args.dr_in = args.y = args.z = args.w = args.b = args.x;
    ACCEPTED();
    args.d_o = args.x;
    move(DX, zone(X));
    ACCEPTED();
    args.z = args.x;
    move(DX, zone(X));
    REFUSED(NRG_ERR_OVERLAP);
    /* after the norm dy is no dx */
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    move(DY, zone(DX));
    REFUSED(NRG_ERR_OVERLAP);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    move(DY, zone(D_O));
    ACCEPTED();
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.dr_in = NULL;
    move(DY, zone(D_O));
    move(DX, zone(D_O));
    REFUSED(NRG_ERR_OVERLAP);
}
END_TEST

/* Neither phase reads anything; dw and db are sums of nothing. */
START_TEST(no_rows)
{
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int bare = 0; bare < 2; bare++)
            for (int nth = 1; nth < 7; nth++) {
                set_up();
                if (bare)
                    args = nrg_norm_backward_args_init(0, NULL, NULL, NULL);
                args.rows = 0;
                args.dw = floats(DW);
                args.db = floats(DB);
                args.workspace = NULL;
                args.workspace_size = 0;
                args.accumulate = accumulate;
                memcpy(before, memory, sizeof before);
                for (int ith = 0; ith < nth; ith++)
                    ck_assert_int_eq(nrg_norm_backward(&spec, &args, ith, nth), NRG_OK);
                ck_assert_mem_eq(before, memory, sizeof memory);
                for (int ith = 0; ith < nth; ith++)
                    ck_assert_int_eq(nrg_norm_backward_reduce(&spec, &args, ith, nth), NRG_OK);
                if (!accumulate) {
                    memset(before + (zone(DW) - memory), 0, VECTOR);
                    memset(before + (zone(DB) - memory), 0, VECTOR);
                }
                ck_assert_mem_eq(before, memory, sizeof memory);
            }
    set_up();
    args.rows = 0;
    spec.eps = -1;
    REFUSED(NRG_ERR_EPS);
    args.rows = 0;
    spec.dim = 0;
    REFUSED(NRG_ERR_DIM);
    args.rows = 0;
    refused_share(NRG_ERR_THREAD, 1, 1, __LINE__);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm_backward: bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_call);
    tcase_add_test(tests, null);
    tcase_add_test(tests, what_is_not_read);
    tcase_add_test(tests, spec_errors);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, workspace_errors);
    tcase_add_test(tests, overlap_of_three);
    tcase_add_test(tests, no_rows);
    return test_run(suite);
}
