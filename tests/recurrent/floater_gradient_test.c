/* nrg_floater_backward gives the gradients of the steps that nrg_floater_forward takes: exactly, where all numbers are integers,
 * and to within the rounding of h elsewhere.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "floater_dynamics.h"

/* A number and its derivative. */
typedef struct pair {
    double v, e;
} pair;

/* ---- h = A p, in integers: every number on the way is exact ---- */

/* Steps of 6, so that a sixth, a half and the whole are integers: a step is R = I + 6A + 18A² + 36A³ + 54A⁴. */
enum { LINEAR = 4, LINEAR_N = 3 };

typedef struct linear {
    float a[LINEAR][LINEAR];
    double da[LINEAR][LINEAR];
} linear;

static void linear_h(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    const linear *l = user;
    (void)t;
    for (size_t i = 0; i < dim; i++) {
        dp_dt[i] = 0;
        for (size_t j = 0; j < dim; j++)
            dp_dt[i] += l->a[i][j] * p[j];
    }
}

static void linear_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    linear *l = user;
    (void)t;
    for (size_t j = 0; j < dim; j++) {
        vt_dh_dp[j] = 0;
        for (size_t i = 0; i < dim; i++) {
            vt_dh_dp[j] += v[i] * l->a[i][j];
            l->da[i][j] += (double)v[i] * (double)p[j];
        }
    }
}

/* Of integers below 2^53. */
typedef struct matrix {
    pair m[LINEAR][LINEAR];
} matrix;

static matrix product(const matrix *a, const matrix *b)
{
    matrix c;
    for (size_t i = 0; i < LINEAR; i++)
        for (size_t j = 0; j < LINEAR; j++) {
            c.m[i][j] = (pair){0, 0};
            for (size_t k = 0; k < LINEAR; k++) {
                c.m[i][j].v += a->m[i][k].v * b->m[k][j].v;
                c.m[i][j].e += a->m[i][k].v * b->m[k][j].e + a->m[i][k].e * b->m[k][j].v;
            }
        }
    return c;
}

/* R, where entry (row, column) of A is the variable; row = LINEAR: none is. */
static matrix stability_polynomial(const linear *l, size_t row, size_t column)
{
    static const double coefficient[] = {6, 18, 36, 54};
    matrix a, power, r;
    for (size_t i = 0; i < LINEAR; i++)
        for (size_t j = 0; j < LINEAR; j++) {
            a.m[i][j] = (pair){l->a[i][j], i == row && j == column};
            r.m[i][j] = (pair){i == j, 0};
        }
    power = a;
    for (size_t n = 0; n < 4; n++) {
        for (size_t i = 0; i < LINEAR; i++)
            for (size_t j = 0; j < LINEAR; j++) {
                r.m[i][j].v += coefficient[n] * power.m[i][j].v;
                r.m[i][j].e += coefficient[n] * power.m[i][j].e;
            }
        power = product(&power, &a);
    }
    return r;
}

/* Σ dp_k · p_k of the chain p_k = R^steps p_(k-1), and p where it is asked for. */
static pair linear_loss(const matrix *r, size_t steps, const pair *p0, float (*dp)[LINEAR], double (*p)[LINEAR])
{
    pair now[LINEAR], next[LINEAR], loss = {0, 0};
    memcpy(now, p0, sizeof now);
    for (size_t k = 0; k < LINEAR_N; k++) {
        for (size_t step = 0; step < steps; step++) {
            for (size_t i = 0; i < LINEAR; i++) {
                next[i] = (pair){0, 0};
                for (size_t j = 0; j < LINEAR; j++) {
                    next[i].v += r->m[i][j].v * now[j].v;
                    next[i].e += r->m[i][j].v * now[j].e + r->m[i][j].e * now[j].v;
                }
            }
            memcpy(now, next, sizeof now);
        }
        for (size_t i = 0; i < LINEAR; i++) {
            loss.v += (double)dp[k][i] * now[i].v;
            loss.e += (double)dp[k][i] * now[i].e;
            if (p)
                p[k][i] = now[i].v;
        }
    }
    return loss;
}

