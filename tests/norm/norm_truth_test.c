/* Scalar against the exact value, on the stress set of docs/numerics.md and on ordinary rows in numbers; and the other paths
 * against scalar on the way, since these are the longest rows of all tests. The formulas are written from the definition in
 * norm.h, in 113-bit arithmetic.
 *
 * `norm_truth_test --report` prints the worst errors as a Markdown table and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../harness/element.h"
#include "../harness/rows.h"
#include "../harness/truth.h"
#include "norm_promise.h"

enum { GRADES = 2 };

enum op { RMS, L2, LAYER, OPS };

/* What the table of a grade has beside each kind of row: the worst error in ulps (of the larger term, where there are several).
 * In centred norms the exact grade's unit is an ulp plus 2^-24 · |k · (w + w0)|, and the fast grade's error what is beyond 2^-23
 * · |k · (w + w0)|: what the header allows them. mean: ulps plus 2^-24 σ, or 2^-24 of itself plus σ; rstd: ulps, or 2^-24 of
 * itself. */
enum column {
    COLUMN_RMS,
    COLUMN_L2,
    COLUMN_LAYER,
    COLUMN_OFFSET,      /* any of these with a weight offset */
    COLUMN_ADDED,       /* rms and l2 with b, y after */
    COLUMN_LAYER_ADDED, /* layer with b, y after */
    COLUMN_F16,
    COLUMN_BF16,
    COLUMN_MEAN,
    COLUMN_RSTD,
    COLUMNS
};

static double (*worst)[COLUMNS];
static unsigned long *measured;

static void record(nrg_accuracy grade, enum row_kind kind, enum column column, double error)
{
    double *most = &worst[(int)grade * ROW_ALL_KINDS + (int)kind][column];
    if (error > *most)
        *most = error;
    ++*measured;
}

/* One row and what is done with it. The floats are values of the dtypes they stand for. */
typedef struct truth_case {
    enum op op;
    enum row_kind kind;
    nrg_norm_spec spec;
    nrg_dtype y_dtype, w_dtype;
    float *x, *y, *w, *b; /* NULL where absent */
    float *r;             /* what the norm sees */
    int poisoned;         /* x + y overflowed */
    char text[256];
} truth_case;

static void make_case(truth_case *t, enum op op, enum row_kind kind, nrg_dtype dtype, size_t dim, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    uint64_t state = seed;
    memset(t, 0, sizeof *t);
    t->op = op;
    t->kind = kind;
    t->spec = op == LAYER ? nrg_norm_spec_layer(NRG_F32, dim, 0)
              : op == L2  ? nrg_norm_spec_l2(NRG_F32, dim, 0)
                          : nrg_norm_spec_rms(NRG_F32, dim, 0);
    if (op == LAYER && test_draw(&state, 4) == 0)
        t->spec.c = 1;
    /* half of the cases in the mode the op is known for */
    if (test_draw(&state, 2))
        t->spec.eps_mode = (nrg_eps_mode)test_draw(&state, NRG_EPS_NONE + 1);
    t->spec.eps = eps[test_draw(&state, 4)];
    t->spec.dtype = dtype;
    t->y_dtype = t->spec.y_dtype = test_draw(&state, 2) ? NRG_F32 : dtype;
    t->w_dtype = t->spec.w_dtype = test_draw(&state, 2) ? NRG_F32 : dtype;
    t->spec.r_dtype = test_draw(&state, 2) ? NRG_F32 : dtype;
    /* none; w; w + 1; w and b; b; y before and w; y after and w; y after, w and b */
    size_t features = test_draw(&state, 8);
    t->x = row_new(dim, kind, dtype, test_draw(&state, 1u << 30));
    if (features == 1 || features == 2 || features == 3 || features > 4)
        t->w = row_new(dim, ROW_NORMAL, t->w_dtype, test_draw(&state, 1u << 30));
    if (features == 3 || features == 4 || features == 7)
        t->b = row_new(dim, ROW_NORMAL, t->w_dtype, test_draw(&state, 1u << 30));
    if (features > 4)
        t->y = row_new(dim, features >= 6 ? ROW_NORMAL : kind, t->y_dtype, test_draw(&state, 1u << 30));
    t->spec.weight_offset = features == 2 || (features > 2 && test_draw(&state, 2)) ? 1 : 0;
    norm_settle(&t->spec, t->w != NULL);
    t->spec.residual_mode = features >= 6 ? NRG_RESIDUAL_AFTER : NRG_RESIDUAL_BEFORE;
    t->r = row_new(dim, ROW_ZEROS, NRG_F32, 0);
    for (size_t i = 0; i < dim; i++) {
        t->r[i] = t->x[i];
        if (features == 5)
            t->r[i] = element_round(t->x[i] + t->y[i], t->spec.r_dtype);
        t->poisoned |= !isfinite(t->r[i]);
    }
    snprintf(t->text, sizeof t->text, "%s, %s, %s, dim %zu, features %zu, eps mode %d, eps %g, c %g, offset %g, seed 0x%llx",
             op == LAYER ? "layer"
             : op == L2  ? "l2"
                         : "rms",
             row_kind_name(kind), nrg_dtype_name(dtype), dim, features, (int)t->spec.eps_mode, t->spec.eps, t->spec.c,
             (double)t->spec.weight_offset, (unsigned long long)seed);
}

