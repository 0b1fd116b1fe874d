/* The backward pass: scalar against the exact gradient, on the stress set of rows; and the other paths against scalar on the way.
 *
 * The exact gradient is norm_backward_exact.h's, which the first test holds against automatic differentiation (dual numbers) of
 * the forward pass's definition. For a pre-gate p is r·g(z) rounded to f32, as the definition has it; the g(z) in it is the
 * library's own.
 *
 * The bound. A term of dq is |dh|/s, or |h|·a·(Σ|dh·h|)/(d·s), its sum taken of magnitudes; of dp, also the mean of the larger of
 * these; an error of dp is at most 5.5 ulp of the largest. h, where it is a factor (dw, o1), counts as 1 in centred norms where
 * it is smaller: it is a difference. What multiplies it afterwards multiplies the bound, and + dr_in is another term. Where an
 * activation is in do1, its error is not the backward pass's: do1 may be off by 3 ulp of g, or 4 of the largest term of g', by
 * half an ulp of its own, and what g' changes by within 3 ulp of o1; this is followed through the formulas and comes on top. dw
 * and db are summed over four rows in f32: half an ulp of the result, and 4 or 2 times 2^-24 of the magnitudes that are summed.
 *
 * `norm_backward_truth_test --report` prints the worst errors, in ulps of the largest term, as a Markdown table and nothing else;
 * dw and db in 2^-24 of the sum of magnitudes.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad_dual.h"
#include "../harness/quad_ulp.h"
#include "../harness/rows.h"
#include "../harness/truth.h"
#include "norm_backward_exact.h"

enum { GATES = NRG_GATE_POST + 1, ACTIVATIONS = NRG_ACT_SOFTPLUS + 1 };

static const double term_limit = 5.5, dw_limit = 4, db_limit = 2, activation_limit = 3, slope_limit = 4;

enum column { COLUMN_DX_RMS, COLUMN_DX_LAYER, COLUMN_DX_GATED, COLUMN_DZ, COLUMN_DW, COLUMN_DB, COLUMNS };

static double (*worst)[COLUMNS];
static unsigned long *measured;

static void record(enum row_kind kind, enum column column, double error)
{
    if (error > worst[kind][column])
        worst[kind][column] = error;
    ++*measured;
}

/* ---- the formulas against automatic differentiation ---- */

/* Σ d_o·o of one group, straight from the definition in nrg/norm.h. */
static dual loss(const nrg_norm_spec *spec, size_t d, const dual *r, const dual *z, const dual *w, const dual *b, const quad *d_o)
{
    enum { MOST = 16 };
    dual p[MOST], m = dual_of(0), square = dual_of(0), n = dual_of((quad)d), eps = dual_of(spec->eps), s, sum = dual_of(0);
    for (size_t i = 0; i < d; i++) {
        p[i] = spec->gate == NRG_GATE_PRE ? dual_mul(r[i], dual_g(spec->activation, z[i])) : r[i];
        m = dual_add(m, p[i]);
    }
    m = spec->centred ? dual_div(m, n) : dual_of(0);
    for (size_t i = 0; i < d; i++) {
        dual q = dual_sub(p[i], m);
        square = dual_add(square, dual_mul(q, q));
    }
    switch (spec->eps_mode) {
    case NRG_EPS_MEAN:
        s = dual_sqrt(dual_add(dual_div(square, n), eps));
        break;
    case NRG_EPS_SUM:
        s = dual_div(dual_sqrt(dual_add(square, eps)), dual_sqrt(n));
        break;
    case NRG_EPS_SIGMA:
        s = dual_add(dual_sqrt(dual_div(square, n)), eps);
        break;
    case NRG_EPS_MAX:
        s = dual_sqrt(square);
        s = dual_div(s.v > eps.v ? s : eps, dual_sqrt(n));
        break;
    default:
        s = dual_sqrt(dual_div(square, n));
        break;
    }
    dual k = spec->c != 0 ? dual_div(dual_of(spec->c), dual_sqrt(n)) : dual_of(1);
    for (size_t i = 0; i < d; i++) {
        dual o = s.v > 0 ? dual_mul(dual_mul(k, dual_div(dual_sub(p[i], m), s)), w[i]) : dual_of(0);
        o = dual_add(o, b[i]);
        if (spec->gate == NRG_GATE_POST)
            o = dual_mul(o, dual_g(spec->activation, z[i]));
        if (spec->gate == NRG_GATE_NONE)
            o = dual_g(spec->activation, o);
        sum = dual_add(sum, dual_mul(o, dual_of(d_o[i])));
    }
    return sum;
}

