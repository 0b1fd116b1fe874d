/* Bad input: every refusal that nrg/floater.h lists gives its status, writes nothing and calls nothing; what the header allows is
 * not refused.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own and room around it. */
enum { DIM = 5, N = 3, ZONE = 2048, FIRST = 1024, ZONES = 10 };
enum { TIMES, P0, STATE0, STATES, P, DP, DSTATE_N, DP0, DSTATE0, WORKSPACE };
enum { VECTOR = DIM * sizeof(float), STATE = DIM * sizeof(double), FORWARD_BYTES = 24 * DIM, BACKWARD_BYTES = (32 + 16) * DIM };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_floater_spec spec;
static nrg_floater_args args;
static nrg_floater_backward_args back;
static int calls;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }
static double *doubles(int operand) { return (double *)(void *)zone(operand); }

static void decay(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)user, (void)t;
    calls++;
    for (size_t i = 0; i < dim; i++)
        dp_dt[i] = -p[i];
}

static void decay_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    (void)user, (void)t, (void)p;
    calls++;
    for (size_t i = 0; i < dim; i++)
        vt_dh_dp[i] = -v[i];
}

static void set_up(void)
{
    memset(memory, 0x3c, sizeof memory);
    for (size_t k = 0; k <= N; k++)
        doubles(TIMES)[k] = (double)k * 0.5;
    spec = nrg_floater_spec_init(DIM, N, decay, decay_vjp, NULL);
    spec.times = doubles(TIMES);
    args = nrg_floater_args_init(zone(P0), zone(P), zone(WORKSPACE), FORWARD_BYTES);
    args.states = doubles(STATES);
    back = nrg_floater_backward_args_init(zone(P0), zone(DP), floats(DP0), zone(WORKSPACE), BACKWARD_BYTES);
    back.states = doubles(STATES);
    back.dstate_n = doubles(DSTATE_N);
    back.dstate0 = doubles(DSTATE0);
}

static nrg_status run(int backward, int ith, int nth)
{
    return backward ? nrg_floater_backward(&spec, &back, ith, nth) : nrg_floater_forward(&spec, &args, ith, nth);
}

static void refused_share(int backward, nrg_status status, int ith, int nth, int line)
{
    memcpy(before, memory, sizeof before);
    calls = 0;
    nrg_status got = run(backward, ith, nth);
    if (got != status)
        ck_abort_msg("line %d: status %d (%s) and not %d (%s)", line, (int)got, nrg_status_string(got), (int)status,
                     nrg_status_string(status));
    if (calls || memcmp(before, memory, sizeof before) != 0)
        ck_abort_msg("line %d: a refused call wrote something, or called something", line);
}

static void refused(int backward, nrg_status status, int line)
{
    refused_share(backward, status, 0, 1, line);
    refused_share(backward, status, 2, 3, line);
}

static void accepted(int backward, int line)
{
    nrg_status got = run(backward, 0, 1);
    if (got != NRG_OK)
        ck_abort_msg("line %d: status %d (%s)", line, (int)got, nrg_status_string(got));
}

#define REFUSED(status) (refused(0, status, __LINE__), set_up())
#define REFUSED_BACK(status) (refused(1, status, __LINE__), set_up())
#define REFUSED_BOTH(status) (refused(0, status, __LINE__), refused(1, status, __LINE__), set_up())
#define ACCEPTED() (accepted(0, __LINE__), set_up())
#define ACCEPTED_BACK() (accepted(1, __LINE__), set_up())

static unsigned written(void)
{
    unsigned changed = 0;
    for (int operand = 0; operand < ZONES; operand++)
        changed |= memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) ? 1u << operand : 0;
    return changed;
}

START_TEST(right_calls)
{
    memcpy(before, memory, sizeof before);
    accepted(0, __LINE__);
    ck_assert_uint_eq(written(), 1u << P | 1u << STATES | 1u << WORKSPACE);
    memcpy(before, memory, sizeof before);
    accepted(1, __LINE__);
    ck_assert_uint_eq(written(), 1u << DP0 | 1u << DSTATE0 | 1u << WORKSPACE);
}
END_TEST

