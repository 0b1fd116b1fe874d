/* The backward pass against central differences of the forward pass's definition, written in double: every option combination of
 * every gate and activation, on small problems. The tolerance is far below what a wrong sign, factor or a missing term makes.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../../src/job/activation.h"
#include "../activation/activation_double.h"
#include "../harness/element.h"
#include "../harness/support.h"

enum { DIM = 6, ROWS = 2, COUNT = ROWS * DIM };
enum { GATES = NRG_GATE_POST + 1, ACTIVATIONS = NRG_ACTIVATION_COUNT, EPS_MODES = NRG_EPS_NONE + 1 };

/* Arrays have room for any dtype. */
typedef struct problem {
    nrg_norm_spec spec;
    nrg_dtype y_dtype, r_dtype, w_dtype;
    int has_y, has_w, has_b, has_dr_in, accumulate;
    float x[COUNT], y[COUNT], z[COUNT], w[DIM], b[DIM], d_o[COUNT], dr_in[COUNT], dw[DIM], db[DIM];
    float dx[COUNT], dy[COUNT], dz[COUNT], dw_out[DIM], db_out[DIM];
} problem;

static int digit(size_t *number, size_t base)
{
    const int value = (int)(*number % base);
    *number /= base;
    return value;
}

enum { OPTIONS = 3 * 2 * 2 * 3 * 2 * 2 * 2 * EPS_MODES * 3 };

/* Options number 0 … OPTIONS - 1; returns 0 for one that says the same as another. */
static int choose_options(problem *p, size_t number, nrg_dtype dtype)
{
    static const double constants[] = {0, 1, -2.7};
    memset(p, 0, sizeof *p);
    const int residual = digit(&number, 3), y_f32 = digit(&number, 2), r_f32 = digit(&number, 2), weight = digit(&number, 3);
    p->has_y = residual > 0;
    p->has_w = weight > 0;
    p->has_b = digit(&number, 2);
    const int w_f32 = digit(&number, 2), after = residual == 2;
    p->spec = digit(&number, 2) ? nrg_norm_spec_layer(NRG_F32, DIM, 0) : nrg_norm_spec_rms(NRG_F32, DIM, 0);
    p->spec.dtype = dtype;
    p->spec.residual_mode = after ? NRG_RESIDUAL_AFTER : NRG_RESIDUAL_BEFORE;
    p->spec.weight_offset = weight > 1 ? 1.0f : 0;
    p->spec.eps_mode = (nrg_eps_mode)digit(&number, EPS_MODES);
    p->spec.c = constants[digit(&number, 3)];
    norm_settle(&p->spec, p->has_w);
    p->spec.y_dtype = p->y_dtype = y_f32 ? NRG_F32 : dtype;
    p->spec.r_dtype = p->r_dtype = r_f32 ? NRG_F32 : dtype;
    p->spec.w_dtype = p->w_dtype = w_f32 ? NRG_F32 : dtype;
    if (dtype == NRG_F32)
        return !y_f32 && !r_f32 && !w_f32;
    return (p->has_y || !y_f32) && (!after || !r_f32) && (p->has_w || p->has_b || !w_f32);
}

static unsigned long *checked, *left_out;

/* A row in double; w with its offset. */
typedef struct row {
    double r[DIM], z[DIM], w[DIM], b[DIM], d_o[DIM];
} row;

/* What else is known of a row once its loss has been computed. */
typedef struct facts {
    double least_sigma, least_s, edge, kink; /* the last two: distance to where a derivative jumps */
} facts;

