/* The backward pass of normalization over channels: scalar against the exact gradient, on the stress set, with sets of 1 to
 * 10,000,000 elements; and the other paths against scalar on the way.
 *
 * The exact gradient is channel_norm_backward_exact.h's, which the first test holds against automatic differentiation (dual
 * numbers) of the forward pass's definition.
 *
 * The bound is the header's: 4 · 2^-24 · Σ|terms| of the formula, the sums in it taken of magnitudes. Where an activation is in
 * do1, its error comes on top: do1 may be off by 4 ulp of the largest term of g', by half an ulp of its own, and by what g'
 * changes within the bound of o1 + y; this is followed through the formulas. So is what a mean of the fast grade may be off by.
 * dx and dy of a 16-bit dtype are those of the same values as f32, rounded, and within 0.51 ulp of it on top. Of large sets some
 * elements are left out; the sums are of all.
 *
 * `channel_norm_backward_truth_test --report` prints the worst errors as a Markdown table and nothing else: dx, dw and db in
 * 2^-24 · Σ|terms|, with an activation as a part of the bound.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../harness/quad_dual.h"
#include "../harness/truth.h"
#include "channel_norm_backward_exact.h"
#include "channel_norm_data.h"

enum { ACTIVATIONS = NRG_ACTIVATION_COUNT };

/* In 2^-24 · Σ|terms|; of a 16-bit type on top, in its ulps; and of g', in ulps of the largest of its terms. */
static const double gradient_limit = 4, rounding_16 = 0.51, slope_limit = 4;

enum column {
    COLUMN_DX_UNCENTRED,
    COLUMN_DX_CENTRED,
    COLUMN_DX_RUNNING,
    COLUMN_DX_ACTIVATION,
    COLUMN_DY,
    COLUMN_DW,
    COLUMN_DB,
    COLUMNS
};

static double (*worst)[COLUMNS];
static unsigned long *measured, *beyond; /* beyond: what nothing can be said of */

/* ---- the formulas against automatic differentiation ---- */

enum { MOST = 24 }; /* elements of a tensor */

/* A tensor and what is beside it; w and b of channels. Running statistics are constants. */
typedef struct dual_case {
    dual x[MOST], y[MOST], w[MOST], b[MOST];
    quad d_o[MOST], mean[MOST], variance[MOST];
} dual_case;

/* Σ d_o·o of all sets, straight from the definition in nrg/channel_norm.h. */
static dual loss(const nrg_channel_norm_spec *spec, const exact_sets *t, const dual_case *in)
{
    const dual d = dual_of((quad)t->size);
    dual sum = dual_of(0);
    for (size_t set = 0; set < t->sets; set++) {
        dual m = dual_of(0), square = dual_of(0);
        for (size_t i = 0; i < t->size && spec->centred; i++)
            m = dual_add(m, in->x[exact_place_of(t, set, i).at]);
        m = dual_div(m, d);
        for (size_t i = 0; i < t->size; i++) {
            dual q = dual_sub(in->x[exact_place_of(t, set, i).at], m);
            square = dual_add(square, dual_mul(q, q));
        }
        square = dual_div(square, d);
        if (spec->source == NRG_STATISTICS_RUNNING) {
            m = dual_of(in->mean[set % t->c]);
            square = dual_of(in->variance[set % t->c]);
        }
        const dual s = dual_sqrt(dual_add(square, dual_of(spec->eps)));
        for (size_t i = 0; i < t->size; i++) {
            const exact_place place = exact_place_of(t, set, i);
            dual o = s.v > 0 ? dual_div(dual_sub(in->x[place.at], m), s) : dual_of(0);
            o = dual_add(dual_mul(o, in->w[place.channel]), in->b[place.channel]);
            o = dual_g(spec->activation, dual_add(o, in->y[place.at]));
            sum = dual_add(sum, dual_mul(o, dual_of(in->d_o[place.at])));
        }
    }
    return sum;
}

static quad derivative(const nrg_channel_norm_spec *spec, const exact_sets *t, const dual_case *in, dual *by)
{
    by->e = 1;
    quad e = loss(spec, t, in).e;
    by->e = 0;
    return e;
}

static void agree(const nrg_channel_norm_spec *spec, const exact_sets *t, const char *name, size_t i, quad by, quad formula,
                  quad size)
{
    if (quad_abs(by - formula) > (quad)0x1p-70 * size)
        ck_abort_msg(
            "by %s %zu: %.17g, and by the formula %.17g; %s, centred %d, statistics %d, eps %g, n %zu c %zu s %zu groups %zu",
            name, i, (double)by, (double)formula, nrg_activation_name(spec->activation), spec->centred, (int)spec->source,
            spec->eps, t->n, t->c, t->s, t->groups);
}

