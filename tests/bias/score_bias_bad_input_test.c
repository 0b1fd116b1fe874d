/* Bad input: every refusal score_bias.h lists gives its status and writes nothing; what the header allows is not refused.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, DIAGONALS = QUERIES + KEYS - 1, BUCKETS = 8 };
enum { ROW = KEYS * 4, HEAD = QUERIES * ROW, SAMPLE = HEADS * HEAD };
enum { ZONE = 1024, FIRST = 512, ZONES = 7 };
enum { SCORES, TABLE, O, SUMS, NUMBERS, D_NUMBERS, SLOPES };

static _Alignas(64) unsigned char memory[ZONES * ZONE], before[ZONES * ZONE];
static nrg_score_bias_args args;
static nrg_score_bias_backward_args back;
static nrg_bias_spec spec;
static struct {
    const nrg_bias_spec *spec;
    nrg_dtype dtype;
    const void *numbers;
    float *diagonals, *slopes, *d_numbers;
    const double *sums;
    size_t numbers_stride, diagonals_stride, sums_stride, heads;
    double max_bias;
} table;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }
static double *doubles(int operand) { return (double *)(void *)zone(operand); }
static void *moved(int operand, ptrdiff_t bytes) { return zone(operand) + bytes; }

static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    for (size_t i = 0; i < (ZONE - FIRST) / sizeof(double); i++)
        doubles(SUMS)[i] = 1;
    args = nrg_score_bias_args_init(NRG_F32, BATCH, HEADS, QUERIES, KEYS, zone(SCORES), floats(TABLE), zone(O));
    back = nrg_score_bias_backward_args_init(NRG_F32, BATCH, HEADS, QUERIES, KEYS, zone(SCORES), doubles(SUMS));
    spec = nrg_bias_spec_init(HEADS, QUERIES, KEYS);
    spec.buckets = BUCKETS;
    spec.max_distance = 20;
    memset(&table, 0, sizeof table);
    table.spec = &spec;
    table.dtype = NRG_F32;
    table.numbers = zone(NUMBERS);
    table.diagonals = floats(TABLE);
    table.slopes = floats(SLOPES);
    table.d_numbers = floats(D_NUMBERS);
    table.sums = doubles(SUMS);
    table.heads = HEADS;
    table.max_bias = 8;
}

enum call { FORWARD, BACKWARD, T5, T5_BACKWARD, ALIBI, ALIBI_SLOPES };

static nrg_status run(enum call call, int ith, int nth)
{
    switch (call) {
    case FORWARD:
        return nrg_score_bias_forward(&args, ith, nth);
    case BACKWARD:
        return nrg_score_bias_backward(&back, ith, nth);
    case T5:
        return nrg_t5_diagonals(table.spec, table.dtype, table.numbers, table.numbers_stride, table.diagonals,
                                table.diagonals_stride, ith, nth);
    case T5_BACKWARD:
        return nrg_t5_backward(table.spec, table.sums, table.sums_stride, table.d_numbers, table.numbers_stride, 0, ith, nth);
    case ALIBI:
        return nrg_alibi_diagonals(table.spec, table.slopes, table.diagonals, table.diagonals_stride, ith, nth);
    case ALIBI_SLOPES:
        break;
    }
    return nrg_alibi_slopes(table.heads, table.max_bias, table.slopes);
}

static void refused_share(enum call call, nrg_status status, int ith, int nth, int line)
{
    memcpy(before, memory, sizeof before);
    const nrg_status got = run(call, ith, nth);
    if (got != status)
        ck_abort_msg("line %d: status %d (%s) and not %d (%s)", line, (int)got, nrg_status_string(got), (int)status,
                     nrg_status_string(status));
    if (memcmp(before, memory, sizeof before) != 0)
        ck_abort_msg("line %d: a refused call wrote something", line);
}

/* The call as it stands now is refused, whichever share asks; then everything is right again. */
static void refused(enum call call, nrg_status status, int line)
{
    refused_share(call, status, 0, 1, line);
    refused_share(call, status, 2, 3, line);
    refused_share(call, status, 99, 100, line); /* a share without work checks all the same */
    set_up();
}

static void accepted(enum call call, int line)
{
    const nrg_status got = run(call, 0, 1);
    if (got != NRG_OK)
        ck_abort_msg("line %d: status %d (%s)", line, (int)got, nrg_status_string(got));
    set_up();
}

#define REFUSED(call, status) refused(call, status, __LINE__)
#define ACCEPTED(call) accepted(call, __LINE__)

