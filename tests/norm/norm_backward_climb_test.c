/* The backward pass at its worst: climbs (../harness/climb.h) from rows of four kinds towards the largest error of each gradient,
 * in the unit of norm_backward_measure.h, and cases that climbs have found.
 *
 * The promise is one of the stress set: 4 units. What a climb is held to is what the roundings can add up to (`counted`), which
 * no input passes.
 *
 * `norm_backward_climb_test --report` prints what the climbs came to as a Markdown table, and the inputs of those beyond 4.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/climb.h"
#include "../harness/truth.h"
#include "norm_backward_measure.h"

/* ---- where a climb goes ---- */

typedef struct goal {
    const char *name;
    enum backward_column column;
    size_t rows, dim;
    int centred;
    int has_w;
    float weight_offset;
    nrg_gate gate; /* with the identity: g(z) = z, which is exact */
} goal;

static const goal goals[] = {
    {"dx, rms, 5", COLUMN_DX_RMS, 1, 5, 0, 1, 0, NRG_GATE_NONE},
    {"dx, rms, 33", COLUMN_DX_RMS, 1, 33, 0, 1, 0, NRG_GATE_NONE},
    {"dx, rms, 128, w + 1", COLUMN_DX_RMS, 1, 128, 0, 1, 1, NRG_GATE_NONE},
    {"dx, layer, 2", COLUMN_DX_LAYER, 1, 2, 1, 1, 0, NRG_GATE_NONE},
    {"dx, layer, 5", COLUMN_DX_LAYER, 1, 5, 1, 1, 0, NRG_GATE_NONE},
    {"dx, layer, 33, w + 1", COLUMN_DX_LAYER, 1, 33, 1, 1, 1, NRG_GATE_NONE},
    {"dx, layer, 129", COLUMN_DX_LAYER, 1, 129, 1, 1, 0, NRG_GATE_NONE},
    {"dx, rms, 512", COLUMN_DX_RMS, 1, 512, 0, 1, 0, NRG_GATE_NONE},
    {"dx, layer, 512, w + 1", COLUMN_DX_LAYER, 1, 512, 1, 1, 1, NRG_GATE_NONE},
    {"dx, rms, 7, gate before", COLUMN_DX_GATED, 1, 7, 0, 1, 0, NRG_GATE_PRE},
    {"dz, layer, 7, gate before", COLUMN_DZ, 1, 7, 1, 1, 0, NRG_GATE_PRE},
    {"dz, layer, 7, gate after", COLUMN_DZ, 1, 7, 1, 1, 0, NRG_GATE_POST},
    {"dw, layer, 1×3", COLUMN_DW, 1, 3, 1, 0, 0, NRG_GATE_NONE},
    {"dw, rms, 4×2", COLUMN_DW, 4, 2, 0, 0, 0, NRG_GATE_NONE},
    {"dw, layer, 7×3", COLUMN_DW, 7, 3, 1, 0, 0, NRG_GATE_NONE},
    {"db, 4×2", COLUMN_DB, 4, 2, 0, 0, 0, NRG_GATE_NONE},
    {"db, 7×2", COLUMN_DB, 7, 2, 0, 0, 0, NRG_GATE_NONE},
};
enum { GOALS = sizeof goals / sizeof goals[0] };

/* The roundings of f32 that a term of a gradient goes through one after the other, each at most 2^-24 of what it rounds; double
 * has no part in it. The names are those of docs/numerics.md. */
static double counted(const goal *g)
{
    const double q = g->centred, offset = g->weight_offset != 0, h = q + 2; /* p - mean; 1/s, and its product */
    /* of do1 · w: w′ and the product; in Σdh·q: q, and up to four additions; B; q·B with its q; the sum */
    const double chain = g->dim > 32 ? 4 : 1, dp = offset + 1 + q + chain + 1 + q + 1 + 1;
    switch (g->column) {
    case COLUMN_DW: /* the four additions of four rows, and k times the sum */
        return h + (g->rows > 4 ? 4 : (double)g->rows) + 1;
    case COLUMN_DB: /* the first is no addition */
        return 3 + 1;
    case COLUMN_DZ: /* after: o1, w′, and the product; before: dp and the product */
        return g->gate == NRG_GATE_POST ? h + offset + 2 : dp + 1;
    default:
        return g->gate == NRG_GATE_PRE ? dp + 1 : dp;
    }
}

/* ---- the climb ---- */

/* A case, and its error at the inputs of now. */
typedef struct attempt {
    const goal *to;
    backward_case t;
    double worst[ROW_ALL_KINDS][BACKWARD_COLUMNS];
    unsigned long measured;
} attempt;

