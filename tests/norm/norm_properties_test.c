/* What norm.h promises of values without another implementation at hand: fused equals unfused (sum, gate, norm, activation in
 * turn), a 16-bit result is the f32 result rounded, outputs that are asked for change nothing, a row does not know its batch nor
 * a group its row, shares are the rows they should be, NaN and infinity stay in their row, constant rows without eps give b.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../harness/element.h"
#include "../harness/rows.h"
#include "norm_problem.h"

enum { PARTS = 15 };

/* Calls body for problems of every path and dtype. */
typedef void body(const norm_problem *problem, nrg_isa isa);

static body *the_body;

static void call_body(const plain_case *c, nrg_isa isa)
{
    const norm_problem problem = norm_problem_of(c);
    the_body(&problem, isa);
}

static void each_problem(int part, body *run)
{
    the_body = run;
    plain_each("norm_forward", part, PARTS, 1600, call_body);
}

/* A plain call on the problem's own tensors. */
static void forward(const norm_problem *p, const norm_result *out, int want_r, int want_mean, int want_rstd)
{
    nrg_norm_args args = nrg_norm_args_init(p->rows, p->x, p->w, out->o);
    args.y = p->y;
    args.z = p->z;
    args.b = p->b;
    args.r = want_r ? out->r : NULL;
    args.mean = want_mean ? out->mean : NULL;
    args.rstd = want_rstd ? out->rstd : NULL;
    nrg_status status = nrg_norm_forward(&p->spec, &args, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

static void must_equal(const norm_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count, const void *expected,
                       const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->text);
}

static void asking(const norm_problem *p, nrg_isa isa)
{
    norm_result all, some;
    int may_r = !norm_adds_after(p);
    size_t count = p->rows * p->spec.dim;
    norm_result_make(&all, p);
    norm_result_make(&some, p);
    forward(p, &all, may_r, 1, 1);
    /* all eight ways, or two that depend on the row's length */
    const int step = test_small() ? 5 : 1;
    for (int asked = test_small() ? (int)(p->spec.dim % 5) : 0; asked < 8; asked += step) {
        forward(p, &some, may_r && (asked & 1), asked & 2, asked & 4);
        must_equal(p, isa, "o, with other outputs asked for", p->spec.dtype, count, all.o, some.o);
        if (may_r && (asked & 1))
            must_equal(p, isa, "r", p->r_dtype, count, all.r, some.r);
        if (asked & 2)
            must_equal(p, isa, "mean", NRG_F32, p->rows * p->groups, all.mean, some.mean);
        if (asked & 4)
            must_equal(p, isa, "rstd", NRG_F32, p->rows * p->groups, all.rstd, some.rstd);
    }
    norm_result_free(&all);
    norm_result_free(&some);
}

START_TEST(outputs_asked_for_change_nothing) { each_problem(_i, asking); }
END_TEST

/* g of n floats. */
static void activate(const norm_problem *p, const float *in, float *out, size_t n)
{
    nrg_status status = nrg_activation_forward(p->spec.activation, NRG_F32, n, in, out, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

/* r of a problem, and p where it has a pre-gate, as the tests' own arithmetic has them; gate: g(z), or NULL. */
static float *inputs_of(const norm_problem *p, float **gate)
{
    size_t count = p->rows * p->spec.dim;
    float *r = element_floats(p->x, count, p->spec.dtype);
    *gate = element_floats(p->z, count, p->spec.dtype);
    if (*gate)
        activate(p, *gate, *gate, count);
    for (size_t i = 0; i < count && norm_adds_before(p); i++)
        r[i] = element_round(r[i] + element_get(p->y, i, p->y_dtype), p->r_dtype);
    for (size_t i = 0; i < count && p->spec.gate == NRG_GATE_PRE; i++)
        r[i] *= (*gate)[i];
    return r;
}

/* The same problem in steps: the sum, rounded to r's dtype by the tests' own arithmetic; its product with a gate; the norm of it
 * on f32 tensors; a gate or an activation; the residual; for a 16-bit dtype, one rounding. */
static void unfused(const norm_problem *p, nrg_isa isa)
{
    size_t count = p->rows * p->spec.dim;
    int after = norm_adds_after(p);
    float *gate;
    norm_result fused, steps;
    norm_problem f32 = *p;
    f32.spec.dtype = NRG_F32;
    f32.spec.y_dtype = f32.spec.r_dtype = f32.spec.w_dtype = NRG_DTYPE_SAME;
    f32.spec.gate = NRG_GATE_NONE;
    f32.spec.activation = NRG_ACT_IDENTITY;
    f32.spec.residual_mode = NRG_RESIDUAL_BEFORE;
    f32.y_dtype = f32.r_dtype = f32.w_dtype = NRG_F32;
    f32.x = inputs_of(p, &gate);
    f32.y = f32.z = NULL;
    f32.w = element_floats(p->w, p->spec.dim, p->w_dtype);
    f32.b = element_floats(p->b, p->spec.dim, p->w_dtype);
    norm_result_make(&fused, p);
    norm_result_make(&steps, &f32);
    forward(p, &fused, !after, 1, 1);
    forward(&f32, &steps, 0, 1, 1);
    for (size_t i = 0; i < count && !after; i++) {
        float r = element_get(fused.r, i, p->r_dtype), sum = element_get(p->x, i, p->spec.dtype);
        if (p->y)
            sum = element_round(sum + element_get(p->y, i, p->y_dtype), p->r_dtype);
        if (!element_equal(&r, &sum, 0, NRG_F32))
            ck_abort_msg("%s: r %zu is %.9g and not %.9g\n  case: %s", nrg_isa_name(isa), i, (double)r, (double)sum, p->text);
    }
    float *o = steps.o;
    void *rounded = malloc(count * nrg_dtype_size(p->spec.dtype));
    if (!rounded)
        abort();
    if (p->spec.gate == NRG_GATE_NONE)
        activate(p, o, o, count);
    for (size_t i = 0; i < count; i++) {
        if (p->spec.gate == NRG_GATE_POST)
            o[i] *= gate[i];
        if (after)
            o[i] += element_get(p->y, i, p->y_dtype);
        element_set(rounded, i, p->spec.dtype, o[i]);
    }
    must_equal(p, isa, "fused o", p->spec.dtype, count, rounded, fused.o);
    must_equal(p, isa, "fused mean", NRG_F32, p->rows * p->groups, steps.mean, fused.mean);
    must_equal(p, isa, "fused rstd", NRG_F32, p->rows * p->groups, steps.rstd, fused.rstd);
    free(rounded);
    free(gate);
    norm_result_free(&fused);
    norm_result_free(&steps);
    free(f32.x);
    free(f32.w);
    free(f32.b);
}

START_TEST(fused_is_unfused) { each_problem(_i, unfused); }
END_TEST

static void *at_row(void *tensor, size_t row, size_t dim, nrg_dtype dtype) { return element_at(tensor, row * dim, dtype); }

static void alone(const norm_problem *p, nrg_isa isa)
{
    norm_result batch, single;
    size_t dim = p->spec.dim;
    norm_result_make(&batch, p);
    norm_result_make(&single, p);
    forward(p, &batch, 0, 1, 1);
    for (size_t row = 0; row < p->rows; row++) {
        norm_problem one = *p;
        one.rows = 1;
        one.x = at_row(p->x, row, dim, p->spec.dtype);
        one.y = at_row(p->y, row, dim, p->y_dtype);
        one.z = at_row(p->z, row, dim, p->spec.dtype);
        forward(&one, &single, 0, 1, 1);
        must_equal(&one, isa, "o of a row alone", p->spec.dtype, dim, at_row(batch.o, row, dim, p->spec.dtype), single.o);
        must_equal(&one, isa, "mean of a row alone", NRG_F32, p->groups, batch.mean + row * p->groups, single.mean);
        must_equal(&one, isa, "rstd of a row alone", NRG_F32, p->groups, batch.rstd + row * p->groups, single.rstd);
    }
    norm_result_free(&batch);
    norm_result_free(&single);
}

START_TEST(a_row_does_not_know_its_batch) { each_problem(_i, alone); }
END_TEST

/* A group is a row of its own, with its part of w and b. */
static void group_alone(const norm_problem *p, nrg_isa isa)
{
    norm_result batch, single;
    size_t dim = p->spec.dim / p->groups;
    norm_result_make(&batch, p);
    norm_result_make(&single, p);
    forward(p, &batch, 0, 1, 1);
    for (size_t n = 0; n < p->rows * p->groups && p->groups > 1; n++) {
        norm_problem one = *p;
        one.spec.dim = dim;
        one.spec.groups = one.groups = one.rows = 1;
        one.x = at_row(p->x, n, dim, p->spec.dtype);
        one.y = at_row(p->y, n, dim, p->y_dtype);
        one.z = at_row(p->z, n, dim, p->spec.dtype);
        one.w = at_row(p->w, n % p->groups, dim, p->w_dtype);
        one.b = at_row(p->b, n % p->groups, dim, p->w_dtype);
        forward(&one, &single, 0, 1, 1);
        must_equal(&one, isa, "o of a group alone", p->spec.dtype, dim, at_row(batch.o, n, dim, p->spec.dtype), single.o);
        must_equal(&one, isa, "mean of a group alone", NRG_F32, 1, batch.mean + n, single.mean);
        must_equal(&one, isa, "rstd of a group alone", NRG_F32, 1, batch.rstd + n, single.rstd);
    }
    norm_result_free(&batch);
    norm_result_free(&single);
}

START_TEST(a_group_does_not_know_its_row) { each_problem(_i, group_alone); }
END_TEST

/* NaN or infinity in p: all of that row, or group, is NaN, and another is not. */
static void poisoned(const norm_problem *p, nrg_isa isa)
{
    size_t dim = p->spec.dim / p->groups;
    float *gate, *in = inputs_of(p, &gate);
    norm_result out;
    norm_result_make(&out, p);
    forward(p, &out, 0, 1, 1);
    for (size_t row = 0; row < p->rows * p->groups; row++) {
        int poison = 0, stray = 0;
        for (size_t i = row * dim; i < (row + 1) * dim; i++) {
            poison |= !isfinite(in[i]);
            stray |= isnan(element_get(out.o, i, p->spec.dtype));
        }
        int all = isnan(out.mean[row]) && isnan(out.rstd[row]);
        for (size_t i = row * dim; i < (row + 1) * dim; i++)
            all = all && isnan(element_get(out.o, i, p->spec.dtype));
        if (poison && !all)
            ck_abort_msg("%s: row %zu is poisoned and not all NaN\n  case: %s", nrg_isa_name(isa), row, p->text);
        if (!poison && (isnan(out.mean[row]) || isnan(out.rstd[row])))
            ck_abort_msg("%s: row %zu has NaN statistics without a reason\n  case: %s", nrg_isa_name(isa), row, p->text);
        /* w, b, the z of a post-gate and a y that comes after may hold NaN themselves, or overflow */
        if (!poison && stray && !p->w && !p->b && !norm_adds_after(p) && p->spec.gate != NRG_GATE_POST)
            ck_abort_msg("%s: row %zu has a NaN without a reason\n  case: %s", nrg_isa_name(isa), row, p->text);
    }
    free(in);
    free(gate);
    norm_result_free(&out);
}

START_TEST(poison_stays_in_its_row) { each_problem(_i, poisoned); }
END_TEST

/* s = 0: o is b (or y, or their sum), and rstd 0. */
static void constant(const norm_problem *p, nrg_isa isa)
{
    size_t dim = p->spec.dim;
    if (!p->spec.centred || norm_adds_before(p) || p->spec.gate || p->spec.activation || p->groups > 1)
        return;
    norm_problem exact = *p;
    exact.spec.eps = 0;
    norm_result out;
    norm_result_make(&out, p);
    forward(&exact, &out, 0, 1, 1);
    for (size_t row = 0; row < p->rows; row++) {
        float first = element_get(p->x, row * dim, p->spec.dtype);
        int same = 1;
        for (size_t i = 1; i < dim; i++)
            same = same && element_get(p->x, row * dim + i, p->spec.dtype) == first;
        if (!same)
            continue;
        ck_assert_msg(out.rstd[row] == 0 && out.mean[row] == first, "%s: mean %.9g and rstd %.9g of a row of %.9g; %s",
                      nrg_isa_name(isa), (double)out.mean[row], (double)out.rstd[row], (double)first, p->text);
        for (size_t i = 0; i < dim; i++) {
            float b = p->b ? element_get(p->b, i, p->w_dtype) : 0, w = p->w ? element_get(p->w, i, p->w_dtype) : 1;
            float sum = p->y ? b + element_get(p->y, row * dim + i, p->y_dtype) : b;
            float expected = element_round(sum, p->spec.dtype), got = element_get(out.o, row * dim + i, p->spec.dtype);
            /* a weight that is no number leaves nothing to say */
            if (isfinite(w) && got != expected && !(isnan(got) && isnan(expected)))
                ck_abort_msg("%s: row %zu element %zu is %.9g and not %.9g\n  case: %s", nrg_isa_name(isa), row, i, (double)got,
                             (double)expected, p->text);
        }
    }
    norm_result_free(&out);
}

START_TEST(constant_rows_without_eps) { each_problem(_i, constant); }
END_TEST

/* An eps whose reciprocal no double holds makes no NaN where there is nothing beside it. */
START_TEST(constant_rows_with_the_smallest_eps)
{
    enum { DIM = 64 };
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    float x[DIM], o[DIM];
    for (size_t path = 0; path < count; path++)
        for (int mode = NRG_EPS_MEAN; mode <= NRG_EPS_NONE; mode++)
            for (int centred = 0; centred < 2; centred++) {
                nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-310);
                nrg_norm_args args = nrg_norm_args_init(1, x, NULL, o);
                spec.centred = centred;
                spec.eps_mode = (nrg_eps_mode)mode;
                norm_settle(&spec, 0);
                for (size_t i = 0; i < DIM; i++)
                    x[i] = centred ? 3 : 0;
                memset(o, 0xff, sizeof o);
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
                for (size_t i = 0; i < DIM; i++)
                    ck_assert_msg(o[i] == 0, "%s, mode %d: %g", nrg_isa_name(paths[path]), mode, (double)o[i]);
            }
}
END_TEST

/* An eps below 2^-600 is none: where σ is 0, so is 1/s. From 2^-600 on it is an eps, and 1/s beyond the floats. */
START_TEST(eps_about_the_smallest_that_counts)
{
    enum { DIM = 64 };
    static const double none[] = {0x1p-1074, 0x1p-1000, 0x1p-700, 0x1p-650, 0x1p-611, 0x1.fffffffffffffp-601},
                        some[] = {0x1p-600, 0x1p-580};
    static const nrg_eps_mode modes[] = {NRG_EPS_MEAN, NRG_EPS_SIGMA, NRG_EPS_SUM, NRG_EPS_MAX};
    nrg_isa paths[NRG_ISA_COUNT];
    float x[DIM], o[DIM], rstd;
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 8 * 8; n++) {
            const size_t which = n % 8;
            const int centred = n / 8 % 2;
            nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, which < 6 ? none[which] : some[which - 6]);
            spec.eps_mode = modes[n / 16];
            spec.centred = centred;
            /* what counts is eps/d, and eps/√d */
            if (spec.eps_mode == NRG_EPS_SUM)
                spec.eps *= DIM;
            if (spec.eps_mode == NRG_EPS_MAX)
                spec.eps *= 8;
            for (size_t i = 0; i < DIM; i++)
                x[i] = centred ? 3 : 0;
            nrg_norm_args args = nrg_norm_args_init(1, x, NULL, o);
            args.rstd = &rstd;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
            if (rstd != (which < 6 ? 0 : INFINITY) || o[0] != 0)
                ck_abort_msg("%s, eps mode %d %a: rstd %g, o %g", nrg_isa_name(paths[path]), (int)spec.eps_mode, spec.eps,
                             (double)rstd, (double)o[0]);
        }
}
END_TEST

