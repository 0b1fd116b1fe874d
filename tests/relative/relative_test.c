/* nrg/relative.h: every path gives the bits of scalar, for all lengths, ranges of distances, dtypes, strides and shares, with one
 * table or one for each head, with the ends kept or not; and what the sweeps cannot see of the definition.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"
#include "../harness/element.h"

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

enum { Q, A, TABLE, SCORES, O, D_TABLE, ENDS, OPERANDS };

typedef enum operation { RUN_SCORES, RUN_VALUES, RUN_BACKWARD } operation;

static const char *const names[] = {"relative_scores", "relative_values", "relative_backward"};

typedef nrg_status relative_call(const nrg_relative_args *args, int ith, int nth);
static relative_call *const calls[] = {nrg_relative_scores, nrg_relative_values, nrg_relative_backward};

typedef struct problem {
    nrg_relative_args args; /* shape and options; no pointers, no strides */
    operation run;
    int per_head;
    int spread;       /* q and a of numbers whose sums round in double, so that their order shows */
    int hand_on_ends; /* backward: as vary() has chosen */
} problem;

static size_t classes_of(const problem *p) { return (size_t)(p->args.p_max - p->args.p_min) + 1; }

static nrg_head_strides strides_of(const problem *p, const call_operand *o)
{
    return (nrg_head_strides){p->args.heads * o->group_stride, o->group_stride, o->stride};
}

/* A stride between tables of 0 would say that there is only one. */
static size_t table_head_stride(const problem *p, const call_operand *o)
{
    if (!p->per_head)
        return 0;
    return o->group_stride ? o->group_stride : classes_of(p) * p->args.dim * nrg_dtype_size((nrg_dtype)o->type);
}

static nrg_status run_share(void *context, const call_operand *all, int ith, int nth)
{
    const problem *p = context;
    nrg_relative_args args = p->args;
    args.q = all[Q].at;
    args.a = all[A].at;
    args.table = all[TABLE].at;
    args.scores = all[SCORES].at;
    args.o = all[O].at;
    args.d_table = all[D_TABLE].at;
    args.ends = p->run == RUN_BACKWARD && !p->hand_on_ends ? NULL : all[ENDS].at;
    args.q_strides = strides_of(p, &all[Q]);
    args.a_strides = strides_of(p, &all[A]);
    args.scores_strides = strides_of(p, &all[SCORES]);
    args.o_strides = strides_of(p, &all[O]);
    args.table_stride = all[TABLE].stride;
    args.d_table_stride = all[D_TABLE].stride;
    args.table_head_stride = table_head_stride(p, &all[TABLE]);
    args.d_table_head_stride = table_head_stride(p, &all[D_TABLE]);
    return calls[p->run](&args, ith, nth);
}

static void vary(void *context, uint64_t draw) { ((problem *)context)->hand_on_ends = draw % 2; }

static size_t rows_of(const problem *p) { return p->args.batch * p->args.heads * p->args.queries; }

static call_operand tensor(const char *name, int there, nrg_dtype dtype, const problem *p, size_t dim, call_role role)
{
    return (call_operand){.name = name,
                          .type = there ? (int)dtype : 0,
                          .role = role,
                          .rows = rows_of(p),
                          .dim = dim,
                          .group = p->args.queries,
                          .padded = 1,
                          .turned = 1,
                          .fused = 1};
}

static call_operand table(const char *name, int there, nrg_dtype dtype, const problem *p, call_role role)
{
    const size_t classes = classes_of(p);
    return (call_operand){.name = name,
                          .type = there ? (int)dtype : 0,
                          .role = role,
                          .rows = p->per_head ? p->args.heads * classes : classes,
                          .dim = p->args.dim,
                          .group = classes,
                          .padded = 1,
                          .turned = p->per_head};
}

/* The ends of a, for backward: those that nrg_relative_values keeps. */
static double *find_ends(const problem *p, const void *a)
{
    const size_t rows = rows_of(p), zero_bytes = (p->args.dim + 1) * sizeof(float);
    double *ends = malloc((2 * rows + 1) * sizeof *ends);
    float *o = malloc((rows * p->args.dim + 1) * sizeof *o), *zeros = calloc(classes_of(p), zero_bytes);
    ck_assert(ends && o && zeros);
    nrg_relative_args args = p->args;
    args.a = a;
    args.table = zeros;
    args.o = o;
    args.ends = ends;
    args.table_dtype = NRG_F32;
    args.accumulate = 0;
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
    free(o);
    free(zeros);
    return ends;
}

/* Rows of a or q. Numbers of one size, or of all sizes, add up in double without rounding, or to the largest of them: these lie
 * in between. */
