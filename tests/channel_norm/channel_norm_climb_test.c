/* Normalization over channels at its worst, in both grades: climbs (../harness/climb.h) towards the largest error of o, as a part
 * of what nrg/channel_norm.h promises.
 *
 * The exact grade keeps its promise for every input. The fast grade's is one of the stress set; beyond it a climb is held to what
 * the roundings can add up to: x - μ, f, and the shift with the result, where |o1 - b| may be twice the larger of both. Sets here
 * are short, so that their statistics are of double precision.
 *
 * `channel_norm_climb_test --report` prints what the climbs came to as a Markdown table, and the inputs of those beyond 1.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/climb.h"
#include "../harness/truth.h"
#include "channel_norm_exact.h"

typedef struct goal {
    const char *name;
    nrg_accuracy accuracy;
    int centred, running, has_b;
    nrg_layout layout;
    size_t n, c, s, groups; /* groups 0: batch norm */
} goal;

#define FAST NRG_ACCURACY_FAST
#define EXACT NRG_ACCURACY_EXACT

static const goal goals[] = {
    {"batch, not centred, 5", FAST, 0, 0, 1, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 5", FAST, 1, 0, 0, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 5, + b", FAST, 1, 0, 1, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 2×3, NHWC, + b", FAST, 1, 0, 1, NRG_LAYOUT_NHWC, 2, 2, 3, 0},
    {"group, 2×4, + b", FAST, 1, 0, 1, NRG_LAYOUT_NCHW, 1, 4, 4, 2},
    {"running, + b", FAST, 1, 1, 1, NRG_LAYOUT_NCHW, 1, 1, 3, 0},
    {"batch, not centred, 5, exact", EXACT, 0, 0, 1, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 5, exact", EXACT, 1, 0, 0, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 5, + b, exact", EXACT, 1, 0, 1, NRG_LAYOUT_NCHW, 1, 1, 5, 0},
    {"batch, 2×3, NHWC, + b, exact", EXACT, 1, 0, 1, NRG_LAYOUT_NHWC, 2, 2, 3, 0},
    {"group, 2×4, + b, exact", EXACT, 1, 0, 1, NRG_LAYOUT_NCHW, 1, 4, 4, 2},
    {"running, + b, exact", EXACT, 1, 1, 1, NRG_LAYOUT_NCHW, 1, 1, 3, 0},
};
enum { GOALS = sizeof goals / sizeof goals[0] };

static double counted(const goal *g) { return g->accuracy == EXACT ? 1 : 5.5 / 3; }

/* A case, and the results of a path. */
typedef struct attempt {
    const goal *to;
    nrg_channel_norm_spec spec;
    exact_sets sets;
    float *x, *w, *b, *mean, *variance; /* NULL where absent */
    float *o;
} attempt;

static nrg_status run(nrg_isa isa, attempt *a)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(a->sets.n, a->sets.s, a->x, a->w, a->b, a->o);
    args.running_mean_in = a->mean;
    args.running_var_in = a->variance;
    nrg_status status = nrg_isa_set(isa);
    return status == NRG_OK ? nrg_channel_norm_forward(&a->spec, &args, 0, 1) : status;
}

/* As a part of the promise; a NaN stays one. */
static double error_of(void *of)
{
    attempt *a = of;
    double most = 0;
    for (size_t c = 0; c < a->sets.c && a->variance; c++)
        if (a->variance[c] < 0)
            return -1;
    if (run(NRG_ISA_SCALAR, a))
        return -1;
    for (size_t set = 0; set < a->sets.sets; set++) {
        const exact_statistics exact = a->to->running ? exact_statistics_given(&a->spec, a->mean[set], a->variance[set])
                                                      : exact_statistics_of(&a->spec, &a->sets, set, a->x);
        for (size_t i = 0; i < a->sets.size; i++) {
            const exact_place at = exact_place_of(&a->sets, set, i);
            const quad w = a->w[at.channel], b = a->b ? a->b[at.channel] : 0,
                       o = (a->x[at.at] - exact.mean) * exact.inverse * w + b;
            const double part = quad_magnitude(o - a->o[at.at]) / exact_o1_bound(a->to->accuracy == FAST, o, w, b);
            if (!(part <= most))
                most = part;
        }
    }
    return most;
}

static void make(attempt *a, climb *c, const goal *g, enum climb_start start, uint64_t seed)
{
    uint64_t state = seed;
    memset(a, 0, sizeof *a);
    *c = (climb){.error = error_of, .of = a};
    a->to = g;
    a->spec = g->groups ? nrg_channel_norm_spec_group(NRG_F32, g->c, g->groups, 1e-12)
                        : nrg_channel_norm_spec_batch(NRG_F32, g->c, 1e-12);
    a->spec.layout = g->layout;
    a->spec.centred = g->centred;
    a->spec.accuracy = g->accuracy;
    if (g->running)
        a->spec.source = NRG_STATISTICS_RUNNING;
    a->sets = exact_sets_of(&a->spec, g->n, g->s);
    a->x = climb_add(c, "x", g->n * g->c, g->s, start, &state);
    a->w = climb_add(c, "w", 1, g->c, start, &state);
    if (g->has_b)
        a->b = climb_add(c, "b", 1, g->c, start, &state);
    if (g->running) {
        a->mean = climb_add(c, "mean", 1, g->c, start, &state);
        a->variance = climb_add(c, "variance", 1, g->c, start, &state);
        for (size_t i = 0; i < g->c; i++)
            a->variance[i] = fabsf(a->variance[i]);
    }
    a->o = test_allocate(exact_count(&a->sets), sizeof *a->o);
}

static void free_attempt(attempt *a)
{
    float *const all[] = {a->x, a->w, a->b, a->mean, a->variance, a->o};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* NULL, or which path has not scalar's bits. */
static const char *compare_paths(attempt *a)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths), all = exact_count(&a->sets);
    const char *wrong = run(NRG_ISA_SCALAR, a) ? "a call was refused" : NULL;
    float *o = element_floats(a->o, all, NRG_F32);
    for (size_t i = 1; i < count && !wrong; i++) {
        int same = run(paths[i], a) == NRG_OK;
        for (size_t k = 0; k < all && same; k++)
            same = element_equal(o, a->o, k, NRG_F32);
        if (!same)
            wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    free(o);
    return wrong;
}

static void climb_to(int n, enum climb_start start, double *error)
{
    enum { STEPS = 12000 };
    static attempt a;
    const goal *g = &goals[n];
    climb c;
    make(&a, &c, g, start, climb_seed((uint64_t)(n * CLIMB_STARTS) + start));
    *error = climb_run(&c, climb_seed((uint64_t)n), climb_steps(STEPS));
    const char *wrong = climb_judge(&c, g->name, start, *error, &(climb_bounds){.least = 0.2, .promise = 1, .limit = counted(g)});
    truth_judge(wrong ? wrong : compare_paths(&a), g->name);
    free_attempt(&a);
}

static const char *goal_name(int n) { return goals[n].name; }

int main(int argc, char **argv)
{
    static const climb_program program = {
        "channel_norm: climbing to the worst", "part of the promise", GOALS, CLIMB_RUNS, goal_name, climb_to, NULL};
    return climb_main(argc, argv, &program);
}