START_TEST(linear_is_exact)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = test_mix(seed);
        const size_t steps = seed % 4 == 0 ? 2 : 1, n = LINEAR_N;
        linear l;
        memset(&l, 0, sizeof l);
        float p0[LINEAR], p[LINEAR_N][LINEAR], dp[LINEAR_N][LINEAR], d_p0[LINEAR];
        double states[LINEAR_N][LINEAR], exact[LINEAR_N][LINEAR];
        pair start[LINEAR];
        for (size_t i = 0; i < LINEAR; i++) {
            /* one entry a row; with two steps, nilpotent, so that numbers stay small */
            const size_t column = steps == 1 ? test_draw(&state, LINEAR) : i + 1;
            if (column < LINEAR)
                l.a[i][column] = test_draw(&state, 2) ? 1 : -1;
            p0[i] = (float)test_draw(&state, 5) - 2;
            start[i] = (pair){p0[i], 0};
            for (size_t k = 0; k < n; k++)
                dp[k][i] = (float)test_draw(&state, 3) - 1;
        }
        nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, n, LINEAR, linear_h, linear_vjp, &l);
        const matrix r = stability_polynomial(&l, LINEAR, 0);
        spec.substeps = steps;
        spec.dt = 6 * (double)steps;
        spec.t0 = -3;
        linear_loss(&r, steps, start, dp, exact);
        forward(&spec, p0, p, states[0]);
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < LINEAR; i++)
                ck_assert_msg(states[k][i] == exact[k][i] && p[k][i] == (float)exact[k][i],
                              "seed %d: p_%zu[%zu] is %g and not %g", (int)seed, k + 1, i, states[k][i], exact[k][i]);
        for (int with_states = 0; with_states < 2; with_states++) {
            memset(l.da, 0, sizeof l.da);
            backward(&spec, p0, with_states ? states[0] : NULL, dp, d_p0);
            for (size_t i = 0; i < LINEAR; i++) {
                start[i].e = 1;
                const double slope = linear_loss(&r, steps, start, dp, NULL).e;
                ck_assert_msg(d_p0[i] == (float)slope, "seed %d: d_p0[%zu] is %g and not %g", (int)seed, i, (double)d_p0[i],
                              slope);
                start[i].e = 0;
            }
            for (size_t i = 0; i < LINEAR; i++)
                for (size_t j = 0; j < LINEAR; j++) {
                    const matrix varied = stability_polynomial(&l, i, j);
                    const double slope = linear_loss(&varied, steps, start, dp, NULL).e;
                    ck_assert_msg(l.da[i][j] == slope, "seed %d: dA[%zu][%zu] is %g and not %g", (int)seed, i, j, l.da[i][j],
                                  slope);
                }
        }
    }
}
END_TEST

/* ---- an h that is not linear, and depends on time ---- */

/* The same steps in double without a rounding to f32, on pairs. variable: of p0, a, b, in this order. */
enum { BENT = 5, BENT_N = 4 };

static pair bent_pair(const bent *x, size_t i, const pair *p, double t, size_t variable)
{
    const pair a = {x->a[i], variable == BENT + i}, b = {x->b[i], variable == 2 * BENT + i};
    const pair p1 = p[(i + 1) % BENT], rest = {1 - p[i].v, -p[i].e};
    const pair ap = {a.v * p1.v, a.v * p1.e + a.e * p1.v};
    return (pair){ap.v * rest.v + t * b.v, ap.v * rest.e + ap.e * rest.v + t * b.e};
}

static double bent_slope(const bent *x, const nrg_floater_spec *spec, const float *p0, float (*dp)[BENT], size_t variable)
{
    static const double weight[] = {1, 2, 2, 1}, part[] = {0, 0.5, 0.5, 1};
    pair state[BENT], input[BENT], k[BENT], sum[BENT];
    double loss = 0;
    for (size_t i = 0; i < BENT; i++)
        state[i] = (pair){p0[i], variable == i};
    for (size_t position = 0; position < spec->positions; position++) {
        const double step = (spec->times[position + 1] - spec->times[position]) / (double)spec->substeps;
        for (size_t substep = 0; substep < spec->substeps; substep++) {
            memset(sum, 0, sizeof sum);
            memset(k, 0, sizeof k);
            for (size_t stage = 0; stage < 4; stage++) {
                const double t = spec->times[position] + ((double)substep + part[stage]) * step;
                for (size_t i = 0; i < BENT; i++)
                    input[i] = (pair){state[i].v + part[stage] * step * k[i].v, state[i].e + part[stage] * step * k[i].e};
                for (size_t i = 0; i < BENT; i++) {
                    k[i] = bent_pair(x, i, input, t, variable);
                    sum[i].v += weight[stage] * k[i].v;
                    sum[i].e += weight[stage] * k[i].e;
                }
            }
            for (size_t i = 0; i < BENT; i++) {
                state[i].v += step / 6 * sum[i].v;
                state[i].e += step / 6 * sum[i].e;
            }
        }
        for (size_t i = 0; i < BENT; i++)
            loss += (double)dp[position][i] * state[i].e;
    }
    return loss;
}

START_TEST(gradients_of_the_steps)
{
    static const double times[BENT_N + 1] = {0.5, 1, 0.25, 1.5, 1.75}; /* backwards is a direction, too */
    double worst = 0;
    for (size_t substeps = 1; substeps <= 3; substeps++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            bent x = make_bent(seed);
            float p0[BENT], dp[BENT_N][BENT], d_p0[BENT];
            nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, BENT_N, BENT, bent_h, bent_vjp, &x);
            spec.times = times;
            spec.substeps = substeps;
            fill(p0, BENT, seed);
            fill(dp[0], BENT_N * BENT, seed + 100);
            backward(&spec, p0, NULL, dp, d_p0);
            for (size_t i = 0; i < 3 * BENT; i++) {
                const double exact = bent_slope(&x, &spec, p0, dp, i);
                const double got = i < BENT ? d_p0[i] : i < 2 * BENT ? x.da[i - BENT] : x.db[i - 2 * BENT];
                const double error = fabs(got - exact) / (1 + fabs(exact));
                worst = error > worst ? error : worst;
                /* h and v are f32 */
                ck_assert_msg(error < 2e-6, "%zu substeps, seed %d: derivative %zu is %.9g and not %.9g", substeps, (int)seed, i,
                              got, exact);
            }
        }
    ck_assert(worst > 0);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("FLOATER: gradients");
    TCase *gradients = test_case(suite, "gradients");
    tcase_add_test(gradients, linear_is_exact);
    tcase_add_test(gradients, gradients_of_the_steps);
    return test_run(suite);
}