static char *draw_rows(const problem *p, size_t dim, uint64_t seed)
{
    const nrg_dtype dtype = p->args.dtype;
    char *rows = malloc(rows_of(p) * dim * nrg_dtype_size(dtype) + 1);
    float *row = malloc((dim + 1) * sizeof *row);
    ck_assert(rows && row);
    for (size_t n = 0; n < rows_of(p); n++) {
        uint64_t state = test_mix(seed + n);
        row_fill(row, dim, test_draw(&state, 5) ? ROW_NORMAL : (enum row_kind)test_draw(&state, ROW_KINDS), dtype, state);
        for (size_t i = 0; i < dim; i++) {
            const int exponent = (int)test_draw(&state, dtype == NRG_F16 ? 20 : 60);
            element_set(rows, n * dim + i, dtype, p->spread ? ldexpf(row[i], exponent - (dtype == NRG_F16 ? 10 : 30)) : row[i]);
        }
    }
    free(row);
    return rows;
}

static void sweep(problem p, uint64_t seed)
{
    const nrg_relative_args *args = &p.args;
    const nrg_dtype dtype = args->dtype, table_dtype = args->table_dtype ? args->table_dtype : dtype;
    const call_role sum = args->accumulate ? CALL_INOUT : CALL_OUTPUT;
    const int backward = p.run == RUN_BACKWARD;
    call_operand operands[OPERANDS] = {
        [Q] = tensor("q", p.run != RUN_VALUES, dtype, &p, args->dim, CALL_INPUT),
        [A] = tensor("a", p.run != RUN_SCORES, dtype, &p, args->keys, CALL_INPUT),
        [TABLE] = table("table", !backward, table_dtype, &p, CALL_INPUT),
        [SCORES] = tensor("scores", p.run == RUN_SCORES, dtype, &p, args->keys, sum),
        [O] = tensor("o", p.run == RUN_VALUES, dtype, &p, args->dim, sum),
        [D_TABLE] = table("d_table", backward, NRG_F32, &p, sum),
        [ENDS] = {.name = "ends",
                  .type = p.run == RUN_SCORES ? 0 : CALL_F64,
                  .role = backward ? CALL_INPUT : CALL_OUTPUT,
                  .optional = !backward,
                  .rows = 1,
                  .dim = 2 * rows_of(&p)},
    };
    char *a = NULL, *q = NULL;
    double *ends = NULL;
    if (p.spread && p.run != RUN_VALUES)
        operands[Q].content = q = draw_rows(&p, args->dim, seed);
    if (p.run != RUN_SCORES && (p.spread || backward))
        operands[A].content = a = draw_rows(&p, args->keys, seed + 1000);
    if (backward)
        operands[ENDS].content = ends = find_ends(&p, a);
    char text[160];
    snprintf(text, sizeof text, "b %zu h %zu q %zu k %zu d %zu offset %d from %d to %d%s%s%s", args->batch, args->heads,
             args->queries, args->keys, args->dim, (int)args->query_offset, (int)args->p_min, (int)args->p_max,
             p.per_head ? ", a table for each head" : "", args->table_dtype == NRG_F32 ? ", f32 table" : "",
             args->accumulate ? ", added" : "");
    const size_t pieces = ((classes_of(&p) + 7) / 8) * ((args->dim + 63) / 64) * (p.per_head ? args->heads : 1);
    const call_case c = {.op = names[p.run],
                         .text = text,
                         .dtype = dtype,
                         .run = {run_share},
                         .context = &p,
                         .operands = operands,
                         .count = OPERANDS,
                         .work = backward ? pieces : rows_of(&p),
                         .seed = seed,
                         .vary = backward ? vary : NULL};
    call_sweep(&c);
    free(q);
    free(a);
    free(ends);
}

/* Distances: a few around some middle, none that is clipped, all that are clipped, one class only. */
static void draw_distances(nrg_relative_args *args, uint64_t *state)
{
    const int64_t nearest = args->query_offset + 1 - (int64_t)args->keys;
    const int64_t farthest = args->query_offset + (int64_t)args->queries - 1;
    const int64_t some = (int64_t)test_draw(state, 40) - 20, width = (int64_t)test_draw(state, 30);
    switch (test_draw(state, 6)) {
    case 0: /* wider than the tensor, by nothing or a little */
        args->p_min = nearest - (int64_t)test_draw(state, 3);
        args->p_max = farthest + (int64_t)test_draw(state, 3);
        if (args->p_max < args->p_min)
            args->p_max = args->p_min;
        return;
    case 1: /* all at one end, or nearly */
        args->p_min = farthest - (int64_t)test_draw(state, 4) + 2;
        args->p_max = args->p_min + width;
        return;
    case 2:
        args->p_max = nearest + (int64_t)test_draw(state, 4) - 2;
        args->p_min = args->p_max - width;
        return;
    case 3:
        args->p_min = args->p_max = some;
        return;
    default:
        args->p_min = some;
        args->p_max = some + width;
    }
}

