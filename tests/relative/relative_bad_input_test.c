/* Bad input: every refusal that nrg/relative.h and nrg/relative_shift.h list gives its status and writes nothing; what the
 * headers allow is not refused.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { BATCH = 2, HEADS = 2, ROWS = 3, KEYS = 4, DIM = 5, REL = 6, P_MIN = -2, P_MAX = 1, CLASSES = 4 };
enum { ZONE = 4096, FIRST = 2048, ZONES = 7 };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }

static void set_memory(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
}

/* The call that is tested, with its arguments as they stand. */
static nrg_status (*the_call)(int ith, int nth);
static void (*set_up)(void);

static void refused_share(nrg_status status, int ith, int nth, int line)
{
    memcpy(before, memory, sizeof before);
    nrg_status got = the_call(ith, nth);
    if (got != status)
        ck_abort_msg("line %d: status %d (%s) and not %d (%s)", line, (int)got, nrg_status_string(got), (int)status,
                     nrg_status_string(status));
    if (memcmp(before, memory, sizeof before) != 0)
        ck_abort_msg("line %d: a refused call wrote something", line);
}

/* The call as it stands now is refused, whichever share asks; then everything is right again. */
static void refused(nrg_status status, int line)
{
    refused_share(status, 0, 1, line);
    refused_share(status, 2, 3, line);
    refused_share(status, 98, 99, line); /* a share of nothing checks all the same */
    set_up();
}

static void accepted(int line)
{
    nrg_status got = the_call(0, 1);
    if (got != NRG_OK)
        ck_abort_msg("line %d: status %d (%s)", line, (int)got, nrg_status_string(got));
    set_memory();
    set_up();
}

#define REFUSED(status) refused(status, __LINE__)
#define ACCEPTED() accepted(__LINE__)