static double error_of(void *of)
{
    attempt *a = of;
    memset(a->worst, 0, sizeof a->worst);
    return backward_run(&a->t) || backward_measure(&a->t) ? -1 : a->worst[a->t.kind][a->to->column];
}

/* dx of a row without gates, in double: its error is a million times what that loses. The mean is in two parts. */
static double guide_of(void *of)
{
    attempt *a = of;
    const backward_case *t = &a->t;
    const size_t dim = t->spec.dim;
    const double d = (double)dim;
    double mean = 0, rest = 0, squares = 0, cross = 0, cross_terms = 0, sum = 0, terms = 0, most = 0;
    if (backward_run_on(climb_path(), &a->t))
        return -1;
    for (size_t i = 0; i < dim && t->spec.centred; i++)
        mean += (double)t->x[i];
    mean /= d;
    for (size_t i = 0; i < dim && t->spec.centred; i++)
        rest += ((double)t->x[i] - mean) / d;
    for (size_t i = 0; i < dim; i++) {
        const double q = (double)t->x[i] - mean - rest;
        squares += q * q;
    }
    const double s = sqrt(squares / d + t->spec.eps), left = t->spec.centred ? 0x1p-22 * (1 + fabs(mean) / s) : 0;
    for (size_t i = 0; i < dim; i++) {
        const double h = ((double)t->x[i] - mean - rest) / s,
                     dh = (double)t->d_o[i] * ((double)t->w[i] + (double)t->spec.weight_offset);
        cross += dh * h / d;
        cross_terms += fabs(dh) * (fabs(h) + left) / d;
        sum += t->spec.centred ? dh / d : 0;
        terms += t->spec.centred ? fabs(dh) / d : 0;
    }
    for (size_t i = 0; i < dim; i++) {
        const double h = ((double)t->x[i] - mean - rest) / s,
                     dh = (double)t->d_o[i] * ((double)t->w[i] + (double)t->spec.weight_offset);
        const double unit = fmax(0x1p-126, (fabs(dh) + (fabs(h) + left) * cross_terms + terms) / s) * 0x1p-24;
        const double part = fabs((dh - h * cross - sum) / s - (double)t->dx[i]) / unit;
        if (!(part <= most))
            most = part;
    }
    return most;
}

static int has_guide(const goal *g)
{
    return g->dim > 32 && g->rows == 1 && g->column <= COLUMN_DX_LAYER && g->has_w && !g->gate;
}

static void make(attempt *a, climb *c, const goal *g, enum climb_start kind, uint64_t seed)
{
    uint64_t state = seed;
    const enum climb_start other = kind == CLIMB_ONE_LANE ? CLIMB_RANDOM : kind; /* only d_o is 0 elsewhere */
    memset(a, 0, sizeof *a);
    *c = (climb){.error = error_of, .guide = has_guide(g) ? guide_of : NULL, .of = a};
    a->to = g;
    a->t.spec = g->centred ? nrg_norm_spec_layer(NRG_F32, g->dim, 1e-12) : nrg_norm_spec_rms(NRG_F32, g->dim, 1e-12);
    a->t.spec.weight_offset = g->weight_offset;
    a->t.spec.gate = g->gate;
    a->t.rows = g->rows;
    a->t.limit = INFINITY;
    a->t.worst = a->worst;
    a->t.measured = &a->measured;
    a->t.x = climb_add(c, "x", g->rows, g->dim, other, &state);
    a->t.d_o = climb_add(c, "d_o", g->rows, g->dim, kind, &state);
    if (g->has_w)
        a->t.w = climb_add(c, "w", 1, g->dim, other, &state);
    if (g->gate)
        a->t.z = climb_add(c, "z", g->rows, g->dim, other, &state);
    backward_results(&a->t);
}

static void climb_to(int n, enum climb_start kind, double *error)
{
    enum { STEPS = 2400 };
    static attempt a;
    const goal *g = &goals[n];
    climb c;
    if (kind == CLIMB_RUNS && g->dim <= 64)
        return; /* there is one */
    make(&a, &c, g, kind, climb_seed((uint64_t)(n * CLIMB_STARTS) + kind));
    /* a step of a long row takes longer, and there are more of them to change; a guide makes up for that */
    *error = climb_run(&c, climb_seed((uint64_t)n), climb_steps(c.guide ? 4 * STEPS : g->dim > 32 ? STEPS / 4 : STEPS));
    const char *wrong =
        climb_judge(&c, g->name, kind, *error, &(climb_bounds){.least = 0.75, .promise = BACKWARD_LIMIT, .limit = counted(g)});
    wrong = wrong ? wrong : backward_run(&a.t);
    truth_judge(wrong ? wrong : backward_compare_paths(&a.t), g->name);
    backward_free(&a.t);
}