static problem draw_problem(operation run, nrg_dtype dtype, uint64_t *state)
{
    static const size_t dims[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 72, 80, 127, 128, 129, 150, 192, 260};
    problem p;
    memset(&p, 0, sizeof p);
    p.run = run;
    p.args = nrg_relative_args_init(1 + test_draw(state, 2), 1 + test_draw(state, 3), 1 + test_draw(state, 12),
                                    1 + test_draw(state, test_draw(state, 4) ? 30 : 180),
                                    dims[test_draw(state, sizeof dims / sizeof dims[0])], 0, 0);
    if (run == RUN_BACKWARD && test_draw(state, 3) == 0)
        p.args.queries += 35;
    p.args.query_offset = (int64_t)test_draw(state, 3) * ((int64_t)test_draw(state, 40) - 20);
    draw_distances(&p.args, state);
    p.args.dtype = dtype;
    p.args.table_dtype = test_draw(state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    p.args.accumulate = test_draw(state, 2) == 0;
    p.per_head = test_draw(state, 2) == 0;
    p.spread = test_draw(state, 2) == 0;
    return p;
}

START_TEST(any_shape)
{
    const operation run = (operation)(_i % 3);
    const nrg_dtype dtype = dtypes[_i / 3];
    uint64_t state = test_mix((uint64_t)_i);
    for (int i = 0; i < (test_small() ? 60 : 400); i++) {
        const problem p = draw_problem(run, dtype, &state);
        sweep(p, test_mix(state));
    }
}
END_TEST

/* More slots than fit on the stack at once, of queries of one head and of several, with one segment of elements and with two. */
START_TEST(many_classes)
{
    const nrg_dtype dtype = dtypes[_i / 3];
    for (int i = 0; i < 6; i++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.run = (operation)(_i % 3);
        p.args = nrg_relative_args_init(2, 2, i < 3 ? 1 : 6, 200, i % 2 ? 24 : 150, -150, 150 - i);
        p.args.dtype = dtype;
        p.args.query_offset = i % 3 * 90;
        p.args.accumulate = i % 2;
        p.per_head = i == 4;
        sweep(p, (uint64_t)(_i * 10 + i));
    }
}
END_TEST

START_TEST(sweeps_met_everything) { call_check_account(names[_i]); }
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
            float scores[2 * 3], o[4], d_r[4], weights[2 * 3] = {1, 2, 3, 4, 5, 6};
            double ends[4];
            nrg_relative_args args = nrg_relative_args_init(1, 1, 2, 3, 2, far * limit - (far > 0), far * limit + (far < 0));
            args.query_offset = -far * limit;
            args.accumulate = 0;
            args.q = q;
            args.table = r;
            args.scores = scores;
            args.a = weights;
            args.o = o;
            args.ends = ends;
            args.d_table = d_r;
            /* all keys are at the nearer end: of p_min where distances are far below it */
            const float *row = far > 0 ? r : r + 2;
            ck_assert_int_eq(nrg_relative_scores(&args, 0, 1), NRG_OK);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++)
                    ck_assert(scores[3 * i + j] == q[2 * i] * row[0] + q[2 * i + 1] * row[1]);
            ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
            ck_assert(o[0] == 6 * row[0] && o[1] == 6 * row[1] && o[2] == 15 * row[0] && o[3] == 15 * row[1]);
            ck_assert(ends[far > 0] == 6 && ends[2 + (far > 0)] == 15 && ends[far < 0] == 0 && ends[2 + (far < 0)] == 0);
            ck_assert_int_eq(nrg_relative_backward(&args, 0, 1), NRG_OK);
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
            nrg_relative_args args = nrg_relative_args_init(1, 1, QUERIES, KEYS, DIM, -20, 19);
            args.q = q;
            args.a = a;
            args.table = r;
            args.scores = scores;
            args.o = o;
            ck_assert_int_eq(nrg_relative_scores(&args, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
            for (int i = 0; i < QUERIES; i++) {
                const int j = i - (bad - 20), has = j >= 0 && j < KEYS;
                for (int key = 0; key < KEYS; key++)
                    ck_assert(scores[i * KEYS + key] == (key == j ? INFINITY : DIM - 1));
                for (int c = 0; c < DIM; c++)
                    ck_assert(o[i * DIM + c] == (has ? -INFINITY : 1 - KEYS));
            }
        }
        for (int bad = 0; bad < QUERIES; bad++) {
            static float q[QUERIES * DIM], a[QUERIES * KEYS], d_r[CLASSES * DIM];
            for (int i = 0; i < QUERIES * DIM; i++)
                q[i] = i / DIM == bad ? INFINITY : 1;
            for (int i = 0; i < QUERIES * KEYS; i++)
                a[i] = 1;
            nrg_relative_args args = nrg_relative_args_init(1, 1, QUERIES, KEYS, DIM, -20, 19);
            args.accumulate = 0;
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
    test_note_crashes();
    call_start();
    Suite *suite = suite_create("relative position representations");
    TCase *sweeps = test_case(suite, "paths against scalar");
    tcase_add_loop_test(sweeps, any_shape, 0, 9);
    tcase_add_loop_test(sweeps, many_classes, 0, 9);
    TCase *cases = test_case(suite, "cases");
    tcase_add_test(cases, far_positions);
    tcase_add_test(cases, nan_stays_where_it_is);
    tcase_add_loop_test(test_case(suite, "account"), sweeps_met_everything, 0, 3);
    return test_run(suite);
}
