/* The backward pass against central differences of the forward pass's definition, written in double: every option combination of
 * every gate and activation, on small problems. The tolerance is far below what a wrong sign, factor or a missing term makes.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../activation/activation_double.h"
#include "../harness/element.h"
#include "norm_backward_case.h"

enum { DIM = 6, ROWS = 2 };

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
    const size_t groups = spec->groups ? spec->groups : 1, d = DIM / groups;
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
            double o = (spec->c != 0 ? spec->c / sqrt(n) : 1) * (p[i] - m) / s * in->w[at + i] + in->b[at + i];
            if (spec->gate == NRG_GATE_POST)
                o *= activation_double(spec->activation, in->z[at + i]);
            if (spec->gate == NRG_GATE_NONE) {
                f->kink = fmin(f->kink, fabs(o));
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
    for (size_t i = 0; tensor && i < count; i++) {
        double size = scale * (0.3 + (double)test_draw(&state, 1000) / 1000);
        element_set(tensor, i, dtype, (float)(alternating ? i % 2 : test_draw(&state, 2)) ? (float)size : (float)-size);
    }
}

/* eps beside rows of length 1 or so: where it counts. */
static void refill(norm_backward_problem *p, uint64_t seed)
{
    static const double eps[] = {0, 1e-5, 0.25, 1.5, 4};
    norm_problem *f = &p->forward;
    f->spec.eps = eps[seed % 5];
    fill(f->x, ROWS * DIM, f->spec.dtype, 1, 1, seed + 1);
    fill(f->y, ROWS * DIM, f->y_dtype, 0.2, 0, seed + 2);
    fill(f->z, ROWS * DIM, f->spec.dtype, 1.5, 0, seed + 3);
    fill(f->w, DIM, f->w_dtype, 1, 0, seed + 4);
    fill(f->b, DIM, f->w_dtype, 0.5, 0, seed + 5);
    fill(p->d_o, ROWS * DIM, f->spec.dtype, 1, 0, seed + 6);
    fill(p->dr_in, ROWS * DIM, f->r_dtype, 1, 0, seed + 7);
}

static double get(const void *tensor, size_t i, nrg_dtype dtype, double absent)
{
    return tensor ? (double)element_get(tensor, i, dtype) : absent;
}

static void hold(const norm_backward_problem *p, const char *name, size_t i, double expected, double got, double tolerance)
{
    ++*checked;
    if (!(fabs(expected - got) <= tolerance))
        ck_abort_msg("%s: %s %zu is %.9g and the difference says %.9g (tolerance %.3g, eps now %g)\n  case: %s",
                     nrg_isa_name(nrg_isa_active()), name, i, got, expected, tolerance, p->forward.spec.eps, p->text);
}

