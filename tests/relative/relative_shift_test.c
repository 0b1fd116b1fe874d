/* nrg/relative_shift.h: the shift is what the papers' own way of shifting gives; the backward passes are the adjoints of the
 * forward ones; sums of nothing.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad.h"
#include "../harness/rows.h"

/* ---- the papers' way: rows shift because a matrix with one column more or less is read as one of another shape ---- */

/* Transformer-XL, appendix B: a column of zeros before the others; as a matrix of queries columns; without its first row; as a
 * matrix of rel columns again. */
static void shift_by_padding(const float *x, size_t queries, size_t rel, float *shifted)
{
    float *padded = malloc(queries * (rel + 1) * sizeof *padded);
    ck_assert_ptr_nonnull(padded);
    for (size_t i = 0; i < queries; i++) {
        padded[i * (rel + 1)] = 0;
        memcpy(padded + i * (rel + 1) + 1, x + i * rel, rel * sizeof *x);
    }
    memcpy(shifted, padded + queries, queries * rel * sizeof *x);
    free(padded);
}

/* XLNet: the matrix [queries, rel] read as [rel, queries], without its first row, read as [queries, rel - 1], the first keys
 * columns. */
static void shift_by_reading(const float *x, size_t queries, size_t keys, size_t rel, float *shifted)
{
    const float *without = x + queries;
    for (size_t i = 0; i < queries; i++)
        for (size_t j = 0; j < keys; j++)
            shifted[i * keys + j] = without[i * (rel - 1) + j];
}

START_TEST(as_the_papers_do)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t queries = 1; queries < 9; queries++)
        for (size_t keys = queries; keys < queries + 20; keys += 1 + keys / 8)
            for (size_t path = 0; path < path_count; path++) {
                float x[8 * 64], expected[8 * 64], got[8 * 64];
                for (size_t i = 0; i < sizeof x / sizeof *x; i++)
                    x[i] = (float)i + 1;
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                nrg_relative_shift_args xl = nrg_relative_shift_args_transformer_xl(NRG_F32, 1, 1, queries, keys);
                xl.x = x;
                xl.scores = got;
                ck_assert_int_eq(nrg_relative_shift_forward(&xl, 0, 1), NRG_OK);
                shift_by_padding(x, queries, keys, expected);
                for (size_t i = 0; i < queries; i++)
                    for (size_t j = 0; j < keys; j++) /* beyond the query itself: masked there, nothing here */
                        ck_assert(got[i * keys + j] == (j <= i + keys - queries ? expected[i * keys + j] : 0));

                nrg_relative_shift_args both = nrg_relative_shift_args_xlnet(NRG_F32, 1, 1, queries, keys);
                both.x = x;
                both.scores = got;
                ck_assert_int_eq(nrg_relative_shift_forward(&both, 0, 1), NRG_OK);
                shift_by_reading(x, queries, keys, queries + keys, expected);
                ck_assert_mem_eq(got, expected, queries * keys * sizeof *got);
            }
}
END_TEST

/* What comes out is the term of the distance: column c of x holds the distance it is for. */
START_TEST(distances)
{
    enum { QUERIES = 5, KEYS = 9 };
    float x[QUERIES * (QUERIES + KEYS)], scores[QUERIES * KEYS];
    for (int xlnet = 0; xlnet < 2; xlnet++) {
        nrg_relative_shift_args args = xlnet ? nrg_relative_shift_args_xlnet(NRG_F32, 1, 1, QUERIES, KEYS)
                                             : nrg_relative_shift_args_transformer_xl(NRG_F32, 1, 1, QUERIES, KEYS);
        for (size_t i = 0; i < QUERIES; i++)
            for (size_t c = 0; c < args.rel; c++)
                x[i * args.rel + c] = (float)(xlnet ? KEYS : KEYS - 1) - (float)c;
        args.x = x;
        args.scores = scores;
        ck_assert_int_eq(nrg_relative_shift_forward(&args, 0, 1), NRG_OK);
        for (int i = 0; i < QUERIES; i++)
            for (int j = 0; j < KEYS; j++) {
                const int distance = KEYS - QUERIES + i - j;
                ck_assert(scores[i * KEYS + j] == (float)(distance >= 0 || xlnet ? distance : 0));
            }
    }
}
END_TEST

/* ---- ⟨d_scores, shift(x)⟩ = ⟨backward(d_scores), x⟩: every product in one sum is in the other ---- */