static exact_element element_of_dual(const exact_sets *t, const dual_case *in, size_t set, size_t i)
{
    const exact_place at = exact_place_of(t, set, i);
    exact_element e = {.x = in->x[at.at].v, .y = in->y[at.at].v, .w = in->w[at.channel].v, .b = in->b[at.channel].v};
    e.d_o = in->d_o[at.at];
    return e;
}

static void differentiate(const nrg_channel_norm_spec *spec, size_t n, size_t s, uint64_t seed)
{
    const exact_sets t = exact_sets_of(spec, n, s);
    static dual_case in;
    uint64_t state = seed;
    float x[MOST];
    quad dw[MOST] = {0}, db[MOST] = {0}, most = 0;
    ck_assert_uint_le(exact_count(&t), MOST);
    memset(&in, 0, sizeof in);
    for (size_t i = 0; i < exact_count(&t); i++) {
        x[i] = (float)(2 * test_uniform(&state));
        in.x[i] = dual_of(x[i]);
        in.y[i] = dual_of(test_uniform(&state));
        in.d_o[i] = test_uniform(&state);
    }
    for (size_t c = 0; c < t.c; c++) {
        in.w[c] = dual_of(2 * test_uniform(&state));
        in.b[c] = dual_of(2 * test_uniform(&state));
        in.mean[c] = test_uniform(&state);
        in.variance[c] = 0.5 + fabs(test_uniform(&state));
    }
    for (size_t set = 0; set < t.sets; set++) {
        exact_statistics exact = exact_statistics_of(spec, &t, set, x);
        if (spec->source == NRG_STATISTICS_RUNNING)
            exact = exact_statistics_given(spec, in.mean[set % t.c], in.variance[set % t.c]);
        const quad size = 1 + exact.inverse;
        exact_sums sums = {0, 0, 0, 0};
        most = exact_larger(most, size);
        for (size_t i = 0; i < t.size; i++) {
            exact_element e = element_of_dual(&t, &in, set, i);
            exact_element_set(spec->activation, &exact, &e);
            exact_sums_add(&sums, &e);
            dw[exact_place_of(&t, set, i).channel] += e.do1 * e.h;
            db[exact_place_of(&t, set, i).channel] += e.do1;
        }
        for (size_t i = 0; i < t.size; i++) {
            const size_t at = exact_place_of(&t, set, i).at;
            quad ignored;
            exact_element e = element_of_dual(&t, &in, set, i);
            exact_element_set(spec->activation, &exact, &e);
            agree(spec, &t, "x", at, derivative(spec, &t, &in, &in.x[at]), exact_dx(spec, &exact, &sums, t.size, &e, &ignored),
                  size);
            agree(spec, &t, "y", at, derivative(spec, &t, &in, &in.y[at]), e.do1, 1);
        }
    }
    for (size_t c = 0; c < t.c; c++) {
        agree(spec, &t, "w", c, derivative(spec, &t, &in, &in.w[c]), dw[c], most);
        agree(spec, &t, "b", c, derivative(spec, &t, &in, &in.b[c]), db[c], 1);
    }
}

/* groups 0: batch norm. n·c·s is at most MOST. */
static const struct {
    size_t n, c, s, groups;
} small_shapes[] = {{1, 1, 1, 0}, {2, 1, 1, 0}, {3, 2, 2, 0}, {1, 3, 5, 0}, {2, 4, 3, 1},
                    {2, 4, 3, 2}, {2, 4, 3, 4}, {1, 6, 2, 3}, {1, 2, 1, 2}};

START_TEST(formulas)
{
    static const double eps[] = {0, 1e-5, 0.25};
    for (size_t shape = 0; shape < sizeof small_shapes / sizeof small_shapes[0]; shape++)
        for (int variant = 0; variant < 2 * 2 * 3; variant += test_small() ? 5 : 1)
            for (int g = 0; g < ACTIVATIONS; g++) {
                const size_t groups = small_shapes[shape].groups, c = small_shapes[shape].c;
                nrg_channel_norm_spec spec = groups ? nrg_channel_norm_spec_group(NRG_F32, c, groups, eps[variant % 3])
                                                    : nrg_channel_norm_spec_batch(NRG_F32, c, eps[variant % 3]);
                spec.layout = variant & 4 ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
                spec.centred = variant / 6;
                spec.activation = (nrg_activation)g;
                differentiate(&spec, small_shapes[shape].n, small_shapes[shape].s, test_mix(shape * 100 + (size_t)variant));
                spec.centred = 1;
                spec.source = NRG_STATISTICS_RUNNING;
                if (groups == 0 || groups == c)
                    differentiate(&spec, small_shapes[shape].n, small_shapes[shape].s, test_mix(shape + (size_t)variant * 100));
            }
}
END_TEST