/* A gated row alone, of more than a segment, is walked in other pieces than rows of a batch, and both in other pieces than
 * ungated ones. Where outputs replace the gates, r = x + y needs a buffer of its own. */
START_TEST(long_rows_with_a_gate)
{
    enum { ROWS = 2, MOST = 12300 };
    static const size_t dims[] = {4096, 4097, 4160, 5632, 8192, 8199, MOST};
    static const nrg_gate gates[] = {NRG_GATE_PRE, NRG_GATE_POST};
    static const nrg_activation activations[] = {NRG_ACT_SILU, NRG_ACT_TANH};
    static float x[ROWS * MOST], z[ROWS * MOST], y[ROWS * MOST], expected[ROWS * MOST], got[ROWS * MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths), dim = dims[_i];
    if (test_small() && _i % 3 != 2)
        return;
    row_fill(x, ROWS * dim, ROW_NORMAL, NRG_F32, 1);
    row_fill(y, ROWS * dim, ROW_NORMAL, NRG_F32, 2);
    row_fill(z, ROWS * dim, ROW_NORMAL, NRG_F32, 3);
    for (int n = 0; n < 32; n++) {
        nrg_norm_spec spec = n & 1 ? nrg_norm_spec_layer(NRG_F32, dim, 1e-5) : nrg_norm_spec_rms(NRG_F32, dim, 1e-6);
        spec.gate = gates[n >> 1 & 1];
        spec.activation = activations[n >> 2 & 1];
        spec.accuracy = n & 8 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
        for (size_t path = 0; path < count; path++)
            for (size_t left = 2 * ROWS; left > 0; left--) {
                const size_t rows = (left + 1) / 2;
                nrg_norm_args args = nrg_norm_args_init(rows, x, NULL, path || left != 2 * ROWS ? got : expected);
                args.y = n & 16 ? y : NULL;
                args.z = left % 2 ? memcpy(got, z, rows * dim * sizeof *z) : z;
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
                if (args.o == got && memcmp(got, expected, rows * dim * sizeof *got) != 0)
                    ck_abort_msg("%s: %zu rows of %zu, options %d%s", nrg_isa_name(paths[path]), rows, dim, n,
                                 args.z == got ? ", over the gates" : "");
            }
    }
}
END_TEST

