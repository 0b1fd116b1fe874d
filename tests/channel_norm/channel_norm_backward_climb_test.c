/* The backward pass of normalization over channels at its worst: climbs (../harness/climb.h) towards the largest error of each
 * gradient, in 2^-24 · Σ|terms|. Sums are in double here, and what the roundings in f32 can add up to is within the promise, 4:
 * of dx four (h's factor, x - μ, and two multiply-adds), of dw and db one. So is what climbs are held to.
 *
 * Short sets have a mean of double precision in both grades, so that nothing is beside the bound.
 *
 * `channel_norm_backward_climb_test --report` prints what the climbs came to as a Markdown table.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/climb.h"
#include "../harness/element.h"
#include "../harness/truth.h"
#include "channel_norm_backward_exact.h"

static const double promise = 4;

enum gradient { DX, DW, DB };

typedef struct goal {
    const char *name;
    enum gradient gradient;
    nrg_layout layout;
    int centred;
    size_t n, c, s, groups; /* groups 0: batch norm */
    int running;
    double counted; /* roundings of f32 that follow each other */
} goal;

static const goal goals[] = {
    {"dx, batch, not centred, 5", DX, NRG_LAYOUT_NCHW, 0, 1, 1, 5, 0, 0, 4},
    {"dx, batch, 2", DX, NRG_LAYOUT_NCHW, 1, 2, 1, 1, 0, 0, 4},
    {"dx, batch, 5", DX, NRG_LAYOUT_NCHW, 1, 1, 1, 5, 0, 0, 4},
    {"dx, batch, 100", DX, NRG_LAYOUT_NCHW, 1, 1, 1, 100, 0, 0, 4},
    {"dx, batch, 2×3, NHWC", DX, NRG_LAYOUT_NHWC, 1, 2, 2, 3, 0, 0, 4},
    {"dx, group, 2×4", DX, NRG_LAYOUT_NCHW, 1, 1, 4, 4, 2, 0, 4},
    {"dx, running", DX, NRG_LAYOUT_NCHW, 1, 1, 1, 3, 0, 1, 2},
    {"dw, batch, 3", DW, NRG_LAYOUT_NCHW, 1, 3, 1, 1, 0, 0, 1},
    {"dw, group, 2×2", DW, NRG_LAYOUT_NHWC, 1, 2, 2, 2, 1, 0, 1},
    {"db, batch, 7", DB, NRG_LAYOUT_NCHW, 1, 7, 1, 1, 0, 0, 1},
};
enum { GOALS = sizeof goals / sizeof goals[0] };

/* A case, and the results of a path. */
typedef struct attempt {
    const goal *to;
    nrg_channel_norm_spec spec;
    exact_sets sets;
    float *x, *d_o, *w, *variance; /* variance: of running statistics, whose mean is 0 */
    float *mean, *dx, *dw, *db;
} attempt;

static const char *run(nrg_isa isa, attempt *a)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(a->sets.n, a->sets.s, a->x, a->w, a->d_o, a->dx);
    if (a->spec.source == NRG_STATISTICS_RUNNING) {
        args.running_mean = a->mean;
        args.running_var = a->variance;
    }
    args.dw = a->dw;
    args.db = a->db;
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward_workspace(&a->spec, &args, &args.workspace_size);
    void *workspace = args.workspace = args.workspace_size ? test_allocate(args.workspace_size, 1) : NULL;
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(&a->spec, &args, 0, 1);
    free(workspace);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

/* The larger of `most` and an error in units, in which what is below the normal floats counts as the least of these. A NaN is
 * worse than anything. */
static double larger(double most, quad exact, float got, quad terms)
{
    const double error = quad_magnitude(exact - got) / (0x1p-24 * fmax(quad_magnitude(terms), 0x1p-126));
    return error <= most ? most : error;
}

typedef struct column {
    quad dw, db, dw_terms, db_terms;
} column;

static exact_element element_of(const attempt *a, const exact_statistics *exact, exact_place at)
{
    exact_element e = {.x = a->x[at.at], .d_o = a->d_o[at.at], .w = a->w[at.channel]};
    exact_element_set(NRG_ACT_IDENTITY, exact, &e);
    return e;
}

/* The larger of `most` and the errors of a set, whose dw and db are added to its columns. */
static double error_of_set(const attempt *a, size_t set, double most, column *columns)
{
    const exact_statistics exact = a->to->running ? exact_statistics_given(&a->spec, 0, a->variance[set])
                                                  : exact_statistics_of(&a->spec, &a->sets, set, a->x);
    exact_sums sums = {0, 0, 0, 0};
    for (size_t i = 0; i < a->sets.size; i++) {
        const exact_place at = exact_place_of(&a->sets, set, i);
        const exact_element e = element_of(a, &exact, at);
        column *sum = &columns[at.channel];
        exact_sums_add(&sums, &e);
        sum->dw += e.do1 * e.h;
        sum->db += e.do1;
        sum->dw_terms += quad_abs(e.do1 * e.h);
        sum->db_terms += quad_abs(e.do1);
    }
    for (size_t i = 0; i < a->sets.size && a->to->gradient == DX; i++) {
        const exact_place at = exact_place_of(&a->sets, set, i);
        const exact_element e = element_of(a, &exact, at);
        quad terms, dx = exact_dx(&a->spec, &exact, &sums, a->sets.size, &e, &terms);
        most = larger(most, dx, a->dx[at.at], terms);
    }
    return most;
}