/* ---- the library against the formulas ---- */

/* The floats are values of the dtypes they stand for. */
typedef struct backward_case {
    nrg_channel_norm_spec spec;
    int kind, grade; /* grade: 0, fast, or 1 */
    exact_sets sets;
    float *x, *y, *w, *b, *d_o;        /* y, w, b: NULL where absent */
    float *running_mean, *running_var; /* [c] or NULL */
    float *dw, *db;                    /* [c] what is there before, where it accumulates; or NULL */
    int saved;                         /* the statistics are the forward pass's */
    int parts;                         /* of batch norm: sums first */
    nrg_dtype rounded;                 /* what dx and dy that are measured were rounded to: f32, or spec.dtype */
    char text[320];
} backward_case;

static float *make_gradient(const exact_sets *t, size_t how, nrg_dtype dtype, uint64_t seed)
{
    float *d_o = set_tensor(t, how == 0 ? ROW_EQUAL : ROW_NORMAL, dtype, seed);
    for (size_t set = 0; set < t->sets; set++)
        for (size_t i = 0; i < t->size; i++) {
            float *at = &d_o[exact_place_of(t, set, i).at];
            if (how == 1 && i != seed % t->size)
                *at = 0;
            if (how == 2 && i % 2) /* sums that cancel */
                *at = -d_o[exact_place_of(t, set, i - 1).at];
        }
    return d_o;
}

static void make_case(backward_case *t, enum set_over over, int kind, nrg_dtype dtype, nrg_layout layout, size_t size, int grade,
                      uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    static const size_t segment[] = {4096, 4096, 4096, 1, 7, 64, 1000};
    static const char *const gradients[] = {"constant", "one-hot", "cancelling", "random"};
    uint64_t state = seed;
    memset(t, 0, sizeof *t);
    nrg_channel_norm_spec *spec = &t->spec;
    *spec = nrg_channel_norm_spec_batch(dtype, 1, eps[test_draw(&state, 4)]);
    spec->layout = layout;
    t->kind = kind;
    t->rounded = NRG_F32;
    t->grade = grade && dtype == NRG_F32;
    spec->accuracy = grade ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    t->sets = set_draw_shape(spec, over, size, &state);
    t->x = set_tensor(&t->sets, kind, dtype, test_draw(&state, 1u << 30));
    const int of_channels = !t->sets.groups || t->sets.groups == t->sets.c, large = size > 25088;
    const size_t source = test_draw(&state, 4), features = test_draw(&state, 4), gradient = test_draw(&state, 4);
    if (source == 3 && of_channels && !large) {
        spec->source = NRG_STATISTICS_RUNNING;
        set_running(spec, &t->sets, t->x, &t->running_mean, &t->running_var, test_draw(&state, 1u << 30));
    } else {
        spec->source = source == 2 ? NRG_STATISTICS_GIVEN : NRG_STATISTICS_COMPUTE;
        spec->centred = test_draw(&state, 3) > 0;
        t->saved = source > 0;
        t->parts = t->saved && over == SET_BATCH && test_draw(&state, 2);
    }
    spec->segment = segment[test_draw(&state, large ? 3 : 7)];
    spec->w_dtype = test_draw(&state, 2) ? NRG_F32 : dtype;
    t->w = set_parameters(features & 1, spec->channels, spec->w_dtype, test_draw(&state, 1u << 30));
    t->b = set_parameters(features & 2, spec->channels, spec->w_dtype, test_draw(&state, 1u << 30));
    t->d_o = make_gradient(&t->sets, gradient, dtype, test_draw(&state, 1u << 30));
    if (size <= 4097 && test_draw(&state, size <= 129 ? 2 : 12) == 0) {
        spec->activation = (nrg_activation)(1 + test_draw(&state, ACTIVATIONS - 1));
        if (test_draw(&state, 2))
            t->y = set_tensor(&t->sets, ROW_NORMAL, dtype, test_draw(&state, 1u << 30));
    }
    if (test_draw(&state, 4) == 0) {
        t->dw = set_parameters(1, spec->channels, NRG_F32, test_draw(&state, 1u << 30));
        t->db = set_parameters(1, spec->channels, NRG_F32, test_draw(&state, 1u << 30));
    }
    snprintf(t->text, sizeof t->text,
             "accuracy %d, %s, %s, %s, %s, d_o %s, statistics %d saved %d parts %d, sets of %zu: n %zu c %zu s %zu groups %zu, "
             "segment %zu, "
             "centred %d, features %zu, %s, y %d, accumulate %d, eps %g, seed 0x%llx",
             grade, set_over_name(over), set_kind_name(kind), nrg_dtype_name(dtype), layout == NRG_LAYOUT_NHWC ? "nhwc" : "nchw",
             gradients[gradient], (int)spec->source, t->saved, t->parts, size, t->sets.n, t->sets.c, t->sets.s, t->sets.groups,
             spec->segment, spec->centred, features, nrg_activation_name(spec->activation), t->y != NULL, t->dw != NULL,
             spec->eps, (unsigned long long)seed);
}