static void differentiate(const nrg_norm_spec *spec, size_t d, uint64_t seed)
{
    enum { MOST = 16 };
    exact_element e[MOST];
    dual inputs[4][MOST]; /* r, z, w, b */
    quad d_o[MOST], scratch[MOST];
    uint64_t state = seed;
    memset(e, 0, sizeof e);
    for (size_t i = 0; i < d; i++) {
        for (int which = 0; which < 4; which++)
            inputs[which][i] = dual_of(2 * test_uniform(&state));
        d_o[i] = test_uniform(&state);
        e[i].r = inputs[0][i].v;
        e[i].z = inputs[1][i].v;
        e[i].w = inputs[2][i].v;
        e[i].b = inputs[3][i].v;
        e[i].d_o = d_o[i];
        e[i].p = spec->gate == NRG_GATE_PRE ? e[i].r * quad_activation(spec->activation, e[i].z).value : e[i].r;
    }
    exact_group group = exact_backward(spec, d, e, scratch);
    for (size_t i = 0; i < d; i++)
        for (int which = 0; which < 4; which++) {
            inputs[which][i].e = 1;
            quad derivative = loss(spec, d, inputs[0], inputs[1], inputs[2], inputs[3], d_o).e;
            inputs[which][i].e = 0;
            const quad formula[] = {e[i].dr, e[i].dz, e[i].dw, e[i].db};
            quad size = 1 + group.inverse * (1 + group.a);
            if (quad_abs(derivative - formula[which]) > (quad)0x1p-70 * size)
                ck_abort_msg("by %s %zu: %.17g, and by the formula %.17g; gate %d, %s, centred %d, eps mode %d %g, c %g, d %zu",
                             (const char *[]){"r", "z", "w", "b"}[which], i, (double)derivative, (double)formula[which],
                             (int)spec->gate, nrg_activation_name(spec->activation), spec->centred, (int)spec->eps_mode,
                             spec->eps, spec->c, d);
        }
}

START_TEST(formulas)
{
    static const double eps[] = {1e-5, 0.25, 3};
    for (size_t d = 1; d <= 7; d += d < 3 ? 1 : 2)
        for (int gate = 0; gate < GATES; gate++)
            for (int g = 0; g < ACTIVATIONS; g++)
                for (int centred = 0; centred < 2; centred++)
                    for (int mode = 0; mode <= NRG_EPS_NONE; mode++)
                        for (int n = 0; n < 3; n++) {
                            nrg_norm_spec spec = nrg_layer_norm_spec(d, eps[n]);
                            spec.centred = centred;
                            spec.eps_mode = (nrg_eps_mode)mode;
                            spec.gate = (nrg_gate)gate;
                            spec.activation = (nrg_activation)g;
                            spec.c = n - 1;
                            differentiate(&spec, d, test_mix(d * 100 + (size_t)n));
                        }
}
END_TEST