START_TEST(adjoint_shift)
{
    uint64_t state = 1;
    for (int n = 0; n < 200; n++) {
        const size_t queries = 1 + test_draw(&state, 6), keys = 1 + test_draw(&state, 12), rel = 1 + test_draw(&state, 16);
        nrg_relative_shift_args args =
            nrg_relative_shift_args_init(NRG_F32, 1, 2, queries, keys, rel, (int64_t)test_draw(&state, 30) - 12);
        float x[2 * 6 * 16], scores[2 * 6 * 12], d_scores[2 * 6 * 12], dx[2 * 6 * 16];
        for (size_t i = 0; i < 2 * 6 * 16; i++)
            x[i] = (float)(test_mix(state + i) % 2001) / 1000 - 1;
        for (size_t i = 0; i < 2 * 6 * 12; i++)
            d_scores[i] = (float)(test_mix(state + i + 1000) % 2001) / 1000 - 1;
        nrg_relative_shift_args back = args;
        args.x = x;
        args.scores = scores;
        back.d_scores = d_scores;
        back.dx = dx;
        ck_assert_int_eq(nrg_relative_shift_forward(&args, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_relative_shift_backward(&back, 0, 1), NRG_OK);
        quad forward = 0, backward = 0;
        for (size_t i = 0; i < 2 * queries * keys; i++)
            forward += (quad)d_scores[i] * scores[i];
        for (size_t i = 0; i < 2 * queries * rel; i++)
            backward += (quad)dx[i] * x[i];
        /* products of floats, and sums of 200 of them, are exact in 113 bits */
        ck_assert(forward == backward);
    }
}
END_TEST

/* ---- sums of the bias pair against exact ones ---- */

static int is_rounded(float got, quad exact, double slack)
{
    const float nearest = (float)exact;
    return isinf(nearest) ? got == nearest
                          : (double)quad_abs(exact - (quad)got) <= 0.5001 * element_ulp((double)exact, NRG_F32) + slack;
}

START_TEST(sums_of_rows)
{
    enum { ROWS = 1000, DIM = 70 };
    static float d_o_u[ROWS * DIM], d_o_v[ROWS * DIM], dq[ROWS * DIM], du[DIM], dv[DIM];
    for (size_t kind = 0; kind < ROW_STRESS_KINDS; kind++) {
        for (size_t c = 0; c < DIM; c++) {
            float column[ROWS];
            row_fill(column, ROWS, (enum row_kind)kind, NRG_F32, kind * DIM + c);
            for (size_t i = 0; i < ROWS; i++) {
                d_o_u[i * DIM + c] = column[i];
                d_o_v[i * DIM + c] = column[ROWS - 1 - i];
            }
            du[c] = dv[c] = column[7];
        }
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            quad before[DIM];
            for (size_t c = 0; c < DIM; c++)
                before[c] = accumulate ? (quad)du[c] : 0;
            float dv_before[DIM];
            memcpy(dv_before, dv, sizeof dv);
            nrg_head_bias_args args = nrg_head_bias_args_init(NRG_F32, 4, 2, ROWS / 4, DIM / 2);
            args.d_o_u = d_o_u;
            args.d_o_v = d_o_v;
            args.dq = dq;
            args.du = du;
            args.dv = dv;
            args.accumulate = accumulate;
            ck_assert_int_eq(nrg_head_bias_backward(&args, 0, 1), NRG_OK);
            for (size_t c = 0; c < DIM; c++) {
                quad u = before[c], v = accumulate ? (quad)dv_before[c] : 0, sizes = quad_abs(u) + quad_abs(v);
                for (size_t i = 0; i < ROWS; i++) {
                    u += (quad)d_o_u[i * DIM + c];
                    v += (quad)d_o_v[i * DIM + c];
                    sizes += quad_abs((quad)d_o_u[i * DIM + c]) + quad_abs((quad)d_o_v[i * DIM + c]);
                    ck_assert(dq[i * DIM + c] == d_o_u[i * DIM + c] + d_o_v[i * DIM + c]);
                }
                ck_assert(is_rounded(du[c], u, 0x1p-53 * ROWS * (double)sizes));
                ck_assert(is_rounded(dv[c], v, 0x1p-53 * ROWS * (double)sizes));
            }
        }
    }
}
END_TEST

/* ---- what has no terms, and what lies beside each other ---- */