static void free_case(backward_case *t)
{
    float *const all[] = {t->x, t->y, t->w, t->b, t->d_o, t->running_mean, t->running_var, t->dw, t->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* A call's results, as floats. */
typedef struct outputs {
    float *dx, *dy, *dw, *db;
} outputs;

static outputs new_outputs(const backward_case *t)
{
    const size_t count = exact_count(&t->sets);
    outputs out = {test_allocate(count, sizeof(float)), test_allocate(count, sizeof(float)),
                   test_allocate(t->sets.c, sizeof(float)), test_allocate(t->sets.c, sizeof(float))};
    return out;
}

static void free_outputs(outputs *out)
{
    free(out->dx);
    free(out->dy);
    free(out->dw);
    free(out->db);
}

/* As a forward pass hands them out. */
static nrg_status save_statistics(const backward_case *t, const nrg_channel_norm_spec *spec, const void *x,
                                  nrg_channel_statistics *statistics)
{
    nrg_channel_norm_spec forward = *spec;
    void *o = test_allocate(exact_count(&t->sets), nrg_dtype_size(spec->dtype));
    nrg_channel_norm_args args = nrg_channel_norm_args_init(t->sets.n, t->sets.s, x, NULL, NULL, o);
    forward.source = NRG_STATISTICS_COMPUTE;
    forward.activation = NRG_ACT_IDENTITY;
    args.statistics = statistics;
    nrg_status status = nrg_channel_norm_forward(&forward, &args, 0, 1);
    free(o);
    return status;
}

/* dw and db with the sums; dx and dy from them. */
static nrg_status run_parts(const backward_case *t, const nrg_channel_norm_spec *spec, nrg_channel_norm_backward_args *args)
{
    int64_t *sums = test_allocate(t->sets.sets * NRG_CHANNEL_NORM_SUMS_WORDS, sizeof *sums);
    nrg_status status = nrg_channel_norm_backward_sums(spec, args, sums, 0, 1);
    args->sums = sums;
    args->dw = args->db = NULL;
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(spec, args, 0, 1);
    free(sums);
    return status;
}

static nrg_status run_whole(const nrg_channel_norm_spec *spec, nrg_channel_norm_backward_args *args)
{
    nrg_status status = nrg_channel_norm_backward_workspace(spec, args, &args->workspace_size);
    void *workspace = args->workspace_size ? test_allocate(args->workspace_size, 1) : NULL;
    args->workspace = workspace;
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(spec, args, 0, 1);
    free(workspace);
    return status;
}

/* spec: t's own, or that with f32 operands. */
static const char *run(nrg_isa isa, const backward_case *t, const nrg_channel_norm_spec *spec, outputs *out)
{
    const size_t count = exact_count(&t->sets), c = t->sets.c, element = nrg_dtype_size(spec->dtype);
    void *x = element_stored(t->x, count, spec->dtype), *d_o = element_stored(t->d_o, count, spec->dtype);
    void *y = element_stored(t->y, count, spec->dtype), *w = element_stored(t->w, c, spec->w_dtype),
         *b = element_stored(t->b, c, spec->w_dtype);
    void *dx = test_allocate(count, element), *dy = test_allocate(count, element);
    nrg_channel_statistics *statistics = test_allocate(t->sets.sets, sizeof *statistics);
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(t->sets.n, t->sets.s, x, w, d_o, dx);
    args.b = spec->activation ? b : NULL;
    args.y = spec->activation ? y : NULL;
    args.statistics = t->saved ? statistics : NULL;
    args.running_mean = t->running_mean;
    args.running_var = t->running_var;
    args.dy = dy;
    args.dw = out->dw;
    args.db = out->db;
    args.accumulate = t->dw != NULL;
    for (size_t i = 0; i < c; i++) {
        out->dw[i] = t->dw ? t->dw[i] : 0;
        out->db[i] = t->db ? t->db[i] : 0;
    }
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK && t->saved)
        status = save_statistics(t, spec, x, statistics);
    if (status == NRG_OK)
        status = t->parts ? run_parts(t, spec, &args) : run_whole(spec, &args);
    for (size_t i = 0; i < count; i++) {
        out->dx[i] = element_get(dx, i, spec->dtype);
        out->dy[i] = element_get(dy, i, spec->dtype);
    }
    void *const all[] = {x, d_o, y, w, b, dx, dy, statistics};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

/* NULL, or the first that differs once `expected` is rounded to dtype. */
static const char *same(const char *name, const char *where, const float *expected, const float *got, size_t count,
                        nrg_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        const float rounded = element_round(expected[i], dtype);
        if (!element_equal(&rounded, &got[i], 0, NRG_F32))
            return truth_wrong("%s %zu: %s has %.9g and not %.9g", name, i, where, (double)got[i], (double)rounded);
    }
    return NULL;
}

static const char *same_outputs(const backward_case *t, const char *where, const outputs *expected, const outputs *got,
                                nrg_dtype dtype)
{
    const size_t count = exact_count(&t->sets);
    const char *wrong = same("dx", where, expected->dx, got->dx, count, dtype);
    wrong = wrong ? wrong : same("dy", where, expected->dy, got->dy, count, dtype);
    wrong = wrong ? wrong : same("dw", where, expected->dw, got->dw, t->sets.c, NRG_F32);
    return wrong ? wrong : same("db", where, expected->db, got->db, t->sets.c, NRG_F32);
}

/* ---- errors ---- */

/* got against exact: within limit · unit, and what is beside it, which is recorded with the unit where there is an activation.
 * NULL, or what broke it. */
static const char *hold(const backward_case *t, enum column column, const char *name, size_t i, quad exact, float got,
                        double unit, double limit, double beside)
{
    const nrg_dtype dtype = column == COLUMN_DW || column == COLUMN_DB ? NRG_F32 : t->rounded;
    const double off = quad_magnitude(exact - got), size = quad_magnitude(exact);
    if (dtype != NRG_F32)
        beside += rounding_16 * element_ulp(size, dtype);
    const double bound = limit * unit + beside;
    if (!(bound <= DBL_MAX)) {
        ++*beyond;
        return NULL;
    }
    if (isinf(got) && (got > 0) == (exact > 0) && size + bound >= (double)element_max(dtype))
        return NULL;
    double part = off <= beside ? 0 : (off - beside) / unit;
    if (column == COLUMN_DX_ACTIVATION || column == COLUMN_DY)
        part = off > 0 ? off / bound : 0;
    double *most = &worst[t->grade * SET_ALL_KINDS + t->kind][column];
    if (t->rounded == NRG_F32) {
        if (!(part <= *most))
            *most = part;
        ++*measured;
    }
    if (off <= bound)
        return NULL;
    return truth_wrong("%s %zu is %.9g and should be %.17g: off by %.3g, limit %.1f units of %.3g, beside %.3g", name, i,
                       (double)got, (double)exact, off, limit, unit, beside);
}

/* What an activation lets do1 be off by. Nothing can be said where g' or do1 is beyond the floats. */
static double error_of_do1(const nrg_channel_norm_spec *spec, const exact_element *e)
{
    if (spec->activation == NRG_ACT_IDENTITY)
        return 0;
    if (quad_magnitude(exact_larger(e->slope_size, e->do1)) > 0x1p126)
        return INFINITY;
    const quad sum = e->o1 + e->y;
    double change = 0, reach = exact_o1_bound(exact_is_fast(spec), e->o1, e->w, e->b);
    reach += quad_ulp(quad_abs(sum) + (quad)reach) / 2;
    for (int side = -1; side <= 1; side += 2)
        change = fmax(change, quad_magnitude(quad_activation(spec->activation, sum + side * (quad)reach).slope - e->slope));
    return quad_magnitude(e->d_o) * (change + slope_limit * quad_ulp(e->slope_size)) + quad_ulp(e->do1) / 2;
}

/* Of a channel, over all samples. */
typedef struct channel_sums {
    quad dw, db, dw_size, db_size;
    double dw_beside, db_beside;
} channel_sums;

/* An element with all that follows from its set's statistics, and the error of its do1. */
typedef struct measured_element {
    exact_element e;
    double off;
} measured_element;

static measured_element element_of(const backward_case *t, const exact_statistics *exact, exact_place place)
{
    measured_element m = {.e = {.x = t->x[place.at], .d_o = t->d_o[place.at], .w = 1}};
    if (t->y)
        m.e.y = t->y[place.at];
    if (t->w)
        m.e.w = t->w[place.channel];
    if (t->b)
        m.e.b = t->b[place.channel];
    exact_element_set(t->spec.activation, exact, &m.e);
    m.off = error_of_do1(&t->spec, &m.e);
    return m;
}

/* What the set's sums are off by, each divided by d. */
typedef struct sums_error {
    double dh, dh_h;
} sums_error;

static void add_element(const backward_case *t, const measured_element *m, exact_sums *sums, sums_error *error,
                        channel_sums *channel)
{
    const quad dw = m->e.do1 * m->e.h;
    const double dh = m->off * quad_magnitude(m->e.w) / (double)t->sets.size, h = quad_magnitude(m->e.h);
    exact_sums_add(sums, &m->e);
    error->dh += dh;
    error->dh_h += dh * h;
    channel->dw += dw;
    channel->db += m->e.do1;
    channel->dw_size += quad_abs(dw);
    channel->db_size += quad_abs(m->e.do1);
    channel->dw_beside += m->off * h;
    channel->db_beside += m->off;
}

/* What a mean of the fast grade may be off by, in σ: the header's k. */
static double mean_error(const backward_case *t)
{
    return t->grade == 0 && t->spec.centred && t->spec.source != NRG_STATISTICS_RUNNING ? 3 * 0x1p-24 : 0;
}

static enum column column_of(const nrg_channel_norm_spec *spec)
{
    return spec->activation                         ? COLUMN_DX_ACTIVATION
           : spec->source == NRG_STATISTICS_RUNNING ? COLUMN_DX_RUNNING
           : spec->centred                          ? COLUMN_DX_CENTRED
                                                    : COLUMN_DX_UNCENTRED;
}

/* 2^-24 · Σ|terms|, those that are off counted as they may be; the result may be subnormal. */
static double unit_of(quad terms, double beside) { return 0x1p-24 * fmax(quad_magnitude(terms) + beside, 0x1p-126); }

static const char *measure_element(const backward_case *t, const exact_statistics *exact, const exact_sums *sums,
                                   const sums_error *error, const measured_element *m, size_t at, const outputs *f32)
{
    const nrg_channel_norm_spec *spec = &t->spec;
    const double inverse = (double)exact->inverse;
    quad terms, dx = exact_dx(spec, exact, sums, t->sets.size, &m->e, &terms);
    double beside = m->off * quad_magnitude(m->e.w) * inverse;
    if (spec->source != NRG_STATISTICS_RUNNING)
        beside += (quad_magnitude(m->e.h) * error->dh_h + (spec->centred ? error->dh : 0)) * inverse;
    beside += mean_error(t) * (quad_magnitude(sums->dh_h) + quad_magnitude(m->e.h * sums->dh)) * inverse / (double)t->sets.size;
    const char *wrong = hold(t, column_of(spec), "dx", at, dx, f32->dx[at], unit_of(terms, beside), gradient_limit, beside);
    if (!wrong && spec->activation)
        wrong = hold(t, COLUMN_DY, "dy", at, m->e.do1, f32->dy[at], m->off, 1, 0);
    if (!wrong && !spec->activation && !element_equal(&f32->dy[at], &t->d_o[at], 0, NRG_F32))
        wrong = "dy is not d_o, and there is no activation";
    return wrong;
}

static const char *measure_set(const backward_case *t, size_t set, const outputs *f32, channel_sums *channels)
{
    const size_t d = t->sets.size, c = set % t->sets.c, step = d <= 100000 ? 1 : 101;
    const exact_statistics exact = t->spec.source == NRG_STATISTICS_RUNNING
                                       ? exact_statistics_given(&t->spec, t->running_mean[c], t->running_var[c])
                                       : exact_statistics_of(&t->spec, &t->sets, set, t->x);
    /* the exact activations are slow; sets without one may be too large to be kept */
    measured_element *kept = t->spec.activation ? test_allocate(d, sizeof *kept) : NULL;
    exact_sums sums = {0, 0, 0, 0};
    sums_error error = {0, 0};
    const char *wrong = NULL;
    for (size_t i = 0; i < d; i++) {
        const exact_place place = exact_place_of(&t->sets, set, i);
        const measured_element m = element_of(t, &exact, place);
        add_element(t, &m, &sums, &error, &channels[place.channel]);
        if (kept)
            kept[i] = m;
    }
    for (size_t i = 0; i < d && !wrong; i += step) {
        const exact_place place = exact_place_of(&t->sets, set, i);
        const measured_element m = kept ? kept[i] : element_of(t, &exact, place);
        wrong = measure_element(t, &exact, &sums, &error, &m, place.at, f32);
    }
    free(kept);
    return wrong;
}

/* dw or db of a channel. before: what was there, which is added without an error of its own, and rounded with the rest. */
static const char *measure_sum(const backward_case *t, enum column column, const char *name, size_t c, quad sum, quad terms,
                               double beside, const float *before, float got)
{
    const double unit = unit_of(terms, beside);
    if (before) {
        sum += *before;
        beside += quad_ulp(quad_abs(sum) + (quad)beside) / 2;
    }
    return hold(t, column, name, c, sum, got, unit, gradient_limit, beside);
}

static const char *measure(const backward_case *t, const outputs *f32)
{
    channel_sums *channels = test_allocate(t->sets.c, sizeof *channels);
    const char *wrong = NULL;
    for (size_t set = 0; set < t->sets.sets && !wrong; set++)
        wrong = measure_set(t, set, f32, channels);
    for (size_t c = 0; c < t->sets.c && !wrong; c++) {
        channel_sums *sum = &channels[c];
        const double beside = sum->dw_beside + mean_error(t) * quad_magnitude(sum->db_size);
        wrong = measure_sum(t, COLUMN_DW, "dw", c, sum->dw, sum->dw_size, beside, t->dw ? &t->dw[c] : NULL, f32->dw[c]);
        if (!wrong)
            wrong =
                measure_sum(t, COLUMN_DB, "db", c, sum->db, sum->db_size, sum->db_beside, t->db ? &t->db[c] : NULL, f32->db[c]);
    }
    free(channels);
    return wrong;
}

/* ---- the sweep ---- */

/* NULL, or what is wrong. */
static const char *check(const backward_case *t)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    outputs out = new_outputs(t), other = new_outputs(t);
    const char *wrong = run(NRG_ISA_SCALAR, t, &t->spec, &out);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], t, &t->spec, &other);
        wrong = wrong ? wrong : same_outputs(t, nrg_isa_name(paths[i]), &out, &other, NRG_F32);
    }
    const outputs *f32 = &out;
    if (!wrong && t->spec.dtype != NRG_F32) {
        nrg_channel_norm_spec spec = t->spec;
        spec.dtype = spec.w_dtype = NRG_F32;
        spec.accuracy = NRG_ACCURACY_FAST; /* which 16-bit types always have */
        wrong = run(NRG_ISA_SCALAR, t, &spec, &other);
        wrong = wrong ? wrong : same_outputs(t, "the 16-bit result", &other, &out, t->spec.dtype);
        f32 = &other;
    }
    wrong = wrong ? wrong : measure(t, f32);
    if (!wrong && t->spec.dtype != NRG_F32) {
        backward_case narrow = *t;
        narrow.rounded = t->spec.dtype;
        wrong = measure(&narrow, &out);
    }
    free_outputs(&out);
    free_outputs(&other);
    return wrong;
}