/* The bytes of a long row that share a scale are written from the last chunk to the first, and none outside of the row. */
START_TEST(long_rows_of_bytes)
{
    enum { ROWS = 3, MOST = 8192, BESIDE = 4096 };
    static const size_t dims[] = {2048, 2080, 4096, 6176, MOST};
    static float x[ROWS * MOST];
    static int8_t bytes[2][ROWS * MOST + BESIDE];
    float scales[2][ROWS];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    row_fill(x, ROWS * MOST, ROW_NORMAL, NRG_F32, 1);
    for (size_t n = 0; n < 2 * sizeof dims / sizeof dims[0]; n++) {
        const size_t dim = dims[n / 2];
        nrg_norm_spec spec = n % 2 ? nrg_norm_spec_layer(NRG_F32, dim, 1e-5) : nrg_norm_spec_rms(NRG_F32, dim, 1e-6);
        spec.format = NRG_QUANT_INT8;
        for (size_t path = 0; path < count; path++) {
            nrg_norm_args args = nrg_norm_args_init(ROWS, x, NULL, NULL);
            args.packed = memset(bytes[path != 0], 0x55, sizeof bytes[0]);
            args.scales = scales[path != 0];
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
            if (path && (memcmp(bytes[0], bytes[1], sizeof bytes[0]) != 0 || memcmp(scales[0], scales[1], sizeof scales[0]) != 0))
                ck_abort_msg("%s: rows of %zu, %s", nrg_isa_name(paths[path]), dim, n % 2 ? "layer" : "rms");
        }
    }
}
END_TEST

