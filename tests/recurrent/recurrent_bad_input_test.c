/* Bad input: every refusal that nrg/recurrent.h lists gives its status and writes nothing; what the header allows is not refused.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own and room around it. */
enum { DIM = 5, N = 3, CHAINS = 2, ZONE = 2048, FIRST = 1024, ZONES = 9, VECTOR = DIM * sizeof(float) };
enum { W, B, P0, P, DP, G, DW, DB, DP0 };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_recurrent_args args;
static nrg_recurrent_backward_args back;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }

static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    args = nrg_recurrent_args_init(DIM, N, zone(W), zone(P0), zone(P));
    args.chains = CHAINS;
    args.b = zone(B);
    back = nrg_recurrent_backward_args_init(DIM, N, zone(W), zone(P0), zone(P), zone(DP));
    back.chains = CHAINS;
    back.dw = floats(DW);
    back.db = floats(DB);
    back.dp0 = floats(DP0);
    back.workspace = zone(G);
    back.workspace_size = CHAINS * N * VECTOR;
}

enum call { FORWARD, BACKWARD, REDUCE, CALLS };

static nrg_status run(enum call call, int ith, int nth)
{
    return call == FORWARD    ? nrg_recurrent_forward(&args, ith, nth)
           : call == BACKWARD ? nrg_recurrent_backward(&back, ith, nth)
                              : nrg_recurrent_backward_reduce(&back, ith, nth);
}

static void refused_share(enum call call, nrg_status status, int ith, int nth, int line)
{
    memcpy(before, memory, sizeof before);
    nrg_status got = run(call, ith, nth);
    if (got != status)
        ck_abort_msg("line %d, call %d: status %d (%s) and not %d (%s)", line, (int)call, (int)got, nrg_status_string(got),
                     (int)status, nrg_status_string(status));
    if (memcmp(before, memory, sizeof before) != 0)
        ck_abort_msg("line %d, call %d: a refused call wrote something", line, (int)call);
}

static void refused(enum call call, nrg_status status, int line)
{
    refused_share(call, status, 0, 1, line);
    refused_share(call, status, 1, 3, line);
    refused_share(call, status, 8, 9, line); /* a share without anything to do checks all the same */
}

static void refused_forward(nrg_status status, int line)
{
    refused(FORWARD, status, line);
    set_up();
}

/* Both phases check the same. */
static void refused_backward(nrg_status status, int line)
{
    refused(BACKWARD, status, line);
    refused(REDUCE, status, line);
    set_up();
}

static void accepted(enum call call, int line)
{
    nrg_status got = run(call, 0, 1);
    if (got != NRG_OK)
        ck_abort_msg("line %d, call %d: status %d (%s)", line, (int)call, (int)got, nrg_status_string(got));
}

#define REFUSED(status) refused_forward(status, __LINE__)
#define REFUSED_BACK(status) refused_backward(status, __LINE__)
#define ACCEPTED() (accepted(FORWARD, __LINE__), set_up())
#define ACCEPTED_BACK() (accepted(BACKWARD, __LINE__), accepted(REDUCE, __LINE__), set_up())

/* What a call has written: operands, as bits. */
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
    accepted(FORWARD, __LINE__);
    ck_assert_uint_eq(written(), 1u << P);
    memcpy(before, memory, sizeof before);
    accepted(BACKWARD, __LINE__);
    ck_assert_uint_eq(written(), 1u << G | 1u << DP0);
    memcpy(before, memory, sizeof before);
    accepted(REDUCE, __LINE__);
    ck_assert_uint_eq(written(), 1u << DW | 1u << DB);
}
END_TEST

