/* nrg/relative.h against the formulas of arXiv:1803.02155 in 113 bits, with the vectors a_ij of every pair written out; the
 * gradients against theirs, and as adjoints of the forward operations. --report prints the largest errors.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad.h"
#include "../harness/rows.h"

/* One problem: [BATCH, HEADS, n, …] with a distance of at most k, as in the paper: w[-k … k], and a_ij = w[clip(j - i, -k, k)].
 */
enum { BATCH = 2, HEADS = 2, MOST_QUERIES = 14, MOST_KEYS = 40, MOST_DIM = 140, MOST_CLASSES = 61 };

typedef struct problem {
    size_t queries, keys, dim, classes;
    int64_t offset;            /* position of query 0 */
    int64_t nearest, farthest; /* of query minus key: farther ones count as these */
    int per_head;
    nrg_dtype dtype;
    float q[BATCH * HEADS * MOST_QUERIES * MOST_DIM], k[BATCH * HEADS * MOST_KEYS * MOST_DIM],
        v[BATCH * HEADS * MOST_KEYS * MOST_DIM];
    float a[BATCH * HEADS * MOST_QUERIES * MOST_KEYS], d_o[BATCH * HEADS * MOST_QUERIES * MOST_DIM];
    float table[HEADS * MOST_CLASSES * MOST_DIM];
} problem;

static problem p;

/* ---- the pairs ---- */

static size_t query_at(size_t bh, size_t i) { return (bh * p.queries + i) * p.dim; }
static size_t pair_at(size_t bh, size_t i, size_t j) { return (bh * p.queries + i) * p.keys + j; }

/* Row of the table of the vector that belongs to query i and key j. */
static size_t row_of_pair(size_t bh, size_t i, size_t j)
{
    int64_t distance = p.offset + (int64_t)i - (int64_t)j;
    if (distance < p.nearest)
        distance = p.nearest;
    if (distance > p.farthest)
        distance = p.farthest;
    return (p.per_head ? bh % HEADS * p.classes : 0) + (size_t)(distance - p.nearest);
}

static const float *vector_of_pair(size_t bh, size_t i, size_t j) { return p.table + row_of_pair(bh, i, j) * p.dim; }

static quad dot(const float *x, const float *y, size_t n, quad *sizes)
{
    quad sum = 0;
    for (size_t c = 0; c < n; c++) {
        sum += (quad)x[c] * y[c];
        *sizes += quad_abs((quad)x[c] * y[c]);
    }
    return sum;
}

/* ---- errors ---- */

enum { E_SCORES, E_SCORES_ADDED, E_VALUES, E_VALUES_ADDED, E_D_TABLE, E_D_TABLE_ADDED, ERRORS };
static const char *const error_names[] = {"scores",          "scores added to", "values",
                                          "values added to", "d_table",         "d_table added to"};
enum { DTYPES = NRG_BF16 + 1 };

static double (*worst)[DTYPES]; /* ulp, beyond 2^-45 of what is added up */

/* terms: what may be rounded on the way, in f32; the dtype's own rounding follows. */
static void measure(int what, float got, quad exact, quad sizes, double terms)
{
    const double slack = 0x1p-45 * (double)sizes, error = (double)quad_abs((quad)got - exact);
    /* the f32 result is rounded once more; in units of what it is rounded to, half of it at the tie */
    const double narrow = p.dtype == NRG_F32 || what >= E_D_TABLE ? 0 : 0.5 * element_ulp((double)exact, p.dtype);
    const double unit = element_ulp(terms, NRG_F32), left = error > slack + narrow ? (error - slack - narrow) / unit : 0;
    if (left > worst[what][p.dtype])
        worst[what][p.dtype] = left;
    const double bound = what % 2 && what < E_D_TABLE ? 1.0001 : 0.5001;
    if (!(left <= bound))
        ck_abort_msg("%s of %s, d %zu, %zu × %zu: %a is off by %g ulp", error_names[what], nrg_dtype_name(p.dtype), p.dim,
                     p.queries, p.keys, (double)got, left);
}

/* ---- problems ---- */

/* Rows that have something to them, or ordinary ones. */
static void fill(float *rows, size_t count, size_t dim, nrg_dtype dtype, int stress, uint64_t seed)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_MEAN_1E3, ROW_OUTLIER, ROW_EQUAL, ROW_1E_20, ROW_FIRST_64, ROW_SORTED};
    for (size_t row = 0; row < count; row++) {
        uint64_t state = test_mix(seed + row);
        const size_t ordinary = ROW_ORDINARY + test_draw(&state, ROW_ORDINARY_KINDS);
        row_fill(rows + row * dim, dim, stress ? kinds[test_draw(&state, sizeof kinds / sizeof *kinds)] : (enum row_kind)ordinary,
                 dtype, state);
    }
}

