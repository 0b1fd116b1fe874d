/* nrg/relative_shift.h: every path gives the bits of scalar; the shift is what the papers' own way of shifting gives; the
 * backward passes are the adjoints of the forward ones.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"
#include "../harness/element.h"
#include "../harness/quad.h"

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

/* ---- the shift, paths against scalar ---- */

enum { IN, OUT, SHIFT_OPERANDS };

typedef struct shift_problem {
    nrg_relative_shift_args args;
    int backward;
} shift_problem;

static nrg_head_strides strides_of(size_t outer, const call_operand *o)
{
    return (nrg_head_strides){outer * o->group_stride, o->group_stride, o->stride};
}

static nrg_status shift_share(void *context, const call_operand *all, int ith, int nth)
{
    const shift_problem *p = context;
    nrg_relative_shift_args args = p->args;
    if (p->backward) {
        args.d_scores = all[IN].at;
        args.d_scores_strides = strides_of(args.heads, &all[IN]);
        args.dx = all[OUT].at;
        args.dx_strides = strides_of(args.heads, &all[OUT]);
        return nrg_relative_shift_backward(&args, ith, nth);
    }
    args.x = all[IN].at;
    args.x_strides = strides_of(args.heads, &all[IN]);
    args.scores = all[OUT].at;
    args.scores_strides = strides_of(args.heads, &all[OUT]);
    return nrg_relative_shift(&args, ith, nth);
}

static void vary_shift_store(void *context, uint64_t draw) { ((shift_problem *)context)->args.store = (nrg_store)(draw % 3); }

static call_operand tensor(const char *name, nrg_dtype dtype, size_t rows, size_t group, size_t dim, call_role role)
{
    return (call_operand){.name = name,
                          .type = (int)dtype,
                          .role = role,
                          .rows = rows,
                          .dim = dim,
                          .group = group,
                          .padded = 1,
                          .turned = 1,
                          .fused = 1};
}

static void sweep_shift(shift_problem p, uint64_t seed, int layouts)
{
    const nrg_relative_shift_args *args = &p.args;
    const size_t rows = args->batch * args->heads * args->queries;
    const call_operand operands[SHIFT_OPERANDS] = {
        [IN] = tensor("in", args->dtype, rows, args->queries, p.backward ? args->keys : args->rel, CALL_INPUT),
        [OUT] = tensor("out", args->dtype, rows, args->queries, p.backward ? args->rel : args->keys,
                       args->accumulate ? CALL_INOUT : CALL_OUTPUT),
    };
    char text[160];
    snprintf(text, sizeof text, "%s, b %zu h %zu q %zu k %zu rel %zu shift %d%s", p.backward ? "backward" : "forward",
             args->batch, args->heads, args->queries, args->keys, args->rel, (int)args->shift, args->accumulate ? ", added" : "");
    const call_case c = {.op = "relative_shift",
                         .text = text,
                         .dtype = args->dtype,
                         .run = {shift_share},
                         .context = &p,
                         .operands = operands,
                         .count = SHIFT_OPERANDS,
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_shift_store};
    call_sweep(&c);
}

START_TEST(any_shift)
{
    uint64_t state = test_mix((uint64_t)_i);
    for (int i = 0; i < (test_small() ? 50 : 600); i++) {
        const size_t queries = 1 + test_draw(&state, 9), keys = 1 + test_draw(&state, test_draw(&state, 4) ? 40 : 330);
        const size_t batch = 1 + test_draw(&state, 2), heads = 1 + test_draw(&state, 3), how = test_draw(&state, 4);
        shift_problem p = {.backward = (int)test_draw(&state, 2)};
        if (how == 0)
            p.args = nrg_transformer_xl_shift_args(batch, heads, queries, keys);
        else if (how == 1)
            p.args = nrg_xlnet_shift_args(batch, heads, queries, keys);
        else
            p.args = nrg_relative_shift_args_init(batch, heads, queries, keys, 1 + test_draw(&state, 60),
                                                  (int64_t)test_draw(&state, 120) - 60);
        p.args.dtype = dtypes[_i];
        p.args.accumulate = test_draw(&state, 2) == 0;
        sweep_shift(p, test_mix(state), 4);
    }
}
END_TEST

/* Too large for the cache, so that it is streamed without being told. */
START_TEST(large_shift)
{
    const size_t queries = test_small() ? 40 : 620;
    for (int backward = 0; backward < 2; backward++) {
        shift_problem p = {nrg_xlnet_shift_args(1, 2, queries, queries + 13), backward};
        p.args.dtype = dtypes[_i];
        sweep_shift(p, (uint64_t)backward, 2);
    }
}
END_TEST

/* ---- the bias pair, paths against scalar ---- */

enum { Q, U, V, O_U, O_V, BIAS_OPERANDS };
enum { D_O_U, D_O_V, DQ, DU, DV, BIAS_BACKWARD_OPERANDS };