static void gradients(const norm_backward_problem *p, const norm_backward_result *out)
{
    const norm_problem *f = &p->forward;
    const nrg_norm_spec *spec = &f->spec;
    const int after = spec->residual_mode == NRG_RESIDUAL_AFTER;
    const double grid = spec->dtype == NRG_F32 ? 0 : spec->dtype == NRG_F16 ? 0x1p-10 : 0x1p-7;
    double dw[DIM] = {0}, db[DIM] = {0}, size = 0;
    int sound = 1;
    for (size_t n = 0; n < ROWS; n++) {
        row in;
        facts about = {INFINITY, INFINITY, INFINITY, INFINITY};
        double w_size = 0;
        for (size_t i = 0; i < DIM; i++) {
            size_t at = n * DIM + i;
            double r = get(f->x, at, spec->dtype, 0) + (after ? 0 : get(f->y, at, f->y_dtype, 0));
            in.r[i] = (double)element_round((float)r, after || !f->y ? NRG_F32 : f->r_dtype);
            in.z[i] = get(f->z, at, spec->dtype, 0);
            in.w[i] = f->w ? get(f->w, i, f->w_dtype, 1) + (double)spec->weight_offset : 1;
            in.b[i] = get(f->b, i, f->w_dtype, 0);
            in.d_o[i] = get(p->d_o, at, spec->dtype, 0);
            w_size = fmax(w_size, fabs(in.w[i]));
        }
        loss(spec, &in, &about);
        /* a pre-gate of zeros can leave next to nothing of a row; near a jump there is no derivative */
        if (about.least_sigma < 0.05 || about.edge < 1e-3 ||
            (about.kink < 1e-3 && (spec->activation == NRG_ACT_RELU || spec->activation == NRG_ACT_RELU2))) {
            sound = 0;
            continue;
        }
        const double k = spec->c != 0 ? fabs(spec->c) / sqrt((double)DIM / (double)f->groups) : 1;
        const double scale = 4 * (1 + k * w_size / about.least_s) * (1 + k * w_size * 3);
        const double tolerance = 1e-5 * (spec->activation == NRG_ACT_RELU2 ? 10 : 1) * scale;
        for (size_t i = 0; i < DIM; i++) {
            size_t at = n * DIM + i;
            double dr = difference(spec, &in, &in.r[i]), dx = dr + get(p->dr_in, at, f->r_dtype, 0);
            hold(p, "dx", at, dx, get(out->dx, at, spec->dtype, 0), tolerance + grid * fabs(dx));
            hold(p, "dy", at, after ? in.d_o[i] : dx, get(out->dy, at, f->y_dtype, 0), tolerance + grid * fabs(dx));
            if (f->z) {
                double dz = difference(spec, &in, &in.z[i]);
                hold(p, "dz", at, dz, get(out->dz, at, spec->dtype, 0), tolerance + grid * fabs(dz));
            }
            dw[i] += difference(spec, &in, &in.w[i]);
            db[i] += difference(spec, &in, &in.b[i]);
            size = fmax(size, tolerance);
        }
    }
    if (!sound)
        ++*left_out;
    for (size_t i = 0; i < DIM && sound; i++) {
        hold(p, "dw", i, dw[i] + (p->accumulate ? (double)p->dw[i] : 0), (double)out->dw[i], size);
        hold(p, "db", i, db[i] + (p->accumulate ? (double)p->db[i] : 0), (double)out->db[i], size);
    }
}

static void run(norm_backward_problem *p, norm_backward_result *out)
{
    const norm_problem *f = &p->forward;
    double workspace[2 * DIM];
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, f->x, p->d_o, out->dx);
    args.y = f->y;
    args.z = f->z;
    args.w = f->w;
    args.b = f->b;
    args.dr_in = p->dr_in;
    args.dy = out->dy;
    args.dz = f->z ? out->dz : NULL;
    args.dw = out->dw;
    args.db = out->db;
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    args.accumulate = p->accumulate;
    memcpy(out->dw, p->dw, DIM * sizeof(float));
    memcpy(out->db, p->db, DIM * sizeof(float));
    nrg_status status = nrg_norm_backward(&f->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&f->spec, &args, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), p->text);
}

START_TEST(every_combination)
{
    static const size_t groups[] = {0, 1, 2, 3};
    nrg_dtype dtypes[3];
    nrg_isa paths[NRG_ISA_COUNT];
    size_t dtype_count = test_kernel_dtypes("norm_backward", dtypes), path_count = test_paths(paths);
    for (size_t dtype = 0; dtype < dtype_count; dtype++) {
        /* the paths are compared elsewhere, and the dtypes differ in their loads: an odd part of the 16-bit combinations */
        size_t step = (dtypes[dtype] == NRG_F32 ? 1 : 11) * (test_small() ? 13 : 1);
        for (size_t number = (size_t)_i % step; number < norm_option_count(); number += step)
            for (int gate = 0; gate < GATES; gate++) {
                uint64_t seed = test_mix((number * GATES + (size_t)gate) * ACTIVATIONS + (size_t)_i), state = seed;
                norm_options options;
                norm_backward_problem problem;
                norm_backward_result out;
                if (!norm_options_at(&options, number, dtypes[dtype]))
                    continue;
                options.gate = (nrg_gate)gate;
                options.activation = (nrg_activation)_i;
                options.groups = groups[test_draw(&state, 4)];
                norm_backward_problem_make(&problem, &options, DIM, ROWS, NULL, 0, seed);
                refill(&problem, seed);
                norm_backward_result_make(&out, &problem);
                ck_assert_int_eq(nrg_isa_set(paths[test_draw(&state, path_count)]), NRG_OK);
                run(&problem, &out);
                gradients(&problem, &out);
                norm_backward_result_free(&out);
                norm_backward_problem_free(&problem);
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