static void free_case(truth_case *t)
{
    free(t->x);
    free(t->y);
    free(t->w);
    free(t->b);
    free(t->r);
}

/* The exact statistics of t->r. */
static norm_exact exact_statistics(const truth_case *t)
{
    quad *p = test_allocate(t->spec.dim, sizeof *p);
    for (size_t i = 0; i < t->spec.dim; i++)
        p[i] = t->r[i];
    norm_exact exact = norm_exact_of(&t->spec, t->spec.dim, p);
    free(p);
    return exact;
}

/* A call's results, as floats. */
typedef struct outputs {
    float *o, mean, rstd;
} outputs;

static const char *run(nrg_isa isa, const truth_case *t, const nrg_norm_spec *spec, const float *x, const float *y, outputs *out)
{
    size_t dim = spec->dim;
    nrg_dtype y_dtype = spec->y_dtype ? spec->y_dtype : spec->dtype, w_dtype = spec->w_dtype ? spec->w_dtype : spec->dtype;
    void *o = element_stored(x, dim, spec->dtype), *xs = element_stored(x, dim, spec->dtype),
         *ys = element_stored(y, dim, y_dtype);
    void *w = element_stored(t->w, dim, w_dtype), *b = element_stored(t->b, dim, w_dtype);
    nrg_norm_args args = nrg_norm_args_init(1, xs, w, o);
    args.y = ys;
    args.b = b;
    args.mean = &out->mean;
    args.rstd = &out->rstd;
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = nrg_norm_forward(spec, &args, 0, 1);
    for (size_t i = 0; i < dim; i++)
        out->o[i] = element_get(o, i, spec->dtype);
    free(o);
    free(xs);
    free(ys);
    free(w);
    free(b);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

static int same_outputs(const outputs *a, const outputs *b, size_t dim)
{
    int same = element_equal(&a->mean, &b->mean, 0, NRG_F32) && element_equal(&a->rstd, &b->rstd, 0, NRG_F32);
    for (size_t i = 0; i < dim && same; i++)
        same = element_equal(a->o, b->o, i, NRG_F32);
    return same;
}

/* got against exact: the error as a share of `bound`. An infinity is right where rounding reaches beyond the largest number. */
static double share_of(quad exact, float got, nrg_dtype dtype, double bound)
{
    if (isnan(got))
        return INFINITY;
    if (isinf(got)) {
        double magnitude = fabs((double)exact), largest = (double)element_max(dtype);
        return (exact > 0) == (got > 0) && magnitude >= largest - element_ulp(largest, dtype) ? 0 : INFINITY;
    }
    return (double)(quad_abs(exact - got) / bound);
}

/* The same of what is beyond an allowance. */
static double share_beyond(quad exact, float got, double allowance, double ulp)
{
    const double share = share_of(exact, got, NRG_F32, ulp);
    return isinf(share) ? share : fmax(0, share - allowance / ulp);
}

/* NULL, or what broke its bound. */
static const char *measure(const truth_case *t, const outputs *f32, const outputs *out)
{
    size_t dim = t->spec.dim;
    norm_exact exact = exact_statistics(t);
    nrg_dtype dtype = t->spec.dtype;
    quad k = norm_exact_k(&t->spec, dim), factor = exact.s > 0 ? k / exact.s : 0;
    int after = t->spec.residual_mode == NRG_RESIDUAL_AFTER, additions = (t->b != NULL) + after;
    const int fast = t->spec.accuracy == NRG_ACCURACY_FAST;
    const enum norm_rows rows = t->kind < ROW_STRESS_KINDS ? NORM_STRESS_SET : NORM_EVERY_ROW;
    const int has_offset = t->w && t->spec.weight_offset != 0;
    enum column column = additions        ? (t->op == LAYER ? COLUMN_LAYER_ADDED : COLUMN_ADDED)
                         : has_offset     ? COLUMN_OFFSET
                         : t->op == LAYER ? COLUMN_LAYER
                         : t->op == L2    ? COLUMN_L2
                                          : COLUMN_RMS;
    double highest = 0, highest_16 = 0,
           limit = norm_promise_of(&t->spec, rows, 1, (double)k, quad_magnitude(factor), has_offset).ulps + 0.5 * additions;
    size_t where = 0;
    for (size_t i = 0; i < dim; i++) {
        quad w = t->w ? (quad)t->w[i] + t->spec.weight_offset : 1, product = (t->r[i] - exact.mean) * factor * w, value = product;
        double size = fabs((double)product),
               beside = norm_promise_of(&t->spec, rows, quad_magnitude(w), (double)k, quad_magnitude(factor), has_offset).beside;
        if (t->b) {
            value += t->b[i];
            size = fmax(size, fabs((double)t->b[i]));
        }
        if (after) {
            size = fmax(fmax(size, fabs((double)value)), fabs((double)t->y[i])); /* the sum so far is a term as well */
            value += t->y[i];
        }
        if (additions)
            size = fmax(size, fabs((double)value));
        /* the exact grade's 1 ulp of centred norms is a share of both */
        const int of_both = !fast && t->spec.centred;
        double ulp = element_ulp(size, NRG_F32),
               share = of_both ? share_of(value, f32->o[i], NRG_F32, ulp + beside) : share_beyond(value, f32->o[i], beside, ulp);
        if (!(share <= highest)) {
            highest = share;
            where = i;
        }
        if (dtype == NRG_F32)
            continue;
        float rounded = element_round(f32->o[i], dtype);
        if (!element_equal(&out->o[i], &rounded, 0, NRG_F32))
            return truth_wrong("element %zu: %.9g is not %.9g, the f32 result, rounded", i, (double)out->o[i], (double)f32->o[i]);
        double grid = element_ulp(fmax(size, fabs((double)rounded)), dtype);
        highest_16 = fmax(highest_16, share_of(value, out->o[i], dtype, grid + beside));
        if (!(share_of(value, out->o[i], dtype, grid / 2 + limit * ulp + beside) <= 1))
            return truth_wrong("element %zu: %.9g is more than half a step from %.17g", i, (double)out->o[i], (double)value);
    }
    record(t->spec.accuracy, t->kind, column, highest);
    if (dtype != NRG_F32)
        record(t->spec.accuracy, t->kind, dtype == NRG_F16 ? COLUMN_F16 : COLUMN_BF16, highest_16);

    quad rstd = exact.s > 0 ? 1 / exact.s : 0;
    const double mean_size = quad_magnitude(exact.mean), sigma = (double)exact.sigma, rstd_size = quad_magnitude(rstd);
    const double mean_share = share_of(exact.mean, out->mean, NRG_F32, norm_mean_bound(fast, rows, mean_size, sigma)),
                 rstd_share = share_of(rstd, out->rstd, NRG_F32, norm_rstd_bound(fast, rows, t->spec.centred, rstd_size));
    /* in the units of the table: fast, 2^-24 of both, unless it is the least float */
    const double mean_unit = fast ? fmax(0x1p-149, 0x1p-24 * (mean_size + sigma)) : norm_mean_bound(0, rows, mean_size, sigma),
                 rstd_unit = fast ? fmax(0x1p-149, 0x1p-24 * rstd_size) : norm_rstd_bound(0, rows, 0, rstd_size);
    record(t->spec.accuracy, t->kind, COLUMN_MEAN, share_of(exact.mean, out->mean, NRG_F32, mean_unit));
    record(t->spec.accuracy, t->kind, COLUMN_RSTD, share_of(rstd, out->rstd, NRG_F32, rstd_unit));
    if (!(highest <= limit))
        return truth_wrong("element %zu of o, %.9g, is off by %.4f ulp, limit %.1f", where, (double)f32->o[where], highest,
                           limit);
    if (!(mean_share <= 1) || !(rstd_share <= 1))
        return truth_wrong("mean %.9g (exact %.17g) is off by %.4f of its bound, rstd %.9g (exact %.17g) by %.4f",
                           (double)out->mean, (double)exact.mean, mean_share, (double)out->rstd, (double)rstd, rstd_share);
    return NULL;
}

static const char *check_poisoned(const truth_case *t, const outputs *out)
{
    int all = isnan(out->mean) && isnan(out->rstd);
    for (size_t i = 0; i < t->spec.dim; i++)
        all = all && isnan(out->o[i]);
    return all ? NULL : "x + y overflows, and not all outputs of the row are NaN";
}

/* NULL, or what is wrong. */
static const char *check(const truth_case *t)
{
    size_t dim = t->spec.dim;
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    outputs out, other, f32;
    out.o = row_new(dim, ROW_ZEROS, NRG_F32, 0);
    other.o = row_new(dim, ROW_ZEROS, NRG_F32, 0);
    f32.o = row_new(dim, ROW_ZEROS, NRG_F32, 0);
    const char *wrong = run(NRG_ISA_SCALAR, t, &t->spec, t->x, t->y, &out);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], t, &t->spec, t->x, t->y, &other);
        if (!wrong && !same_outputs(&out, &other, dim))
            wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    if (!wrong && t->poisoned)
        wrong = check_poisoned(t, &out);
    else if (!wrong) {
        /* the same on f32 tensors, with the rounded sum as x: what a 16-bit result is the rounding of */
        nrg_norm_spec spec = t->spec;
        spec.dtype = NRG_F32;
        spec.y_dtype = spec.r_dtype = spec.w_dtype = NRG_DTYPE_SAME;
        wrong = run(NRG_ISA_SCALAR, t, &spec, t->r, spec.residual_mode == NRG_RESIDUAL_AFTER ? t->y : NULL, &f32);
        if (!wrong)
            wrong = measure(t, &f32, &out);
    }
    free(out.o);
    free(other.o);
    free(f32.o);
    return wrong;
}

