/* nrg_embed_forward and nrg_embed_backward, scalar, against sums in 113 bits. (embed_test.c has it that the other paths give the
 * bits of scalar.)
 *
 * Forward, in f32: half an ulp for every rounding on the way, of each product with a scale and of each partial sum; and nothing
 * where there is nothing to round. In 16 bits: the f32 sum of the same numbers, rounded.
 *
 * Backward, in f32: half an ulp of the result, and 2^-53 of the sum of the magnitudes for each addition in double. That is
 * nothing beside the first unless the terms cancel.
 *
 * `embed_truth_test --report` prints the worst errors as a Markdown table and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "../harness/element.h"
#include "../harness/quad_ulp.h"
#include "../harness/rows.h"
#include "../harness/truth.h"

enum { FORWARD_COLUMNS = NRG_EMBED_TABLES + 1, BACKWARD_COLUMNS = 3, COLUMNS = FORWARD_COLUMNS + BACKWARD_COLUMNS };

/* Largest error by kind of row. Forward, by the number of terms: in ulps of the largest partial sum or product; backward, f32,
 * f16 and bf16 tables: in ulps of the result. And the largest part of what is allowed. */
static double (*worst)[COLUMNS], *worst_part;

static double at_least(double a, double b) { return a > b ? a : b; }

/* Not there where f32 has no finite number for it. */
static int is_finite_f32(quad value) { return value < 0x1p128 && value > -0x1p128; }

static const char *too_far(const char *what, double error, double allowed)
{
    return truth_wrong("%s: off by %g, where %g is allowed", what, error, allowed);
}

static const char *allow(enum row_kind kind, int column, const char *what, double error, double unit, double allowed)
{
    if (!(error <= allowed))
        return too_far(what, error, allowed);
    worst[kind][column] = at_least(worst[kind][column], error / unit);
    if (allowed > 0)
        *worst_part = at_least(*worst_part, error / allowed);
    return NULL;
}

/* ---- forward ---- */

enum { TOKENS = 40, DIM = 24, ENTRIES = 16 };

typedef struct forward_case {
    enum row_kind kind;
    int tables, with_x;
    float x[TOKENS * DIM], table[NRG_EMBED_TABLES][(ENTRIES + TOKENS) * DIM];
    int32_t ids[NRG_EMBED_TABLES][TOKENS];
    int counted[NRG_EMBED_TABLES];
    float scale[NRG_EMBED_TABLES];
} forward_case;

