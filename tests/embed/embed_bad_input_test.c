/* Bad input for nrg/embed.h: every refusal the header lists gives its status and writes nothing, and what the header allows is
 * not refused.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { DIM = 4, ROWS = 5, TABLE_ROWS = 9, FIRST_POSITION = 3, ZONE = 1024, FIRST = 384, ZONES = 17 };
enum { X, TABLE_A, TABLE_B, TABLE_C, IDS_A, IDS_B, W, B, D_O, IDS, O, NORM_O, R, MEAN, RSTD, D_TABLE, WORKSPACE };
enum { ROW = DIM * sizeof(float), TENSOR = ROWS * ROW, TABLE = TABLE_ROWS * ROW, IDS_BYTES = ROWS * sizeof(int32_t), SPACE = 80 };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_embed_args args;
static nrg_norm_spec spec;
static nrg_norm_args norm;
static nrg_embed_backward_args back;
static int with_norm_o; /* the fused call is given args.o as well, which is wrong */

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }
static int32_t *ids(int operand) { return (int32_t *)(void *)zone(operand); }

static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    for (int t = 0; t < ROWS; t++) {
        ids(IDS_A)[t] = t * 2;
        ids(IDS_B)[t] = t % 2;
        ids(IDS)[t] = t % 3 * 4;
    }
    args = nrg_embed_args_init(ROWS, DIM, zone(O));
    args.x = zone(X);
    args.tables[0] = nrg_embed_by_ids(zone(TABLE_A), TABLE_ROWS, ids(IDS_A));
    args.tables[1] = nrg_embed_by_ids(zone(TABLE_B), TABLE_ROWS, ids(IDS_B));
    args.tables[2] = nrg_embed_counted(zone(TABLE_C), TABLE_ROWS, FIRST_POSITION);
    spec = nrg_layer_norm_spec(DIM, 1e-5);
    norm = nrg_norm_args_init(ROWS, NULL, zone(NORM_O));
    norm.w = zone(W);
    norm.b = zone(B);
    norm.r = zone(R);
    norm.mean = floats(MEAN);
    norm.rstd = floats(RSTD);
    back = nrg_embed_backward_args_init(ROWS, DIM, zone(D_O), TABLE_ROWS, zone(D_TABLE));
    back.ids = ids(IDS);
    back.workspace = zone(WORKSPACE);
    back.workspace_size = SPACE;
    with_norm_o = 0;
}

static nrg_status call_forward(int ith, int nth) { return nrg_embed_forward(&args, ith, nth); }

static nrg_status call_norm(int ith, int nth)
{
    nrg_embed_args sum = args;
    if (!with_norm_o)
        sum.o = NULL;
    return nrg_embed_norm_forward(&sum, &spec, &norm, ith, nth);
}

static nrg_status call_order(int ith, int nth)
{
    (void)ith;
    (void)nth;
    return nrg_embed_backward_order(&back);
}

static nrg_status call_backward(int ith, int nth) { return nrg_embed_backward(&back, ith, nth); }

enum { FORWARD = 1, NORM = 2, ORDER = 4, BACKWARD = 8, BOTH = FORWARD | NORM, PHASES = ORDER | BACKWARD };

static nrg_status (*const calls[])(int, int) = {call_forward, call_norm, call_order, call_backward};

/* The calls as they stand now are refused, whichever share asks; then everything is right again. */
static void refused(unsigned which, nrg_status status, int line)
{
    static const int shares[][2] = {{0, 1}, {2, 3}, {39, 40}}; /* a share without rows checks all the same */
    for (int i = 0; i < 4; i++)
        for (size_t s = 0; s < 3 && which >> i & 1; s++) {
            memcpy(before, memory, sizeof before);
            nrg_status got = calls[i](shares[s][0], shares[s][1]);
            if (got != status)
                ck_abort_msg("line %d, call %d: status %d (%s) and not %d (%s)", line, i, (int)got, nrg_status_string(got),
                             (int)status, nrg_status_string(status));
            if (memcmp(before, memory, sizeof before) != 0)
                ck_abort_msg("line %d, call %d: a refused call wrote something", line, i);
        }
    set_up();
}