/* In both grades; of 16-bit results there is one. */
static void check_one(enum op op, enum row_kind kind, nrg_dtype dtype, size_t dim, uint64_t round)
{
    truth_case t;
    const uint64_t seed = (((dim * 4 + dtype) * ROW_KINDS + kind) * OPS + op) * 16;
    make_case(&t, op, kind, dtype, dim, test_mix(kind < ROW_ORDINARY ? seed + round : test_mix(seed) + round));
    for (int grade = NRG_ACCURACY_FAST; grade < (dtype == NRG_F32 ? GRADES : 1); grade++) {
        t.spec.accuracy = (nrg_accuracy)grade;
        truth_judge(check(&t), t.text);
    }
    free_case(&t);
}

/* Every kind of row and op at one length: f32 `rounds` times; of the 16-bit dtypes both, or one for one op. */
static void check_dim(size_t dim, uint64_t rounds, int both_16)
{
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (int op = 0; op < OPS; op++) {
            for (uint64_t round = 0; round < rounds; round++)
                check_one((enum op)op, (enum row_kind)kind, NRG_F32, dim, round);
            if (both_16 || (dim + (size_t)kind) % OPS == (size_t)op) {
                check_one((enum op)op, (enum row_kind)kind, (dim + (size_t)op) % 2 ? NRG_F16 : NRG_BF16, dim, 0);
                if (both_16)
                    check_one((enum op)op, (enum row_kind)kind, (dim + (size_t)op) % 2 ? NRG_BF16 : NRG_F16, dim, 0);
            }
        }
}