/* Σ d_o·o: nrg/norm.h, line by line. + y after the norm has no part in the gradients that are checked. */
static double loss(const nrg_norm_spec *spec, const row *in, facts *f)
{
    const size_t groups = spec->groups, d = DIM / groups;
    double sum = 0;
    for (size_t at = 0; at < DIM; at += d) {
        double p[DIM], m = 0, square = 0, s = 0, n = (double)d;
        for (size_t i = 0; i < d; i++) {
            p[i] = in->r[at + i] * (spec->gate == NRG_GATE_PRE ? activation_double(spec->activation, in->z[at + i]) : 1);
            m += p[i] / n;
        }
        m = spec->centred ? m : 0;
        for (size_t i = 0; i < d; i++)
            square += (p[i] - m) * (p[i] - m);
        double sigma = sqrt(square / n);
        switch (spec->eps_mode) {
        case NRG_EPS_MEAN:
            s = sqrt(square / n + spec->eps);
            break;
        case NRG_EPS_SUM:
            s = sqrt(square + spec->eps) / sqrt(n);
            break;
        case NRG_EPS_SIGMA:
            s = sigma + spec->eps;
            break;
        case NRG_EPS_MAX:
            s = fmax(sqrt(square), spec->eps) / sqrt(n);
            f->edge = fmin(f->edge, fabs(sqrt(square) - spec->eps));
            break;
        case NRG_EPS_NONE:
            s = sigma;
            break;
        }
        f->least_sigma = fmin(f->least_sigma, sigma);
        f->least_s = fmin(f->least_s, s);
        for (size_t i = 0; i < d; i++) {
            double o = (spec->c_mode == NRG_C_GIVEN ? spec->c / sqrt(n) : 1) * (p[i] - m) / s * in->w[at + i] + in->b[at + i];
            if (spec->gate == NRG_GATE_POST)
                o *= activation_double(spec->activation, in->z[at + i]);
            if (spec->gate == NRG_GATE_NONE) {
                f->kink = fmin(f->kink, activation_double_kink(spec->activation, o));
                o = activation_double(spec->activation, o);
            }
            sum += o * in->d_o[at + i];
        }
    }
    return sum;
}

static double difference(const nrg_norm_spec *spec, row *in, double *by)
{
    const double step = 1e-5, at = *by;
    facts ignored = {1, 1, 1, 1};
    *by = at + step;
    double above = loss(spec, in, &ignored);
    *by = at - step;
    double below = loss(spec, in, &ignored);
    *by = at;
    return (above - below) / (2 * step);
}

/* Numbers of ordinary size, away from 0, of alternating signs where they should not be alike. */
static void fill(void *tensor, size_t count, nrg_dtype dtype, double scale, int alternating, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++) {
        double size = scale * (0.3 + (double)test_draw(&state, 1000) / 1000);
        const int is_positive = alternating ? i % 2 != 0 : test_draw(&state, 2) != 0;
        element_set(tensor, i, dtype, (float)(is_positive ? size : -size));
    }
}

/* eps beside rows of length 1 or so: where it counts. */
static void fill_problem(problem *p, uint64_t seed)
{
    static const double eps[] = {0, 1e-5, 0.25, 1.5, 4};
    uint64_t state = test_mix(seed + 77);
    p->spec.eps = p->spec.eps_mode == NRG_EPS_NONE ? 0 : eps[seed % 5];
    p->has_dr_in = p->spec.residual_mode == NRG_RESIDUAL_BEFORE && test_draw(&state, 2);
    p->accumulate = (int)test_draw(&state, 2);
    fill(p->x, COUNT, p->spec.dtype, 1, 1, seed + 1);
    fill(p->y, COUNT, p->y_dtype, 0.2, 0, seed + 2);
    fill(p->z, COUNT, p->spec.dtype, 1.5, 0, seed + 3);
    fill(p->w, DIM, p->w_dtype, 1, 0, seed + 4);
    fill(p->b, DIM, p->w_dtype, 0.5, 0, seed + 5);
    fill(p->d_o, COUNT, p->spec.dtype, 1, 0, seed + 6);
    fill(p->dr_in, COUNT, p->r_dtype, 1, 0, seed + 7);
    fill(p->dw, DIM, NRG_F32, 1, 0, seed + 8);
    fill(p->db, DIM, NRG_F32, 1, 0, seed + 9);
}