static void check_one(enum set_over over, int kind, nrg_dtype dtype, nrg_layout layout, size_t size, int grade, uint64_t round)
{
    backward_case t;
    uint64_t seed = (((size * 4 + dtype) * SET_KINDS + (uint64_t)kind) * SET_OVERS + over) * 2 + layout;
    make_case(&t, over, kind, dtype, layout, size, grade, test_mix(seed * 64 + round));
    truth_judge(check(&t), t.text);
    free_case(&t);
}

static const size_t sizes[] = {1,    2,    3,    4,    5,    7,     8,     9,     12,     16,      24,      32,  33,
                               49,   60,   64,   65,   100,  128,   129,   255,   256,    257,     392,     513, 784,
                               1000, 2048, 4095, 4096, 4097, 10000, 12288, 65536, 100352, 1000003, 10000000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Of the largest there are few, unless a report is wanted. */
static int is_taken(int kind, size_t size)
{
    if (size <= 65536 || truth_reporting())
        return 1;
    return size > 1000003 ? kind == ROW_MEAN_1E3 || kind == SET_RELU : kind % 2 == (size == 100352);
}

static void check_size(int n)
{
    const size_t size = sizes[n];
    if (test_small() && size > 1000) {
        printf("SKIP sets of %zu: small scale\n", size);
        fflush(stdout);
        return;
    }
    const uint64_t rounds = test_small() ? 1 : size <= 33 ? 4 : size <= 65 ? 2 : 1;
    /* the large ones take turns */
    const int of = size > 65536 || (test_small() && size > 8) ? 8 : size > 1000 ? 4 : 1;
    for (int kind = 0; kind < SET_KINDS; kind++)
        for (int over = 0; over < SET_OVERS; over++)
            for (int layout = 0; layout < 2; layout++)
                for (uint64_t round = 0; round < rounds; round++) {
                    const int turn = (kind + over + 4 * layout + n) % 8;
                    if (turn % of || !is_taken(kind, size))
                        continue;
                    for (int grade = 0; grade < 2; grade++)
                        if (size <= 4097 || truth_reporting() || grade == (kind + layout) % 2)
                            check_one((enum set_over)over, kind, NRG_F32, (nrg_layout)layout, size, grade, round);
                    if ((size + round + (size_t)turn) % 3 == 0 && size <= 65536)
                        check_one((enum set_over)over, kind, (size + (size_t)kind) % 2 ? NRG_F16 : NRG_BF16, (nrg_layout)layout,
                                  size, (int)(round + (size_t)turn) % 2, round);
                }
}

/* Ordinary sets, each another one, of sizes that images have. */
static void check_ordinary(int n)
{
    static const size_t some[] = {64, 196, 784};
    for (uint64_t round = 0; round < (test_small() ? 1 : 4); round++)
        for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
            for (int over = 0; over < SET_OVERS; over++)
                check_one((enum set_over)over, SET_ORDINARY + n,
                          round % 4 < 3    ? NRG_F32
                          : (n + over) % 2 ? NRG_F16
                                           : NRG_BF16,
                          (nrg_layout)(round / 2 % 2), some[i], (int)(round % 2), round);
}

static const char *ordinary_name(int kind) { return set_kind_name(SET_ORDINARY + kind); }

static void print_table(void)
{
    static const char *const names[COLUMNS] = {"dx, not centred", "dx, centred", "dx, running", "dx with g",
                                               "dy with g",       "dw",          "db"};
    for (int grade = 0; grade < 2; grade++) {
        const truth_table table = {grade ? "exact" : "fast",    SET_KINDS, COLUMNS, set_kind_name, names,
                                   worst[grade * SET_ALL_KINDS]};
        const truth_table ordinary = {grade ? "exact" : "fast",
                                      ROW_ORDINARY_KINDS,
                                      COLUMNS,
                                      ordinary_name,
                                      names,
                                      worst[grade * SET_ALL_KINDS + SET_ORDINARY]};
        truth_print(&table);
        printf("\n");
        truth_print(&ordinary);
        printf("\n");
    }
}

START_TEST(sets) { check_size(_i); }
END_TEST

START_TEST(ordinary_sets) { check_ordinary(_i); }
END_TEST

START_TEST(worst_cases)
{
    printf("channel norm, backward: worst errors; %lu figures, and %lu beyond the floats:\n", *measured, *beyond);
    print_table();
    if (getenv("CK_RUN_CASE"))
        return;
    ck_assert_uint_gt(*measured, 500 * *beyond); /* most of these are of exp and expm1 */
    for (int column = 0; column < COLUMNS; column++) {
        double any = 0;
        for (int i = 0; i < 2 * SET_KINDS; i++) {
            const double error = worst[i / SET_KINDS * SET_ALL_KINDS + i % SET_KINDS][column];
            any = fmax(any, error);
            /* a short sweep does not meet every kind with every option */
            if (error == 0 && !test_small())
                ck_abort_msg("%s: column %d was never measured", set_kind_name(i % SET_KINDS), column);
        }
        if (any == 0)
            ck_abort_msg("column %d was never measured", column);
    }
}
END_TEST

static void report(void)
{
    for (int n = 0; n < SIZES; n++)
        check_size(n);
    for (int n = 0; n < ROW_ORDINARY_KINDS; n++)
        check_ordinary(n);
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("channel_norm_backward: scalar against the exact gradient");
    tcase_add_test(test_case(suite, "formulas"), formulas);
    tcase_add_loop_test(test_case(suite, "sets"), sets, 0, SIZES);
    tcase_add_loop_test(test_case(suite, "ordinary"), ordinary_sets, 0, ROW_ORDINARY_KINDS);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(2 * SET_ALL_KINDS * sizeof *worst);
    measured = test_shared(sizeof *measured);
    beyond = test_shared(sizeof *beyond);
    return truth_main(argc, argv, report, make_suite);
}