static nrg_head_strides token_strides(const nrg_head_bias_args *args, const call_operand *o)
{
    return (nrg_head_strides){args->rows * o->group_stride, o->stride, o->group_stride};
}

static nrg_status bias_share(void *context, const call_operand *all, int ith, int nth)
{
    nrg_head_bias_args args = *(const nrg_head_bias_args *)context;
    args.q = all[Q].at;
    args.u = all[U].at;
    args.v = all[V].at;
    args.o_u = all[O_U].at;
    args.o_v = all[O_V].at;
    args.q_strides = token_strides(&args, &all[Q]);
    args.o_u_strides = token_strides(&args, &all[O_U]);
    args.o_v_strides = token_strides(&args, &all[O_V]);
    return nrg_head_bias_pair(&args, ith, nth);
}

static nrg_status bias_backward_share(void *context, const call_operand *all, int ith, int nth)
{
    nrg_head_bias_args args = *(const nrg_head_bias_args *)context;
    args.d_o_u = all[D_O_U].at;
    args.d_o_v = all[D_O_V].at;
    args.dq = all[DQ].at;
    args.du = all[DU].at;
    args.dv = all[DV].at;
    args.d_o_u_strides = token_strides(&args, &all[D_O_U]);
    args.d_o_v_strides = token_strides(&args, &all[D_O_V]);
    args.dq_strides = token_strides(&args, &all[DQ]);
    return nrg_head_bias_pair_backward(&args, ith, nth);
}

static void vary_bias_store(void *context, uint64_t draw) { ((nrg_head_bias_args *)context)->store = (nrg_store)(draw % 3); }

static void sweep_bias(nrg_head_bias_args args, uint64_t seed, int layouts)
{
    const nrg_dtype bias_dtype = args.bias_dtype ? args.bias_dtype : args.dtype;
    const size_t rows = args.batch * args.rows * args.heads;
    call_operand operands[BIAS_OPERANDS] = {
        [Q] = tensor("q", args.dtype, rows, args.heads, args.dim, CALL_INPUT),
        [U] = {.name = "u", .type = (int)bias_dtype, .rows = 1, .dim = args.heads * args.dim},
        [V] = {.name = "v", .type = (int)bias_dtype, .rows = 1, .dim = args.heads * args.dim},
        [O_U] = tensor("o_u", args.dtype, rows, args.heads, args.dim, CALL_OUTPUT),
        [O_V] = tensor("o_v", args.dtype, rows, args.heads, args.dim, CALL_OUTPUT),
    };
    operands[O_U].over = operands[O_V].over = CALL_OVER(Q);
    operands[O_U].optional = operands[O_V].optional = 1;
    char text[120];
    snprintf(text, sizeof text, "b %zu h %zu rows %zu d %zu%s", args.batch, args.heads, args.rows, args.dim,
             args.bias_dtype == NRG_F32 ? ", f32 biases" : "");
    const call_case c = {.op = "head_bias_pair",
                         .text = text,
                         .dtype = args.dtype,
                         .run = {bias_share},
                         .context = &args,
                         .operands = operands,
                         .count = BIAS_OPERANDS,
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_bias_store};
    call_sweep(&c);
}

/* absent: 1: no d_o_u, 2: no d_o_v */
static void sweep_bias_backward(nrg_head_bias_args args, size_t absent, uint64_t seed, int layouts)
{
    const size_t rows = args.batch * args.rows * args.heads, columns = args.heads * args.dim;
    const call_role sum = args.accumulate ? CALL_INOUT : CALL_OUTPUT;
    call_operand operands[BIAS_BACKWARD_OPERANDS] = {
        [D_O_U] = tensor("d_o_u", absent == 1 ? NRG_DTYPE_SAME : args.dtype, rows, args.heads, args.dim, CALL_INPUT),
        [D_O_V] = tensor("d_o_v", absent == 2 ? NRG_DTYPE_SAME : args.dtype, rows, args.heads, args.dim, CALL_INPUT),
        [DQ] = tensor("dq", args.dtype, rows, args.heads, args.dim, CALL_OUTPUT),
        [DU] = {.name = "du", .role = sum, .type = NRG_F32, .rows = 1, .dim = columns, .optional = sum == CALL_OUTPUT},
        [DV] = {.name = "dv", .role = sum, .type = NRG_F32, .rows = 1, .dim = columns, .optional = sum == CALL_OUTPUT},
    };
    operands[DQ].over = CALL_OVER(D_O_U) | CALL_OVER(D_O_V);
    operands[DQ].optional = 1;
    char text[120];
    snprintf(text, sizeof text, "b %zu h %zu rows %zu d %zu%s", args.batch, args.heads, args.rows, args.dim,
             args.accumulate ? ", added" : "");
    const call_case c = {.op = "head_bias_pair_backward",
                         .text = text,
                         .dtype = args.dtype,
                         .run = {bias_backward_share},
                         .context = &args,
                         .operands = operands,
                         .count = BIAS_BACKWARD_OPERANDS,
                         .work = (columns + 31) / 32,
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_bias_store};
    call_sweep(&c);
}