START_TEST(null)
{
    size_t bytes;
    ck_assert_int_eq(nrg_recurrent_forward(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_recurrent_backward(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_recurrent_backward_reduce(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_recurrent_workspace(NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_recurrent_workspace(&back, NULL), NRG_ERR_NULL);
    args.w = NULL;
    REFUSED(NRG_ERR_NULL);
    args.p0 = NULL;
    REFUSED(NRG_ERR_NULL);
    args.p = NULL;
    REFUSED(NRG_ERR_NULL);
    args.b = NULL;
    ACCEPTED();
    back.w = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    back.p = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    back.dp = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    back.p0 = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    back.workspace = NULL;
    REFUSED_BACK(NRG_ERR_NULL);
    back.p0 = NULL;
    back.dw = NULL;
    ACCEPTED_BACK();
    back.dw = back.db = back.dp0 = NULL;
    ACCEPTED_BACK();
}
END_TEST

START_TEST(struct_size)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t), 4097, SIZE_MAX, SIZE_MAX / 2};
    size_t bytes;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        args.size = sizes[i];
        REFUSED(NRG_ERR_STRUCT_SIZE);
        back.size = sizes[i];
        ck_assert_int_eq(nrg_recurrent_workspace(&back, &bytes), NRG_ERR_STRUCT_SIZE);
        REFUSED_BACK(NRG_ERR_STRUCT_SIZE);
    }
    args.size--;
    REFUSED(NRG_ERR_STRUCT_SIZE);
    args.reserved = 1;
    REFUSED(NRG_ERR_STRUCT_SIZE);
    back.size--;
    REFUSED_BACK(NRG_ERR_STRUCT_SIZE);
}
END_TEST