/* g' against differences of g, which no formula of it goes into. */
START_TEST(slopes)
{
    const quad step = 0x1p-32;
    for (int g = 0; g < ACTIVATIONS; g++)
        for (double x = -12; x <= 12; x += 0.0625 + 0x1p-20) {
            quad_g at = quad_activation((nrg_activation)g, x);
            quad difference =
                (quad_activation((nrg_activation)g, x + step).value - quad_activation((nrg_activation)g, x - step).value) /
                (2 * step);
            if (fabs(x) > 0x1p-30 && quad_abs(difference - at.slope) > (quad)0x1p-55)
                ck_abort_msg("%s at %g: %.17g and not %.17g", nrg_activation_name((nrg_activation)g), x, (double)at.slope,
                             (double)difference);
        }
}
END_TEST

/* ---- the library against the formulas ---- */

typedef struct backward_case {
    nrg_norm_spec spec;
    enum row_kind kind;
    size_t rows;
    float *x, *z, *w, *b, *d_o, *dr_in; /* NULL where absent */
    float *dx, *dz, *dw, *db;
    double limit; /* of dx and dz, in ulps of the largest term */
    char text[320];
} backward_case;

static float *new_rows(size_t rows, size_t dim, enum row_kind kind, uint64_t seed)
{
    float *all = test_allocate(rows * dim, sizeof *all);
    for (size_t row = 0; row < rows; row++)
        row_fill(all + row * dim, dim, kind, NRG_F32, test_mix(seed + row));
    return all;
}