static void accepted(unsigned which, int line)
{
    for (int i = 0; i < 4; i++)
        if (which >> i & 1) {
            nrg_status got = calls[i](0, 1);
            if (got != NRG_OK)
                ck_abort_msg("line %d, call %d: status %d (%s)", line, i, (int)got, nrg_status_string(got));
        }
    set_up();
}

#define REFUSED(which, status) refused(which, status, __LINE__)
#define ACCEPTED(which) accepted(which, __LINE__)

/* Which zones a call writes. */
static void expect_written(const char *call, unsigned zones)
{
    for (int operand = 0; operand < ZONES; operand++)
        if ((memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0) != (int)(zones >> operand & 1))
            ck_abort_msg("%s: operand %d was %swritten", call, operand, zones >> operand & 1 ? "not " : "");
    set_up();
    memcpy(before, memory, sizeof before);
}

START_TEST(right_calls)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(call_forward(0, 1), NRG_OK);
    expect_written("forward", 1u << O);
    ck_assert_int_eq(call_norm(0, 1), NRG_OK);
    expect_written("norm", 1u << NORM_O | 1u << R | 1u << MEAN | 1u << RSTD);
    ck_assert_int_eq(call_order(0, 1), NRG_OK);
    ck_assert_int_eq(call_backward(0, 1), NRG_OK);
    expect_written("backward", 1u << D_TABLE | 1u << WORKSPACE);
    back.ids = NULL;
    back.workspace = NULL;
    back.workspace_size = 0;
    ck_assert_int_eq(call_order(0, 1), NRG_OK);
    expect_written("order without ids", 0);
}
END_TEST