START_TEST(right_calls)
{
    static const struct {
        int zone;
        size_t bytes;
    } written[] = {[FORWARD] = {O, BATCH * SAMPLE},          [BACKWARD] = {SUMS, HEADS * DIAGONALS * 8},
                   [T5] = {TABLE, HEADS * DIAGONALS * 4},    [T5_BACKWARD] = {D_NUMBERS, BUCKETS * HEADS * 4},
                   [ALIBI] = {TABLE, HEADS * DIAGONALS * 4}, [ALIBI_SLOPES] = {SLOPES, HEADS * 4}};
    for (int call = FORWARD; call <= ALIBI_SLOPES; call++) {
        set_up();
        memcpy(before, memory, sizeof before);
        ck_assert_int_eq(run((enum call)call, 0, 1), NRG_OK);
        ck_assert(memcmp(before, memory, sizeof before) != 0);
        memcpy(before + written[call].zone * ZONE + FIRST, zone(written[call].zone), written[call].bytes);
        ck_assert(memcmp(before, memory, sizeof before) == 0);
    }
}
END_TEST

START_TEST(threads)
{
    static const int shares[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    set_up();
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        for (int call = FORWARD; call < ALIBI_SLOPES; call++)
            refused_share((enum call)call, NRG_ERR_THREAD, shares[i][0], shares[i][1], __LINE__);
    for (int call = FORWARD; call < ALIBI_SLOPES; call++)
        ck_assert_int_eq(run((enum call)call, INT_MAX - 1, INT_MAX), NRG_OK);
}
END_TEST

START_TEST(forward)
{
    set_up();
    ck_assert_int_eq(nrg_score_bias_forward(NULL, 0, 1), NRG_ERR_NULL);
    args.scores = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    args.diagonals = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    args.o = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);

    args.size = 8;
    REFUSED(FORWARD, NRG_ERR_STRUCT_SIZE);
    args.size = 5000;
    REFUSED(FORWARD, NRG_ERR_STRUCT_SIZE);
    args.reserved = 1;
    REFUSED(FORWARD, NRG_ERR_STRUCT_SIZE);
    static const int dtypes[] = {0, 4, -1};
    for (size_t i = 0; i < 3; i++) {
        args.dtype = (nrg_dtype)dtypes[i];
        REFUSED(FORWARD, NRG_ERR_ENUM);
    }
    args.store = (nrg_store)3;
    REFUSED(FORWARD, NRG_ERR_ENUM);
    static const float scales[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        args.scale = scales[i];
        REFUSED(FORWARD, NRG_ERR_CONSTANT);
    }
    args.scale = -FLT_MAX;
    ACCEPTED(FORWARD);

    /* nothing to do */
    for (int i = 0; i < 4; i++) {
        args = nrg_score_bias_args_init(NRG_F32, i != 0, i != 1, i != 2, i != 3, NULL, NULL, NULL);
        refused_share(FORWARD, NRG_OK, 0, 1, __LINE__);
        args.dtype = (nrg_dtype)9;
        REFUSED(FORWARD, NRG_ERR_ENUM);
    }

    size_t *const sizes[] = {&args.batch, &args.heads, &args.queries, &args.keys};
    for (size_t i = 0; i < 4; i++) {
        *sizes[i] = SIZE_MAX;
        REFUSED(FORWARD, NRG_ERR_OVERFLOW);
        *sizes[i] = SIZE_MAX / 4;
        REFUSED(FORWARD, NRG_ERR_OVERFLOW);
    }
    size_t *const strides[] = {&args.scores_batch_stride, &args.scores_head_stride, &args.scores_query_stride,
                               &args.o_batch_stride,      &args.o_head_stride,      &args.o_query_stride};
    for (size_t i = 0; i < 6; i++) {
        *strides[i] = SIZE_MAX - 3;
        REFUSED(FORWARD, NRG_ERR_OVERFLOW);
        *strides[i] = ROW - 4;
        REFUSED(FORWARD, NRG_ERR_STRIDE);
        *strides[i] = 8 * SAMPLE + 2;
        REFUSED(FORWARD, NRG_ERR_ALIGNMENT);
    }
    args.diagonals_stride = DIAGONALS * 4 - 4;
    REFUSED(FORWARD, NRG_ERR_STRIDE);
    args.diagonals_stride = DIAGONALS * 4 + 2;
    REFUSED(FORWARD, NRG_ERR_ALIGNMENT);
    args.diagonals_stride = SIZE_MAX / 4 * 4;
    REFUSED(FORWARD, NRG_ERR_OVERFLOW);
    args.scores = moved(SCORES, 2);
    REFUSED(FORWARD, NRG_ERR_ALIGNMENT);
    args.o = moved(O, 1);
    REFUSED(FORWARD, NRG_ERR_ALIGNMENT);
    args.diagonals = moved(TABLE, 2);
    REFUSED(FORWARD, NRG_ERR_ALIGNMENT);
    args.dtype = NRG_BF16;
    args.o = moved(O, 2);
    ACCEPTED(FORWARD);
    args.o = (void *)(UINTPTR_MAX - 63);
    REFUSED(FORWARD, NRG_ERR_OVERFLOW);
}
END_TEST

