/* What norm_backward.h promises of values without another implementation at hand: 16-bit results are the f32 results rounded, +
 * dr_in is one addition, a row does not know its batch nor a group its row, NaN and infinity stay in their row, an accumulation
 * to 0 is the sum itself, and one to anything is rounded once; a clamp holds where both sides are equal.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "norm_backward_case.h"

static const size_t dims[] = {1, 3, 16, 31, 64, 96, 129, 256, 300, 513, 2600, 4100};
enum { DIMS = sizeof dims / sizeof dims[0] };

typedef void body(const norm_backward_problem *problem, const norm_options *options, nrg_isa isa);

/* Calls body for problems of every path and dtype at one length. */
static void each_problem(size_t dim, const enum row_kind *kinds, size_t kind_count, body *run)
{
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("norm_backward", dtypes);
    size_t step = test_small() ? 397 : dim > 600 ? 149 : 29;
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (size_t number = dim % step; number < norm_option_count(); number += step) {
            norm_options options;
            norm_backward_problem problem;
            if (!norm_options_at(&options, number, dtypes[dtype]))
                continue;
            norm_options_draw_gate(&options, dim, number);
            norm_backward_problem_make(&problem, &options, dim, dim > 600 ? 3 : 7, kinds, kind_count,
                                       test_mix(number * 8192 + dim));
            for (size_t path = 0; path < path_count; path++) {
                snprintf(test_note, sizeof test_note, "%s: %s", nrg_isa_name(paths[path]), problem.text);
                ck_assert_msg(nrg_isa_set(paths[path]) == NRG_OK, "%s", nrg_isa_name(paths[path]));
                run(&problem, &options, paths[path]);
            }
            norm_backward_problem_free(&problem);
        }
}

/* Both phases. strides: from row to row, of all tensors, in elements; 0: dense. */
static void backward(const norm_backward_problem *p, norm_backward_result *out, size_t stride)
{
    const norm_problem *f = &p->forward;
    const size_t element = nrg_dtype_size(f->spec.dtype), y_element = nrg_dtype_size(f->y_dtype),
                 r_element = nrg_dtype_size(f->r_dtype);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(f->rows, f->x, p->d_o, out->dx);
    args.y = f->y;
    args.z = f->z;
    args.w = f->w;
    args.b = f->b;
    args.dr_in = p->dr_in;
    args.dy = out->dy;
    args.dz = f->z ? out->dz : NULL;
    args.dw = out->dw;
    args.db = out->db;
    args.accumulate = p->accumulate;
    args.x_stride = args.d_o_stride = args.dx_stride = args.z_stride = args.dz_stride = stride * element;
    args.y_stride = args.dy_stride = stride * y_element;
    args.r_stride = args.dr_in_stride = stride * r_element;
    if (p->accumulate) {
        memcpy(out->dw, p->dw, f->spec.dim * sizeof(float));
        memcpy(out->db, p->db, f->spec.dim * sizeof(float));
    }
    nrg_status status = nrg_norm_backward_workspace(&f->spec, &args, &args.workspace_size);
    args.workspace = malloc(args.workspace_size);
    ck_assert_ptr_nonnull(args.workspace);
    if (status == NRG_OK)
        status = nrg_norm_backward(&f->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&f->spec, &args, 0, 1);
    free(args.workspace);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

static void must_equal(const norm_backward_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                       const void *expected, const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->text);
}

static float *as_f32(const void *tensor, size_t count, nrg_dtype dtype)
{
    if (!tensor)
        return NULL;
    float *copy = norm_tensor(1, count, NRG_F32);
    for (size_t i = 0; i < count; i++)
        copy[i] = element_get(tensor, i, dtype);
    return copy;
}

/* The same on f32 tensors, from the rounded r, without dr_in; then + dr_in, and one rounding. */
static void unfused(const norm_backward_problem *p, const norm_options *options, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim, count = f->rows * dim;
    const int after = options->residual == RESIDUAL_AFTER;
    norm_backward_result fused, steps;
    norm_backward_problem f32 = *p;
    f32.forward.spec.dtype = NRG_F32;
    f32.forward.spec.y_dtype = f32.forward.spec.r_dtype = f32.forward.spec.w_dtype = NRG_DTYPE_SAME;
    f32.forward.y_dtype = f32.forward.r_dtype = f32.forward.w_dtype = NRG_F32;
    f32.forward.x = after ? as_f32(f->x, count, f->spec.dtype) : as_f32(p->r, count, f->r_dtype);
    f32.forward.y = NULL;
    f32.forward.z = as_f32(f->z, count, f->spec.dtype);
    f32.forward.w = as_f32(f->w, dim, f->w_dtype);
    f32.forward.b = as_f32(f->b, dim, f->w_dtype);
    f32.d_o = as_f32(p->d_o, count, f->spec.dtype);
    f32.dr_in = NULL;
    norm_backward_result_make(&fused, p);
    norm_backward_result_make(&steps, &f32);
    backward(p, &fused, 0);
    backward(&f32, &steps, 0);
    float *dx = steps.dx;
    void *rounded = norm_tensor(1, count, NRG_F32);
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
    norm_problem_free(&f32.forward);
    norm_backward_result_free(&fused);
    norm_backward_result_free(&steps);
}

START_TEST(fused_is_unfused) { each_problem(dims[_i], NULL, 0, unfused); }
END_TEST

static void *at_element(void *tensor, size_t i, nrg_dtype dtype)
{
    return tensor ? (char *)tensor + i * nrg_dtype_size(dtype) : NULL;
}

