/* The forward pass at its worst, in both grades: climbs (../harness/climb.h) towards the largest error of o, mean and rstd, as a
 * part of what nrg/norm.h promises of every row (norm_promise.h), and rows that were made or found. No input passes 1.
 *
 * `norm_climb_test --report` prints what the climbs came to as a Markdown table, in the units of docs/numerics.md.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/climb.h"
#include "../harness/truth.h"
#include "norm_promise.h"

enum output { O, MEAN, RSTD };

typedef struct goal {
    const char *name;
    enum output output;
    nrg_accuracy accuracy;
    size_t dim;
    int centred;
    int has_w;
    float weight_offset;
    int x_scale, w_scale; /* powers of two, around which operands are */
} goal;

#define FAST NRG_ACCURACY_FAST
#define EXACT NRG_ACCURACY_EXACT

static const goal goals[] = {
    {"rms, 5", O, FAST, 5, 0, 1, 0, 0, 0},
    {"rms, 64, w + 1", O, FAST, 64, 0, 1, 1, 0, 0},
    {"rms, 256", O, FAST, 256, 0, 1, 0, 0, 0},
    {"rms, 5, o near 2^-124", O, FAST, 5, 0, 1, 0, 0, -124},
    {"rms, 3, subnormals", O, FAST, 3, 0, 1, 0, -140, 0},
    {"layer, 5", O, FAST, 5, 1, 1, 0, 0, 0},
    {"layer, 65", O, FAST, 65, 1, 1, 0, 0, 0},
    {"layer, 256", O, FAST, 256, 1, 1, 0, 0, 0},
    {"layer, 256, w + 1", O, FAST, 256, 1, 1, 1, 0, 0},
    {"rstd, rms, 256", RSTD, FAST, 256, 0, 0, 0, 0, 0},
    {"rstd, layer, 256", RSTD, FAST, 256, 1, 0, 0, 0, 0},
    {"mean, 65", MEAN, FAST, 65, 1, 0, 0, 0, 0},
    {"mean, 256", MEAN, FAST, 256, 1, 0, 0, 0, 0},
    {"rms, 5, exact", O, EXACT, 5, 0, 1, 0, 0, 0},
    {"rms, 64, w + 1, exact", O, EXACT, 64, 0, 1, 1, 0, 0},
    {"rms, 5, o near 2^-124, exact", O, EXACT, 5, 0, 1, 0, 0, -124},
    {"rms, 5, 1/s near 2^-34, o near 2^-124, exact", O, EXACT, 5, 0, 1, 0, 34, -124},
    {"rms, 3, subnormals, exact", O, EXACT, 3, 0, 1, 0, -140, 0},
    {"layer, 5, exact", O, EXACT, 5, 1, 1, 0, 0, 0},
    {"layer, 5, o near 2^-124, exact", O, EXACT, 5, 1, 1, 0, 0, -124},
    {"rstd, layer, 33, exact", RSTD, EXACT, 33, 1, 0, 0, 0, 0},
    {"mean, 33, exact", MEAN, EXACT, 33, 1, 0, 0, 0, 0},
};
enum { GOALS = sizeof goals / sizeof goals[0] };

/* What the stress set keeps to, as a part of the promise: a report prints the inputs of climbs that came further. */
static double stress_part(const goal *g)
{
    if (g->accuracy == NRG_ACCURACY_EXACT)
        return 1;
    if (g->output != O)
        return g->output == MEAN ? 3 / 7.0 : g->centred ? 3 / 10.0 : 3 / 4.0;
    return g->weight_offset != 0 ? 4 / (g->centred ? 13 : 6.5) : 3 / (g->centred ? 12 : 5.5);
}

/* A row, and what scalar makes of it. */
typedef struct attempt {
    const goal *to;
    nrg_norm_spec spec;
    float *x, *w; /* w: NULL where absent */
    float *o, mean, rstd;
    quad *p;
} attempt;

static nrg_status run(nrg_isa isa, attempt *a)
{
    nrg_norm_args args = nrg_norm_args_init(1, a->x, a->w, a->o);
    args.mean = &a->mean;
    args.rstd = &a->rstd;
    nrg_status status = nrg_isa_set(isa);
    return status == NRG_OK ? nrg_norm_forward(&a->spec, &args, 0, 1) : status;
}