/* Ordinary rows: many of each kind, of lengths that models have and of others. Each is another one. */
enum { ORDINARY_ROUNDS = 12 };
static const size_t ordinary_dims[] = {64, 96, 128, 200, 256, 384, 512, 768, 1000, 1024};
enum { ORDINARY_DIMS = sizeof ordinary_dims / sizeof ordinary_dims[0] };

static void check_ordinary(int n)
{
    const enum row_kind kind = (enum row_kind)(ROW_ORDINARY + n);
    for (uint64_t round = 0; round < (test_small() ? 6 : ORDINARY_ROUNDS); round++)
        for (size_t i = 0; i < ORDINARY_DIMS; i++)
            for (int op = 0; op < OPS; op++)
                check_one((enum op)op, kind, round % 4 ? NRG_F32 : round % 8 ? NRG_F16 : NRG_BF16, ordinary_dims[i], round);
}

enum { DIMS = 1100, CHUNK = 50, CHUNKS = DIMS / CHUNK };

static void check_short(int chunk)
{
    for (size_t dim = (size_t)chunk * CHUNK + 1; dim <= ((size_t)chunk + 1) * CHUNK; dim++)
        if (!test_small() || dim <= 32 || dim % 59 == 0)
            check_dim(dim, 1, dim <= 64);
}