/* The part of a problem that begins at an element of its rows. */
static norm_backward_problem part_of(const norm_backward_problem *p, size_t at)
{
    norm_backward_problem part = *p;
    norm_problem *f = &part.forward;
    f->x = at_element(f->x, at, f->spec.dtype);
    f->y = at_element(f->y, at, f->y_dtype);
    f->z = at_element(f->z, at, f->spec.dtype);
    part.d_o = at_element(p->d_o, at, f->spec.dtype);
    part.dr_in = at_element(p->dr_in, at, f->r_dtype);
    return part;
}

static void alone(const norm_backward_problem *p, const norm_options *options, nrg_isa isa)
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
        must_equal(&one, isa, "dx of a row alone", f->spec.dtype, dim, at_element(batch.dx, row * dim, f->spec.dtype), single.dx);
        must_equal(&one, isa, "dy of a row alone", f->y_dtype, dim, at_element(batch.dy, row * dim, f->y_dtype), single.dy);
        if (f->z)
            must_equal(&one, isa, "dz of a row alone", f->spec.dtype, dim, at_element(batch.dz, row * dim, f->spec.dtype),
                       single.dz);
    }
    (void)options;
    norm_backward_result_free(&batch);
    norm_backward_result_free(&single);
}

START_TEST(a_row_does_not_know_its_batch) { each_problem(dims[_i], NULL, 0, alone); }
END_TEST

/* A column of groups is a tensor of its own, with the stride of the whole. */
static void group_alone(const norm_backward_problem *p, const norm_options *options, nrg_isa isa)
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
        one.forward.spec.groups = 0;
        one.forward.w = at_element(f->w, at, f->w_dtype);
        one.forward.b = at_element(f->b, at, f->w_dtype);
        one.dw += at;
        one.db += at;
        backward(&one, &single, dim);
        for (size_t row = 0; row < f->rows; row++) {
            must_equal(&one, isa, "dx of groups alone", f->spec.dtype, d, at_element(batch.dx, row * dim + at, f->spec.dtype),
                       at_element(single.dx, row * dim, f->spec.dtype));
            if (f->z)
                must_equal(&one, isa, "dz of groups alone", f->spec.dtype, d, at_element(batch.dz, row * dim + at, f->spec.dtype),
                           at_element(single.dz, row * dim, f->spec.dtype));
        }
        must_equal(&one, isa, "dw of groups alone", NRG_F32, d, batch.dw + at, single.dw);
        must_equal(&one, isa, "db of groups alone", NRG_F32, d, batch.db + at, single.db);
    }
    (void)options;
    norm_backward_result_free(&batch);
    norm_backward_result_free(&single);
}

START_TEST(a_group_does_not_know_its_row) { each_problem(dims[_i], NULL, 0, group_alone); }
END_TEST

/* One infinity or NaN in r, or in d_o: what comes of that group is no finite number; what comes of another is as if that were not
 * there (a_row_does_not_know_its_batch). dw of the group's columns is none either where h is not. */
static void poisoned(const norm_backward_problem *p, const norm_options *options, nrg_isa isa)
{
    const norm_problem *f = &p->forward;
    const size_t dim = f->spec.dim, d = dim / f->groups;
    norm_backward_result out;
    norm_backward_result_make(&out, p);
    backward(p, &out, 0);
    for (size_t at = 0; at < f->rows * dim; at += d) {
        int poison = 0;
        for (size_t i = at; i < at + d; i++) {
            float r = p->r ? element_get(p->r, i, f->r_dtype) : element_get(f->x, i, f->spec.dtype);
            poison |= !isfinite(r);
        }
        for (size_t i = at; i < at + d && poison; i++) {
            if (isfinite(element_get(out.dx, i, f->spec.dtype)) ||
                (options->residual != RESIDUAL_AFTER && isfinite(element_get(out.dy, i, f->y_dtype))) ||
                (f->z && isfinite(element_get(out.dz, i, f->spec.dtype))) || isfinite(out.dw[i % dim]))
                ck_abort_msg("%s: element %zu of a poisoned group is finite\n  case: %s", nrg_isa_name(isa), i, p->text);
        }
    }
    norm_backward_result_free(&out);
}

START_TEST(poison_is_not_lost)
{
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_ONE_INF, ROW_ONE_NAN};
    each_problem(dims[_i], kinds, sizeof kinds / sizeof kinds[0], poisoned);
}
END_TEST

static void accumulation(const norm_backward_problem *p, const norm_options *options, nrg_isa isa)
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
    (void)options;
    free(zero.dw);
    norm_backward_result_free(&sums);
    norm_backward_result_free(&added);
}

START_TEST(added_to_zero) { each_problem(dims[_i], NULL, 0, accumulation); }
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
            const nrg_norm_spec spec = nrg_rms_norm_spec(1, 0);
            nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, x, d_o, NULL);
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
            nrg_norm_spec spec = centred ? nrg_layer_norm_spec(DIM, 0) : nrg_rms_norm_spec(DIM, 0);
            spec.eps_mode = NRG_EPS_MAX;
            const double norm = 2 * (double)scale; /* ‖q‖, √4 times σ */
            spec.eps = n / 6 == 0 ? norm : n / 6 == 1 ? nextafter(norm, INFINITY) : norm * (1 - 0x1p-50);
            const nrg_norm_backward_args args = nrg_norm_backward_args_init(1, x, d_o, dx);
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

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("norm_backward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, fused_is_unfused, 0, DIMS);
    tcase_add_loop_test(tests, a_row_does_not_know_its_batch, 0, DIMS);
    tcase_add_loop_test(tests, a_group_does_not_know_its_row, 0, DIMS);
    tcase_add_loop_test(tests, poison_is_not_lost, 0, DIMS);
    tcase_add_loop_test(tests, added_to_zero, 0, DIMS);
    tcase_add_test(tests, added_in_one_rounding);
    tcase_add_test(tests, clamp_holds_where_both_are_equal);
    return test_run(suite);
}
