/* SPDX-License-Identifier: MIT */
#include "norm_backward_measure.h"

#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad_ulp.h"
#include "../harness/truth.h"
#include "norm_backward_exact.h"

/* nrg/activation.h: ulps of g, and of the largest term of g'; some are exact. */
static int is_exact(nrg_activation g) { return g == NRG_ACT_IDENTITY || g == NRG_ACT_RELU; }
static double activation_limit(nrg_activation g) { return is_exact(g) ? 0 : 3; }
static double slope_limit(nrg_activation g) { return is_exact(g) ? 0 : 4; }

float *backward_rows(size_t rows, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    float *all = test_allocate(rows * dim, sizeof *all);
    for (size_t row = 0; row < rows; row++)
        row_fill(all + row * dim, dim, kind, dtype, test_mix(seed + row));
    return all;
}

void backward_results(backward_case *t)
{
    t->dx = test_allocate(t->rows * t->spec.dim, sizeof *t->dx);
    t->dz = test_allocate(t->rows * t->spec.dim, sizeof *t->dz);
    t->dw = test_allocate(t->spec.dim, sizeof *t->dw);
    t->db = test_allocate(t->spec.dim, sizeof *t->db);
}

static void free_results(backward_case *t)
{
    float *const all[] = {t->dx, t->dz, t->dw, t->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

void backward_free(backward_case *t)
{
    float *const all[] = {t->x, t->z, t->w, t->b, t->d_o, t->dr_in};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free_results(t);
}

/* ---- calls ---- */

/* The results of one path into `out`, which has the operands of a case of floats. */
static const char *run(nrg_isa isa, backward_case *out)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(out->rows, out->x, out->w, out->d_o, out->dx);
    args.z = out->z;
    args.b = out->b;
    args.dr_in = out->dr_in;
    args.dz = out->z ? out->dz : NULL;
    args.dw = out->dw;
    args.db = out->db;
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = nrg_norm_backward_workspace(&out->spec, &args, &args.workspace_size);
    args.workspace = test_allocate(args.workspace_size, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward(&out->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&out->spec, &args, 0, 1);
    free(args.workspace);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

const char *backward_run_on(nrg_isa isa, backward_case *t) { return run(isa, t); }
const char *backward_run(backward_case *t) { return run(NRG_ISA_SCALAR, t); }

static const char *same(const char *name, const char *where, const float *a, const float *b, size_t count, nrg_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        const float rounded = element_round(a[i], dtype);
        if (!element_equal(&rounded, &b[i], 0, NRG_F32))
            return truth_wrong("%s %zu: %s has %.9g and not %.9g", name, i, where, (double)b[i], (double)rounded);
    }
    return NULL;
}

/* dtype: of dx and dz in `got`. */
static const char *same_results(const backward_case *t, const char *where, const backward_case *got, nrg_dtype dtype)
{
    const size_t all = t->rows * t->spec.dim;
    const char *wrong = same("dx", where, t->dx, got->dx, all, dtype);
    wrong = wrong || !t->z ? wrong : same("dz", where, t->dz, got->dz, all, dtype);
    wrong = wrong ? wrong : same("dw", where, t->dw, got->dw, t->spec.dim, NRG_F32);
    return wrong ? wrong : same("db", where, t->db, got->db, t->spec.dim, NRG_F32);
}

const char *backward_compare_paths(const backward_case *t)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    backward_case other = *t;
    const char *wrong = NULL;
    backward_results(&other);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], &other);
        wrong = wrong ? wrong : same_results(t, nrg_isa_name(paths[i]), &other, NRG_F32);
    }
    free_results(&other);
    return wrong;
}

/* ---- errors ---- */

/* What may be off in do1, which comes from its activation and its rounding. */
static double error_of_do1(const nrg_norm_spec *spec, const exact_element *e)
{
    if (spec->gate == NRG_GATE_POST)
        return quad_magnitude(e->d_o) * activation_limit(spec->activation) * quad_ulp(e->g) + quad_ulp(e->do1) / 2;
    if (spec->gate != NRG_GATE_NONE || spec->activation == NRG_ACT_IDENTITY)
        return 0;
    double change = 0, reach = 3 * quad_ulp(e->o1_terms);
    quad slope = quad_activation(spec->activation, e->o1).slope;
    for (int side = -1; side <= 1; side += 2)
        change = fmax(change, quad_magnitude(quad_activation(spec->activation, e->o1 + side * (quad)reach).slope - slope));
    return quad_magnitude(e->d_o) * (change + slope_limit(spec->activation) * quad_ulp(e->slope_size)) + quad_ulp(e->do1) / 2;
}

/* What is measured: a case's results, of which dx and dz have this dtype. */
typedef struct measurement {
    const backward_case *of;
    nrg_dtype dtype;
} measurement;

