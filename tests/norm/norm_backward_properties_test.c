/* What norm_backward.h promises of values without another implementation at hand: 16-bit results are the f32 results rounded, +
 * dr_in is one addition, a row does not know its batch nor a group its row, NaN and infinity stay in their row, an accumulation
 * to 0 is the sum itself, and one to anything is rounded once; a clamp holds where both sides are equal.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../harness/element.h"
#include "norm_problem.h"

enum { PARTS = 12 };

/* Calls body for problems of every path and dtype. */
typedef void body(const norm_backward_problem *problem, nrg_isa isa);

static body *the_body;

static void call_body(const plain_case *c, nrg_isa isa)
{
    norm_backward_problem problem;
    norm_backward_problem_make(&problem, c);
    the_body(&problem, isa);
    norm_backward_problem_free(&problem);
}

static void each_problem(int part, body *run)
{
    the_body = run;
    plain_each("norm_backward", part, PARTS, 1300, call_body);
}

/* Both phases. strides: from row to row, of all tensors, in elements; 0: dense. */
static void backward(const norm_backward_problem *p, norm_backward_result *out, size_t stride)
{
    const norm_problem *f = &p->forward;
    nrg_norm_backward_args args = norm_backward_args(p, out);
    args.x_stride[0] = args.d_o_stride[0] = args.dx_stride[0] = args.z_stride[0] = args.dz_stride[0] =
        stride * nrg_dtype_size(f->spec.dtype);
    args.y_stride[0] = args.dy_stride[0] = stride * nrg_dtype_size(f->y_dtype);
    args.r_stride[0] = args.dr_in_stride[0] = stride * nrg_dtype_size(f->r_dtype);
    nrg_status status = nrg_norm_backward(&f->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&f->spec, &args, 0, 1);
    free(args.workspace);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), f->text);
}

static void must_equal(const norm_backward_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                       const void *expected, const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->forward.text);
}

/* What is normalized, without a gate: r, or x + y in r's dtype. */
static float *r_as_f32(const norm_backward_problem *p)
{
    const norm_problem *f = &p->forward;
    const size_t count = f->rows * f->spec.dim;
    if (p->r)
        return element_floats(p->r, count, f->r_dtype);
    float *r = element_floats(f->x, count, f->spec.dtype);
    for (size_t i = 0; i < count && norm_adds_before(f); i++)
        r[i] = element_round(r[i] + element_get(f->y, i, f->y_dtype), f->r_dtype);
    return r;
}

/* The same on f32 tensors, from the rounded r, without dr_in; then + dr_in, and one rounding. */
static void unfused(const norm_backward_problem *p, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim, count = f->rows * dim;
    const int after = norm_adds_after(f);
    norm_backward_result fused, steps;
    norm_backward_problem f32 = *p;
    f32.forward.spec.dtype = NRG_F32;
    f32.forward.spec.y_dtype = f32.forward.spec.r_dtype = f32.forward.spec.w_dtype = NRG_DTYPE_SAME;
    f32.forward.y_dtype = f32.forward.r_dtype = f32.forward.w_dtype = NRG_F32;
    f32.forward.x = r_as_f32(p);
    f32.forward.y = f32.r = NULL;
    f32.forward.z = element_floats(f->z, count, f->spec.dtype);
    f32.forward.w = element_floats(f->w, dim, f->w_dtype);
    f32.forward.b = element_floats(f->b, dim, f->w_dtype);
    f32.d_o = element_floats(p->d_o, count, f->spec.dtype);
    f32.dr_in = NULL;
    norm_backward_result_make(&fused, p);
    norm_backward_result_make(&steps, &f32);
    backward(p, &fused, 0);
    backward(&f32, &steps, 0);
    float *dx = steps.dx;
    void *rounded = element_tensor(count, NRG_F32);
    for (size_t i = 0; i < count && p->dr_in; i++)
        dx[i] += element_get(p->dr_in, i, f->r_dtype);
    for (size_t i = 0; i < count; i++)
        element_set(rounded, i, f->spec.dtype, dx[i]);
    must_equal(p, isa, "dx", f->spec.dtype, count, rounded, fused.dx);
    for (size_t i = 0; i < count; i++)
        element_set(rounded, i, f->y_dtype, after ? element_get(p->d_o, i, f->spec.dtype) : dx[i]);
    must_equal(p, isa, "dy", f->y_dtype, count, rounded, fused.dy);
    for (size_t i = 0; i < count && f->z; i++)
        element_set(rounded, i, f->spec.dtype, element_get(steps.dz, i, NRG_F32));
    if (f->z)
        must_equal(p, isa, "dz", f->spec.dtype, count, rounded, fused.dz);
    must_equal(p, isa, "dw", NRG_F32, dim, steps.dw, fused.dw);
    must_equal(p, isa, "db", NRG_F32, dim, steps.db, fused.db);
    free(rounded);
    free(f32.d_o);
    free(f32.forward.x);
    free(f32.forward.z);
    free(f32.forward.w);
    free(f32.forward.b);
    norm_backward_result_free(&fused);
    norm_backward_result_free(&steps);
}