/* Of the fast grade the part of σ: its own rounding leaves nothing to look for. */
static double mean_part(int fast, double error, double mean, double sigma)
{
    const double rounding = fast ? 0x1p-24 * mean : 0, bound = norm_mean_bound(fast, NORM_EVERY_ROW, mean, sigma) - rounding;
    return error <= rounding || !(bound > 0) ? 0x1p-20 * error / (rounding + bound) : (error - rounding) / bound;
}

/* As a part of the promise; a NaN stays one. */
static double error_of(void *of)
{
    attempt *a = of;
    const nrg_norm_spec *spec = &a->spec;
    const int fast = spec->accuracy == NRG_ACCURACY_FAST;
    if (run(NRG_ISA_SCALAR, a))
        return -1;
    for (size_t i = 0; i < spec->dim; i++)
        a->p[i] = a->x[i];
    const norm_exact exact = norm_exact_of(spec, spec->dim, a->p);
    const quad k = norm_exact_k(spec, spec->dim), rstd = exact.s > 0 ? 1 / exact.s : 0;
    if (a->to->output == MEAN)
        return mean_part(fast, quad_magnitude(exact.mean - a->mean), quad_magnitude(exact.mean), (double)exact.sigma);
    if (a->to->output == RSTD)
        return isinf(a->rstd)
                   ? -1
                   : quad_magnitude(rstd - a->rstd) / norm_rstd_bound(fast, NORM_EVERY_ROW, spec->centred, quad_magnitude(rstd));
    double most = 0;
    for (size_t i = 0; i < spec->dim; i++) {
        const quad w = a->w ? (quad)a->w[i] + spec->weight_offset : 1, o = (a->p[i] - exact.mean) * k * rstd * w;
        const norm_promise promise = norm_promise_of(spec, NORM_EVERY_ROW, quad_magnitude(w), (double)k, (double)(k * rstd),
                                                     a->w && spec->weight_offset != 0);
        const double part = quad_magnitude(o - a->o[i]) / (promise.ulps * quad_ulp(o) + promise.beside);
        if (!(part <= most))
            most = part;
    }
    return most;
}

/* The same in double, for the fast grade: its errors are a thousand times those of double and more. The mean is in two parts. */
static double guide_of(void *of)
{
    attempt *a = of;
    const nrg_norm_spec *spec = &a->spec;
    const double d = (double)spec->dim;
    double mean = 0, rest = 0, squares = 0, most = 0;
    if (run(climb_path(), a))
        return -1;
    for (size_t i = 0; i < spec->dim && spec->centred; i++)
        mean += (double)a->x[i];
    mean /= d;
    for (size_t i = 0; i < spec->dim && spec->centred; i++)
        rest += ((double)a->x[i] - mean) / d;
    for (size_t i = 0; i < spec->dim; i++) {
        const double q = (double)a->x[i] - mean - rest;
        squares += q * q;
    }
    const double s = sqrt(squares / d + spec->eps), rstd = s > 0 ? 1 / s : 0;
    if (a->to->output == MEAN)
        return mean_part(1, fabs(mean - (double)a->mean + rest), fabs(mean), sqrt(squares / d));
    if (a->to->output == RSTD)
        return isinf(a->rstd) ? -1 : fabs(rstd - (double)a->rstd) / norm_rstd_bound(1, NORM_EVERY_ROW, spec->centred, rstd);
    for (size_t i = 0; i < spec->dim; i++) {
        const double w = a->w ? (double)a->w[i] + (double)spec->weight_offset : 1, o = ((double)a->x[i] - mean - rest) * rstd * w;
        const norm_promise promise = norm_promise_of(spec, NORM_EVERY_ROW, fabs(w), 1, rstd, a->w && spec->weight_offset != 0);
        const double part = fabs(o - (double)a->o[i]) / (promise.ulps * climb_ulp(o) + promise.beside);
        if (!(part <= most))
            most = part;
    }
    return most;
}