START_TEST(any_bias)
{
    uint64_t state = test_mix((uint64_t)_i);
    for (int i = 0; i < (test_small() ? 36 : 400); i++) {
        nrg_head_bias_args args =
            nrg_head_bias_args_init(1 + test_draw(&state, 2), 1 + test_draw(&state, 4), 1 + test_draw(&state, 11),
                                    1 + test_draw(&state, test_draw(&state, 3) ? 70 : 400));
        args.dtype = dtypes[_i];
        args.bias_dtype = test_draw(&state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
        args.accumulate = test_draw(&state, 2) == 0;
        sweep_bias(args, test_mix(state), 4);
        sweep_bias_backward(args, test_draw(&state, 8), test_mix(state), 4);
    }
}
END_TEST

START_TEST(large_bias)
{
    nrg_head_bias_args args = nrg_head_bias_args_init(2, 3, test_small() ? 30 : 600, 459);
    args.dtype = dtypes[_i];
    sweep_bias(args, 1, 2);
    sweep_bias_backward(args, 0, 2, 2);
}
END_TEST

START_TEST(sweeps_met_everything)
{
    call_check_account("relative_shift");
    call_check_account("head_bias_pair");
    call_check_account("head_bias_pair_backward");
}
END_TEST

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
                nrg_relative_shift_args xl = nrg_transformer_xl_shift_args(1, 1, queries, keys);
                xl.x = x;
                xl.scores = got;
                ck_assert_int_eq(nrg_relative_shift(&xl, 0, 1), NRG_OK);
                shift_by_padding(x, queries, keys, expected);
                for (size_t i = 0; i < queries; i++)
                    for (size_t j = 0; j < keys; j++) /* beyond the query itself: masked there, nothing here */
                        ck_assert(got[i * keys + j] == (j <= i + keys - queries ? expected[i * keys + j] : 0));

                nrg_relative_shift_args both = nrg_xlnet_shift_args(1, 1, queries, keys);
                both.x = x;
                both.scores = got;
                ck_assert_int_eq(nrg_relative_shift(&both, 0, 1), NRG_OK);
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
        nrg_relative_shift_args args =
            xlnet ? nrg_xlnet_shift_args(1, 1, QUERIES, KEYS) : nrg_transformer_xl_shift_args(1, 1, QUERIES, KEYS);
        for (size_t i = 0; i < QUERIES; i++)
            for (size_t c = 0; c < args.rel; c++)
                x[i * args.rel + c] = (float)(xlnet ? KEYS : KEYS - 1) - (float)c;
        args.x = x;
        args.scores = scores;
        ck_assert_int_eq(nrg_relative_shift(&args, 0, 1), NRG_OK);
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
            nrg_relative_shift_args_init(1, 2, queries, keys, rel, (int64_t)test_draw(&state, 30) - 12);
        float x[2 * 6 * 16], scores[2 * 6 * 12], d_scores[2 * 6 * 12], dx[2 * 6 * 16];
        for (size_t i = 0; i < 2 * 6 * 16; i++)
            x[i] = (float)(test_mix(state + i) % 2001) / 1000 - 1;
        for (size_t i = 0; i < 2 * 6 * 12; i++)
            d_scores[i] = (float)(test_mix(state + i + 1000) % 2001) / 1000 - 1;
        args.x = x;
        args.scores = scores;
        args.d_scores = d_scores;
        args.dx = dx;
        ck_assert_int_eq(nrg_relative_shift(&args, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_relative_shift_backward(&args, 0, 1), NRG_OK);
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
            nrg_head_bias_args args = nrg_head_bias_args_init(4, 2, ROWS / 4, DIM / 2);
            args.d_o_u = d_o_u;
            args.d_o_v = d_o_v;
            args.dq = dq;
            args.du = du;
            args.dv = dv;
            args.accumulate = accumulate;
            ck_assert_int_eq(nrg_head_bias_pair_backward(&args, 0, 1), NRG_OK);
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

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    call_start();
    Suite *suite = suite_create("relative shift and bias pair");
    TCase *sweeps = test_case(suite, "paths against scalar");
    tcase_add_loop_test(sweeps, any_shift, 0, 3);
    tcase_add_loop_test(sweeps, large_shift, 0, 3);
    tcase_add_loop_test(sweeps, any_bias, 0, 3);
    tcase_add_loop_test(sweeps, large_bias, 0, 3);
    TCase *truth = test_case(suite, "against the papers");
    tcase_add_test(truth, as_the_papers_do);
    tcase_add_test(truth, distances);
    tcase_add_test(truth, adjoint_shift);
    tcase_add_test(truth, sums_of_rows);
    tcase_add_test(test_case(suite, "account"), sweeps_met_everything);
    return test_run(suite);
}