/* The largest c there may be, and what comes of it: ±1 times c/√d. */
START_TEST(largest_constant)
{
    static const size_t lengths[] = {1, 4, 64};
    nrg_isa paths[NRG_ISA_COUNT];
    float x[64], o[64];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 3 * 2 * 2; n++) {
            const size_t dim = lengths[n % 3];
            const double c = n / 3 % 2 ? -FLT_MAX : FLT_MAX;
            nrg_norm_spec spec = n / 6 && dim > 1 ? nrg_norm_spec_layer(NRG_F32, dim, 0) : nrg_norm_spec_rms(NRG_F32, dim, 0);
            spec.c_mode = NRG_C_GIVEN;
            spec.c = c;
            for (size_t i = 0; i < dim; i++)
                x[i] = i % 2 ? -7 : 7;
            const nrg_norm_args args = nrg_norm_args_init(1, x, NULL, o);
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
            for (size_t i = 0; i < dim; i++)
                if (o[i] != (float)((i % 2 ? -c : c) / sqrt((double)dim)))
                    ck_abort_msg("%s, c %a, dim %zu: o %zu is %a", nrg_isa_name(paths[path]), c, dim, i, (double)o[i]);
        }
}
END_TEST

/* A NaN of any bits in f32 is one in 16 bits, where rounding like a number would make of the last of them a zero; also in r. */
START_TEST(nans_of_any_bits)
{
    enum { DIM = 40 };
    static const uint32_t payloads[] = {0x7fffffff, 0xffffffff, 0x7fc00000, 0xffc00000, 0x7fffc000, 0x7fff8000,
                                        0x7ff00000, 0x7fc00001, 0x7fe01fff, 0xffffefff, 0x7fff7fff};
    static const nrg_dtype halves[] = {NRG_F16, NRG_BF16};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < 2 * DIM * sizeof payloads / sizeof payloads[0]; n++) {
            uint16_t x[DIM], o[DIM], r[DIM];
            float y[DIM];
            const size_t place = n / 2 % DIM;
            nrg_norm_spec spec = nrg_norm_spec_rms(halves[n % 2], DIM, 1e-5);
            spec.y_dtype = NRG_F32;
            for (size_t i = 0; i < DIM; i++) {
                element_set(x, i, spec.dtype, 1);
                y[i] = (float)i;
            }
            memcpy(&y[place], &payloads[n / 2 / DIM], sizeof y[0]);
            nrg_norm_args args = nrg_norm_args_init(1, x, NULL, o);
            args.y = y;
            args.r = r;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
            for (size_t i = 0; i < DIM; i++)
                if (!isnan(element_get(o, i, spec.dtype)) || !isnan(element_get(r, i, spec.dtype)) != (i != place))
                    ck_abort_msg("%s, %s, 0x%08x at %zu: o %zu is 0x%04x, r 0x%04x", nrg_isa_name(paths[path]),
                                 nrg_dtype_name(spec.dtype), (unsigned)payloads[n / 2 / DIM], place, i, o[i], r[i]);
        }
}
END_TEST