/* Rows of o share no byte; those of scores may. */
START_TEST(nesting)
{
    set_up();
    args.o_head_stride = ROW; /* [batch][query][head][key] */
    args.o_query_stride = HEADS * ROW;
    ACCEPTED(FORWARD);
    args.o_head_stride = ROW;
    REFUSED(FORWARD, NRG_ERR_STRIDE);
    args.scores_head_stride = ROW;
    ACCEPTED(FORWARD);
    args.o_batch_stride = ROW; /* [head][query][batch][key] */
    args.o_query_stride = BATCH * ROW;
    args.o_head_stride = QUERIES * BATCH * ROW;
    ACCEPTED(FORWARD);
    args.o_batch_stride = ROW;
    args.o_query_stride = BATCH * ROW - 4;
    args.o_head_stride = QUERIES * BATCH * ROW;
    REFUSED(FORWARD, NRG_ERR_STRIDE);
    args.o_batch_stride = SAMPLE - 4;
    REFUSED(FORWARD, NRG_ERR_STRIDE);
    args.o_head_stride = HEAD - 4;
    REFUSED(FORWARD, NRG_ERR_STRIDE);
    /* of one there is no next */
    args.batch = 1;
    args.o_batch_stride = ROW;
    ACCEPTED(FORWARD);
}
END_TEST

START_TEST(overlaps)
{
    set_up();
    args.o = zone(SCORES);
    ACCEPTED(FORWARD);
    args.o = moved(SCORES, 4);
    REFUSED(FORWARD, NRG_ERR_OVERLAP);
    args.o = moved(SCORES, BATCH * SAMPLE);
    ACCEPTED(FORWARD);
    args.o = moved(SCORES, BATCH * SAMPLE - 4);
    REFUSED(FORWARD, NRG_ERR_OVERLAP);
    args.o = moved(SCORES, -BATCH * SAMPLE);
    ACCEPTED(FORWARD);
    args.o = moved(SCORES, -BATCH * SAMPLE + 4);
    REFUSED(FORWARD, NRG_ERR_OVERLAP);
    /* the same place, and other strides: of any one */
    size_t *const strides[] = {&args.o_query_stride, &args.o_head_stride, &args.o_batch_stride};
    for (size_t i = 0; i < 3; i++) {
        args.o = zone(SCORES);
        *strides[i] = (i == 0 ? ROW : i == 1 ? HEAD : SAMPLE) + 4;
        REFUSED(FORWARD, NRG_ERR_OVERLAP);
    }
    args.o = zone(SCORES);
    args.batch = 1;
    args.o_batch_stride = SAMPLE + 4;
    ACCEPTED(FORWARD);
    args.diagonals = moved(O, BATCH * SAMPLE - 4);
    REFUSED(FORWARD, NRG_ERR_OVERLAP);
    args.diagonals = moved(O, BATCH * SAMPLE);
    ACCEPTED(FORWARD);
    /* inputs may overlap */
    args.diagonals = moved(SCORES, 8);
    ACCEPTED(FORWARD);

    back.d_diagonals = moved(SCORES, 8);
    REFUSED(BACKWARD, NRG_ERR_OVERLAP);
    back.d_diagonals = moved(SCORES, -HEADS * DIAGONALS * 8);
    ACCEPTED(BACKWARD);
    back.d_diagonals = moved(SCORES, -HEADS * DIAGONALS * 8 + 8);
    REFUSED(BACKWARD, NRG_ERR_OVERLAP);
}
END_TEST