static double get(const void *tensor, size_t i, nrg_dtype dtype) { return (double)element_get(tensor, i, dtype); }

static void hold(const problem *p, const char *name, size_t i, double expected, double got, double tolerance)
{
    const nrg_norm_spec *s = &p->spec;
    ++*checked;
    if (!(fabs(expected - got) <= tolerance))
        ck_abort_msg("%s, %s: %s %zu is %.9g and the difference says %.9g (tolerance %.3g)\n  %s%s%s%s%s, eps mode %d %g, c %g, "
                     "offset %g, "
                     "gate %d of %s, %zu groups",
                     nrg_isa_name(nrg_isa_active()), nrg_dtype_name(s->dtype), name, i, got, expected, tolerance,
                     s->centred ? "centred" : "", p->has_y ? s->residual_mode ? " y after" : " y before" : "",
                     p->has_w ? " w" : "", p->has_b ? " b" : "", p->has_dr_in ? " dr_in" : "", (int)s->eps_mode, s->eps, s->c,
                     (double)s->weight_offset, (int)s->gate, nrg_activation_name(s->activation), s->groups);
}

/* A row of the problem; r as the forward pass rounds it. */
static row row_of(const problem *p, size_t n)
{
    const nrg_norm_spec *s = &p->spec;
    const int adds = p->has_y && s->residual_mode == NRG_RESIDUAL_BEFORE;
    row in;
    for (size_t i = 0; i < DIM; i++) {
        const size_t at = n * DIM + i;
        in.r[i] = get(p->x, at, s->dtype);
        if (adds)
            in.r[i] = (double)element_round((float)(in.r[i] + get(p->y, at, p->y_dtype)), p->r_dtype);
        in.z[i] = s->gate ? get(p->z, at, s->dtype) : 0;
        in.w[i] = p->has_w ? get(p->w, i, p->w_dtype) + (double)s->weight_offset : 1;
        in.b[i] = p->has_b ? get(p->b, i, p->w_dtype) : 0;
        in.d_o[i] = get(p->d_o, at, s->dtype);
    }
    return in;
}

static void gradients(const problem *p)
{
    const nrg_norm_spec *spec = &p->spec;
    const int after = spec->residual_mode == NRG_RESIDUAL_AFTER;
    const double grid = spec->dtype == NRG_F32 ? 0 : spec->dtype == NRG_F16 ? 0x1p-10 : 0x1p-7;
    double dw[DIM] = {0}, db[DIM] = {0}, size = 0;
    int sound = 1;
    for (size_t n = 0; n < ROWS; n++) {
        row in = row_of(p, n);
        facts about = {INFINITY, INFINITY, INFINITY, INFINITY};
        double w_size = 0;
        for (size_t i = 0; i < DIM; i++)
            w_size = fmax(w_size, fabs(in.w[i]));
        loss(spec, &in, &about);
        /* a pre-gate of zeros can leave next to nothing of a row; near a jump there is no derivative */
        if (about.least_sigma < 0.05 || about.edge < 1e-3 || about.kink < 1e-3) {
            sound = 0;
            continue;
        }
        const double k = spec->c_mode == NRG_C_GIVEN ? fabs(spec->c) / sqrt((double)DIM / (double)spec->groups) : 1;
        const double scale = 4 * (1 + k * w_size / about.least_s) * (1 + k * w_size * 3);
        const double tolerance = 1e-5 * (activation_double_is_steep(spec->activation) ? 10 : 1) * scale;
        for (size_t i = 0; i < DIM; i++) {
            size_t at = n * DIM + i;
            double dr = difference(spec, &in, &in.r[i]), dx = dr + (p->has_dr_in ? get(p->dr_in, at, p->r_dtype) : 0);
            hold(p, "dx", at, dx, get(p->dx, at, spec->dtype), tolerance + grid * fabs(dx));
            hold(p, "dy", at, after ? in.d_o[i] : dx, get(p->dy, at, p->y_dtype), tolerance + grid * fabs(dx));
            if (spec->gate) {
                double dz = difference(spec, &in, &in.z[i]);
                hold(p, "dz", at, dz, get(p->dz, at, spec->dtype), tolerance + grid * fabs(dz));
            }
            dw[i] += difference(spec, &in, &in.w[i]);
            db[i] += difference(spec, &in, &in.b[i]);
            size = fmax(size, tolerance);
        }
    }
    if (!sound)
        ++*left_out;
    for (size_t i = 0; i < DIM && sound; i++) {
        hold(p, "dw", i, dw[i] + (p->accumulate ? (double)p->dw[i] : 0), (double)p->dw_out[i], size);
        hold(p, "db", i, db[i] + (p->accumulate ? (double)p->db[i] : 0), (double)p->db_out[i], size);
    }
}