START_TEST(nothing_to_add_up)
{
    enum { BATCH = 2, HEADS = 2, QUERIES = 3, COLUMNS = 4, DIM = 5 };
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const float left = accumulate ? 3 : 0;
        float scores[BATCH * HEADS * QUERIES * COLUMNS], dx[BATCH * HEADS * QUERIES * COLUMNS], du[HEADS * DIM], dv[HEADS * DIM];
        for (size_t i = 0; i < sizeof dx / sizeof *dx; i++)
            scores[i] = dx[i] = du[i % (HEADS * DIM)] = dv[i % (HEADS * DIM)] = 3;
        nrg_relative_shift_args forward = nrg_relative_shift_args_init(NRG_F32, BATCH, HEADS, QUERIES, COLUMNS, 0, 2);
        forward.scores = scores;
        forward.accumulate = accumulate;
        ck_assert_int_eq(nrg_relative_shift_forward(&forward, 0, 1), NRG_OK);
        nrg_relative_shift_args backward = nrg_relative_shift_args_init(NRG_F32, BATCH, HEADS, QUERIES, 0, COLUMNS, 2);
        backward.dx = dx;
        backward.accumulate = accumulate;
        ck_assert_int_eq(nrg_relative_shift_backward(&backward, 0, 1), NRG_OK);
        for (size_t i = 0; i < sizeof dx / sizeof *dx; i++)
            ck_assert(scores[i] == left && dx[i] == left);
        nrg_head_bias_args pair = nrg_head_bias_args_init(NRG_F32, BATCH, HEADS, 0, DIM);
        pair.du = du;
        pair.dv = dv;
        pair.accumulate = accumulate;
        ck_assert_int_eq(nrg_head_bias_backward(&pair, 0, 1), NRG_OK);
        for (size_t i = 0; i < HEADS * DIM; i++)
            ck_assert(du[i] == left && dv[i] == left);
    }
}
END_TEST

/* q, q + u and q + v: three slices of every token. Both sums in the place of q are one too many. */
START_TEST(slices_of_a_token)
{
    enum { BATCH = 2, HEADS = 2, ROWS = 3, DIM = 5, SLICE = HEADS * DIM };
    float tokens[BATCH * ROWS * 3 * SLICE] = {0}, bias[SLICE] = {0};
    nrg_head_bias_args args = nrg_head_bias_args_init(NRG_F32, BATCH, HEADS, ROWS, DIM);
    args.q_strides =
        (nrg_head_strides){.row = sizeof(float[3 * SLICE]), .head = sizeof(float[DIM]), .batch = ROWS * sizeof(float[3 * SLICE])};
    args.o_u_strides = args.o_v_strides = args.q_strides;
    args.u = args.v = bias;
    args.q = tokens;
    args.o_u = tokens + SLICE;
    args.o_v = tokens + 2 * SLICE;
    ck_assert_int_eq(nrg_head_bias_forward(&args, 0, 1), NRG_OK);
    args.o_u = args.o_v = tokens;
    ck_assert_int_eq(nrg_head_bias_forward(&args, 0, 1), NRG_ERR_OVERLAP);
}
END_TEST

/* Biases in f32 beside bf16, whatever the bits of their NaNs: rounded like a number, those whose bits are all set would become
 * zeros. */
START_TEST(nans_of_a_bias)
{
    enum { ROWS = 2, DIM_MOST = 200 };
    static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff80ffff};
    static _Alignas(64) uint16_t q[ROWS * DIM_MOST], o[ROWS * DIM_MOST];
    static float bias[DIM_MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < DIM_MOST; i++)
        memcpy(&bias[i], &nans[i % 4], sizeof bias[i]);
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (size_t dim = 1; dim <= DIM_MOST; dim++)
            for (int stream = 0; stream < 2; stream++) {
                nrg_head_bias_args args = nrg_head_bias_args_init(NRG_BF16, 1, 1, ROWS, dim);
                args.bias_dtype = NRG_F32;
                args.store = stream ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                args.q = q;
                args.u = bias;
                args.o_u = o;
                ck_assert_int_eq(nrg_head_bias_forward(&args, 0, 1), NRG_OK);
                for (size_t i = 0; i < ROWS * dim; i++)
                    if (!isnan(element_get(o, i, NRG_BF16)))
                        ck_abort_msg("%s, %zu elements, streamed %d: element %zu is %g and no NaN", nrg_isa_name(paths[p]), dim,
                                     stream, i, (double)element_get(o, i, NRG_BF16));
            }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("relative shift and bias pair");
    TCase *truth = test_case(suite, "against the papers");
    tcase_add_test(truth, as_the_papers_do);
    tcase_add_test(truth, distances);
    tcase_add_test(truth, adjoint_shift);
    tcase_add_test(truth, sums_of_rows);
    TCase *cases = test_case(suite, "cases");
    tcase_add_test(cases, nothing_to_add_up);
    tcase_add_test(cases, slices_of_a_token);
    tcase_add_test(cases, nans_of_a_bias);
    return test_run(suite);
}