START_TEST(fused_is_unfused) { each_problem(_i, unfused); }
END_TEST

/* The part of a problem that begins at an element of its rows. */
static norm_backward_problem part_of(const norm_backward_problem *p, size_t at)
{
    norm_backward_problem part = *p;
    norm_problem *f = &part.forward;
    f->x = element_at(f->x, at, f->spec.dtype);
    f->y = element_at(f->y, at, f->y_dtype);
    f->z = element_at(f->z, at, f->spec.dtype);
    part.r = element_at(p->r, at, f->r_dtype);
    part.d_o = element_at(p->d_o, at, f->spec.dtype);
    part.dr_in = element_at(p->dr_in, at, f->r_dtype);
    return part;
}

static void alone(const norm_backward_problem *p, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim;
    norm_backward_result batch, single;
    norm_backward_result_make(&batch, p);
    norm_backward_result_make(&single, p);
    backward(p, &batch, 0);
    for (size_t row = 0; row < f->rows; row++) {
        norm_backward_problem one = part_of(p, row * dim);
        one.forward.rows = 1;
        backward(&one, &single, 0);
        must_equal(&one, isa, "dx of a row alone", f->spec.dtype, dim, element_at(batch.dx, row * dim, f->spec.dtype), single.dx);
        must_equal(&one, isa, "dy of a row alone", f->y_dtype, dim, element_at(batch.dy, row * dim, f->y_dtype), single.dy);
        if (f->z)
            must_equal(&one, isa, "dz of a row alone", f->spec.dtype, dim, element_at(batch.dz, row * dim, f->spec.dtype),
                       single.dz);
    }
    norm_backward_result_free(&batch);
    norm_backward_result_free(&single);
}

START_TEST(a_row_does_not_know_its_batch) { each_problem(_i, alone); }
END_TEST

/* A column of groups is a tensor of its own, with the stride of the whole. */
static void group_alone(const norm_backward_problem *p, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim, d = dim / f->groups;
    norm_backward_result batch, single;
    norm_backward_result_make(&batch, p);
    norm_backward_result_make(&single, p);
    backward(p, &batch, 0);
    for (size_t at = 0; at < dim && f->groups > 1; at += d) {
        norm_backward_problem one = part_of(p, at);
        one.forward.spec.dim = d;
        one.forward.spec.groups = 1;
        one.forward.w = element_at(f->w, at, f->w_dtype);
        one.forward.b = element_at(f->b, at, f->w_dtype);
        one.dw += at;
        one.db += at;
        backward(&one, &single, dim);
        for (size_t row = 0; row < f->rows; row++) {
            must_equal(&one, isa, "dx of groups alone", f->spec.dtype, d, element_at(batch.dx, row * dim + at, f->spec.dtype),
                       element_at(single.dx, row * dim, f->spec.dtype));
            if (f->z)
                must_equal(&one, isa, "dz of groups alone", f->spec.dtype, d, element_at(batch.dz, row * dim + at, f->spec.dtype),
                           element_at(single.dz, row * dim, f->spec.dtype));
        }
        must_equal(&one, isa, "dw of groups alone", NRG_F32, d, batch.dw + at, single.dw);
        must_equal(&one, isa, "db of groups alone", NRG_F32, d, batch.db + at, single.db);
    }
    norm_backward_result_free(&batch);
    norm_backward_result_free(&single);
}