static void run(problem *p)
{
    double workspace[2 * DIM];
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, p->x, p->has_w ? p->w : NULL, p->d_o, p->dx);
    args.y = p->has_y && p->spec.residual_mode == NRG_RESIDUAL_BEFORE ? p->y : NULL;
    args.z = p->spec.gate ? p->z : NULL;
    args.b = p->has_b ? p->b : NULL;
    args.dr_in = p->has_dr_in ? p->dr_in : NULL;
    args.dy = p->dy;
    args.dz = p->spec.gate ? p->dz : NULL;
    args.dw = memcpy(p->dw_out, p->dw, sizeof p->dw);
    args.db = memcpy(p->db_out, p->db, sizeof p->db);
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    args.accumulate = p->accumulate;
    ck_assert_int_eq(nrg_norm_backward(&p->spec, &args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_backward_reduce(&p->spec, &args, 0, 1), NRG_OK);
}

START_TEST(every_combination)
{
    static const size_t groups[] = {1, 1, 2, 3};
    nrg_dtype dtypes[3];
    nrg_isa paths[NRG_ISA_COUNT];
    size_t dtype_count = test_kernel_dtypes("norm_backward", dtypes), path_count = test_paths(paths);
    for (size_t dtype = 0; dtype < dtype_count; dtype++) {
        /* the paths are compared elsewhere, and the dtypes differ in their loads: an odd part of the 16-bit combinations */
        size_t step = (dtypes[dtype] == NRG_F32 ? 1 : 11) * (test_small() ? 13 : 1);
        for (size_t number = (size_t)_i % step; number < OPTIONS; number += step)
            for (int gate = 0; gate < GATES; gate++) {
                uint64_t seed = test_mix((number * GATES + (size_t)gate) * ACTIVATIONS + (size_t)_i), state = seed;
                problem p;
                if (!choose_options(&p, number, dtypes[dtype]))
                    continue;
                p.spec.gate = (nrg_gate)gate;
                p.spec.activation = (nrg_activation)_i;
                p.spec.groups = groups[test_draw(&state, 4)];
                fill_problem(&p, seed);
                ck_assert_int_eq(nrg_isa_set(paths[test_draw(&state, path_count)]), NRG_OK);
                run(&p);
                gradients(&p);
            }
    }
}
END_TEST

START_TEST(most_were_checked)
{
    printf("%lu gradients checked; %lu problems left out, where a derivative jumps or a row vanishes\n", *checked, *left_out);
    fflush(stdout);
    if (!getenv("CK_RUN_CASE") && !getenv("CK_RUN_SUITE"))
        ck_assert_uint_gt(*checked, 100 * *left_out);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    checked = test_shared(sizeof *checked);
    left_out = test_shared(sizeof *left_out);
    Suite *suite = suite_create("norm_backward: against differences of the forward pass");
    tcase_add_loop_test(test_case(suite, "combinations"), every_combination, 0, ACTIVATIONS);
    tcase_add_test(test_case(suite, "account"), most_were_checked);
    return test_run(suite);
}