static forward_case *make_forward(enum row_kind kind, uint64_t seed)
{
    static const float scales[] = {0, 27.712813f, 1, -0.3f};
    forward_case *f = test_allocate(1, sizeof *f);
    uint64_t state = seed;
    f->kind = kind;
    f->with_x = (int)test_draw(&state, 2);
    f->tables = (int)test_draw(&state, NRG_EMBED_TABLES + 1);
    f->tables += f->tables + f->with_x == 0;
    for (size_t t = 0; t < TOKENS; t++)
        row_fill(f->x + t * DIM, DIM, kind, NRG_F32, test_draw(&state, 1u << 30));
    for (int k = 0; k < f->tables; k++) {
        for (size_t t = 0; t < ENTRIES + TOKENS; t++)
            row_fill(f->table[k] + t * DIM, DIM, test_draw(&state, 3) ? kind : ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
        f->counted[k] = (int)test_draw(&state, 2);
        f->scale[k] = scales[test_draw(&state, 4)];
        for (size_t t = 0; t < TOKENS; t++)
            f->ids[k][t] = f->counted[k] ? (int32_t)(t + 5) : (int32_t)test_draw(&state, ENTRIES + TOKENS);
    }
    return f;
}

static nrg_embed_args forward_args(const forward_case *f, nrg_embed_table tables[NRG_EMBED_TABLES], float *o)
{
    nrg_embed_args args = nrg_embed_args_init(NRG_F32, TOKENS, DIM, o);
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        tables[k] = nrg_embed_table_init(0, NULL, NULL);
    args.tables = tables;
    args.table_count = NRG_EMBED_TABLES;
    args.x = f->with_x ? f->x : NULL;
    for (int k = 0; k < f->tables; k++) {
        tables[k] = f->counted[k] ? nrg_embed_table_counted(ENTRIES + TOKENS, f->table[k], 5)
                                  : nrg_embed_table_init(ENTRIES + TOKENS, f->table[k], f->ids[k]);
        tables[k].scale = f->scale[k];
    }
    return args;
}

/* One element: what it is, and how much the roundings on the way may add up to. */
static const char *forward_element(const forward_case *f, size_t t, size_t i, float got)
{
    quad sum = f->with_x ? (quad)f->x[t * DIM + i] : 0;
    int terms = f->with_x;
    double allowed = 0, unit = terms ? quad_ulp(sum) : 0;
    for (int k = 0; k < f->tables; k++) {
        const float scale = f->scale[k];
        const quad term = (quad)f->table[k][(size_t)f->ids[k][t] * DIM + i] * scale;
        if (scale != 1)
            allowed += quad_ulp(term) / 2;
        sum += term;
        terms++;
        /* the partial sum that is rounded is the exact one but for the errors before */
        if (terms > 1)
            allowed += quad_ulp(quad_magnitude(sum) + allowed) / 2;
        unit = at_least(unit, at_least(quad_ulp(term), quad_ulp(sum)));
        if (!is_finite_f32(term) || !is_finite_f32(sum))
            return NULL;
    }
    if (quad_magnitude(sum) + allowed >= 0x1.ffffffp127)
        return NULL;
    return allow(f->kind, terms - 1, "forward", quad_magnitude((quad)got - sum), unit, allowed);
}

/* The same numbers as 16-bit elements: the f32 sum, rounded. */
static const char *forward_16(const forward_case *f, nrg_dtype dtype)
{
    static uint16_t x[TOKENS * DIM], table[NRG_EMBED_TABLES][(ENTRIES + TOKENS) * DIM], o[TOKENS * DIM];
    float wide[TOKENS * DIM];
    forward_case rounded = *f;
    for (size_t i = 0; i < TOKENS * DIM; i++) {
        element_set(x, i, dtype, f->x[i]);
        rounded.x[i] = element_get(x, i, dtype);
    }
    nrg_embed_table tables[NRG_EMBED_TABLES];
    nrg_embed_args args = forward_args(&rounded, tables, wide);
    for (int k = 0; k < f->tables; k++)
        for (size_t i = 0; i < (ENTRIES + TOKENS) * DIM; i++) {
            element_set(table[k], i, dtype, f->table[k][i]);
            rounded.table[k][i] = element_get(table[k], i, dtype);
        }
    nrg_status status = nrg_embed_forward(&args, 0, 1);
    args.dtype = dtype;
    args.o = o;
    args.x = args.x ? x : NULL;
    for (int k = 0; k < f->tables; k++)
        tables[k].table = table[k];
    if (status == NRG_OK)
        status = nrg_embed_forward(&args, 0, 1);
    if (status != NRG_OK)
        return nrg_status_string(status);
    for (size_t i = 0; i < TOKENS * DIM; i++) {
        uint16_t expected[1];
        element_set(expected, 0, dtype, wide[i]);
        if (!element_equal(expected, &o[i], 0, dtype))
            return "16 bits: not the f32 sum rounded";
    }
    return NULL;
}

static const char *check_forward(enum row_kind kind, uint64_t seed)
{
    float o[TOKENS * DIM];
    forward_case *f = make_forward(kind, seed);
    nrg_embed_table tables[NRG_EMBED_TABLES];
    nrg_embed_args args = forward_args(f, tables, o);
    nrg_status status = nrg_embed_forward(&args, 0, 1);
    const char *wrong = status == NRG_OK ? NULL : nrg_status_string(status);
    for (size_t t = 0; t < TOKENS && !wrong; t++)
        for (size_t i = 0; i < DIM && !wrong; i++)
            wrong = forward_element(f, t, i, o[t * DIM + i]);
    for (nrg_dtype dtype = NRG_F16; dtype <= NRG_BF16 && !wrong; dtype++)
        wrong = forward_16(f, dtype);
    free(f);
    return wrong;
}

/* ---- backward ---- */

/* dT of f32 where table_dtype is f32, and otherwise the f32 result rounded. */
static const char *check_backward(enum row_kind kind, size_t tokens, size_t entries, size_t dim, nrg_dtype dtype,
                                  nrg_dtype table_dtype, uint64_t seed)
{
    static const float scales[] = {0, 27.712813f, 1, -0.3f};
    uint64_t state = seed;
    const float scale = scales[test_draw(&state, 4)];
    const int accumulate = (int)test_draw(&state, 2), column = FORWARD_COLUMNS + (int)table_dtype - NRG_F32;
    float *row = test_allocate(1, dim * sizeof *row);
    char *d_o = test_allocate(1, tokens * dim * 4), *d_table = test_allocate(1, entries * dim * 4);
    int32_t *ids = test_allocate(1, tokens * sizeof *ids);
    quad *sum = test_allocate(1, entries * dim * sizeof *sum);
    double *size = test_allocate(1, entries * dim * sizeof *size), *count = test_allocate(1, entries * sizeof *count);
    for (size_t t = 0; t < tokens; t++) {
        ids[t] = (int32_t)test_draw(&state, entries);
        row_fill(row, dim, kind, dtype, test_draw(&state, 1u << 30));
        for (size_t i = 0; i < dim; i++)
            element_set(d_o, t * dim + i, dtype, row[i]);
    }
    for (size_t t = 0; t < tokens; t++) {
        count[ids[t]]++;
        for (size_t i = 0; i < dim; i++) {
            const quad value = element_get(d_o, t * dim + i, dtype);
            sum[(size_t)ids[t] * dim + i] += value;
            size[(size_t)ids[t] * dim + i] += quad_magnitude(value);
        }
    }
    for (size_t i = 0; i < entries * dim; i++) {
        element_set(d_table, i, table_dtype, (float)test_draw(&state, 2000) / 1000 - 1);
        const double factor = (double)scale;
        sum[i] = sum[i] * (quad)factor + (accumulate ? (quad)element_get(d_table, i, table_dtype) : 0);
        size[i] = size[i] * quad_magnitude(factor) + (accumulate ? 1 : 0);
    }

    nrg_embed_backward_args args = nrg_embed_backward_args_init(dtype, tokens, dim, d_o);
    args.table_dtype = table_dtype;
    nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_init(entries, NULL, ids), d_table);
    args.tables = &table;
    args.table_count = 1;
    table.scale = scale;
    table.accumulate = accumulate;
    nrg_status status = nrg_embed_backward_workspace(&args, &args.workspace_size);
    void *workspace = args.workspace = test_allocate(1, args.workspace_size);
    if (status == NRG_OK)
        status = nrg_embed_backward_order(&args);
    if (status == NRG_OK)
        status = nrg_embed_backward(&args, 0, 1);
    const char *wrong = status == NRG_OK ? NULL : nrg_status_string(status);
    for (size_t i = 0; i < entries * dim && !wrong; i++) {
        const double most = (double)element_max(table_dtype), exact = quad_magnitude(sum[i]);
        if (exact > most * (1 - 0x1p-9))
            continue;
        const double unit = element_ulp((double)sum[i], table_dtype), drift = (count[i / dim] + 2) * size[i] * 0x1p-53;
        const double first = quad_ulp(exact + drift) / 2 + drift;
        const double second = table_dtype == NRG_F32 ? 0 : element_ulp(exact + first, table_dtype) / 2;
        wrong = allow(kind, column, "backward", quad_magnitude((quad)element_get(d_table, i, table_dtype) - sum[i]), unit + drift,
                      first + second);
    }
    free(row);
    free(d_o);
    free(d_table);
    free(ids);
    free(sum);
    free(size);
    free(count);
    free(workspace);
    return wrong;
}