START_TEST(null)
{
    size_t bytes;
    ck_assert_int_eq(nrg_floater_forward(NULL, &args, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_forward(&spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_backward(NULL, &back, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_backward(&spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_workspace(NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_workspace(&spec, NULL), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_backward_workspace(NULL, &back, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, NULL), NRG_ERR_NULL);
    spec.h = NULL;
    REFUSED_BOTH(NRG_ERR_NULL);
    args.p0 = back.p0 = NULL;
    REFUSED_BOTH(NRG_ERR_NULL);
    args.workspace = back.workspace = NULL;
    REFUSED_BOTH(NRG_ERR_NULL);
    args.p = NULL;
    REFUSED(NRG_ERR_NULL);
    back.dp = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    spec.vjp = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    spec.vjp = NULL;
    args.states = NULL;
    spec.times = NULL;
    ACCEPTED();
    back.dstate_n = NULL;
    back.dstate0 = NULL;
    back.dp0 = NULL;
    ACCEPTED_BACK();
    args.p0 = NULL;
    args.state0 = doubles(STATE0);
    ACCEPTED();
}
END_TEST

START_TEST(struct_size)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t), 4097, SIZE_MAX};
    size_t bytes;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        spec.size = sizes[i];
        ck_assert_int_eq(nrg_floater_workspace(&spec, &bytes), NRG_ERR_STRUCT_SIZE);
        ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_ERR_STRUCT_SIZE);
        REFUSED_BOTH(NRG_ERR_STRUCT_SIZE);
        args.size = back.size = sizes[i];
        ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_ERR_STRUCT_SIZE);
        REFUSED_BOTH(NRG_ERR_STRUCT_SIZE);
    }
    struct {
        nrg_floater_spec spec;
        size_t more;
    } later = {spec, 0};
    later.spec.size = sizeof later;
    ck_assert_int_eq(nrg_floater_forward(&later.spec, &args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_floater_backward(&later.spec, &back, 0, 1), NRG_OK);
    later.more = 1;
    ck_assert_int_eq(nrg_floater_forward(&later.spec, &args, 0, 1), NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(nrg_floater_backward(&later.spec, &back, 0, 1), NRG_ERR_STRUCT_SIZE);
}
END_TEST

START_TEST(numbers)
{
    static const int threads[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    size_t bytes;
    spec.dim = 0;
    ck_assert_int_eq(nrg_floater_workspace(&spec, &bytes), NRG_ERR_DIM);
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_ERR_DIM);
    REFUSED_BOTH(NRG_ERR_DIM);
    spec.dtype = NRG_DTYPE_SAME;
    REFUSED_BOTH(NRG_ERR_ENUM);
    spec.dtype = (nrg_dtype)4;
    REFUSED_BOTH(NRG_ERR_ENUM);
    spec.p0_dtype = (nrg_dtype)-1;
    REFUSED_BOTH(NRG_ERR_ENUM);
    spec.p0_dtype = NRG_F16;
    REFUSED_BOTH(NRG_ERR_DTYPE);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        for (int backward = 0; backward < 2; backward++)
            refused_share(backward, NRG_ERR_THREAD, threads[i][0], threads[i][1], __LINE__);
    args.state0 = back.state0 = doubles(STATE0);
    REFUSED_BOTH(NRG_ERR_COMBINATION);
}
END_TEST

START_TEST(times)
{
    static const double wrong[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k <= N; k++) {
            doubles(TIMES)[k] = wrong[i];
            REFUSED_BOTH(NRG_ERR_POSITION);
        }
        spec.times = NULL;
        spec.t0 = wrong[i];
        REFUSED_BOTH(NRG_ERR_POSITION);
        spec.times = NULL;
        spec.dt = wrong[i];
        REFUSED_BOTH(NRG_ERR_POSITION);
    }
    doubles(TIMES)[0] = -1.5e308; /* finite, and too far from each other */
    doubles(TIMES)[1] = 1.5e308;
    REFUSED_BOTH(NRG_ERR_POSITION);
    spec.times = NULL;
    spec.dt = 1e308;
    REFUSED_BOTH(NRG_ERR_POSITION);
    spec.t0 = spec.dt = NAN; /* not looked at */
    ACCEPTED();
    doubles(TIMES)[1] = doubles(TIMES)[0] = 2; /* any order, and no time at all */
    doubles(TIMES)[2] = -1;
    ACCEPTED();
}
END_TEST