/* ---- cases that climbs have found ---- */

enum { MOST = 21 };

typedef struct known {
    const char *what;
    enum backward_column column;
    size_t rows, dim;
    int centred;
    double limit, least; /* its error, in units, is between these */
    float x[MOST], d_o[MOST], w[MOST];
} known;

static const known cases[] = {
    {.what = "4.99 ulp of the largest term of dx",
     .column = COLUMN_DX_LAYER,
     .rows = 1,
     .dim = 5,
     .centred = 1,
     .limit = BACKWARD_LIMIT,
     .least = 1,
     .x = {-0x1p+4, 0x1.00000ap+4, -0x1.fdfff2p+3, 0x1.fffffcp+3, -0x1.001004p+4},
     .d_o = {0x1.004a22p-4, 0x1.40001p+0, 0x1p-4, 0x1.01p-5, 0x1.10000cp-4},
     .w = {0x1.ca37bap-2, 0x1.ed5036p-1, 0x1.15cc14p-1, -0x1.0f9a8p-1, 0x1.f6b6fcp-1}},
    {.what = "dw of seven rows, climbed to",
     .column = COLUMN_DW,
     .rows = 7,
     .dim = 3,
     .centred = 1,
     .limit = 8,
     .least = 0.75,
     .x = {0x1.fffffap+1, 0x1.0b526ep+0, -0x1.ffffd6p-3, 0x1.efffc8p-1, -0x1.a2b652p-2, 0x1.fff796p-3, 0x1.aab72ap+2,
           0x1.aab4a2p-1, 0x1.ffff46p-1, 0x1.aab604p+0,  0x1.fbf9c4p-1, 0x1.ffff8ep-2,  0x1.ffffd6p-3, 0x0p+0,
           0x1.aeb4d8p-1, 0x1.aab4d8p-1, 0x1.aab4d6p-1,  0x1.aab4d8p-1, 0x1.aab7e6p-1,  0x1.df0874p-4, -0x1.aaaffap-1},
     .d_o = {-0x1.31ba12p+1, -0x0p+0,        -0x1.f440ap+7,  -0x0p+0,        -0x0p+0,        -0x1.6a3a38p-1, -0x0p+0,
             0x1.045b6cp-3,  -0x1.ffeff6p-3, -0x0p+0,        -0x1.00001cp-3, -0x1.418982p-6, 0x1.fffffp+1,   -0x0p+0,
             -0x0p+0,        -0x0p+0,        -0x1.fffffep-4, 0x1.a26bacp-6,  0x1.ffffdap-3,  0x1.fffdbp-6,   0x1.fffdbap-8}},
};

START_TEST(known_cases)
{
    const known *k = &cases[_i];
    static attempt a;
    static goal g;
    const size_t all = k->rows * k->dim;
    climb c;
    ck_assert_uint_le(all, MOST);
    g = (goal){k->what, k->column, k->rows, k->dim, k->centred, k->w[0] != 0, 0, NRG_GATE_NONE};
    make(&a, &c, &g, CLIMB_ALIKE, 1);
    memcpy(a.t.x, k->x, all * sizeof(float));
    memcpy(a.t.d_o, k->d_o, all * sizeof(float));
    if (a.t.w)
        memcpy(a.t.w, k->w, k->dim * sizeof(float));
    const double error = error_of(&a);
    printf("%s: %.3f units\n", k->what, error);
    fflush(stdout);
    ck_assert_msg(error >= k->least && error <= k->limit, "%s: %.3f units, from %g to %g is right", k->what, error, k->least,
                  k->limit);
    truth_judge(backward_compare_paths(&a.t), k->what);
    backward_free(&a.t);
}
END_TEST

static const char *goal_name(int n) { return goals[n].name; }

static void add_known(Suite *suite)
{
    tcase_add_loop_test(test_case(suite, "known"), known_cases, 0, sizeof cases / sizeof cases[0]);
}

int main(int argc, char **argv)
{
    static const climb_program program = {
        "norm_backward: climbing to the worst", "2^-24 · Σ\\|terms\\|", GOALS, CLIMB_STARTS, goal_name, climb_to, add_known};
    return climb_main(argc, argv, &program);
}