/* got against exact: within `limit` units, and what is beside them. NULL, or what broke it. */
static const char *hold(const measurement *m, enum backward_column column, const char *name, size_t i, quad exact, float got,
                        double unit, double limit, double beside)
{
    const nrg_dtype dtype = column < COLUMN_DW ? m->dtype : NRG_F32;
    const double off = quad_magnitude(exact - got);
    if (dtype != NRG_F32)
        beside += BACKWARD_ROUNDING_16 * element_ulp(quad_magnitude(exact), dtype);
    if (isinf(got) && (got > 0) == (exact > 0) && quad_magnitude(exact) + limit * unit + beside >= (double)element_max(dtype))
        return NULL;
    const double part = off == 0 || off <= beside ? 0 : (off - beside) / unit; /* beside may be NaN */
    if (m->of->worst) {
        double *most = &m->of->worst[m->of->kind][column];
        if (!(part <= *most))
            *most = part;
        ++*m->of->measured;
    }
    if (part <= limit)
        return NULL;
    return truth_wrong("%s %zu is %.9g and should be %.17g: off by %.3f units of %.3g, limit %.3f, beside %.3g", name, i,
                       (double)got, (double)exact, part, unit, limit, beside);
}

/* The sums of a column over the rows. */
typedef struct column_sum {
    quad dw, db, dw_terms, db_terms;
    double dw_beside, db_beside;
} column_sum;

/* Memory for one group, and the columns. */
typedef struct room {
    exact_element *e;
    quad *scratch;
    double *dh_slack; /* what may be off in dh, and what that does to dp */
    column_sum *sums;
} room;

static double in_units(quad terms) { return 0x1p-24 * quad_magnitude(terms); }

/* dx and dz of one element. beside: what its do1 and those of others do to dp. */
static const char *hold_element(const measurement *m, size_t at, const exact_element *x, double beside)
{
    const backward_case *t = m->of;
    const nrg_norm_spec *spec = &t->spec;
    const enum backward_column column = spec->gate || spec->activation ? COLUMN_DX_GATED
                                        : spec->centred                ? COLUMN_DX_LAYER
                                                                       : COLUMN_DX_RMS;
    const quad dr_in = t->dr_in ? t->dr_in[at] : 0, dx = x->dr + dr_in;
    quad terms = x->dp_terms;
    double more = beside;
    if (quad_magnitude(x->dp_terms) > 0x1p126)
        return NULL; /* dp overflows */
    if (spec->gate == NRG_GATE_PRE) {
        more = quad_magnitude(x->g) * beside + quad_magnitude(x->dp) * activation_limit(spec->activation) * quad_ulp(x->g);
        terms *= quad_abs(x->g);
    }
    terms = exact_float(terms + quad_abs(dr_in));
    const char *wrong = t->once ? hold(m, column, "dx", at, dx, t->dx[at], quad_ulp(dx), 0.501, 0x1p-40 * quad_magnitude(terms))
                                : hold(m, column, "dx", at, dx, t->dx[at], in_units(terms), t->limit, more);
    if (wrong || !t->z)
        return wrong;
    if (spec->gate == NRG_GATE_PRE)
        more = quad_magnitude(x->r * x->slope_size) * beside +
               quad_magnitude(x->dp * x->r) * slope_limit(spec->activation) * quad_ulp(x->slope_size);
    else
        more = quad_magnitude(x->d_o * x->o1) * slope_limit(spec->activation) * quad_ulp(x->slope_size);
    return hold(m, COLUMN_DZ, "dz", at, x->dz, t->dz[at], in_units(exact_float(x->dz_terms)), t->limit, more);
}

/* The exact gradients of a group into r->e. Returns what there is to say of them: NULL, or that nothing is (""), or what is
 * wrong. */
static const char *exact_of(const backward_case *t, size_t row, size_t at, size_t d, const room *r, exact_group *group)
{
    const nrg_norm_spec *spec = &t->spec;
    const size_t first = row * spec->dim + at;
    float g = 1;
    for (size_t i = 0; i < d; i++) {
        exact_element *e = &r->e[i];
        memset(e, 0, sizeof *e);
        e->r = t->x[first + i];
        e->z = t->z ? t->z[first + i] : 0;
        e->w = t->w ? (quad)t->w[at + i] + spec->weight_offset : 1;
        e->b = t->b ? t->b[at + i] : 0;
        e->d_o = t->d_o[first + i];
        if (spec->gate == NRG_GATE_PRE && nrg_activation_forward(spec->activation, NRG_F32, 1, &t->z[first + i], &g, 0, 1))
            return "nrg_activation_forward";
        e->p = spec->gate == NRG_GATE_PRE ? t->x[first + i] * g : t->x[first + i];
        if (quad_magnitude(e->p) > 0x1.fffffep127)
            return ""; /* p overflows: the row is NaN, and norm_backward_properties_test.c has that */
    }
    *group = exact_backward(spec, d, r->e, r->scratch);
    /* at the edge of the clamp either side is right */
    if (spec->eps_mode == NRG_EPS_MAX && fabs((double)quad_sqrt(group->stat.squares) / spec->eps - 1) < 1e-12)
        return "";
    return NULL;
}

