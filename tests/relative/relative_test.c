/* nrg/relative.h: sums whose order shows, which have the bits of scalar; sums of nothing; rows beside each other; positions at
 * the end of what they may be; and what nobody depends on.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../harness/case_call.h"
#include "../harness/element.h"
#include "../harness/rows.h"

/* ---- sums whose order shows ---- */

/* Numbers of one size, or of all sizes, add up in double without rounding, or to the largest of them: these lie in between. */
static void spread(const sweep_operand *o, void *rows, uint64_t seed)
{
    const nrg_dtype dtype = (nrg_dtype)o->type;
    const int span = dtype == NRG_F16 ? 20 : 60;
    float *row = element_tensor(o->length, NRG_F32);
    for (size_t n = 0; n < o->rows; n++) {
        uint64_t state = test_mix(seed + n);
        row_fill(row, o->length, test_draw(&state, 5) ? ROW_NORMAL : (enum row_kind)test_draw(&state, ROW_KINDS), dtype, state);
        for (size_t i = 0; i < o->length; i++)
            element_set(rows, n * o->length + i, dtype, ldexpf(row[i], (int)test_draw(&state, (size_t)span) - span / 2));
    }
    free(row);
}

/* q and a, which all three operations have first. */
static int spread_inputs(case_call *call)
{
    for (int i = SWEEP_IN; i < SWEEP_IN + 2; i++) {
        void *rows = case_call_content(call, i);
        if (rows)
            spread(&call->c.operands[i], rows, call->c.number * 1000 + (uint64_t)i);
    }
    return 1;
}

START_TEST(order_of_the_sums)
{
    static const char *const names[] = {"relative_scores", "relative_values", "relative_backward"};
    case_sweep_op(names[_i], 0, 1, test_small() ? 60 : UINT64_MAX, spread_inputs);
}
END_TEST

/* ---- sums of nothing ---- */

START_TEST(nothing_to_add_up)
{
    enum { BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, DIM = 5, CLASSES = 4, ROWS = BATCH * HEADS * QUERIES };
    for (int none = 0; none < 4; none++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            float scores[ROWS * KEYS], o[ROWS * DIM], d_table[CLASSES * DIM];
            double ends[ROWS * 2];
            for (int i = 0; i < ROWS * DIM; i++)
                scores[i % (ROWS * KEYS)] = o[i] = d_table[i % (CLASSES * DIM)] = 3;
            for (int i = 0; i < ROWS * 2; i++)
                ends[i] = 3;
            nrg_relative_args args = nrg_relative_args_init(NRG_F32, none == 0 ? 0 : BATCH, none == 1 ? 0 : HEADS,
                                                            none == 2 ? 0 : QUERIES, none == 3 ? 0 : KEYS, DIM, -2, 1);
            args.accumulate = accumulate;
            nrg_relative_args to_scores = args, to_values = args, back = args;
            to_scores.scores = scores;
            to_values.o = o;
            to_values.ends = ends;
            back.d_table = d_table;
            ck_assert_int_eq(nrg_relative_scores(&to_scores, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_relative_values(&to_values, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_relative_backward(&back, 0, 1), NRG_OK);
            const int has_rows = none == 3;
            for (int i = 0; i < ROWS * KEYS; i++)
                ck_assert(scores[i] == 3);
            for (int i = 0; i < ROWS * DIM; i++)
                ck_assert(o[i] == (has_rows && !accumulate ? 0 : 3));
            for (int i = 0; i < ROWS * 2; i++)
                ck_assert(ends[i] == (has_rows ? 0 : 3));
            for (int i = 0; i < CLASSES * DIM; i++)
                ck_assert(d_table[i] == (accumulate ? 3 : 0));
        }
}
END_TEST

/* ---- rows beside each other ---- */

/* Weights and output of a query in one row of memory. */
START_TEST(interleaved)
{
    enum { BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, DIM = 5, ROW = KEYS + DIM };
    float rows[BATCH * HEADS * QUERIES * ROW] = {0}, table[4 * DIM] = {0};
    nrg_relative_args args = nrg_relative_args_init(NRG_F32, BATCH, HEADS, QUERIES, KEYS, DIM, -2, 1);
    args.a_strides = (nrg_head_strides){
        .row = sizeof(float[ROW]), .head = QUERIES * sizeof(float[ROW]), .batch = HEADS * QUERIES * sizeof(float[ROW])};
    args.o_strides = args.a_strides;
    args.table = table;
    args.a = rows;
    args.o = rows + KEYS;
    ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
    args.o = rows + KEYS - 1;
    ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_ERR_OVERLAP);
}
END_TEST

/* ---- positions at the end of what they may be ---- */

START_TEST(far_positions)
{
    static const int64_t limit = (int64_t)1 << 60;
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    const float q[4] = {1, 2, 3, 4}, r[2 * 2] = {10, 20, 30, 40};
    for (size_t path = 0; path < path_count; path++) {
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        for (int far = -1; far <= 1; far += 2) {
            float scores[2 * 3] = {7}, o[4] = {7, 7, 7, 7}, d_r[4] = {7, 7, 7, 7}, weights[2 * 3] = {1, 2, 3, 4, 5, 6};
            double ends[4];
            nrg_relative_args args =
                nrg_relative_args_init(NRG_F32, 1, 1, 2, 3, 2, far * limit - (far > 0), far * limit + (far < 0));
            args.first_position = -far * limit;
            nrg_relative_args to_scores = args, to_values = args, back = args;
            to_scores.q = back.q = q;
            to_scores.table = to_values.table = r;
            to_scores.scores = scores;
            to_values.a = back.a = weights;
            to_values.o = o;
            to_values.ends = ends;
            back.ends_in = ends;
            back.d_table = d_r;
            /* all keys are at the nearer end: of p_min where distances are far below it */
            const float *row = far > 0 ? r : r + 2;
            ck_assert_int_eq(nrg_relative_scores(&to_scores, 0, 1), NRG_OK);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++)
                    ck_assert(scores[3 * i + j] == q[2 * i] * row[0] + q[2 * i + 1] * row[1]);
            ck_assert_int_eq(nrg_relative_values(&to_values, 0, 1), NRG_OK);
            ck_assert(o[0] == 6 * row[0] && o[1] == 6 * row[1] && o[2] == 15 * row[0] && o[3] == 15 * row[1]);
            ck_assert(ends[far > 0] == 6 && ends[2 + (far > 0)] == 15 && ends[far < 0] == 0 && ends[2 + (far < 0)] == 0);
            ck_assert_int_eq(nrg_relative_backward(&back, 0, 1), NRG_OK);
            const float *used = far > 0 ? d_r : d_r + 2, *unused = far > 0 ? d_r + 2 : d_r;
            ck_assert(used[0] == 6 * 1 + 15 * 3 && used[1] == 6 * 2 + 15 * 4 && unused[0] == 0 && unused[1] == 0);
        }
    }
}
END_TEST