static const size_t long_dims[] = {4096, 8192, 12288, 65536, 1000003};
enum { LONG_DIMS = sizeof long_dims / sizeof long_dims[0] };

static void check_long(int i)
{
    if (test_small() && long_dims[i] > 4096) {
        printf("SKIP dim %zu: small scale\n", long_dims[i]);
        fflush(stdout);
        return;
    }
    int longest = long_dims[i] > 100000;
    check_dim(long_dims[i], test_small() || longest ? 1 : 3, !longest);
}

/* Every kind × op must have been measured: a sweep that skipped one would have an empty field. */
static void print_table(void)
{
    static const char *const names[COLUMNS] = {
        "rms", "l2", "layer", "with w + 1", "rms, l2 with + b or + y", "layer with + b or + y", "f16", "bf16", "mean", "rstd"};
    static const char *const grades[GRADES] = {"fast", "exact"};
    for (int grade = 0; grade < GRADES; grade++) {
        truth_print_rows(grades[grade], COLUMNS, names, worst[grade * ROW_ALL_KINDS]);
        printf("\n");
    }
}

START_TEST(short_rows) { check_short(_i); }
END_TEST

START_TEST(long_rows) { check_long(_i); }
END_TEST

START_TEST(ordinary_rows) { check_ordinary(_i); }
END_TEST

START_TEST(worst_cases)
{
    printf("worst errors, in the units of each grade; %lu figures:\n", *measured);
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (int column = 0; column < COLUMNS; column++)
            /* m of an uncentred norm is 0, and constant rows can be normalized without an error: those fields may be 0 */
            if (column != COLUMN_F16 && column != COLUMN_BF16 && worst[ROW_ALL_KINDS + kind][column] == 0 && kind != ROW_EQUAL &&
                column != COLUMN_MEAN)
                ck_abort_msg("%s: column %d was never measured", row_kind_name((enum row_kind)kind), column);
            else if (worst[kind][column] == 0 && column != COLUMN_LAYER && column != COLUMN_LAYER_ADDED && kind != ROW_EQUAL &&
                     column != COLUMN_MEAN)
                ck_abort_msg("%s: column %d was never measured", row_kind_name((enum row_kind)kind), column);
}
END_TEST

static void report(void)
{
    for (int chunk = 0; chunk < CHUNKS; chunk++)
        check_short(chunk);
    for (int i = 0; i < LONG_DIMS; i++)
        check_long(i);
    for (int n = 0; n < ROW_ORDINARY_KINDS; n++)
        check_ordinary(n);
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("norm_forward: scalar against the exact value");
    tcase_add_loop_test(test_case(suite, "short"), short_rows, 0, CHUNKS);
    tcase_add_loop_test(test_case(suite, "long"), long_rows, 0, LONG_DIMS);
    tcase_add_loop_test(test_case(suite, "ordinary"), ordinary_rows, 0, ROW_ORDINARY_KINDS);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared((size_t)GRADES * ROW_ALL_KINDS * sizeof *worst);
    measured = test_shared(sizeof *measured);
    return truth_main(argc, argv, report, make_suite);
}