START_TEST(backward)
{
    set_up();
    ck_assert_int_eq(nrg_score_bias_backward(NULL, 0, 1), NRG_ERR_NULL);
    back.d_o = NULL;
    REFUSED(BACKWARD, NRG_ERR_NULL);
    back.d_diagonals = NULL;
    REFUSED(BACKWARD, NRG_ERR_NULL);
    back.batch = 0;
    back.d_diagonals = NULL;
    REFUSED(BACKWARD, NRG_ERR_NULL);
    back.batch = 0;
    back.d_o = NULL;
    ACCEPTED(BACKWARD);
    for (int i = 0; i < 3; i++) {
        back = nrg_score_bias_backward_args_init(NRG_F32, 1, i != 0, i != 1, i != 2, NULL, NULL);
        refused_share(BACKWARD, NRG_OK, 0, 1, __LINE__);
    }
    set_up();
    back.size = 16;
    REFUSED(BACKWARD, NRG_ERR_STRUCT_SIZE);
    back.dtype = NRG_DTYPE_SAME;
    REFUSED(BACKWARD, NRG_ERR_ENUM);
    size_t *const sizes[] = {&back.batch, &back.heads, &back.queries, &back.keys};
    for (size_t i = 0; i < 4; i++) {
        *sizes[i] = SIZE_MAX;
        REFUSED(BACKWARD, NRG_ERR_OVERFLOW);
    }
    back.d_o_query_stride = ROW - 4;
    REFUSED(BACKWARD, NRG_ERR_STRIDE);
    back.d_o_head_stride = ROW; /* an input: its rows may be the same ones */
    ACCEPTED(BACKWARD);
    back.d_diagonals_stride = DIAGONALS * 8 - 8;
    REFUSED(BACKWARD, NRG_ERR_STRIDE);
    back.d_diagonals_stride = DIAGONALS * 8 + 4;
    REFUSED(BACKWARD, NRG_ERR_ALIGNMENT);
    back.d_diagonals = moved(SUMS, 4);
    REFUSED(BACKWARD, NRG_ERR_ALIGNMENT);
    back.d_o = moved(SCORES, 2);
    REFUSED(BACKWARD, NRG_ERR_ALIGNMENT);
}
END_TEST

/* What the three calls with a spec check alike. */
START_TEST(specs)
{
    static const enum call calls[] = {T5, T5_BACKWARD, ALIBI};
    const enum call call = calls[_i];
    set_up();
    table.spec = NULL;
    REFUSED(call, NRG_ERR_NULL);
    spec.size = 8;
    REFUSED(call, NRG_ERR_STRUCT_SIZE);
    spec.reserved = 1;
    REFUSED(call, NRG_ERR_STRUCT_SIZE);
    spec.queries = SIZE_MAX;
    REFUSED(call, NRG_ERR_OVERFLOW);
    spec.heads = SIZE_MAX;
    REFUSED(call, NRG_ERR_OVERFLOW);
    static const int64_t offsets[] = {(1 << 29) - QUERIES + 2, -(1 << 29) + KEYS - 2, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        spec.query_offset = offsets[i];
        REFUSED(call, NRG_ERR_POSITION);
    }
    spec.query_offset = (1 << 29) - QUERIES + 1;
    ACCEPTED(call);
    spec.query_offset = -(1 << 29) + KEYS - 1;
    ACCEPTED(call);
    spec.keys = (size_t)1 << 40;
    REFUSED(call, NRG_ERR_POSITION);
    spec.queries = (size_t)1 << 40;
    REFUSED(call, NRG_ERR_POSITION);
    if (call == ALIBI)
        return;
    spec.buckets = 3;
    REFUSED(call, NRG_ERR_CONSTANT);
    spec.buckets = -8;
    REFUSED(call, NRG_ERR_CONSTANT);
    spec.max_distance = BUCKETS / 4;
    REFUSED(call, NRG_ERR_CONSTANT);
    spec.max_distance = BUCKETS / 4 + 1;
    ACCEPTED(call);
    spec.bidirectional = 0;
    spec.max_distance = BUCKETS / 2;
    REFUSED(call, NRG_ERR_CONSTANT);
    spec.buckets = INT_MAX;
    spec.max_distance = INT_MAX;
    spec.heads = SIZE_MAX / 64;
    REFUSED(call, NRG_ERR_OVERFLOW);
}
END_TEST