static void make(attempt *a, climb *c, const goal *g, enum climb_start start, uint64_t seed)
{
    enum { LEAST = -149, AROUND = 30 };
    uint64_t state = seed;
    memset(a, 0, sizeof *a);
    *c = (climb){.error = error_of, .guide = g->accuracy == FAST && g->dim > 64 ? guide_of : NULL, .of = a};
    a->to = g;
    a->spec = g->centred ? nrg_norm_spec_layer(NRG_F32, g->dim, 1e-12) : nrg_norm_spec_rms(NRG_F32, g->dim, 1e-12);
    a->spec.accuracy = g->accuracy;
    a->spec.weight_offset = g->weight_offset;
    if (g->x_scale < -100)
        a->spec.eps = 0;
    a->x = climb_add(c, "x", 1, g->dim, start, &state);
    if (g->has_w)
        a->w = climb_add(c, "w", 1, g->dim, start == CLIMB_ONE_LANE ? CLIMB_RANDOM : start, &state);
    const int scales[] = {g->x_scale, g->w_scale};
    for (size_t k = 0; k < c->count; k++) {
        climb_operand *operand = &c->operands[k];
        for (size_t i = 0; i < operand->count; i++)
            operand->values[i] = ldexpf(operand->values[i], scales[k]);
        operand->least = scales[k] - AROUND < LEAST ? LEAST : scales[k] - AROUND;
        operand->most = scales[k] + AROUND;
    }
    a->o = test_allocate(g->dim, sizeof *a->o);
    a->p = test_allocate(g->dim, sizeof *a->p);
}

static void free_attempt(attempt *a)
{
    free(a->x);
    free(a->w);
    free(a->o);
    free(a->p);
}

/* NULL, or which path has not scalar's bits. */
static const char *compare_paths(attempt *a)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const char *wrong = run(NRG_ISA_SCALAR, a) ? "a call was refused" : NULL;
    float *o = element_floats(a->o, a->spec.dim, NRG_F32);
    const float statistics[] = {a->mean, a->rstd};
    for (size_t i = 1; i < count && !wrong; i++) {
        int same = run(paths[i], a) == NRG_OK && element_equal(&a->mean, statistics, 0, NRG_F32) &&
                   element_equal(&a->rstd, statistics + 1, 0, NRG_F32);
        for (size_t k = 0; k < a->spec.dim && same; k++)
            same = element_equal(o, a->o, k, NRG_F32);
        if (!same)
            wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    free(o);
    return wrong;
}

static void climb_to(int n, enum climb_start start, double *error)
{
    enum { STEPS = 20000 };
    static attempt a;
    const goal *g = &goals[n];
    climb c;
    if (start == CLIMB_RUNS && g->dim <= 64)
        return; /* there is one */
    make(&a, &c, g, start, climb_seed((uint64_t)(n * CLIMB_STARTS) + start));
    *error = climb_run(&c, climb_seed((uint64_t)n), climb_steps(STEPS));
    const char *wrong =
        climb_judge(&c, g->name, start, *error,
                    &(climb_bounds){.least = g->output == MEAN ? 0.005 : 0.02, .promise = stress_part(g), .limit = 1});
    truth_judge(wrong ? wrong : compare_paths(&a), g->name);
    free_attempt(&a);
}

/* 192 squares that vanish one by one beside the 64 before them, which the fast grade is worst at. */
START_TEST(vanishing_squares)
{
    enum { DIM = 256, STEPS = 4000 };
    static const goal of[] = {{"squares that vanish", O, FAST, DIM, 0, 1, 0, 0, 0},
                              {"squares that vanish, exact", O, EXACT, DIM, 0, 1, 0, 0, 0}};
    const goal *g = &of[_i];
    attempt a;
    climb c;
    make(&a, &c, g, CLIMB_RANDOM, 1);
    for (size_t i = 0; i < DIM; i++)
        a.x[i] = i < 64 ? 0x1.00ebbp+0F : 0x1.fa13cp-13F;
    a.spec.eps = 0x1.90b111a72cap-23; /* this and the climb make the most of the roundings after that */
    const double error = climb_run(&c, 1, climb_steps(STEPS));
    printf("%s: %.3f of the promise\n", g->name, error);
    fflush(stdout);
    const char *wrong = climb_judge(&c, g->name, CLIMB_RANDOM, error, &(climb_bounds){_i ? 0.9 : 0.65, 1, 1});
    truth_judge(wrong ? wrong : compare_paths(&a), g->name);
    free_attempt(&a);
}
END_TEST

static const char *goal_name(int n) { return goals[n].name; }

static void add_known(Suite *suite) { tcase_add_loop_test(test_case(suite, "known"), vanishing_squares, 0, 2); }

int main(int argc, char **argv)
{
    static const climb_program program = {
        "norm_forward: climbing to the worst", "part of the promise", GOALS, CLIMB_STARTS, goal_name, climb_to, add_known};
    return climb_main(argc, argv, &program);
}