static void make_case(backward_case *t, enum row_kind kind, size_t dim, size_t rows, int gated, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    uint64_t state = seed;
    size_t features = test_draw(&state, 8), groups = 1 + test_draw(&state, 4), gradient = test_draw(&state, 4);
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->rows = rows;
    t->limit = term_limit;
    t->spec = test_draw(&state, 2) ? nrg_layer_norm_spec(dim, 0) : nrg_rms_norm_spec(dim, 0);
    t->spec.eps_mode = (nrg_eps_mode)(test_draw(&state, 2) ? test_draw(&state, NRG_EPS_NONE + 1) : 0);
    t->spec.eps = eps[test_draw(&state, 4)];
    t->spec.c = test_draw(&state, 4) ? 0 : 1;
    t->spec.groups = dim % groups == 0 ? groups : 1;
    if (gated) {
        t->spec.gate = (nrg_gate)test_draw(&state, GATES);
        t->spec.activation = (nrg_activation)test_draw(&state, ACTIVATIONS);
    }
    t->x = new_rows(rows, dim, kind, test_draw(&state, 1u << 30));
    if (features & 3)
        t->w = new_rows(1, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    t->spec.weight_offset = features == 2 ? 1 : 0;
    if (features == 3 || features == 4)
        t->b = new_rows(1, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    if (t->spec.gate != NRG_GATE_NONE)
        t->z = new_rows(rows, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    t->d_o = new_rows(rows, dim, gradient == 0 ? ROW_EQUAL : ROW_NORMAL, test_draw(&state, 1u << 30));
    for (size_t i = 0; i < rows * dim && gradient == 1; i++)
        if (i % dim != i / dim % dim) /* one of a row that is not 0 */
            t->d_o[i] = 0;
    if (test_draw(&state, 4) == 0)
        t->dr_in = new_rows(rows, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    t->dx = test_allocate(rows * dim, sizeof *t->dx);
    t->dz = test_allocate(rows * dim, sizeof *t->dz);
    t->dw = test_allocate(dim, sizeof *t->dw);
    t->db = test_allocate(dim, sizeof *t->db);
    static const char *const gradients[] = {"constant", "one-hot", "random", "random"};
    snprintf(t->text, sizeof t->text,
             "%s, d_o %s, gate %d, %s, %s, dim %zu groups %zu rows %zu, features %zu, eps mode %d %g, c %g, seed 0x%llx",
             row_kind_name(kind), gradients[gradient], (int)t->spec.gate, nrg_activation_name(t->spec.activation),
             t->spec.centred ? "layer" : "rms", dim, t->spec.groups, rows, features, (int)t->spec.eps_mode, t->spec.eps,
             t->spec.c, (unsigned long long)seed);
}

static void free_case(backward_case *t)
{
    float *const all[] = {t->x, t->z, t->w, t->b, t->d_o, t->dr_in, t->dx, t->dz, t->dw, t->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static const char *run(nrg_isa isa, const backward_case *t, float *dx, float *dz, float *dw, float *db)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(t->rows, t->x, t->d_o, dx);
    args.z = t->z;
    args.w = t->w;
    args.b = t->b;
    args.dr_in = t->dr_in;
    args.dz = t->z ? dz : NULL;
    args.dw = dw;
    args.db = db;
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = nrg_norm_backward_workspace(&t->spec, &args, &args.workspace_size);
    args.workspace = test_allocate(args.workspace_size, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward(&t->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&t->spec, &args, 0, 1);
    free(args.workspace);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

/* What may be off in dh, and what that does to dp. */
typedef struct slack {
    double *dh, mean_cross, mean;
} slack;

/* do1's error, which comes from its activation and its rounding. */
static double error_of_do1(const nrg_norm_spec *spec, const exact_element *e)
{
    if (spec->gate == NRG_GATE_POST)
        return quad_magnitude(e->d_o) * activation_limit * quad_ulp(e->g) + quad_ulp(e->do1) / 2;
    if (spec->gate != NRG_GATE_NONE || spec->activation == NRG_ACT_IDENTITY)
        return 0;
    double change = 0, reach = 3 * quad_ulp(e->o1_size);
    quad slope = quad_activation(spec->activation, e->o1).slope;
    for (int side = -1; side <= 1; side += 2)
        change = fmax(change, quad_magnitude(quad_activation(spec->activation, e->o1 + side * (quad)reach).slope - slope));
    return quad_magnitude(e->d_o) * (change + slope_limit * quad_ulp(e->slope_size)) + quad_ulp(e->do1) / 2;
}

/* got against exact. bound: 4 units, and what is beside them. NULL, or what broke it. */
static const char *hold(const backward_case *t, enum column column, const char *name, size_t i, quad exact, float got,
                        double unit, double limit, double beside)
{
    const double off = quad_magnitude(exact - got);
    if (isinf(got) && (got > 0) == (exact > 0) && quad_magnitude(exact) + limit * unit + beside >= 0x1.fffffep127)
        return NULL;
    record(t->kind, column, unit > 0 ? fmax(0, off - beside) / unit : 0);
    if (off <= limit * unit + beside)
        return NULL;
    return truth_wrong("%s %zu is %.9g and should be %.17g: off by %.3f of the unit %.3g, beside %.3g", name, i, (double)got,
                       (double)exact, (off - beside) / unit, unit, beside);
}

/* The sums of a column over the rows. */
typedef struct column_sum {
    quad dw, db, dw_size, db_size;
    double dw_beside, db_beside;
} column_sum;

static const char *measure_group(const backward_case *t, size_t row, size_t at, size_t d, exact_element *e, quad *scratch,
                                 double *dh_slack, column_sum *sums)
{
    const nrg_norm_spec *spec = &t->spec;
    const size_t first = row * spec->dim + at;
    float g = 1;
    for (size_t i = 0; i < d; i++) {
        memset(&e[i], 0, sizeof e[i]);
        e[i].r = t->x[first + i];
        e[i].z = t->z ? t->z[first + i] : 0;
        e[i].w = t->w ? (quad)t->w[at + i] + spec->weight_offset : 1;
        e[i].b = t->b ? t->b[at + i] : 0;
        e[i].d_o = t->d_o[first + i];
        if (spec->gate == NRG_GATE_PRE && nrg_activation_forward(spec->activation, NRG_F32, 1, &t->z[first + i], &g, 0, 1))
            return "nrg_activation_forward";
        e[i].p = spec->gate == NRG_GATE_PRE ? t->x[first + i] * g : t->x[first + i];
        if (quad_magnitude(e[i].p) > 0x1.fffffep127)
            return NULL; /* p overflows: the row is NaN, and norm_backward_properties_test.c has that */
    }
    const exact_group group = exact_backward(spec, d, e, scratch);
    /* at the edge of the clamp either side is right */
    if (spec->eps_mode == NRG_EPS_MAX && fabs((double)quad_sqrt(group.stat.squares) / spec->eps - 1) < 1e-12)
        return NULL;
    double cross = 0, mean = 0;
    for (size_t i = 0; i < d; i++) {
        double off = error_of_do1(spec, &e[i]);
        sums[at + i].dw_beside += off * quad_magnitude(group.k * e[i].h) + 0x1p-149; /* a term may be subnormal */
        sums[at + i].db_beside += off;
        dh_slack[i] = off * quad_magnitude(group.k * e[i].w * group.inverse);
        cross += dh_slack[i] * quad_magnitude(e[i].h) / (double)d;
    }
    for (size_t i = 0; i < d; i++) {
        dh_slack[i] += quad_magnitude(e[i].h * group.a) * cross;
        mean += dh_slack[i] / (double)d;
    }
    const enum column column = spec->gate || spec->activation ? COLUMN_DX_GATED : spec->centred ? COLUMN_DX_LAYER : COLUMN_DX_RMS;
    for (size_t i = 0; i < d; i++) {
        const exact_element *x = &e[i];
        const double beside = dh_slack[i] + (spec->centred ? mean : 0);
        quad dx = x->dr + (t->dr_in ? t->dr_in[first + i] : 0);
        double unit = quad_ulp(x->dp_size), more = beside;
        sums[at + i].dw += x->dw;
        sums[at + i].db += x->db;
        sums[at + i].dw_size += quad_abs(x->do1 * group.k * x->h_size);
        sums[at + i].db_size += quad_abs(x->db);
        if (quad_magnitude(x->dp_size) > 0x1p126)
            continue; /* dp overflows */
        if (spec->gate == NRG_GATE_PRE) {
            more = quad_magnitude(x->g) * beside + quad_magnitude(x->dp) * activation_limit * quad_ulp(x->g);
            unit = fmax(quad_magnitude(x->g) * unit, quad_ulp(x->dp_size * x->g));
        }
        if (t->limit < 1) /* a single rounding is one of the result, which may be larger than its terms */
            unit = fmax(unit, quad_ulp(dx));
        if (t->dr_in)
            unit = fmax(unit, fmax(quad_ulp(t->dr_in[first + i]), quad_ulp(dx)));
        const char *wrong = hold(t, column, "dx", first + i, dx, t->dx[first + i], unit, t->limit, more);
        if (wrong)
            return wrong;
        if (!t->z)
            continue;
        if (spec->gate == NRG_GATE_PRE)
            more = quad_magnitude(x->r * x->slope_size) * beside +
                   quad_magnitude(x->dp * x->r) * slope_limit * quad_ulp(x->slope_size);
        else
            more = quad_magnitude(x->d_o * x->o1) * slope_limit * quad_ulp(x->slope_size);
        /* the product before g' is a float of its own, which may be subnormal or overflow */
        unit = fmax(quad_ulp(x->dz_size), quad_magnitude(x->slope_size) * 0x1p-149);
        if (quad_magnitude(spec->gate == NRG_GATE_PRE ? x->dz_size : x->d_o * x->o1_size) > 0x1p126)
            continue;
        wrong = hold(t, COLUMN_DZ, "dz", first + i, x->dz, t->dz[first + i], unit, t->limit, more);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *measure(const backward_case *t)
{
    const size_t dim = t->spec.dim, d = dim / (t->spec.groups ? t->spec.groups : 1);
    exact_element *e = test_allocate(d, sizeof *e);
    quad *scratch = test_allocate(d, sizeof *scratch);
    double *dh_slack = test_allocate(d, sizeof *dh_slack);
    column_sum *sums = test_allocate(dim, sizeof *sums);
    const char *wrong = NULL;
    int overflow = 0;
    for (size_t row = 0; row < t->rows && !wrong; row++)
        for (size_t at = 0; at < dim && !wrong; at += d)
            wrong = measure_group(t, row, at, d, e, scratch, dh_slack, sums);
    for (size_t i = 0; i < t->rows * dim; i++)
        overflow |= isnan(t->dx[i]);
    for (size_t i = 0; i < dim && !wrong && !overflow; i++) {
        const column_sum *s = &sums[i];
        wrong = hold(t, COLUMN_DW, "dw", i, s->dw, t->dw[i], 0x1p-24 * quad_magnitude(s->dw_size), dw_limit,
                     s->dw_beside + quad_ulp(s->dw) / 2);
        if (!wrong)
            wrong = hold(t, COLUMN_DB, "db", i, s->db, t->db[i], 0x1p-24 * quad_magnitude(s->db_size), db_limit,
                         s->db_beside + quad_ulp(s->db) / 2);
    }
    free(e);
    free(scratch);
    free(dh_slack);
    free(sums);
    return wrong;
}

static const char *same(const char *name, nrg_isa isa, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(a, b, i, NRG_F32))
            return truth_wrong("%s %zu: %s has not the bits of scalar", name, i, nrg_isa_name(isa));
    return NULL;
}

static const char *compare_paths(const backward_case *t)
{
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths), all = t->rows * t->spec.dim;
    float *dx = test_allocate(all, sizeof *dx), *dz = test_allocate(all, sizeof *dz),
          *dw = test_allocate(t->spec.dim, sizeof *dw), *db = test_allocate(t->spec.dim, sizeof *db);
    const char *wrong = NULL;
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], t, dx, dz, dw, db);
        wrong = wrong ? wrong : same("dx", paths[i], t->dx, dx, all);
        wrong = wrong || !t->z ? wrong : same("dz", paths[i], t->dz, dz, all);
        wrong = wrong ? wrong : same("dw", paths[i], t->dw, dw, t->spec.dim);
        wrong = wrong ? wrong : same("db", paths[i], t->db, db, t->spec.dim);
    }
    free(dx);
    free(dz);
    free(dw);
    free(db);
    return wrong;
}

static void check_one(enum row_kind kind, size_t dim, size_t rows, int gated, uint64_t round)
{
    backward_case t;
    make_case(&t, kind, dim, rows, gated, test_mix(((dim * 8192 + rows) * ROW_KINDS + kind) * 64 + round * 2 + (uint64_t)gated));
    const char *wrong = run(NRG_ISA_SCALAR, &t, t.dx, t.dz, t.dw, t.db);
    wrong = wrong ? wrong : compare_paths(&t);
    wrong = wrong ? wrong : measure(&t);
    truth_judge(wrong, t.text);
    free_case(&t);
}

static const size_t dims[] = {1, 2, 3, 8, 17, 32, 60, 64, 100, 129, 256, 513, 1000, 4096, 65536};
enum { DIMS = sizeof dims / sizeof dims[0] };

static void check_dim(int n)
{
    const size_t dim = dims[n];
    if (test_small() && dim > 1000)
        return;
    uint64_t rounds = test_small() ? 2 : dim <= 100 ? 30 : dim <= 1000 ? 8 : dim <= 4096 ? 4 : 2;
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (uint64_t round = 0; round < rounds; round++) {
            size_t rows = dim > 1000 ? 1 : round % 4 == 0 ? 37 : 3;
            check_one((enum row_kind)kind, dim, test_small() ? 3 : rows, 0, round);
            if (dim <= 4096 && round % 2 == 0)
                check_one((enum row_kind)kind, dim, dim > 100 ? 1 : 3, 1, round);
        }
}

START_TEST(lengths) { check_dim(_i); }
END_TEST

/* A million rows of three, whose gradients cancel nearly: what is left of dw and db shows how they are summed. */
static void check_million(void)
{
    const size_t dim = 3, rows = test_small() ? 20000 : 1000000;
    backward_case t;
    make_case(&t, ROW_NORMAL, dim, 1, 0, 5);
    free_case(&t);
    memset(&t, 0, sizeof t);
    t.spec = nrg_rms_norm_spec(dim, 1e-5);
    t.kind = ROW_NORMAL;
    t.rows = rows;
    t.limit = term_limit;
    t.x = new_rows(1, rows * dim, ROW_NORMAL, 1);
    t.d_o = new_rows(1, rows * dim, ROW_NORMAL, 2);
    for (size_t row = 1; row < rows; row += 2)
        for (size_t i = 0; i < dim; i++) {
            /* column 0 alternates exactly, column 1 but for a millionth, column 2 does not */
            t.x[row * dim + i] = t.x[(row - 1) * dim + i];
            if (i < 2)
                t.d_o[row * dim + i] = -t.d_o[(row - 1) * dim + i] * (i ? 1 - 0x1p-20f : 1);
        }
    t.dx = test_allocate(rows * dim, sizeof *t.dx);
    t.dw = test_allocate(dim, sizeof *t.dw);
    t.db = test_allocate(dim, sizeof *t.db);
    snprintf(t.text, sizeof t.text, "%zu rows of %zu that cancel", rows, dim);
    const char *wrong = run(NRG_ISA_SCALAR, &t, t.dx, NULL, t.dw, t.db);
    wrong = wrong ? wrong : compare_paths(&t);
    truth_judge(wrong ? wrong : measure(&t), t.text);
    free_case(&t);
}

START_TEST(a_million_rows) { check_million(); }
END_TEST

/* ---- where a row begins to be done in double ---- */

/* By the rule of docs/numerics.md; -1 where it is too close to say. */
static int is_in_double(const backward_case *t, exact_element *e, quad *scratch)
{
    const size_t d = t->spec.dim;
    quad cross = 0;
    for (size_t i = 0; i < d; i++) {
        memset(&e[i], 0, sizeof e[i]);
        e[i].r = e[i].p = t->x[i];
        e[i].w = 1;
        e[i].d_o = t->d_o[i];
    }
    const exact_group group = exact_backward(&t->spec, d, e, scratch);
    for (size_t i = 0; i < d; i++)
        cross += e[i].d_o * e[i].h / (quad)d;
    const double inverse = (double)group.inverse, square = (double)(group.stat.squares / (quad)d);
    const double a = quad_magnitude(group.k * group.inverse), b = quad_magnitude(group.k * group.inverse * cross * group.inverse);
    const double over[] = {0x1p-40 / inverse, inverse / 0x1p40, 0x1p-80 / square, 0x1p-100 / a, 0x1p-100 / b, b / 0x1p100};
    int outside = 0;
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        if (fabs(over[i] - 1) < 1e-5)
            return -1;
        outside |= over[i] > 1;
    }
    return outside;
}

/* One of the quantities that decide is moved across its limit; the others stay inside theirs. */
static void make_near_limit(backward_case *t, int limit, size_t dim, uint64_t seed)
{
    uint64_t state = seed;
    memset(t, 0, sizeof *t);
    t->kind = ROW_NORMAL;
    t->rows = 1;
    t->spec = test_draw(&state, 2) ? nrg_layer_norm_spec(dim, 0) : nrg_rms_norm_spec(dim, 0);
    t->x = new_rows(1, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    t->d_o = new_rows(1, dim, ROW_NORMAL, test_draw(&state, 1u << 30));
    t->dx = test_allocate(dim, sizeof *t->dx);
    t->dw = test_allocate(dim, sizeof *t->dw);
    t->db = test_allocate(dim, sizeof *t->db);
    const int beyond = (int)test_draw(&state, 49) - 24;
    int x_exponent = 0, gradient_exponent = 0;
    t->spec.c = sqrt((double)dim);
    switch (limit) {
    case 0: /* 1/s, either end */
        x_exponent = (test_draw(&state, 2) ? 40 : -40) + beyond / 2;
        break;
    case 1: /* the mean square, where eps is s */
        x_exponent = -40 + beyond / 2;
        t->spec.eps = 0x1p-60;
        break;
    case 2: /* A */
        t->spec.c = ldexp(t->spec.c, -100 + beyond);
        gradient_exponent = 30;
        break;
    default: /* B, either end */
        gradient_exponent = (test_draw(&state, 2) ? 100 : -100) + beyond;
        break;
    }
    for (size_t i = 0; i < dim; i++) {
        t->x[i] = ldexpf(t->x[i], x_exponent);
        t->d_o[i] = ldexpf(t->d_o[i], gradient_exponent);
    }
    snprintf(t->text, sizeof t->text, "limit %d, %+d; %s, dim %zu, seed 0x%llx", limit, beyond, t->spec.centred ? "layer" : "rms",
             dim, (unsigned long long)seed);
}

/* Rows beyond a limit have gradients that are rounded once, and those within it what floats give; at either side of it paths have
 * scalar's bits. */
START_TEST(limits_of_floats)
{
    enum { MOST = 129 };
    static const size_t some[] = {5, 32, 60, MOST};
    static exact_element e[MOST];
    static quad scratch[MOST];
    size_t sides[2] = {0, 0};
    for (uint64_t round = 0; round < (test_small() ? 60 : 400); round++)
        for (size_t n = 0; n < sizeof some / sizeof some[0]; n++) {
            backward_case t;
            make_near_limit(&t, _i, some[n], test_mix(round * 64 + n * 8 + (uint64_t)_i));
            const int in_double = is_in_double(&t, e, scratch);
            t.limit = in_double == 1 ? 0.501 : term_limit;
            const char *wrong = run(NRG_ISA_SCALAR, &t, t.dx, NULL, t.dw, t.db);
            wrong = wrong ? wrong : compare_paths(&t);
            truth_judge(wrong ? wrong : measure(&t), t.text);
            if (in_double >= 0)
                sides[in_double]++;
            free_case(&t);
        }
    ck_assert_uint_gt(sides[0], 50);
    ck_assert_uint_gt(sides[1], 50);
}
END_TEST

static void print_table(void)
{
    static const char *const names[COLUMNS] = {"dx, rms", "dx, layer", "dx with g", "dz", "dw", "db"};
    const truth_table table = {"row", ROW_STRESS_KINDS, COLUMNS, truth_row_name, names, worst[0]};
    truth_print(&table);
}

START_TEST(worst_cases)
{
    printf("backward: worst errors in ulps of the largest term; %lu figures:\n", *measured);
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++)
        for (int column = 0; column < COLUMNS; column++)
            if (worst[kind][column] == 0 && (column == COLUMN_DX_RMS || column == COLUMN_DW))
                ck_abort_msg("%s: column %d was never measured", row_kind_name((enum row_kind)kind), column);
}
END_TEST

static void report(void)
{
    for (int n = 0; n < DIMS; n++)
        check_dim(n);
    check_million();
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("norm_backward: scalar against the exact gradient");
    TCase *formula = test_case(suite, "formulas");
    tcase_add_test(formula, formulas);
    tcase_add_test(formula, slopes);
    tcase_add_loop_test(test_case(suite, "lengths"), lengths, 0, DIMS);
    tcase_add_loop_test(test_case(suite, "limits"), limits_of_floats, 0, 4);
    tcase_add_test(test_case(suite, "sums"), a_million_rows);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(ROW_KINDS * sizeof *worst);
    measured = test_shared(sizeof *measured);
    return truth_main(argc, argv, report, make_suite);
}