/* Of a later version: fine, as long as what this one does not know is 0. */
START_TEST(later_structs)
{
    struct {
        nrg_recurrent_args args;
        size_t more;
    } later = {args, 0};
    struct {
        nrg_recurrent_backward_args args;
        size_t more;
    } later_back = {back, 0};
    later.args.size = sizeof later;
    later_back.args.size = sizeof later_back;
    ck_assert_int_eq(nrg_recurrent_forward(&later.args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_recurrent_backward(&later_back.args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_recurrent_backward_reduce(&later_back.args, 0, 1), NRG_OK);
    later.more = later_back.more = 1;
    ck_assert_int_eq(nrg_recurrent_forward(&later.args, 0, 1), NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(nrg_recurrent_backward(&later_back.args, 0, 1), NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(nrg_recurrent_backward_reduce(&later_back.args, 0, 1), NRG_ERR_STRUCT_SIZE);
}
END_TEST

START_TEST(dtypes_dim_and_threads)
{
    static const int threads[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    size_t bytes;
    args.dim = 0;
    REFUSED(NRG_ERR_DIM);
    back.dim = 0;
    ck_assert_int_eq(nrg_recurrent_workspace(&back, &bytes), NRG_ERR_DIM);
    REFUSED_BACK(NRG_ERR_DIM);
    for (int wrong = 4; wrong >= -1; wrong -= 5) {
        args.dtype = (nrg_dtype)wrong;
        REFUSED(NRG_ERR_ENUM);
        args.w_dtype = (nrg_dtype)wrong;
        REFUSED(NRG_ERR_ENUM);
        args.p0_dtype = (nrg_dtype)wrong;
        REFUSED(NRG_ERR_ENUM);
        back.dtype = (nrg_dtype)wrong;
        REFUSED_BACK(NRG_ERR_ENUM);
        back.w_dtype = (nrg_dtype)wrong;
        REFUSED_BACK(NRG_ERR_ENUM);
        back.p0_dtype = (nrg_dtype)wrong;
        REFUSED_BACK(NRG_ERR_ENUM);
    }
    args.dtype = NRG_DTYPE_SAME;
    REFUSED(NRG_ERR_ENUM);
    back.dtype = NRG_DTYPE_SAME;
    REFUSED_BACK(NRG_ERR_ENUM);
    args.w_dtype = NRG_F16;
    REFUSED(NRG_ERR_DTYPE);
    args.p0_dtype = NRG_BF16;
    REFUSED(NRG_ERR_DTYPE);
    back.w_dtype = NRG_BF16;
    REFUSED_BACK(NRG_ERR_DTYPE);
    back.dtype = NRG_F16;
    back.p0_dtype = NRG_BF16;
    REFUSED_BACK(NRG_ERR_DTYPE);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        for (int call = 0; call < CALLS; call++)
            refused_share((enum call)call, NRG_ERR_THREAD, threads[i][0], threads[i][1], __LINE__);
    for (int call = 0; call < CALLS; call++)
        ck_assert_int_eq(run((enum call)call, INT_MAX - 1, INT_MAX), NRG_OK);
}
END_TEST

START_TEST(strides)
{
    args.w_stride = VECTOR - 4;
    REFUSED(NRG_ERR_STRIDE);
    args.p0_stride = VECTOR - 4;
    REFUSED(NRG_ERR_STRIDE);
    args.p_stride = VECTOR - 4;
    REFUSED(NRG_ERR_STRIDE);
    args.p_chain_stride = N * VECTOR - 4;
    REFUSED(NRG_ERR_STRIDE);
    args.p_stride = CHAINS * VECTOR - 4; /* side by side */
    args.p_chain_stride = VECTOR;
    REFUSED(NRG_ERR_STRIDE);
    back.dp_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.p_chain_stride = N * VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.dp_chain_stride = N * VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.dw_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.dp0_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.p_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.p0_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);
    back.w_stride = VECTOR - 4;
    REFUSED_BACK(NRG_ERR_STRIDE);

    args.p_stride = CHAINS * VECTOR;
    args.p_chain_stride = VECTOR;
    ACCEPTED();
    args.p_stride = VECTOR + 8;
    args.p_chain_stride = N * (VECTOR + 8) - 8; /* no gap at a chain's end */
    ACCEPTED();
    args.chains = 1;
    args.p_chain_stride = 3; /* to no second chain */
    ACCEPTED();
}
END_TEST

START_TEST(alignment)
{
    args.p = zone(P) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.w = zone(W) + 1;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.b = zone(B) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.p0 = zone(P0) + 3;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.p_stride = VECTOR + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.p_chain_stride = N * VECTOR + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.w_stride = VECTOR + 1;
    REFUSED(NRG_ERR_ALIGNMENT);
    args.dtype = NRG_BF16;
    args.p = zone(P) + 2;
    args.w = zone(W) + 2;
    args.p_stride = VECTOR + 2;
    ACCEPTED();
    back.dp = zone(DP) + 2;
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.workspace = zone(G) + 2;
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.dp_chain_stride = N * VECTOR + 2;
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.dw = (float *)(void *)(zone(DW) + 2);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.db = (float *)(void *)(zone(DB) + 2);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.dp0 = (float *)(void *)(zone(DP0) + 2);
    REFUSED_BACK(NRG_ERR_ALIGNMENT);
    back.workspace = zone(G) + 4;
    ACCEPTED_BACK();
}
END_TEST

START_TEST(overflow)
{
    size_t bytes;
    args.dim = SIZE_MAX / 2;
    REFUSED(NRG_ERR_OVERFLOW);
    args.dim = SIZE_MAX / 4 - 1;
    REFUSED(NRG_ERR_OVERFLOW);
    args.n = SIZE_MAX / VECTOR;
    REFUSED(NRG_ERR_OVERFLOW);
    args.n = SIZE_MAX;
    REFUSED(NRG_ERR_OVERFLOW);
    args.chains = SIZE_MAX / VECTOR / N;
    REFUSED(NRG_ERR_OVERFLOW);
    args.p_chain_stride = SIZE_MAX - 3;
    REFUSED(NRG_ERR_OVERFLOW);
    args.p_stride = SIZE_MAX - 3;
    REFUSED(NRG_ERR_OVERFLOW);
    args.w_stride = SIZE_MAX / 4 * 4;
    REFUSED(NRG_ERR_OVERFLOW);
    back.dim = SIZE_MAX / 2;
    ck_assert_int_eq(nrg_recurrent_workspace(&back, &bytes), NRG_ERR_OVERFLOW);
    REFUSED_BACK(NRG_ERR_OVERFLOW);
    back.n = SIZE_MAX / 8;
    REFUSED_BACK(NRG_ERR_OVERFLOW);
    back.chains = SIZE_MAX / 8;
    REFUSED_BACK(NRG_ERR_OVERFLOW);
    back.dw_stride = SIZE_MAX / 4 * 4;
    REFUSED_BACK(NRG_ERR_OVERFLOW);
    back.dp_chain_stride = SIZE_MAX / 4 * 4;
    REFUSED_BACK(NRG_ERR_OVERFLOW);
}
END_TEST

START_TEST(workspace)
{
    size_t bytes = 0;
    ck_assert_int_eq(nrg_recurrent_workspace(&back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, CHAINS * N * VECTOR);
    back.workspace_size--;
    REFUSED_BACK(NRG_ERR_WORKSPACE);
    back.workspace_size = SIZE_MAX;
    ACCEPTED_BACK();
    /* what it is asked for does not matter, nor what else is in the struct */
    nrg_recurrent_backward_args empty;
    memset(&empty, 0, sizeof empty);
    empty.size = sizeof empty;
    empty.dim = DIM;
    ck_assert_int_eq(nrg_recurrent_workspace(&empty, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, 0);
}
END_TEST

START_TEST(overlap)
{
    static const int forward_inputs[] = {W, B, P0};
    for (size_t i = 0; i < sizeof forward_inputs / sizeof forward_inputs[0]; i++) {
        args.p = zone(forward_inputs[i]);
        REFUSED(NRG_ERR_OVERLAP);
        args.p = zone(forward_inputs[i]) + 4;
        REFUSED(NRG_ERR_OVERLAP);
        args.p = zone(forward_inputs[i]) - CHAINS * N * VECTOR + 4;
        REFUSED(NRG_ERR_OVERLAP);
        args.p = zone(forward_inputs[i]) - CHAINS * N * VECTOR;
        ACCEPTED();
    }
    /* between the vectors of chains whose gaps are not all alike */
    args.p_stride = 2 * VECTOR;
    args.p_chain_stride = 2 * N * VECTOR + 4;
    args.p0 = zone(P) + VECTOR;
    args.p0_stride = 2 * VECTOR;
    REFUSED(NRG_ERR_OVERLAP);
    args.p_stride = args.p0_stride = 2 * VECTOR;
    args.p0 = zone(P) + VECTOR;
    ACCEPTED();
    /* p_0 in front of its chain */
    args.p0 = zone(P) - VECTOR;
    args.p0_stride = args.p_chain_stride = (N + 1) * VECTOR;
    ACCEPTED();

    static const int backward_inputs[] = {W, P0, P, DP};
    for (size_t i = 0; i < sizeof backward_inputs / sizeof backward_inputs[0]; i++) {
        float *over = (float *)(void *)zone(backward_inputs[i]);
        back.dw = over;
        REFUSED_BACK(NRG_ERR_OVERLAP);
        back.db = over + 1;
        REFUSED_BACK(NRG_ERR_OVERLAP);
        back.dp0 = over - 1;
        REFUSED_BACK(NRG_ERR_OVERLAP);
        back.workspace = over;
        REFUSED_BACK(NRG_ERR_OVERLAP);
    }
    back.db = back.dw + DIM;
    REFUSED_BACK(NRG_ERR_OVERLAP);
    back.dp0 = back.dw;
    REFUSED_BACK(NRG_ERR_OVERLAP);
    back.workspace = back.dw;
    REFUSED_BACK(NRG_ERR_OVERLAP);
    back.dp = back.p = back.p0 = back.w; /* inputs may */
    ACCEPTED_BACK();
    back.dw = NULL; /* p_0 is not read then */
    back.db = (float *)(void *)zone(P0);
    ACCEPTED_BACK();
}
END_TEST

/* Without positions or chains nothing is looked at but the numbers. */
START_TEST(nothing_to_do)
{
    args.n = 0;
    args.w = args.p0 = args.p = NULL;
    ACCEPTED();
    args.chains = 0;
    args.w = args.p0 = args.p = NULL;
    ACCEPTED();
    args.n = 0;
    args.dtype = (nrg_dtype)7;
    REFUSED(NRG_ERR_ENUM);
    back.n = 0;
    back.workspace = NULL;
    back.workspace_size = 0;
    back.w = back.p0 = back.p = back.dp = NULL;
    ACCEPTED_BACK();
    back.chains = 0;
    back.dw_stride = 4; /* but for outputs that are written all the same */
    REFUSED_BACK(NRG_ERR_STRIDE);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("recurrent encodings: bad input");
    TCase *refusals = test_case(suite, "refusals");
    tcase_add_checked_fixture(refusals, set_up, NULL);
    tcase_add_test(refusals, right_calls);
    tcase_add_test(refusals, null);
    tcase_add_test(refusals, struct_size);
    tcase_add_test(refusals, later_structs);
    tcase_add_test(refusals, dtypes_dim_and_threads);
    tcase_add_test(refusals, strides);
    tcase_add_test(refusals, alignment);
    tcase_add_test(refusals, overflow);
    tcase_add_test(refusals, workspace);
    tcase_add_test(refusals, overlap);
    tcase_add_test(refusals, nothing_to_do);
    return test_run(suite);
}