START_TEST(a_group_does_not_know_its_row) { each_problem(_i, group_alone); }
END_TEST

/* One infinity or NaN in r, or in d_o: what comes of that group is no finite number; what comes of another is as if that were not
 * there (a_row_does_not_know_its_batch). dw of the group's columns is none either where h is not. */
static void poisoned(const norm_backward_problem *p, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim, d = dim / f->groups;
    float *r = r_as_f32(p);
    norm_backward_result out;
    norm_backward_result_make(&out, p);
    backward(p, &out, 0);
    for (size_t at = 0; at < f->rows * dim; at += d) {
        int poison = 0;
        for (size_t i = at; i < at + d; i++)
            poison |= !isfinite(r[i]);
        for (size_t i = at; i < at + d && poison; i++) {
            if (isfinite(element_get(out.dx, i, f->spec.dtype)) ||
                (!norm_adds_after(f) && isfinite(element_get(out.dy, i, f->y_dtype))) ||
                (f->z && isfinite(element_get(out.dz, i, f->spec.dtype))) || isfinite(out.dw[i % dim]))
                ck_abort_msg("%s: element %zu of a poisoned group is finite\n  case: %s", nrg_isa_name(isa), i, p->forward.text);
        }
    }
    free(r);
    norm_backward_result_free(&out);
}

START_TEST(poison_is_not_lost) { each_problem(_i, poisoned); }
END_TEST

static void accumulation(const norm_backward_problem *p, nrg_isa isa)
{
    const size_t dim = p->forward.spec.dim;
    norm_backward_problem zero = *p, over = *p;
    norm_backward_result sums, added;
    norm_backward_result_make(&sums, p);
    norm_backward_result_make(&added, p);
    over.accumulate = 0;
    zero.accumulate = 1;
    zero.dw = zero.db = calloc(dim, sizeof(float));
    ck_assert_ptr_nonnull(zero.dw);
    backward(&over, &sums, 0);
    backward(&zero, &added, 0);
    for (size_t i = 0; i < dim; i++) {
        sums.dw[i] += 0.0f; /* the sign of a 0 is another */
        sums.db[i] += 0.0f;
        added.dw[i] += 0.0f;
        added.db[i] += 0.0f;
    }
    must_equal(p, isa, "dw added to 0", NRG_F32, dim, sums.dw, added.dw);
    must_equal(p, isa, "db added to 0", NRG_F32, dim, sums.db, added.db);
    free(zero.dw);
    norm_backward_result_free(&sums);
    norm_backward_result_free(&added);
}

START_TEST(added_to_zero) { each_problem(_i, accumulation); }
END_TEST

/* dw and db are added to what is there and rounded once: 1 + (2^-24 + 2^-50), where 2^-24 alone is a tie and goes down to 1. What
 * is small comes from rows that are not added up in f32 with the others, or are of another block. */
START_TEST(added_in_one_rounding)
{
    enum { ROWS = 70 };
    static const size_t small[] = {4, 31, 32, 69};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < sizeof small / sizeof small[0]; n++) {
            float x[ROWS], d_o[ROWS] = {0x1p-24f}, dw = 1, db = 1;
            double workspace[2 * ROWS];
            for (size_t row = 0; row < ROWS; row++)
                x[row] = 3; /* h is 1 */
            d_o[small[n]] = 0x1p-50f;
            const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, 1, 0);
            nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, x, NULL, d_o, NULL);
            args.dw = &dw;
            args.db = &db;
            args.accumulate = 1;
            args.workspace = workspace;
            args.workspace_size = sizeof workspace;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_backward(&spec, &args, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_norm_backward_reduce(&spec, &args, 0, 1), NRG_OK);
            if (dw != 1 + 0x1p-23f || db != 1 + 0x1p-23f)
                ck_abort_msg("%s, row %zu: dw %a, db %a", nrg_isa_name(paths[path]), small[n], (double)dw, (double)db);
        }
}
END_TEST