static double error_of(void *of)
{
    attempt *a = of;
    double most = 0;
    if ((a->variance && a->variance[0] < 0) || run(NRG_ISA_SCALAR, a))
        return -1;
    column *columns = test_allocate(a->sets.c, sizeof *columns);
    for (size_t set = 0; set < a->sets.sets; set++)
        most = error_of_set(a, set, most, columns);
    for (size_t c = 0; c < a->sets.c; c++) {
        const column *sum = &columns[c];
        if (a->to->gradient == DW)
            most = larger(most, sum->dw, a->dw[c], sum->dw_terms);
        if (a->to->gradient == DB)
            most = larger(most, sum->db, a->db[c], sum->db_terms);
    }
    free(columns);
    return most;
}

static void make(attempt *a, climb *c, const goal *g, enum climb_start start, uint64_t seed)
{
    uint64_t state = seed;
    const enum climb_start other = start == CLIMB_ONE_LANE ? CLIMB_RANDOM : start; /* only d_o is 0 elsewhere */
    memset(a, 0, sizeof *a);
    *c = (climb){.error = error_of, .of = a};
    a->to = g;
    a->spec = g->groups ? nrg_channel_norm_spec_group(NRG_F32, g->c, g->groups, 1e-12)
                        : nrg_channel_norm_spec_batch(NRG_F32, g->c, 1e-12);
    a->spec.layout = g->layout;
    a->spec.centred = g->centred;
    if (g->running)
        a->spec.source = NRG_STATISTICS_RUNNING;
    a->sets = exact_sets_of(&a->spec, g->n, g->s);
    const size_t rows = g->n * g->c, all = exact_count(&a->sets);
    a->x = climb_add(c, "x", rows, g->s, other, &state);
    a->d_o = climb_add(c, "d_o", rows, g->s, start, &state);
    a->w = climb_add(c, "w", 1, g->c, other, &state);
    if (g->running) {
        a->variance = climb_add(c, "variance", 1, g->c, other, &state);
        a->variance[0] = fabsf(a->variance[0]);
        a->mean = test_allocate(g->c, sizeof *a->mean);
    }
    a->dx = test_allocate(all, sizeof *a->dx);
    a->dw = test_allocate(g->c, sizeof *a->dw);
    a->db = test_allocate(g->c, sizeof *a->db);
}

static void free_attempt(attempt *a)
{
    float *const all[] = {a->x, a->d_o, a->w, a->variance, a->mean, a->dx, a->dw, a->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* NULL, or which path has not scalar's bits. */
static const char *compare_paths(attempt *a)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths), all = exact_count(&a->sets);
    const char *wrong = run(NRG_ISA_SCALAR, a);
    float *dx = element_floats(a->dx, all, NRG_F32), *dw = element_floats(a->dw, a->sets.c, NRG_F32);
    for (size_t i = 1; i < count && !wrong; i++) {
        wrong = run(paths[i], a);
        for (size_t k = 0; k < all && !wrong; k++)
            if (!element_equal(dx, a->dx, k, NRG_F32) || !element_equal(dw, a->dw, k % a->sets.c, NRG_F32))
                wrong = truth_wrong("%s has not the bits of scalar", nrg_isa_name(paths[i]));
    }
    free(dx);
    free(dw);
    return wrong;
}

static void climb_to(int n, enum climb_start start, double *error)
{
    enum { STEPS = 12000 };
    static attempt a;
    const goal *g = &goals[n];
    climb c;
    make(&a, &c, g, start, climb_seed((uint64_t)(n * CLIMB_STARTS) + start));
    *error = climb_run(&c, climb_seed((uint64_t)n), climb_steps(g->s > 32 ? STEPS / 4 : STEPS));
    /* a double that is rounded is off by some 2^-53, too */
    const char *wrong = climb_judge(&c, g->name, start, *error,
                                    &(climb_bounds){.least = 0.75, .promise = promise, .limit = g->counted + 0x1p-20});
    truth_judge(wrong ? wrong : compare_paths(&a), g->name);
    free_attempt(&a);
}

static const char *goal_name(int n) { return goals[n].name; }

int main(int argc, char **argv)
{
    static const climb_program program = {
        "channel_norm_backward: climbing to the worst", "2^-24 · Σ\\|terms\\|", GOALS, CLIMB_RUNS, goal_name, climb_to, NULL};
    return climb_main(argc, argv, &program);
}