START_TEST(null)
{
    size_t bytes;
    ck_assert_int_eq(nrg_embed_forward(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_norm_forward(NULL, &spec, &norm, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_norm_forward(&args, NULL, &norm, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_norm_forward(&args, &spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_backward(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_backward_order(NULL), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_backward_workspace(NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_backward_workspace(&back, NULL), NRG_ERR_NULL);
    args.o = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    norm.o = NULL;
    REFUSED(NORM, NRG_ERR_NULL);
    args.x = NULL;
    memset(args.tables, 0, sizeof args.tables);
    REFUSED(BOTH, NRG_ERR_NULL);
    args.tables[1].table = NULL;
    REFUSED(BOTH, NRG_ERR_NULL); /* ids without a table */
    args.tables[2].table = NULL;
    ACCEPTED(BOTH);
    args.x = NULL;
    ACCEPTED(BOTH);
    memset(args.tables, 0, sizeof args.tables);
    ACCEPTED(BOTH);
    norm.w = norm.b = norm.r = NULL;
    norm.mean = norm.rstd = NULL;
    ACCEPTED(NORM);
    back.d_o = NULL;
    REFUSED(PHASES, NRG_ERR_NULL);
    back.d_table = NULL;
    REFUSED(PHASES, NRG_ERR_NULL);
    back.workspace = NULL;
    REFUSED(PHASES, NRG_ERR_NULL);
    back.workspace = NULL;
    back.ids = NULL;
    ACCEPTED(PHASES);
}
END_TEST

START_TEST(options)
{
    args.dim = 0;
    REFUSED(FORWARD, NRG_ERR_DIM);
    args.dim = spec.dim = 0;
    REFUSED(NORM, NRG_ERR_DIM);
    spec.groups = 3;
    REFUSED(NORM, NRG_ERR_DIM);
    back.dim = 0;
    REFUSED(PHASES, NRG_ERR_DIM);

    static const int dtypes[] = {0, 4, -1}, stores[] = {3, -1};
    for (size_t i = 0; i < 3; i++) {
        args.dtype = (nrg_dtype)dtypes[i];
        REFUSED(BOTH, NRG_ERR_ENUM);
        back.dtype = (nrg_dtype)dtypes[i];
        REFUSED(PHASES, NRG_ERR_ENUM);
        if (dtypes[i]) {
            args.table_dtype = (nrg_dtype)dtypes[i];
            REFUSED(BOTH, NRG_ERR_ENUM);
            back.table_dtype = (nrg_dtype)dtypes[i];
            REFUSED(PHASES, NRG_ERR_ENUM);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        args.store = (nrg_store)stores[i];
        REFUSED(BOTH, NRG_ERR_ENUM);
        back.store = (nrg_store)stores[i];
        REFUSED(PHASES, NRG_ERR_ENUM);
        spec.store = (nrg_store)stores[i];
        REFUSED(NORM, NRG_ERR_ENUM);
    }
    args.table_dtype = NRG_BF16;
    REFUSED(BOTH, NRG_ERR_DTYPE);
    back.table_dtype = NRG_F16;
    REFUSED(PHASES, NRG_ERR_DTYPE);
    args.dtype = NRG_F16;
    args.table_dtype = NRG_BF16;
    REFUSED(FORWARD, NRG_ERR_DTYPE);
    args.dtype = NRG_F16;
    args.table_dtype = NRG_F32;
    ACCEPTED(FORWARD);
    spec.eps = -1;
    REFUSED(NORM, NRG_ERR_EPS);

    static const float scales[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        args.tables[i].scale = scales[i];
        REFUSED(BOTH, NRG_ERR_CONSTANT);
        back.scale = scales[i];
        REFUSED(PHASES, NRG_ERR_CONSTANT);
    }
    static const int threads[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        ck_assert_int_eq(call_forward(threads[i][0], threads[i][1]), NRG_ERR_THREAD);
        ck_assert_int_eq(call_norm(threads[i][0], threads[i][1]), NRG_ERR_THREAD);
        ck_assert_int_eq(call_backward(threads[i][0], threads[i][1]), NRG_ERR_THREAD);
    }
    ck_assert_int_eq(call_forward(INT_MAX - 1, INT_MAX), NRG_OK);
}
END_TEST

START_TEST(combination)
{
    args.tables[0].first = 1;
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    back.first = 1;
    REFUSED(PHASES, NRG_ERR_COMBINATION);
    with_norm_o = 1;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.dim = DIM - 1;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    norm.rows = ROWS - 1;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    norm.rows = 0;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.dtype = NRG_BF16;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    norm.x = zone(X);
    REFUSED(NORM, NRG_ERR_COMBINATION);
    norm.y = zone(X);
    REFUSED(NORM, NRG_ERR_COMBINATION);
    norm.z = zone(X);
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.gate = NRG_GATE_POST;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.gate = NRG_GATE_PRE;
    norm.z = zone(X);
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    REFUSED(NORM, NRG_ERR_COMBINATION);
    spec.activation = NRG_ACT_SILU;
    spec.groups = 2;
    norm.mean = NULL;
    norm.rstd = NULL;
    ACCEPTED(NORM);
}
END_TEST

START_TEST(positions)
{
    static const int32_t wrong[] = {-1, TABLE_ROWS, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < 4; i++)
        for (int t = 0; t < ROWS; t++) {
            ids(IDS_A)[t] = wrong[i];
            REFUSED(BOTH, NRG_ERR_POSITION);
            ids(IDS_B)[t] = wrong[i];
            REFUSED(BOTH, NRG_ERR_POSITION);
            ids(IDS)[t] = wrong[i];
            REFUSED(ORDER, NRG_ERR_POSITION);
        }
    static const int32_t first[] = {-1, TABLE_ROWS - ROWS + 1, TABLE_ROWS, TABLE_ROWS + 1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < 6; i++) {
        args.tables[2].first = first[i];
        REFUSED(BOTH, NRG_ERR_POSITION);
        back.ids = NULL;
        back.first = first[i];
        REFUSED(BACKWARD, NRG_ERR_POSITION);
    }
    args.tables[2].first = TABLE_ROWS - ROWS;
    ACCEPTED(BOTH);
    args.tables[2].rows = ROWS - 1;
    args.tables[2].first = 0;
    REFUSED(BOTH, NRG_ERR_POSITION);
    args.tables[0].rows = 0;
    REFUSED(BOTH, NRG_ERR_POSITION);
    args.tables[1].rows = 1;
    REFUSED(BOTH, NRG_ERR_POSITION);
    args.tables[1].rows = 2;
    ACCEPTED(BOTH);
    back.table_rows = 8;
    REFUSED(ORDER, NRG_ERR_POSITION);
}
END_TEST

START_TEST(workspace)
{
    size_t bytes = 1;
    ck_assert_int_eq(nrg_embed_backward_workspace(&back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, SPACE);
    back.rows = UINT32_MAX;
    ck_assert_int_eq(nrg_embed_backward_workspace(&back, &bytes), NRG_ERR_OVERFLOW);
    back.rows = 0;
    back.table_rows = UINT32_MAX;
    ck_assert_int_eq(nrg_embed_backward_workspace(&back, &bytes), NRG_ERR_OVERFLOW);
    back.ids = NULL;
    ck_assert_int_eq(nrg_embed_backward_workspace(&back, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, 0);
    set_up();
    back.workspace_size = SPACE - 1;
    REFUSED(PHASES, NRG_ERR_WORKSPACE);
    REFUSED(BACKWARD, NRG_ERR_WORKSPACE); /* the first phase has not been there */
    ck_assert_int_eq(call_order(0, 1), NRG_OK);
    back.table_rows++; /* or it was there for another call */
    back.workspace_size += 8;
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(call_backward(0, 1), NRG_ERR_WORKSPACE);
    back.table_rows--;
    back.rows--;
    ck_assert_int_eq(call_backward(0, 1), NRG_ERR_WORKSPACE);
    ck_assert_mem_eq(before, memory, sizeof memory);
    back.rows++;
    ck_assert_int_eq(call_backward(0, 1), NRG_OK);
    ck_assert_int_eq(call_backward(0, 1), NRG_OK); /* one order serves many calls */
}
END_TEST

START_TEST(overlap)
{
    static const struct {
        int operand;
        size_t bytes;
    } inputs[] = {{X, TENSOR}, {TABLE_A, TABLE}, {TABLE_B, TABLE}, {TABLE_C, TABLE}, {IDS_A, IDS_BYTES}, {IDS_B, IDS_BYTES}};
    for (size_t i = 0; i < 6; i++) {
        const int in = inputs[i].operand;
        const size_t bytes = inputs[i].bytes;
        args.o = zone(in) + 4;
        REFUSED(FORWARD, NRG_ERR_OVERLAP);
        args.o = zone(in) - TENSOR + 4;
        REFUSED(FORWARD, NRG_ERR_OVERLAP);
        args.o = zone(in) + bytes - 4;
        REFUSED(FORWARD, NRG_ERR_OVERLAP);
        args.o = zone(in) + bytes;
        ACCEPTED(FORWARD);
        args.o = zone(in) - TENSOR;
        ACCEPTED(FORWARD);
        norm.o = zone(in) + 4;
        REFUSED(NORM, NRG_ERR_OVERLAP);
        norm.r = zone(in) + 4;
        REFUSED(NORM, NRG_ERR_OVERLAP);
        norm.mean = (float *)(void *)(zone(in) + 4);
        REFUSED(NORM, NRG_ERR_OVERLAP);
        args.o = norm.o = zone(in);
        if (in == X)
            ACCEPTED(BOTH);
        else
            REFUSED(BOTH, NRG_ERR_OVERLAP);
        norm.r = zone(in);
        if (in == X)
            ACCEPTED(NORM);
        else
            REFUSED(NORM, NRG_ERR_OVERLAP);
    }
    args.o = zone(X);
    args.o_stride = ROW + 4;
    REFUSED(FORWARD, NRG_ERR_OVERLAP);
    norm.o = norm.r = zone(O);
    REFUSED(NORM, NRG_ERR_OVERLAP);
    norm.o = zone(W);
    REFUSED(NORM, NRG_ERR_OVERLAP);
    norm.r = zone(B);
    REFUSED(NORM, NRG_ERR_OVERLAP);
    norm.rstd = norm.mean;
    REFUSED(NORM, NRG_ERR_OVERLAP);
    norm.rstd = floats(NORM_O);
    REFUSED(NORM, NRG_ERR_OVERLAP);
    /* inputs may overlap, and rows may lie between each other */
    args.x = args.tables[0].table = args.tables[1].table = args.tables[2].table = zone(TABLE_A);
    args.tables[1].ids = args.tables[0].ids = ids(IDS_B);
    ACCEPTED(BOTH);
    args.o = zone(X) + ROW;
    args.o_stride = args.x_stride = 2 * ROW;
    ACCEPTED(FORWARD);

    back.d_table = zone(D_O);
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.d_table = zone(D_O) + TENSOR - 4;
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.d_table = zone(IDS);
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.workspace = zone(IDS);
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.workspace = zone(D_O);
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.workspace = zone(D_TABLE);
    REFUSED(PHASES, NRG_ERR_OVERLAP);
    back.workspace = zone(D_TABLE);
    back.ids = NULL;
    ACCEPTED(PHASES);
}
END_TEST

START_TEST(no_rows)
{
    args.rows = norm.rows = 0;
    ACCEPTED(BOTH);
    args = nrg_embed_args_init(0, DIM, NULL);
    norm = nrg_norm_args_init(0, NULL, NULL);
    ACCEPTED(BOTH);
    args.rows = norm.rows = 0;
    args.dtype = (nrg_dtype)7;
    REFUSED(BOTH, NRG_ERR_ENUM);

    /* no tokens: zeros, or nothing with accumulate */
    back.rows = 0;
    back.d_o = NULL;
    back.accumulate = 1;
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(call_order(0, 1), NRG_OK);
    ck_assert_int_eq(call_backward(0, 1), NRG_OK);
    ck_assert_mem_eq(before + D_TABLE * ZONE, memory + D_TABLE * ZONE, ZONE);
    back.accumulate = 0;
    ck_assert_int_eq(call_backward(0, 1), NRG_OK);
    for (size_t i = 0; i < TABLE / sizeof(float); i++)
        ck_assert(floats(D_TABLE)[i] == 0);
    set_up();
    back.table_rows = back.rows = 0;
    back.d_table = NULL;
    ACCEPTED(PHASES);
    back.table_rows = 0;
    REFUSED(ORDER, NRG_ERR_POSITION);
}
END_TEST

START_TEST(constructors)
{
    nrg_embed_args a = nrg_embed_args_init(3, 7, &back);
    ck_assert(a.size == sizeof a && a.rows == 3 && a.dim == 7 && a.o == &back && a.dtype == NRG_F32 &&
              a.table_dtype == NRG_DTYPE_SAME && a.store == NRG_STORE_AUTO && !a.x && !a.x_stride && !a.o_stride && !a.reserved);
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        ck_assert(!a.tables[k].table && !a.tables[k].ids && !a.tables[k].rows && a.tables[k].scale == 0);
    nrg_embed_table t = nrg_embed_by_ids(&a, 5, ids(IDS));
    ck_assert(t.table == &a && t.rows == 5 && t.ids == ids(IDS) && t.first == 0 && t.scale == 0 && t.stride == 0);
    t = nrg_embed_counted(&a, 5, 2);
    ck_assert(t.table == &a && t.rows == 5 && !t.ids && t.first == 2 && t.scale == 0 && t.stride == 0);
    nrg_embed_backward_args b = nrg_embed_backward_args_init(3, 7, &a, 5, &t);
    ck_assert(b.size == sizeof b && b.rows == 3 && b.dim == 7 && b.d_o == &a && b.table_rows == 5 && b.d_table == &t &&
              b.dtype == NRG_F32 && !b.ids && !b.workspace && !b.workspace_size && !b.accumulate && b.scale == 0 && !b.first);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("embed: bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_calls);
    tcase_add_test(tests, null);
    tcase_add_test(tests, options);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, positions);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, overlap);
    tcase_add_test(tests, no_rows);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