static const char *measure_group(const measurement *m, size_t row, size_t at, size_t d, const room *r)
{
    const backward_case *t = m->of;
    const nrg_norm_spec *spec = &t->spec;
    exact_group group;
    const char *wrong = exact_of(t, row, at, d, r, &group);
    if (wrong)
        return *wrong ? wrong : NULL;
    double cross = 0, mean = 0;
    for (size_t i = 0; i < d; i++) {
        const exact_element *x = &r->e[i];
        column_sum *sum = &r->sums[at + i];
        const double off = error_of_do1(spec, x);
        sum->dw += x->dw;
        sum->db += x->db;
        sum->dw_terms += x->dw_terms;
        sum->db_terms += quad_abs(x->db);
        sum->dw_beside += off * quad_magnitude(group.k * x->h);
        sum->db_beside += off;
        r->dh_slack[i] = off * quad_magnitude(group.k * x->w * group.inverse);
        cross += r->dh_slack[i] * quad_magnitude(x->h) / (double)d;
    }
    for (size_t i = 0; i < d; i++) {
        r->dh_slack[i] += quad_magnitude(r->e[i].h * group.a) * cross;
        mean += r->dh_slack[i] / (double)d;
    }
    for (size_t i = 0; i < d && !wrong; i++)
        wrong = hold_element(m, row * spec->dim + at + i, &r->e[i], r->dh_slack[i] + (spec->centred ? mean : 0));
    return wrong;
}

static const char *measure(const measurement *m)
{
    const backward_case *t = m->of;
    const size_t dim = t->spec.dim, d = dim / t->spec.groups;
    const room r = {test_allocate(d, sizeof *r.e), test_allocate(d, sizeof *r.scratch), test_allocate(d, sizeof *r.dh_slack),
                    test_allocate(dim, sizeof *r.sums)};
    const char *wrong = NULL;
    int overflow = 0;
    for (size_t row = 0; row < t->rows && !wrong; row++)
        for (size_t at = 0; at < dim && !wrong; at += d)
            wrong = measure_group(m, row, at, d, &r);
    for (size_t i = 0; i < t->rows * dim; i++)
        overflow |= isnan(t->dx[i]);
    for (size_t i = 0; i < dim && !wrong && !overflow; i++) {
        const column_sum *s = &r.sums[i];
        wrong = hold(m, COLUMN_DW, "dw", i, s->dw, t->dw[i], in_units(exact_float(s->dw_terms)), t->limit, s->dw_beside);
        if (!wrong)
            wrong = hold(m, COLUMN_DB, "db", i, s->db, t->db[i], in_units(exact_float(s->db_terms)), t->limit, s->db_beside);
    }
    free(r.e);
    free(r.scratch);
    free(r.dh_slack);
    free(r.sums);
    return wrong;
}

const char *backward_measure(const backward_case *t) { return measure(&(measurement){t, NRG_F32}); }

/* Replaces *values, if there are any, by the same in dtype, or the other way round. */
static void store_as(float **values, size_t count, nrg_dtype dtype)
{
    *values = *values ? element_stored(*values, count, dtype) : NULL;
}

static void load_from(float **stored, size_t count, nrg_dtype dtype)
{
    float *floats = element_floats(*stored, count, dtype);
    free(*stored);
    *stored = floats;
}

const char *backward_measure_16(const backward_case *t, nrg_dtype dtype)
{
    const size_t all = t->rows * t->spec.dim;
    backward_case stored = *t, narrow = *t;
    backward_results(&stored);
    store_as(&stored.x, all, dtype);
    store_as(&stored.z, all, dtype);
    store_as(&stored.d_o, all, dtype);
    stored.spec.dtype = dtype;
    stored.spec.w_dtype = stored.spec.r_dtype = NRG_F32; /* w, b and dr_in stay floats */
    const char *wrong = run(NRG_ISA_SCALAR, &stored);
    free(stored.x);
    free(stored.z);
    free(stored.d_o);
    load_from(&stored.dx, all, dtype);
    load_from(&stored.dz, all, dtype);
    narrow.dx = stored.dx;
    narrow.dz = stored.dz;
    narrow.worst = NULL; /* those of the floats are what is counted */
    wrong = wrong ? wrong : same_results(t, nrg_dtype_name(dtype), &stored, dtype);
    wrong = wrong ? wrong : measure(&(measurement){&narrow, dtype});
    free_results(&stored);
    return wrong;
}