START_TEST(tables)
{
    set_up();
    table.numbers = NULL;
    REFUSED(T5, NRG_ERR_NULL);
    table.diagonals = NULL;
    REFUSED(T5, NRG_ERR_NULL);
    table.diagonals = NULL;
    REFUSED(ALIBI, NRG_ERR_NULL);
    table.slopes = NULL;
    REFUSED(ALIBI, NRG_ERR_NULL);
    table.sums = NULL;
    REFUSED(T5_BACKWARD, NRG_ERR_NULL);
    table.d_numbers = NULL;
    REFUSED(T5_BACKWARD, NRG_ERR_NULL);
    /* nothing to make; a gradient is written all the same */
    spec.keys = 0;
    table.numbers = NULL;
    table.diagonals = NULL;
    ACCEPTED(T5);
    spec.queries = 0;
    table.slopes = NULL;
    table.diagonals = NULL;
    ACCEPTED(ALIBI);
    spec.queries = 0;
    table.d_numbers = NULL;
    REFUSED(T5_BACKWARD, NRG_ERR_NULL);
    spec.queries = 0;
    table.sums = NULL;
    ck_assert_int_eq(run(T5_BACKWARD, 0, 1), NRG_OK);
    for (int i = 0; i < BUCKETS * HEADS; i++)
        ck_assert(floats(D_NUMBERS)[i] == 0);
    set_up();
    spec.heads = 0;
    table.sums = NULL;
    table.d_numbers = NULL;
    ACCEPTED(T5_BACKWARD);

    table.dtype = NRG_DTYPE_SAME;
    REFUSED(T5, NRG_ERR_ENUM);
    table.dtype = (nrg_dtype)4;
    REFUSED(T5, NRG_ERR_ENUM);
    table.numbers_stride = HEADS * 4 - 4;
    REFUSED(T5, NRG_ERR_STRIDE);
    table.numbers_stride = HEADS * 4 - 4;
    REFUSED(T5_BACKWARD, NRG_ERR_STRIDE);
    table.diagonals_stride = DIAGONALS * 4 - 4;
    REFUSED(T5, NRG_ERR_STRIDE);
    table.diagonals_stride = DIAGONALS * 4 - 4;
    REFUSED(ALIBI, NRG_ERR_STRIDE);
    table.sums_stride = DIAGONALS * 8 - 8;
    REFUSED(T5_BACKWARD, NRG_ERR_STRIDE);
    table.sums_stride = DIAGONALS * 8 + 4;
    REFUSED(T5_BACKWARD, NRG_ERR_ALIGNMENT);
    table.sums = moved(SUMS, 4);
    REFUSED(T5_BACKWARD, NRG_ERR_ALIGNMENT);
    table.d_numbers = moved(D_NUMBERS, 2);
    REFUSED(T5_BACKWARD, NRG_ERR_ALIGNMENT);
    table.numbers = moved(NUMBERS, 2);
    REFUSED(T5, NRG_ERR_ALIGNMENT);
    table.numbers = moved(NUMBERS, 2);
    table.dtype = NRG_F16;
    ACCEPTED(T5);
    table.diagonals = moved(TABLE, 2);
    REFUSED(T5, NRG_ERR_ALIGNMENT);
    table.slopes = moved(SLOPES, 1);
    REFUSED(ALIBI, NRG_ERR_ALIGNMENT);

    table.diagonals = moved(NUMBERS, 4);
    REFUSED(T5, NRG_ERR_OVERLAP);
    table.diagonals = moved(SLOPES, 4);
    REFUSED(ALIBI, NRG_ERR_OVERLAP);
    table.diagonals = moved(SLOPES, HEADS * 4);
    ACCEPTED(ALIBI);
    table.d_numbers = moved(SUMS, 8);
    REFUSED(T5_BACKWARD, NRG_ERR_OVERLAP);
}
END_TEST

START_TEST(slopes)
{
    set_up();
    table.slopes = NULL;
    REFUSED(ALIBI_SLOPES, NRG_ERR_NULL);
    table.slopes = NULL;
    table.heads = 0;
    ACCEPTED(ALIBI_SLOPES);
    table.slopes = moved(SLOPES, 2);
    REFUSED(ALIBI_SLOPES, NRG_ERR_ALIGNMENT);
    table.heads = SIZE_MAX;
    REFUSED(ALIBI_SLOPES, NRG_ERR_OVERFLOW);
    static const double bad[] = {-1, -0x1p-1074, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        table.max_bias = bad[i];
        REFUSED(ALIBI_SLOPES, NRG_ERR_CONSTANT);
    }
    table.max_bias = DBL_MAX;
    ACCEPTED(ALIBI_SLOPES);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("attention score biases: bad input");
    TCase *all = test_case(suite, "arguments");
    tcase_add_test(all, right_calls);
    tcase_add_test(all, threads);
    tcase_add_test(all, forward);
    tcase_add_test(all, nesting);
    tcase_add_test(all, overlaps);
    tcase_add_test(all, backward);
    tcase_add_loop_test(all, specs, 0, 3);
    tcase_add_test(all, tables);
    tcase_add_test(all, slopes);
    return test_run(suite);
}