static void draw(nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = test_mix(seed);
    const int stress = test_draw(&state, 2) == 0 && dtype != NRG_F16;
    p.dtype = dtype;
    p.queries = 1 + test_draw(&state, MOST_QUERIES);
    p.keys = 1 + test_draw(&state, MOST_KEYS);
    p.dim = 1 + test_draw(&state, MOST_DIM);
    p.offset = test_draw(&state, 2) ? (int64_t)p.keys - (int64_t)p.queries : (int64_t)test_draw(&state, 9) - 4;
    p.nearest = -(int64_t)test_draw(&state, 30);
    p.farthest = p.nearest + (int64_t)test_draw(&state, MOST_CLASSES);
    p.classes = (size_t)(p.farthest - p.nearest) + 1;
    p.per_head = (int)test_draw(&state, 2);
    const size_t bh = BATCH * HEADS;
    fill(p.q, bh * p.queries, p.dim, dtype, stress, state + 1000);
    fill(p.k, bh * p.keys, p.dim, dtype, stress, state + 2000);
    fill(p.v, bh * p.keys, p.dim, dtype, stress, state + 3000);
    fill(p.a, bh * p.queries, p.keys, dtype, stress, state + 4000);
    fill(p.d_o, bh * p.queries, p.dim, dtype, stress, state + 5000);
    fill(p.table, HEADS * p.classes, p.dim, dtype, stress, state + 6000);
}

static void *narrow(const float *from, size_t n)
{
    void *to = malloc((n + 1) * sizeof(float));
    ck_assert_ptr_nonnull(to);
    for (size_t i = 0; i < n; i++)
        element_set(to, i, p.dtype, from[i]);
    return to;
}

static nrg_relative_args arguments(int accumulate)
{
    nrg_relative_args args = nrg_relative_args_init(p.dtype, BATCH, HEADS, p.queries, p.keys, p.dim, p.nearest, p.farthest);
    args.first_position = p.offset;
    args.accumulate = accumulate;
    args.table_per_head = p.per_head;
    return args;
}

static size_t vectors(void) { return BATCH * HEADS * p.queries * p.dim; }
static size_t pairs(void) { return BATCH * HEADS * p.queries * p.keys; }
static size_t table_elements(void) { return (p.per_head ? HEADS : 1) * p.classes * p.dim; }

/* ---- e_ij = x_i W_Q · (x_j W_K + a^K_ij), equation (4) ---- */

static void check_scores(int accumulate)
{
    void *q = narrow(p.q, vectors()), *table = narrow(p.table, table_elements()), *scores = narrow(p.a, pairs());
    nrg_relative_args args = arguments(accumulate);
    args.q = q;
    args.table = table;
    args.scores = scores;
    /* the first term as a product of matrices would leave it */
    for (size_t bh = 0; bh < BATCH * HEADS && accumulate; bh++)
        for (size_t i = 0; i < p.queries; i++)
            for (size_t j = 0; j < p.keys; j++) {
                quad sizes = 0;
                element_set(scores, pair_at(bh, i, j), p.dtype,
                            (float)dot(p.q + query_at(bh, i), p.k + (bh * p.keys + j) * p.dim, p.dim, &sizes));
            }
    void *given = malloc(pairs() * sizeof(float) + 1);
    memcpy(given, scores, pairs() * nrg_dtype_size(p.dtype));
    ck_assert_int_eq(nrg_relative_scores(&args, 0, 1), NRG_OK);
    for (size_t bh = 0; bh < BATCH * HEADS; bh++)
        for (size_t i = 0; i < p.queries; i++)
            for (size_t j = 0; j < p.keys; j++) {
                const size_t at = pair_at(bh, i, j);
                quad sizes = 0, term = dot(p.q + query_at(bh, i), vector_of_pair(bh, i, j), p.dim, &sizes);
                const double before = accumulate ? (double)element_get(given, at, p.dtype) : 0;
                const quad exact = term + before;
                const float got = element_get(scores, at, p.dtype);
                if (isfinite(got) && isfinite(before))
                    measure(accumulate ? E_SCORES_ADDED : E_SCORES, got, exact, sizes,
                            fmax(fabs((double)term), fmax(fabs((double)exact), accumulate ? fabs(before) : 0)));
            }
    free(q);
    free(table);
    free(scores);
    free(given);
}