/* One share writes its own rows and no others; shares are contiguous and as equal as can be. */
START_TEST(shares)
{
    enum { DIM = 70, MOST = 23 };
    static float x[MOST * DIM], o[MOST * DIM], all[MOST * DIM], mean[MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    for (size_t i = 0; i < MOST * DIM; i++)
        x[i] = (float)(test_mix(i) % 1000) / 100;
    for (size_t path = 0; path < count; path++)
        for (size_t rows = 0; rows <= MOST; rows++)
            for (int nth = 1; nth <= 26; nth++) {
                size_t next = 0, least = SIZE_MAX, most = 0;
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                ck_assert_int_eq(nrg_layer_norm_f32(rows, DIM, x, NULL, NULL, all, 1e-5), NRG_OK);
                for (int ith = 0; ith < nth; ith++) {
                    nrg_norm_args args = nrg_norm_args_init(rows, x, NULL, o);
                    args.mean = mean;
                    memset(o, 0xff, sizeof o);
                    memset(mean, 0xff, sizeof mean);
                    ck_assert_int_eq(nrg_norm_forward(&spec, &args, ith, nth), NRG_OK);
                    size_t begin = next;
                    while (next < rows && memcmp(&o[next * DIM], &all[next * DIM], DIM * sizeof(float)) == 0 &&
                           !isnan(mean[next]))
                        next++;
                    for (size_t i = 0; i < MOST * DIM; i++)
                        if ((i / DIM < begin || i / DIM >= next) && (!isnan(o[i]) || !isnan(mean[i / DIM])))
                            ck_abort_msg("%s: share %d of %d of %zu rows writes row %zu", nrg_isa_name(paths[path]), ith, nth,
                                         rows, i / DIM);
                    least = next - begin < least ? next - begin : least;
                    most = next - begin > most ? next - begin : most;
                }
                ck_assert_uint_eq(next, rows);
                ck_assert_uint_le(most - least, 1);
            }
}
END_TEST

/* The same in groups, which are what is shared out. */
START_TEST(shares_of_groups)
{
    enum { DIM = 24, MOST = 5 };
    static float x[MOST * DIM], o[MOST * DIM], all[MOST * DIM], mean[MOST * DIM], z[MOST * DIM];
    static const size_t numbers[] = {1, 2, 3, 4, 6, 8, 24};
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t i = 0; i < MOST * DIM; i++) {
        x[i] = (float)(test_mix(i) % 1000) / 100;
        z[i] = (float)(test_mix(i) % 100) / 50 + 1;
    }
    for (size_t path = 0; path < count; path++)
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
            for (size_t rows = 1; rows <= MOST; rows++)
                for (int nth = 1; nth <= 37; nth++) {
                    size_t groups = numbers[n], dim = DIM / groups, next = 0, least = SIZE_MAX, most = 0;
                    nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, DIM, 1e-5);
                    nrg_norm_args args = nrg_norm_args_init(rows, x, NULL, all);
                    spec.groups = groups;
                    spec.gate = NRG_GATE_PRE;
                    args.z = z;
                    args.mean = mean;
                    ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
                    args.o = o;
                    for (int ith = 0; ith < nth; ith++) {
                        memset(o, 0xff, sizeof o);
                        memset(mean, 0xff, sizeof mean);
                        ck_assert_int_eq(nrg_norm_forward(&spec, &args, ith, nth), NRG_OK);
                        size_t begin = next;
                        while (next < rows * groups && memcmp(&o[next * dim], &all[next * dim], dim * sizeof(float)) == 0 &&
                               !isnan(mean[next]))
                            next++;
                        for (size_t i = 0; i < MOST * DIM; i++)
                            if ((i / dim < begin || i / dim >= next) && (!isnan(o[i]) || !isnan(mean[i / dim])))
                                ck_abort_msg("%s: share %d of %d of %zu rows of %zu groups writes group %zu",
                                             nrg_isa_name(paths[path]), ith, nth, rows, groups, i / dim);
                        least = next - begin < least ? next - begin : least;
                        most = next - begin > most ? next - begin : most;
                    }
                    ck_assert_uint_eq(next, rows * groups);
                    ck_assert_uint_le(most - least, 1);
                }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("norm_forward: what the header promises");
    TCase *tests = test_case(suite, "properties");
    tcase_add_loop_test(tests, outputs_asked_for_change_nothing, 0, PARTS);
    tcase_add_loop_test(tests, fused_is_unfused, 0, PARTS);
    tcase_add_loop_test(tests, a_row_does_not_know_its_batch, 0, PARTS);
    tcase_add_loop_test(tests, a_group_does_not_know_its_row, 0, PARTS);
    tcase_add_loop_test(tests, poison_stays_in_its_row, 0, PARTS);
    tcase_add_loop_test(tests, constant_rows_without_eps, 0, PARTS);
    tcase_add_test(tests, constant_rows_with_the_smallest_eps);
    tcase_add_test(tests, eps_about_the_smallest_that_counts);
    tcase_add_test(tests, largest_constant);
    tcase_add_loop_test(tests, long_rows_with_a_gate, 0, 7);
    tcase_add_test(tests, long_rows_of_bytes);
    tcase_add_test(tests, nans_of_any_bits);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, shares_of_groups);
    return test_run(suite);
}