/* ---- the cases ---- */

static void judge(const char *wrong, const char *what, enum row_kind kind, uint64_t seed)
{
    char text[128];
    snprintf(text, sizeof text, "%s, %s, seed 0x%llx", what, row_kind_name(kind), (unsigned long long)seed);
    truth_judge(wrong, text);
}

static void run_forward(enum row_kind kind)
{
    for (uint64_t n = 0; n < (test_small() ? 16 : 60); n++)
        judge(check_forward(kind, test_mix(n * 64 + kind)), "forward", kind, n);
}

static void run_backward(enum row_kind kind)
{
    for (uint64_t n = 0; n < (test_small() ? 3 : 12); n++) {
        const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + n % 3);
        judge(check_backward(kind, 400, (size_t)(1 + n * 3), DIM, dtype, n / 3 % 2 ? NRG_F32 : dtype, test_mix(n * 64 + kind)),
              "backward", kind, n);
    }
}

/* Two rows of types, or segments, for as many tokens as a large batch has. */
static void run_two_rows(int n)
{
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + n % 3);
    judge(check_backward(ROW_NORMAL, test_small() ? 10000 : 100000, 2, 20, dtype, n < 3 ? dtype : NRG_F32, test_mix(1000 + n)),
          "two rows", ROW_NORMAL, (uint64_t)n);
}