/* ---- z_i = Σ_j a_ij (x_j W_V + a^V_ij), equation (3) ---- */

static void check_values(int accumulate)
{
    void *a = narrow(p.a, pairs()), *table = narrow(p.table, table_elements()), *o = narrow(p.q, vectors());
    nrg_relative_args args = arguments(accumulate);
    args.a = a;
    args.table = table;
    args.o = o;
    for (size_t bh = 0; bh < BATCH * HEADS && accumulate; bh++)
        for (size_t i = 0; i < p.queries; i++)
            for (size_t c = 0; c < p.dim; c++) {
                quad sum = 0;
                for (size_t j = 0; j < p.keys; j++)
                    sum += (quad)p.a[pair_at(bh, i, j)] * p.v[(bh * p.keys + j) * p.dim + c];
                element_set(o, query_at(bh, i) + c, p.dtype, (float)sum);
            }
    void *given = malloc(vectors() * sizeof(float) + 1);
    memcpy(given, o, vectors() * nrg_dtype_size(p.dtype));
    ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
    for (size_t bh = 0; bh < BATCH * HEADS; bh++)
        for (size_t i = 0; i < p.queries; i++)
            for (size_t c = 0; c < p.dim; c++) {
                const size_t at = query_at(bh, i) + c;
                quad term = 0, sizes = 0;
                for (size_t j = 0; j < p.keys; j++) {
                    const quad product = (quad)p.a[pair_at(bh, i, j)] * vector_of_pair(bh, i, j)[c];
                    term += product;
                    sizes += quad_abs(product);
                }
                const double before = accumulate ? (double)element_get(given, at, p.dtype) : 0;
                const quad exact = term + before;
                const float got = element_get(o, at, p.dtype);
                if (isfinite(got) && isfinite(before))
                    measure(accumulate ? E_VALUES_ADDED : E_VALUES, got, exact, sizes,
                            fmax(fabs((double)term), fmax(fabs((double)exact), accumulate ? fabs(before) : 0)));
            }
    free(a);
    free(table);
    free(o);
    free(given);
}

/* ---- the table's gradient: what every pair sends to its vector ---- */

static void check_d_table(int accumulate)
{
    static quad exact[HEADS * MOST_CLASSES * MOST_DIM], sizes[HEADS * MOST_CLASSES * MOST_DIM];
    static float d_table[HEADS * MOST_CLASSES * MOST_DIM];
    void *a = narrow(p.a, pairs()), *q = narrow(p.q, vectors());
    nrg_relative_args args = arguments(accumulate);
    args.a = a;
    args.q = q;
    args.d_table = d_table;
    for (size_t i = 0; i < table_elements(); i++) {
        d_table[i] = p.table[i];
        exact[i] = accumulate ? (quad)p.table[i] : 0;
        sizes[i] = 0;
    }
    ck_assert_int_eq(nrg_relative_backward(&args, 0, 1), NRG_OK);
    for (size_t bh = 0; bh < BATCH * HEADS; bh++)
        for (size_t i = 0; i < p.queries; i++)
            for (size_t j = 0; j < p.keys; j++)
                for (size_t c = 0; c < p.dim; c++) {
                    const quad product = (quad)p.a[pair_at(bh, i, j)] * p.q[query_at(bh, i) + c];
                    const size_t at = row_of_pair(bh, i, j) * p.dim + c;
                    exact[at] += product;
                    sizes[at] += quad_abs(product);
                }
    for (size_t i = 0; i < table_elements(); i++)
        if (isfinite(d_table[i]))
            measure(accumulate ? E_D_TABLE_ADDED : E_D_TABLE, d_table[i], exact[i], sizes[i], (double)exact[i]);
    free(a);
    free(q);
}

START_TEST(formulas)
{
    for (int n = 0; n < (test_small() ? 8 : 30); n++) {
        draw((nrg_dtype)_i, (uint64_t)n);
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            check_scores(accumulate);
            check_values(accumulate);
            check_d_table(accumulate);
        }
    }
}
END_TEST

/* ---- ⟨dS, scores(q, R)⟩ = ⟨values(dS, R), q⟩ = ⟨backward(dS, q), R⟩: three ways to the same sum ---- */