/* NRG_EPS_MAX where σ is as large as eps, neither larger: the clamp holds, s does not depend on the row, and d_o goes through it
 * without what it would lose in the direction of the row. All numbers here are exact. Rows of 2^60 are done in double. */
START_TEST(clamp_holds_where_both_are_equal)
{
    enum { DIM = 4 };
    static const float signs[DIM] = {1, -1, 1, -1}, scales[] = {2, 0x1p60f, 0x1p-60f};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 3 * 2 * 3; n++) {
            const float scale = scales[n % 3];
            const int centred = n / 3 % 2;
            float x[DIM], d_o[DIM] = {scale}, dx[DIM];
            for (int i = 0; i < DIM; i++)
                x[i] = signs[i] * scale;
            nrg_norm_spec spec = centred ? nrg_norm_spec_layer(NRG_F32, DIM, 0) : nrg_norm_spec_rms(NRG_F32, DIM, 0);
            spec.eps_mode = NRG_EPS_MAX;
            const double norm = 2 * (double)scale; /* ‖q‖, √4 times σ */
            spec.eps = n / 6 == 0 ? norm : n / 6 == 1 ? nextafter(norm, INFINITY) : norm * (1 - 0x1p-50);
            const nrg_norm_backward_args args = nrg_norm_backward_args_init(1, x, NULL, d_o, dx);
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_backward(&spec, &args, 0, 1), NRG_OK);
            for (int i = 0; i < DIM; i++) {
                float expected = i == 0 ? 1 : 0;
                if (n / 6 == 2)
                    expected -= signs[i] * 0.25f;
                if (centred)
                    expected -= 0.25f;
                if (dx[i] != expected)
                    ck_abort_msg("%s, %s, scale %a, eps %a: dx %d is %a and not %a", nrg_isa_name(paths[path]),
                                 centred ? "layer" : "rms", (double)scale, spec.eps, i, (double)dx[i], (double)expected);
            }
        }
}
END_TEST

/* Rows that have no more elements than the norm takes away, and rows of one number whose s is 0: dx is dr_in, or 0, whatever d_o
 * is; dz of a gate before the norm is 0. Forward, rows without a spread become b. */