enum { TWO_ROWS_CASES = 6 };

static void print_table(void)
{
    static const char *const names[COLUMNS] = {"one term", "two", "three", "four", "dT f32", "dT f16", "dT bf16"};
    truth_print_rows("row", COLUMNS, names, worst[0]);
    printf("\nAt most %.3f of what is allowed.\n", *worst_part);
    fflush(stdout);
}

START_TEST(forward) { run_forward((enum row_kind)_i); }
END_TEST

START_TEST(backward) { run_backward((enum row_kind)_i); }
END_TEST

START_TEST(two_rows) { run_two_rows(_i); }
END_TEST

START_TEST(worst_cases)
{
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int column = 1; column < COLUMNS; column++)
        ck_assert(worst[ROW_NORMAL][column] > 0); /* else it was never measured */
    ck_assert(*worst_part > 0.5);
}
END_TEST

static void report(void)
{
    for (int kind = 0; kind < ROW_ALL_KINDS; kind++)
        if (kind < ROW_STRESS_KINDS || kind >= ROW_ORDINARY) {
            run_forward((enum row_kind)kind);
            run_backward((enum row_kind)kind);
        }
    for (int n = 0; n < TWO_ROWS_CASES; n++)
        run_two_rows(n);
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("embed and embed_backward: scalar against the exact value");
    TCase *sums = test_case(suite, "forward"), *gradients = test_case(suite, "backward");
    tcase_add_loop_test(sums, forward, 0, ROW_STRESS_KINDS);
    tcase_add_loop_test(sums, forward, ROW_ORDINARY, ROW_ALL_KINDS);
    tcase_add_loop_test(gradients, backward, 0, ROW_STRESS_KINDS);
    tcase_add_loop_test(gradients, backward, ROW_ORDINARY, ROW_ALL_KINDS);
    tcase_add_loop_test(gradients, two_rows, 0, TWO_ROWS_CASES);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(ROW_ALL_KINDS * sizeof *worst);
    worst_part = test_shared(sizeof *worst_part);
    if (nrg_isa_set(NRG_ISA_SCALAR) != NRG_OK) /* which every machine has */
        return EXIT_FAILURE;
    return truth_main(argc, argv, report, make_suite);
}