static void refuse_threads(int line)
{
    static const int threads[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        refused_share(NRG_ERR_THREAD, threads[i][0], threads[i][1], line);
    ck_assert_int_eq(the_call(INT_MAX - 1, INT_MAX), NRG_OK);
    set_memory();
}

/* A struct of any size that is wrong, with and without something behind the fields that are known. */
static void refuse_sizes(size_t *size, size_t known, int line)
{
    const size_t sizes[] = {0, 1, sizeof(size_t), known - 4, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *size = sizes[i];
        refused_share(NRG_ERR_STRUCT_SIZE, 0, 1, line);
    }
    *size = known;
}

/* ---- nrg/relative.h ---- */

enum { Q, A, TABLE, SCORES, O, D_TABLE, ENDS };

static union {
    nrg_relative_args args;
    unsigned char room[sizeof(nrg_relative_args) + 64];
} longer;
#define args longer.args

static nrg_status run_scores(int ith, int nth) { return nrg_relative_scores(&args, ith, nth); }
static nrg_status run_values(int ith, int nth) { return nrg_relative_values(&args, ith, nth); }
static nrg_status run_backward(int ith, int nth) { return nrg_relative_backward(&args, ith, nth); }

static void set_up_relative(void)
{
    memset(&longer, 0, sizeof longer);
    args = nrg_relative_args_init(BATCH, HEADS, ROWS, KEYS, DIM, P_MIN, P_MAX);
    args.q = zone(Q);
    args.a = zone(A);
    args.table = zone(TABLE);
    args.scores = zone(SCORES);
    args.o = zone(O);
    args.d_table = (float *)(void *)zone(D_TABLE);
    args.ends = (double *)(void *)zone(ENDS);
}

static void start_relative(int which)
{
    static nrg_status (*const calls[])(int, int) = {run_scores, run_values, run_backward};
    the_call = calls[which];
    set_up = set_up_relative;
    set_memory();
    set_up();
}

/* The operands of each operation; the last is the output. */
static const void **pointer_of(int operand)
{
    static const void **const pointers[] = {&args.q, &args.a, &args.table};
    return operand < SCORES ? pointers[operand] : NULL;
}

START_TEST(right_call)
{
    static const int outputs[] = {SCORES, O, D_TABLE};
    static const size_t sizes[] = {BATCH * HEADS * ROWS * KEYS * 4, BATCH * HEADS * ROWS * DIM * 4, CLASSES * DIM * 4};
    for (int per_head = 0; per_head < 2; per_head++) {
        start_relative(_i);
        args.table_head_stride = args.d_table_head_stride = per_head ? CLASSES * DIM * 4 : 0;
        memcpy(before, memory, sizeof before);
        ck_assert_int_eq(the_call(0, 1), NRG_OK);
        for (int operand = 0; operand < ZONES; operand++) {
            const int written = operand == outputs[_i] || (_i == 1 && operand == ENDS);
            ck_assert_int_eq(memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0, written);
            size_t bytes = operand == ENDS ? BATCH * HEADS * ROWS * 16 : sizes[_i];
            bytes *= operand == D_TABLE && per_head ? HEADS : 1;
            if (written)
                memcpy(before + operand * ZONE + FIRST, zone(operand), bytes);
        }
        ck_assert_mem_eq(before, memory, sizeof memory);
    }
}
END_TEST

START_TEST(options)
{
    const int which = _i;
    start_relative(which);
    ck_assert_int_eq(nrg_relative_scores(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_relative_values(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_relative_backward(NULL, 0, 1), NRG_ERR_NULL);
    refuse_threads(__LINE__);
    refuse_sizes(&args.size, sizeof args, __LINE__);
    args.reserved = 1;
    REFUSED(NRG_ERR_STRUCT_SIZE);
    args.size = sizeof longer; /* of a later version */
    ACCEPTED();
    args.size = sizeof longer;
    longer.room[sizeof longer - 1] = 1;
    REFUSED(NRG_ERR_STRUCT_SIZE);

    args.dtype = NRG_DTYPE_SAME;
    REFUSED(NRG_ERR_ENUM);
    args.dtype = (nrg_dtype)4;
    REFUSED(NRG_ERR_ENUM);
    args.table_dtype = (nrg_dtype)4;
    REFUSED(NRG_ERR_ENUM);
    args.table_dtype = NRG_F16;
    REFUSED(NRG_ERR_DTYPE);
    args.dtype = NRG_BF16;
    args.table_dtype = NRG_F16;
    REFUSED(NRG_ERR_DTYPE);
    args.dtype = NRG_F16;
    args.table_dtype = NRG_F32;
    ACCEPTED();
    args.dim = 0;
    REFUSED(NRG_ERR_DIM);

    static const int64_t limit = (int64_t)1 << 60;
    args.p_min = P_MAX + 1;
    REFUSED(NRG_ERR_POSITION);
    args.p_min = args.p_max = limit + 1;
    REFUSED(NRG_ERR_POSITION);
    args.p_min = args.p_max = -limit - 1;
    REFUSED(NRG_ERR_POSITION);
    args.p_min = INT64_MIN;
    REFUSED(NRG_ERR_POSITION);
    args.p_max = INT64_MAX;
    REFUSED(NRG_ERR_POSITION);
    args.query_offset = limit + 1;
    REFUSED(NRG_ERR_POSITION);
    args.query_offset = INT64_MIN;
    REFUSED(NRG_ERR_POSITION);
    args.query_offset = limit;
    ACCEPTED();
    args.query_offset = -limit;
    ACCEPTED();
    args.p_min = -limit; /* more classes than any table has */
    REFUSED(NRG_ERR_OVERFLOW);
}
END_TEST

START_TEST(nothing_to_do)
{
    size_t *const counts[] = {&args.batch, &args.heads, &args.queries, &args.keys};
    for (int which = 0; which < 3; which++)
        for (size_t i = 0; i < 4; i++) {
            start_relative(which);
            *counts[i] = 0;
            args.q = args.a = args.table = NULL;
            args.scores = NULL;
            args.ends = NULL;
            if (i < 3)
                args.o = NULL;
            /* without queries nothing is in the sum; and what is there stays */
            memcpy(before, memory, sizeof before);
            ck_assert_int_eq(the_call(0, 1), NRG_OK);
            ck_assert_mem_eq(before, memory, sizeof memory);
            args.accumulate = 0;
            ck_assert_int_eq(the_call(0, 1), NRG_OK);
            memset(before + D_TABLE * ZONE + FIRST, 0, which == 2 ? CLASSES * DIM * 4 : 0);
            memset(before + O * ZONE + FIRST, 0, which == 1 && i == 3 ? BATCH * HEADS * ROWS * DIM * 4 : 0);
            ck_assert_mem_eq(before, memory, sizeof memory);
            if (which == 2) {
                args.d_table = NULL;
                ck_assert_int_eq(the_call(0, 1), NRG_ERR_NULL);
            }
        }
    start_relative(1);
    args.keys = 0;
    args.o = NULL;
    REFUSED(NRG_ERR_NULL);
    args.keys = 0; /* the ends of nothing */
    args.a = args.table = NULL;
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    for (int i = 0; i < 2 * BATCH * HEADS * ROWS; i++)
        ck_assert(args.ends[i] == 0);
}
END_TEST

START_TEST(operands)
{
    static const int inputs[3][2] = {{Q, TABLE}, {A, TABLE}, {A, Q}};
    static nrg_head_strides *const strides[] = {&args.q_strides, &args.a_strides};
    const int which = _i;
    start_relative(which);
    for (int i = 0; i < 2; i++) {
        const int operand = inputs[which][i];
        *pointer_of(operand) = NULL;
        REFUSED(NRG_ERR_NULL);
        *pointer_of(operand) = zone(operand) + 2;
        REFUSED(NRG_ERR_ALIGNMENT);
        *pointer_of(operand) = zone(operand) + 2;
        args.dtype = NRG_F16;
        ACCEPTED();
        *pointer_of(operand) = zone(operand) + 1;
        args.dtype = NRG_F16;
        REFUSED(NRG_ERR_ALIGNMENT);
        *pointer_of(operand) = (const void *)(UINTPTR_MAX - 63);
        REFUSED(NRG_ERR_OVERFLOW);
        if (operand == TABLE) {
            args.table_stride = DIM * 4 - 4;
            REFUSED(NRG_ERR_STRIDE);
            args.table_stride = DIM * 4 + 2;
            REFUSED(NRG_ERR_ALIGNMENT);
            args.table_head_stride = CLASSES * DIM * 4 - 4;
            REFUSED(NRG_ERR_STRIDE);
            args.table_stride = SIZE_MAX - 3;
            REFUSED(NRG_ERR_OVERFLOW);
            continue;
        }
        const size_t row = (operand == Q ? DIM : KEYS) * 4;
        nrg_head_strides *s = strides[operand];
        s->row = row - 4;
        REFUSED(NRG_ERR_STRIDE);
        s->row = row + 2;
        REFUSED(NRG_ERR_ALIGNMENT);
        s->head = ROWS * row - 4;
        REFUSED(NRG_ERR_STRIDE);
        s->batch = HEADS * ROWS * row - 4;
        REFUSED(NRG_ERR_STRIDE);
        s->batch = SIZE_MAX - 3;
        REFUSED(NRG_ERR_OVERFLOW);
        s->head = SIZE_MAX / 2 - 1;
        REFUSED(NRG_ERR_OVERFLOW);
        /* rows of all heads beside each other */
        s->row = HEADS * row;
        s->head = row;
        s->batch = ROWS * HEADS * row;
        ACCEPTED();
        s->row = HEADS * row - 4;
        s->head = row;
        REFUSED(NRG_ERR_STRIDE);
        /* a step that is never taken is not looked at */
        args.queries = 1;
        s->row = 3;
        ACCEPTED();
    }
}
END_TEST

START_TEST(outputs)
{
    const int which = _i;
    start_relative(which);
    void **const out = which == 0 ? &args.scores : which == 1 ? &args.o : (void **)(void *)&args.d_table;
    const int zone_of[] = {SCORES, O, D_TABLE}, in = which == 1 ? A : Q;
    const size_t bytes[] = {BATCH * HEADS * ROWS * KEYS * 4, BATCH * HEADS * ROWS * DIM * 4, CLASSES * DIM * 4};
    const size_t in_bytes = (in == A ? KEYS : DIM) * BATCH * HEADS * ROWS * 4;
    *out = NULL;
    REFUSED(NRG_ERR_NULL);
    *out = zone(zone_of[which]) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    *out = zone(in);
    REFUSED(NRG_ERR_OVERLAP);
    *out = zone(in) + in_bytes - 4;
    REFUSED(NRG_ERR_OVERLAP);
    *out = zone(in) + in_bytes;
    ACCEPTED();
    *out = zone(in) - bytes[which];
    ACCEPTED();
    *out = zone(in) - bytes[which] + 4;
    REFUSED(NRG_ERR_OVERLAP);
    const int other = which == 2 ? A : TABLE;
    *out = zone(other);
    REFUSED(NRG_ERR_OVERLAP);
    if (which == 2) {
        args.d_table_stride = DIM * 4 - 4;
        REFUSED(NRG_ERR_STRIDE);
        args.d_table_head_stride = CLASSES * DIM * 4 - 4;
        REFUSED(NRG_ERR_STRIDE);
        args.d_table_head_stride = CLASSES * DIM * 4 + 2;
        REFUSED(NRG_ERR_ALIGNMENT);
    } else {
        nrg_head_strides *s = which == 0 ? &args.scores_strides : &args.o_strides;
        s->row = 8;
        REFUSED(NRG_ERR_STRIDE);
        s->head = 8;
        REFUSED(NRG_ERR_STRIDE);
    }
    if (which == 0)
        return;
    args.ends = (double *)(void *)(zone(ENDS) + 4);
    REFUSED(NRG_ERR_ALIGNMENT);
    args.ends = NULL;
    ACCEPTED();
    args.ends = (double *)(void *)zone(zone_of[which]);
    REFUSED(NRG_ERR_OVERLAP);
    args.ends = (double *)(void *)zone(A);
    if (which == 1)
        REFUSED(NRG_ERR_OVERLAP);
    else
        ACCEPTED(); /* inputs may overlap */
}
END_TEST

/* Slices of one buffer's rows: q and o of a token, beside each other. */
START_TEST(interleaved)
{
    start_relative(1);
    /* weights and output of every query in a row of KEYS + DIM elements */
    const size_t row = (KEYS + DIM) * 4;
    const nrg_head_strides s = {HEADS * ROWS * row, ROWS * row, row};
    args.a = zone(A);
    args.o = zone(A) + KEYS * 4;
    args.a_strides = args.o_strides = s;
    ACCEPTED();
    args.a = zone(A);
    args.o = zone(A) + KEYS * 4 - 4;
    args.a_strides = args.o_strides = s;
    REFUSED(NRG_ERR_OVERLAP);
}
END_TEST

#undef args

/* ---- the shift ---- */

enum { X, SHIFTED, D_SHIFTED, DX };

static nrg_relative_shift_args moved;
static nrg_status run_shift(int ith, int nth) { return nrg_relative_shift(&moved, ith, nth); }
static nrg_status run_shift_backward(int ith, int nth) { return nrg_relative_shift_backward(&moved, ith, nth); }

static void set_up_shift(void)
{
    moved = nrg_relative_shift_args_init(BATCH, HEADS, ROWS, KEYS, REL, 2);
    moved.x = zone(X);
    moved.scores = zone(SHIFTED);
    moved.d_scores = zone(D_SHIFTED);
    moved.dx = zone(DX);
}

START_TEST(shift)
{
    const int backward = _i;
    static const int64_t limit = (int64_t)1 << 60;
    the_call = backward ? run_shift_backward : run_shift;
    set_up = set_up_shift;
    set_memory();
    set_up();
    const void **in = backward ? &moved.d_scores : &moved.x;
    void **out = backward ? &moved.dx : &moved.scores;
    nrg_head_strides *in_strides = backward ? &moved.d_scores_strides : &moved.x_strides;
    nrg_head_strides *out_strides = backward ? &moved.dx_strides : &moved.scores_strides;
    const int in_zone = backward ? D_SHIFTED : X, out_zone = backward ? DX : SHIFTED;
    const size_t in_row = backward ? KEYS * 4 : REL * 4, out_row = backward ? REL * 4 : KEYS * 4, rows = BATCH * HEADS * ROWS;

    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    memcpy(before + out_zone * ZONE + FIRST, zone(out_zone), rows * out_row);
    ck_assert_mem_eq(before, memory, sizeof memory);
    refuse_threads(__LINE__);
    refuse_sizes(&moved.size, sizeof moved, __LINE__);
    moved.reserved = 1;
    REFUSED(NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(backward ? nrg_relative_shift_backward(NULL, 0, 1) : nrg_relative_shift(NULL, 0, 1), NRG_ERR_NULL);
    moved.dtype = NRG_DTYPE_SAME;
    REFUSED(NRG_ERR_ENUM);
    moved.dtype = (nrg_dtype)4;
    REFUSED(NRG_ERR_ENUM);
    moved.store = (nrg_store)3;
    REFUSED(NRG_ERR_ENUM);
    moved.shift = limit + 1;
    REFUSED(NRG_ERR_POSITION);
    moved.shift = -limit - 1;
    REFUSED(NRG_ERR_POSITION);
    moved.shift = limit;
    ACCEPTED();
    moved.shift = -limit;
    ACCEPTED();
    moved.queries = ((size_t)1 << 60) + 1;
    REFUSED(NRG_ERR_OVERFLOW);
    moved.keys = (size_t)1 << 62;
    REFUSED(NRG_ERR_OVERFLOW);
    moved.rel = SIZE_MAX;
    REFUSED(NRG_ERR_OVERFLOW);

    *in = NULL;
    REFUSED(NRG_ERR_NULL);
    *out = NULL;
    REFUSED(NRG_ERR_NULL);
    *in = *out = NULL;
    moved.batch = 0;
    ACCEPTED();
    *in = *out = NULL;
    moved.queries = 0;
    ACCEPTED();
    *in = zone(in_zone) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    *out = zone(out_zone) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    in_strides->row = in_row - 4;
    REFUSED(NRG_ERR_STRIDE);
    out_strides->row = out_row - 4;
    REFUSED(NRG_ERR_STRIDE);
    in_strides->row = in_row + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    out_strides->head = ROWS * out_row - 4;
    REFUSED(NRG_ERR_STRIDE);
    in_strides->batch = SIZE_MAX - 7;
    REFUSED(NRG_ERR_OVERFLOW);
    *out = zone(in_zone);
    REFUSED(NRG_ERR_OVERLAP);
    *out = zone(in_zone) + rows * in_row - 4;
    REFUSED(NRG_ERR_OVERLAP);
    *out = zone(in_zone) + rows * in_row;
    ACCEPTED();

    /* columns that there are none of: zeros, and nothing */
    if (backward)
        moved.keys = 0;
    else
        moved.rel = 0;
    *in = NULL;
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    for (size_t i = 0; i < rows * out_row; i++)
        ck_assert_int_eq(zone(out_zone)[i], 0);
    set_memory();
    set_up();
    if (backward)
        moved.rel = 0;
    else
        moved.keys = 0;
    *out = NULL;
    ACCEPTED();
}
END_TEST

/* ---- the bias pair ---- */

enum { BIAS_Q, BIAS_U, BIAS_V, O_U, O_V };
enum { D_O_U, D_O_V, DQ, DU, DV };
enum { TENSOR = BATCH * HEADS * ROWS * DIM * 4 };

static nrg_head_bias_args bias;
static nrg_status run_bias(int ith, int nth) { return nrg_head_bias_pair(&bias, ith, nth); }
static nrg_status run_bias_backward(int ith, int nth) { return nrg_head_bias_pair_backward(&bias, ith, nth); }

static void set_up_bias(void)
{
    bias = nrg_head_bias_args_init(BATCH, HEADS, ROWS, DIM);
    bias.q = zone(BIAS_Q);
    bias.u = zone(BIAS_U);
    bias.v = zone(BIAS_V);
    bias.o_u = zone(O_U);
    bias.o_v = zone(O_V);
}

static void set_up_bias_backward(void)
{
    bias = nrg_head_bias_args_init(BATCH, HEADS, ROWS, DIM);
    bias.d_o_u = zone(D_O_U);
    bias.d_o_v = zone(D_O_V);
    bias.dq = zone(DQ);
    bias.du = (float *)(void *)zone(DU);
    bias.dv = (float *)(void *)zone(DV);
}

static void refuse_bias_options(void)
{
    set_memory();
    set_up();
    refuse_threads(__LINE__);
    refuse_sizes(&bias.size, sizeof bias, __LINE__);
    bias.reserved = 7;
    REFUSED(NRG_ERR_STRUCT_SIZE);
    bias.dtype = NRG_DTYPE_SAME;
    REFUSED(NRG_ERR_ENUM);
    bias.dtype = (nrg_dtype)-1;
    REFUSED(NRG_ERR_ENUM);
    bias.bias_dtype = (nrg_dtype)9;
    REFUSED(NRG_ERR_ENUM);
    bias.store = (nrg_store)3;
    REFUSED(NRG_ERR_ENUM);
    bias.bias_dtype = NRG_BF16;
    REFUSED(NRG_ERR_DTYPE);
    bias.dtype = NRG_F16;
    bias.bias_dtype = NRG_F32;
    ACCEPTED();
    bias.dim = 0;
    REFUSED(NRG_ERR_DIM);
    bias.dim = SIZE_MAX / 2;
    REFUSED(NRG_ERR_OVERFLOW);
    bias.rows = SIZE_MAX / 8;
    REFUSED(NRG_ERR_OVERFLOW);
}

START_TEST(bias_pair)
{
    the_call = run_bias;
    set_up = set_up_bias;
    refuse_bias_options();
    ck_assert_int_eq(nrg_head_bias_pair(NULL, 0, 1), NRG_ERR_NULL);
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    memcpy(before + O_U * ZONE + FIRST, zone(O_U), TENSOR);
    memcpy(before + O_V * ZONE + FIRST, zone(O_V), TENSOR);
    ck_assert_mem_eq(before, memory, sizeof memory);

    bias.q = NULL;
    REFUSED(NRG_ERR_NULL);
    bias.u = NULL;
    REFUSED(NRG_ERR_NULL);
    bias.v = NULL;
    REFUSED(NRG_ERR_NULL);
    bias.u = bias.o_u = NULL;
    ACCEPTED();
    bias.v = bias.o_v = NULL;
    ACCEPTED();
    bias.u = zone(BIAS_U) + 1; /* not looked at */
    bias.o_u = NULL;
    ACCEPTED();
    bias.o_u = bias.o_v = NULL;
    ACCEPTED();
    bias.rows = 0;
    bias.q = NULL;
    ACCEPTED();
    bias.q = zone(BIAS_Q) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    bias.u = zone(BIAS_U) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    bias.v = zone(BIAS_V) + 1;
    bias.dtype = NRG_BF16;
    REFUSED(NRG_ERR_ALIGNMENT);
    bias.o_v_strides.head = 4;
    REFUSED(NRG_ERR_STRIDE);
    bias.o_u_strides.row = HEADS * DIM * 4 - 4;
    REFUSED(NRG_ERR_STRIDE);

    bias.o_u = zone(BIAS_Q);
    ACCEPTED();
    bias.o_v = zone(BIAS_Q);
    ACCEPTED();
    bias.o_u = bias.o_v = zone(BIAS_Q);
    REFUSED(NRG_ERR_OVERLAP);
    bias.o_v = zone(O_U);
    REFUSED(NRG_ERR_OVERLAP);
    bias.o_v = zone(BIAS_Q) + 4;
    REFUSED(NRG_ERR_OVERLAP);
    bias.o_u = zone(BIAS_V);
    REFUSED(NRG_ERR_OVERLAP);
    bias.o_u = zone(BIAS_Q); /* the same place, other steps */
    bias.o_u_strides.batch = ROWS * HEADS * DIM * 4 + 4;
    REFUSED(NRG_ERR_OVERLAP);
    /* dense as well, but heads outside of rows: both are one run of bytes */
    bias.o_u = zone(BIAS_Q);
    bias.o_u_strides = (nrg_head_strides){HEADS * ROWS * DIM * 4, ROWS * DIM * 4, DIM * 4};
    REFUSED(NRG_ERR_OVERLAP);
    bias.o_v = zone(BIAS_Q);
    bias.q_strides = (nrg_head_strides){HEADS * ROWS * DIM * 4, ROWS * DIM * 4, DIM * 4};
    REFUSED(NRG_ERR_OVERLAP);
    static const nrg_head_strides steps[] = {{1000, 400, 40}, {40, 500, 100}};
    for (size_t n = 0; n < sizeof steps / sizeof steps[0]; n++)
        for (int level = 0; level < 3; level++) { /* one step another, the outermost or not */
            bias.o_u = zone(BIAS_Q);
            bias.q_strides = bias.o_u_strides = steps[n];
            *(size_t *[]){&bias.o_u_strides.batch, &bias.o_u_strides.head, &bias.o_u_strides.row}[level] += 20;
            REFUSED(NRG_ERR_OVERLAP);
            bias.o_u = zone(BIAS_Q);
            bias.q_strides = bias.o_u_strides = steps[n];
            ACCEPTED();
        }
    bias.o_u = zone(BIAS_Q);
    bias.o_u_strides = bias.q_strides = (nrg_head_strides){HEADS * ROWS * DIM * 4, ROWS * DIM * 4, DIM * 4};
    ACCEPTED();
    /* three slices of every token */
    const nrg_head_strides fused = {ROWS * 3 * HEADS * DIM * 4, DIM * 4, 3 * HEADS * DIM * 4};
    bias.o_u = zone(BIAS_Q) + HEADS * DIM * 4;
    bias.o_v = zone(BIAS_Q) + 2 * HEADS * DIM * 4;
    bias.q_strides = bias.o_u_strides = bias.o_v_strides = fused;
    ACCEPTED();
}
END_TEST

START_TEST(bias_pair_backward)
{
    the_call = run_bias_backward;
    set_up = set_up_bias_backward;
    refuse_bias_options();
    ck_assert_int_eq(nrg_head_bias_pair_backward(NULL, 0, 1), NRG_ERR_NULL);
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    memcpy(before + DQ * ZONE + FIRST, zone(DQ), TENSOR);
    memcpy(before + DU * ZONE + FIRST, zone(DU), HEADS * DIM * 4);
    memcpy(before + DV * ZONE + FIRST, zone(DV), HEADS * DIM * 4);
    ck_assert_mem_eq(before, memory, sizeof memory);

    bias.d_o_u = bias.d_o_v = NULL;
    REFUSED(NRG_ERR_NULL);
    bias.d_o_u = bias.d_o_v = bias.dq = NULL;
    bias.du = bias.dv = NULL;
    ACCEPTED();
    bias.d_o_u = NULL;
    ACCEPTED();
    bias.d_o_v = NULL;
    ACCEPTED();
    bias.dq = NULL;
    ACCEPTED();
    bias.d_o_v = zone(D_O_V) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
    bias.du = (float *)(void *)(zone(DU) + 2);
    REFUSED(NRG_ERR_ALIGNMENT);
    bias.dq_strides.head = 4;
    REFUSED(NRG_ERR_STRIDE);

    bias.dq = zone(D_O_U);
    ACCEPTED();
    bias.dq = zone(D_O_V);
    ACCEPTED();
    bias.dq = zone(D_O_U);
    bias.d_o_v = zone(D_O_U);
    ACCEPTED();
    bias.dq = zone(D_O_U) + 4;
    REFUSED(NRG_ERR_OVERLAP);
    bias.dq = zone(D_O_U);
    bias.dq_strides.row = HEADS * DIM * 4 + 4;
    REFUSED(NRG_ERR_OVERLAP);
    bias.dq = zone(D_O_U); /* dense as well, but heads outside of rows */
    bias.dq_strides = (nrg_head_strides){HEADS * ROWS * DIM * 4, ROWS * DIM * 4, DIM * 4};
    REFUSED(NRG_ERR_OVERLAP);
    bias.dq = zone(D_O_V);
    bias.d_o_v_strides = (nrg_head_strides){HEADS * ROWS * DIM * 4, ROWS * DIM * 4, DIM * 4};
    REFUSED(NRG_ERR_OVERLAP);
    bias.du = bias.dv;
    REFUSED(NRG_ERR_OVERLAP);
    bias.du = (float *)(void *)zone(DQ);
    REFUSED(NRG_ERR_OVERLAP);
    bias.dv = (float *)(void *)zone(D_O_V);
    REFUSED(NRG_ERR_OVERLAP);

    /* a sum over nothing is 0, and keeps what it is added to */
    bias.rows = 0;
    bias.d_o_u = bias.d_o_v = bias.dq = NULL;
    memcpy(before, memory, sizeof before);
    bias.accumulate = 1;
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    ck_assert_mem_eq(before, memory, sizeof memory);
    bias.accumulate = 0;
    ck_assert_int_eq(the_call(0, 1), NRG_OK);
    memset(before + DU * ZONE + FIRST, 0, HEADS * DIM * 4);
    memset(before + DV * ZONE + FIRST, 0, HEADS * DIM * 4);
    ck_assert_mem_eq(before, memory, sizeof memory);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("relative positions: bad input");
    TCase *relative = test_case(suite, "relative.h");
    tcase_add_loop_test(relative, right_call, 0, 3);
    tcase_add_loop_test(relative, options, 0, 3);
    tcase_add_test(relative, nothing_to_do);
    tcase_add_loop_test(relative, operands, 0, 3);
    tcase_add_loop_test(relative, outputs, 0, 3);
    tcase_add_test(relative, interleaved);
    TCase *shifts = test_case(suite, "relative_shift.h");
    tcase_add_loop_test(shifts, shift, 0, 2);
    tcase_add_test(shifts, bias_pair);
    tcase_add_test(shifts, bias_pair_backward);
    return test_run(suite);
}