START_TEST(zero_by_structure)
{
    enum { ROWS = 21, MOST = 5000 };
    static const struct {
        size_t dim, groups;
        int centred;
        nrg_eps_mode mode;
        double eps;
        int alike;
    } cases[] = {
        {1, 1, 1, NRG_EPS_MEAN, 1e-5, 0},  {1, 1, 1, NRG_EPS_MEAN, 0, 0},  {1, 1, 1, NRG_EPS_SUM, 0.5, 0},
        {1, 1, 1, NRG_EPS_SIGMA, 1e-3, 0}, {1, 1, 1, NRG_EPS_MAX, 10, 0},  {1, 1, 1, NRG_EPS_NONE, 0, 0},
        {1, 1, 0, NRG_EPS_MEAN, 0, 0},     {1, 1, 0, NRG_EPS_SUM, 0, 0},   {1, 1, 0, NRG_EPS_SIGMA, 0, 0},
        {1, 1, 0, NRG_EPS_MAX, 1e-12, 0},  {1, 1, 0, NRG_EPS_NONE, 0, 0},  {7, 7, 1, NRG_EPS_MEAN, 1e-5, 0},
        {40, 40, 0, NRG_EPS_NONE, 0, 0},   {2, 1, 1, NRG_EPS_MEAN, 0, 0},  {2, 1, 1, NRG_EPS_MAX, 1e-9, 0},
        {24, 12, 1, NRG_EPS_SIGMA, 0, 0},  {1, 1, 1, NRG_EPS_MEAN, 0, 1},  {5, 1, 1, NRG_EPS_MEAN, 0, 1},
        {64, 1, 1, NRG_EPS_NONE, 0, 1},    {200, 2, 1, NRG_EPS_MAX, 0, 1}, {300, 1, 1, NRG_EPS_SIGMA, 0, 1},
        {MOST, 1, 1, NRG_EPS_MEAN, 0, 1},  {64, 1, 0, NRG_EPS_MEAN, 0, 2}, {200, 1, 0, NRG_EPS_SIGMA, 0, 2},
        {300, 4, 0, NRG_EPS_NONE, 0, 2},
    };
    static float x[ROWS * MOST], d_o[ROWS * MOST], z[ROWS * MOST], dr_in[ROWS * MOST], dx[ROWS * MOST], dz[ROWS * MOST], w[MOST],
        b[MOST], o[ROWS * MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = 3;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const size_t dim = cases[n].dim, groups = cases[n].groups, count = ROWS * dim;
        nrg_norm_spec spec =
            cases[n].centred ? nrg_norm_spec_layer(NRG_F32, dim, cases[n].eps) : nrg_norm_spec_rms(NRG_F32, dim, cases[n].eps);
        spec.groups = cases[n].groups;
        spec.eps_mode = cases[n].mode;
        for (size_t i = 0; i < count; i++) {
            x[i] = cases[n].alike == 2 ? 0
                   : cases[n].alike    ? (float)(i / dim % 2 ? 0.1 : 3e5)
                                       : (float)(100 * test_uniform(&state));
            d_o[i] = (float)(300 * test_uniform(&state));
            z[i] = (float)test_uniform(&state);
            dr_in[i] = (float)test_uniform(&state);
            w[i % dim] = (float)test_uniform(&state);
            b[i % dim] = (float)test_uniform(&state);
        }
        for (size_t path = test_paths(paths); path-- > 0;)
            for (int way = 0; way < 16; way++) {
                const int gated = way & 2 && !cases[n].alike; /* p = r ⊙ g(z) is not alike */
                const size_t rows = way & 4 ? ROWS : 1;
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                spec.accuracy = way & 8 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
                spec.gate = gated ? NRG_GATE_PRE : NRG_GATE_NONE;
                spec.activation = gated ? NRG_ACT_SILU : NRG_ACT_IDENTITY;
                nrg_norm_backward_args args = nrg_norm_backward_args_init(rows, x, w, d_o, dx);
                args.dr_in = way & 1 ? dr_in : NULL;
                args.z = gated ? z : NULL;
                args.dz = gated ? dz : NULL;
                ck_assert_int_eq(nrg_norm_backward(&spec, &args, 0, 1), NRG_OK);
                for (size_t i = 0; i < rows * dim; i++)
                    if (dx[i] != (way & 1 ? dr_in[i] : 0) || (gated && dz[i] != 0))
                        ck_abort_msg("%s, case %zu, way %d: dx %zu is %a", nrg_isa_name(paths[path]), n, way, i, (double)dx[i]);
                if (gated || !(cases[n].alike || (cases[n].centred && dim == groups)))
                    continue;
                nrg_norm_args forward = nrg_norm_args_init(rows, x, w, o);
                forward.b = b;
                ck_assert_int_eq(nrg_norm_forward(&spec, &forward, 0, 1), NRG_OK);
                for (size_t i = 0; i < rows * dim; i++)
                    if (o[i] != b[i % dim])
                        ck_abort_msg("%s, case %zu, way %d: o %zu is %a", nrg_isa_name(paths[path]), n, way, i, (double)o[i]);
            }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("norm_backward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, fused_is_unfused, 0, PARTS);
    tcase_add_loop_test(tests, a_row_does_not_know_its_batch, 0, PARTS);
    tcase_add_loop_test(tests, a_group_does_not_know_its_row, 0, PARTS);
    tcase_add_loop_test(tests, poison_is_not_lost, 0, PARTS);
    tcase_add_loop_test(tests, added_to_zero, 0, PARTS);
    tcase_add_test(tests, added_in_one_rounding);
    tcase_add_test(tests, clamp_holds_where_both_are_equal);
    tcase_add_test(tests, zero_by_structure);
    return test_run(suite);
}