/* ---- what nobody depends on ---- */

/* A class that no key has may hold anything, and so may an output that is not added to. */
START_TEST(nan_stays_where_it_is)
{
    enum { QUERIES = 6, KEYS = 5, DIM = 33, CLASSES = 40 };
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t path = 0; path < path_count; path++) {
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        for (int bad = 0; bad < CLASSES; bad++) {
            static float q[QUERIES * DIM], r[CLASSES * DIM], a[QUERIES * KEYS], scores[QUERIES * KEYS], o[QUERIES * DIM];
            for (int i = 0; i < QUERIES * DIM; i++)
                q[i] = o[i] = 1;
            for (int i = 0; i < CLASSES * DIM; i++)
                r[i] = i / DIM == bad ? INFINITY : 1;
            for (int i = 0; i < QUERIES * KEYS; i++)
                a[i] = scores[i] = -1;
            nrg_relative_args args = nrg_relative_args_init(NRG_F32, 1, 1, QUERIES, KEYS, DIM, -20, 19);
            args.first_position = 0;
            args.accumulate = 1;
            args.table = r;
            nrg_relative_args to_values = args;
            args.q = q;
            args.scores = scores;
            to_values.a = a;
            to_values.o = o;
            ck_assert_int_eq(nrg_relative_scores(&args, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_relative_values(&to_values, 0, 1), NRG_OK);
            for (int i = 0; i < QUERIES; i++) {
                const int j = i - (bad - 20), has = j >= 0 && j < KEYS;
                for (int key = 0; key < KEYS; key++)
                    ck_assert(scores[i * KEYS + key] == (key == j ? INFINITY : DIM - 1));
                for (int c = 0; c < DIM; c++)
                    ck_assert(o[i * DIM + c] == (has ? -INFINITY : 1 - KEYS));
            }
        }
        for (int bad = 0; bad < QUERIES; bad++) {
            static float q[QUERIES * DIM], a[QUERIES * KEYS], d_r[CLASSES * DIM]; /* of the round before: replaced */
            for (int i = 0; i < QUERIES * DIM; i++)
                q[i] = i / DIM == bad ? INFINITY : 1;
            for (int i = 0; i < QUERIES * KEYS; i++)
                a[i] = 1;
            nrg_relative_args args = nrg_relative_args_init(NRG_F32, 1, 1, QUERIES, KEYS, DIM, -20, 19);
            args.first_position = 0;
            args.q = q;
            args.a = a;
            args.d_table = d_r;
            ck_assert_int_eq(nrg_relative_backward(&args, 0, 1), NRG_OK);
            for (int c = 0; c < CLASSES; c++) {
                int count = 0, j = bad - (c - 20);
                for (int i = 0; i < QUERIES; i++)
                    count += i - (c - 20) >= 0 && i - (c - 20) < KEYS;
                for (int d = 0; d < DIM; d++)
                    ck_assert(d_r[c * DIM + d] == (j >= 0 && j < KEYS ? INFINITY : (float)count));
            }
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("relative position representations");
    tcase_add_loop_test(test_case(suite, "sums"), order_of_the_sums, 0, 3);
    TCase *cases = test_case(suite, "cases");
    tcase_add_test(cases, nothing_to_add_up);
    tcase_add_test(cases, interleaved);
    tcase_add_test(cases, far_positions);
    tcase_add_test(cases, nan_stays_where_it_is);
    return test_run(suite);
}