START_TEST(memory_of_operands)
{
    size_t bytes;
    args.p_stride = back.dp_stride = VECTOR - 4;
    REFUSED_BOTH(NRG_ERR_STRIDE);
    args.p_stride = back.dp_stride = VECTOR + 2;
    REFUSED_BOTH(NRG_ERR_ALIGNMENT);
    args.p = zone(P) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.p0 = back.p0 = zone(P0) + 1;
    REFUSED_BOTH(NRG_ERR_ALIGNMENT);
    args.states = (double *)(void *)(zone(STATES) + 4);
    back.states = args.states;
    REFUSED_BOTH(NRG_ERR_ALIGNMENT);
    spec.times = (double *)(void *)(zone(TIMES) + 4);
    REFUSED_BOTH(NRG_ERR_ALIGNMENT);
    args.workspace = back.workspace = zone(WORKSPACE) + 4;
    REFUSED_BOTH(NRG_ERR_ALIGNMENT);
    back.dstate_n = (double *)(void *)(zone(DSTATE_N) + 4);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.dstate0 = (double *)(void *)(zone(DSTATE0) + 4);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.dp0 = (float *)(void *)(zone(DP0) + 2);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    spec.dtype = NRG_BF16;
    args.p = zone(P) + 2;
    args.p_stride = VECTOR + 2;
    ACCEPTED();

    spec.n = SIZE_MAX;
    REFUSED_BOTH(NRG_ERR_OVERFLOW);
    spec.n = SIZE_MAX / 8;
    REFUSED_BOTH(NRG_ERR_OVERFLOW);
    spec.dim = SIZE_MAX / 4;
    ck_assert_int_eq(nrg_floater_workspace(&spec, &bytes), NRG_ERR_OVERFLOW);
    REFUSED_BOTH(NRG_ERR_OVERFLOW);
    args.p_stride = back.dp_stride = SIZE_MAX / 4 * 4;
    REFUSED_BOTH(NRG_ERR_OVERFLOW);
    spec.substeps = SIZE_MAX;
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_ERR_OVERFLOW);
    REFUSED_BACK(NRG_ERR_OVERFLOW);
    spec.substeps = SIZE_MAX / 16;
    REFUSED_BACK(NRG_ERR_OVERFLOW);
}
END_TEST

START_TEST(workspace)
{
    size_t bytes;
    ck_assert_int_eq(nrg_floater_workspace(&spec, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, FORWARD_BYTES);
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, BACKWARD_BYTES);
    spec.substeps = 3;
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, (32 + 16 * 3) * DIM);
    back.states = NULL;
    ck_assert_int_eq(nrg_floater_backward_workspace(&spec, &back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, (32 + 16 * 3) * DIM + 8 * N * DIM);
    set_up();
    args.workspace_size--;
    back.workspace_size--;
    REFUSED_BOTH(NRG_ERR_WORKSPACE);
    back.states = NULL;
    REFUSED_BACK(NRG_ERR_WORKSPACE);
    back.states = NULL;
    back.workspace_size += STATE * N;
    ACCEPTED_BACK();
}
END_TEST

START_TEST(overlap)
{
    static const int inputs[] = {TIMES, P0, DP, DSTATE_N, STATES};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        const int input = inputs[i];
        if (input == TIMES || input == P0) {
            args.p = zone(input) + 4;
            REFUSED(NRG_ERR_OVERLAP);
            args.states = doubles(input) - 1;
            REFUSED(NRG_ERR_OVERLAP);
            args.workspace = zone(input);
            REFUSED(NRG_ERR_OVERLAP);
        }
        back.dp0 = floats(input) + 1;
        REFUSED_BACK(NRG_ERR_OVERLAP);
        back.dstate0 = doubles(input) + 1;
        REFUSED_BACK(NRG_ERR_OVERLAP);
        back.workspace = zone(input) + 8;
        REFUSED_BACK(NRG_ERR_OVERLAP);
    }
    args.states = (double *)args.p;
    REFUSED(NRG_ERR_OVERLAP);
    args.workspace = args.p;
    REFUSED(NRG_ERR_OVERLAP);
    back.workspace = back.dp0;
    REFUSED_BACK(NRG_ERR_OVERLAP);
    back.dstate0 = doubles(DSTATE_N); /* in place */
    ACCEPTED_BACK();
    back.states = back.dstate_n = doubles(DP); /* inputs may overlap */
    ACCEPTED_BACK();
}
END_TEST

START_TEST(nothing_to_do)
{
    spec.n = 0;
    spec.h = NULL;
    spec.vjp = NULL;
    spec.times = NULL;
    spec.dt = NAN;
    args = nrg_floater_args_init(NULL, NULL, NULL, 0);
    back = nrg_floater_backward_args_init(NULL, NULL, NULL, NULL, 0);
    accepted(0, __LINE__);
    accepted(1, __LINE__);
    spec.dtype = (nrg_dtype)9;
    REFUSED_BOTH(NRG_ERR_ENUM);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("FLOATER: bad input");
    TCase *refusals = test_case(suite, "refusals");
    tcase_add_checked_fixture(refusals, set_up, NULL);
    tcase_add_test(refusals, right_calls);
    tcase_add_test(refusals, null);
    tcase_add_test(refusals, struct_size);
    tcase_add_test(refusals, numbers);
    tcase_add_test(refusals, times);
    tcase_add_test(refusals, memory_of_operands);
    tcase_add_test(refusals, workspace);
    tcase_add_test(refusals, overlap);
    tcase_add_test(refusals, nothing_to_do);
    return test_run(suite);
}