START_TEST(adjoints)
{
    for (int n = 0; n < (test_small() ? 10 : 60); n++) {
        static float scores[BATCH * HEADS * MOST_QUERIES * MOST_KEYS], dq[BATCH * HEADS * MOST_QUERIES * MOST_DIM];
        static float d_table[HEADS * MOST_CLASSES * MOST_DIM];
        draw(NRG_F32, 1000 + (uint64_t)n);
        nrg_relative_args to_scores = arguments(0), to_values = to_scores, back = to_scores;
        to_scores.q = back.q = p.q;
        to_values.a = back.a = p.a; /* dS */
        to_scores.table = to_values.table = p.table;
        to_scores.scores = scores;
        to_values.o = dq;
        back.d_table = d_table;
        ck_assert_int_eq(nrg_relative_scores(&to_scores, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_relative_values(&to_values, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_relative_backward(&back, 0, 1), NRG_OK);
        quad sizes = 0, of_scores = dot(p.a, scores, pairs(), &sizes), of_dq = dot(dq, p.q, vectors(), &sizes);
        quad of_table = dot(d_table, p.table, table_elements(), &sizes);
        /* every factor has been rounded once */
        const double slack = 0x1.01p-24 * (double)sizes;
        ck_assert((double)quad_abs(of_scores - of_dq) <= slack);
        ck_assert((double)quad_abs(of_scores - of_table) <= slack);
        ck_assert(sizes > 0 && (double)quad_abs(of_scores) > 0);
    }
}
END_TEST

/* ---- sums that are long, and cancel ---- */

START_TEST(long_sums)
{
    enum { KEYS = 20000, DIM = 3 };
    static float a[KEYS], o[DIM], q[DIM] = {1, -2, 0x1p-20f}, d_table[2 * DIM];
    const float table[2 * DIM] = {1, 0x1p-10f, -3, 5, -7, 0x1p20f};
    for (size_t j = 0; j < KEYS; j++)
        a[j] = (float)(j % 2 ? -1e4 : 1e4) + (float)(test_mix(j) % 1000) / 1000;
    nrg_relative_args args = nrg_relative_args_init(NRG_F32, 1, 1, 1, KEYS, DIM, -1, 0);
    args.first_position = 7777;
    args.a = a;
    nrg_relative_args back = args;
    args.table = table;
    args.o = o;
    back.q = q;
    back.d_table = d_table;
    p.dtype = NRG_F32;
    ck_assert_int_eq(nrg_relative_values(&args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_relative_backward(&back, 0, 1), NRG_OK);
    quad ends[2] = {0, 0}, sizes[2] = {0, 0};
    for (size_t j = 0; j < KEYS; j++) {
        ends[j > 7777 ? 0 : 1] += (quad)a[j];
        sizes[j > 7777 ? 0 : 1] += quad_abs((quad)a[j]);
    }
    /* 20000 elements in 32 lanes: a longer sum than 2^-45 is promised for, by a factor of ten; and it holds */
    for (size_t c = 0; c < DIM; c++) {
        const quad exact = ends[0] * table[c] + ends[1] * table[DIM + c];
        const quad size = sizes[0] * quad_abs((quad)table[c]) + sizes[1] * quad_abs((quad)table[DIM + c]);
        measure(E_VALUES, o[c], exact, size, (double)exact);
        measure(E_D_TABLE, d_table[c], ends[0] * q[c], sizes[0] * quad_abs((quad)q[c]), (double)(ends[0] * q[c]));
        measure(E_D_TABLE, d_table[DIM + c], ends[1] * q[c], sizes[1] * quad_abs((quad)q[c]), (double)(ends[1] * q[c]));
    }
}
END_TEST

int main(int argc, char **argv)
{
    int left = test_arguments(argc, argv), report = 0;
    for (int i = 1; i < left; i++)
        report |= strcmp(argv[i], "--report") == 0;
    worst = test_shared(ERRORS * sizeof *worst);
    if (nrg_isa_set(NRG_ISA_SCALAR) != NRG_OK)
        return EXIT_FAILURE;
    Suite *suite = suite_create("relative position representations against the paper");
    TCase *truth = test_case(suite, "113 bits");
    tcase_add_loop_test(truth, formulas, NRG_F32, DTYPES);
    tcase_add_test(truth, adjoints);
    tcase_add_test(truth, long_sums);
    const int status = test_run(suite);
    if (report)
        for (int what = 0; what < ERRORS; what++) {
            printf("%-18s", error_names[what]);
            for (int dtype = NRG_F32; dtype < DTYPES; dtype++)
                printf("  %s %.4f", nrg_dtype_name((nrg_dtype)dtype), worst[what][dtype]);
            printf("\n");
        }
    return status;
}
