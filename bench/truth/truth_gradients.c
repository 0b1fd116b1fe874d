/* Backward passes of rows: norms, activations, gated linear units. Not of softmax, since the benchmark's numbers are no rows of
 * it.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../norm/norm.h"
#include "truth.h"

#ifdef TRUTH_IS_HERE

static void activation(truth *t, const bench_case *c, const rival_job *j)
{
    for (size_t i = 0; i < truth_rows(c) * TRUTH_DIM; i++) {
        const quad d_o = truth_at(c, j->d_o, i);
        const quad_g g = quad_activation(c->op->activation, truth_at(c, j->x, i));
        truth_put(t, TRUTH_DX, i, d_o * g.slope, d_o * truth_slope_scale(g));
    }
}

static void glu(truth *t, const bench_case *c, const rival_job *j)
{
    for (size_t i = 0; i < truth_rows(c) * TRUTH_DIM; i++) {
        const quad d_o = truth_at(c, j->d_o, i), b = truth_at(c, j->b, i);
        const quad_g g = quad_activation(c->op->activation, truth_at(c, j->x, i));
        truth_put(t, TRUTH_DX, i, d_o * b * g.slope, d_o * b * truth_slope_scale(g));
        truth_put(t, TRUTH_DZ, i, d_o * g.value, d_o * g.value);
    }
}

/* One row; its part of dw and db is added to sums. */
static void norm_row(truth *t, const bench_case *c, const rival_job *j, size_t row, quad sums[TRUTH_DIM][4])
{
    static quad h[TRUTH_DIM], dh[TRUTH_DIM];
    const int gated = c->op->gate == NRG_GATE_POST;
    const size_t first = row * TRUTH_DIM;
    quad mean = 0, squares = 0, sum = 0, sum_terms = 0, cross = 0, cross_terms = 0;
    for (size_t i = 0; i < TRUTH_DIM; i++)
        mean += c->op->centred ? (quad)truth_at(c, j->x, first + i) / TRUTH_DIM : 0;
    for (size_t i = 0; i < TRUTH_DIM; i++) {
        const quad q = truth_at(c, j->x, first + i) - mean;
        squares += q * q / TRUTH_DIM;
    }
    const quad inverse = 1 / quad_sqrt(squares + (quad)bench_norm_spec(c).eps);
    for (size_t i = 0; i < TRUTH_DIM; i++) {
        const quad d_o = truth_at(c, j->d_o, first + i), w = j->w ? truth_at(c, j->w, i) : 1;
        quad_g g = {1, 0, 0};
        if (gated)
            g = quad_activation(c->op->activation, truth_at(c, j->z, first + i));
        h[i] = (truth_at(c, j->x, first + i) - mean) * inverse;
        dh[i] = d_o * g.value * w;
        sum += dh[i] / TRUTH_DIM;
        sum_terms += quad_abs(dh[i]) / TRUTH_DIM;
        cross += dh[i] * h[i] / TRUTH_DIM;
        cross_terms += quad_abs(dh[i] * h[i]) / TRUTH_DIM;
        sums[i][0] += d_o * g.value * h[i];
        sums[i][1] += quad_abs(d_o * g.value * h[i]);
        sums[i][2] += d_o * g.value;
        sums[i][3] += quad_abs(d_o * g.value);
        if (gated)
            truth_put(t, TRUTH_DZ, first + i, d_o * h[i] * w * g.slope, d_o * h[i] * w * truth_slope_scale(g));
    }
    if (!c->op->centred)
        sum = sum_terms = 0;
    for (size_t i = 0; i < TRUTH_DIM; i++) {
        const quad more = j->dr_in ? truth_at(c, j->dr_in, first + i) : 0;
        truth_put(t, TRUTH_DX, first + i, inverse * (dh[i] - sum - h[i] * cross) + more,
                  inverse * (quad_abs(dh[i]) + sum_terms + quad_abs(h[i]) * cross_terms) + quad_abs(more));
    }
}

static void norm(truth *t, const bench_case *c, const rival_job *j)
{
    static quad sums[TRUTH_DIM][4];
    memset(sums, 0, sizeof sums);
    for (size_t row = 0; row < truth_rows(c); row++)
        norm_row(t, c, j, row, sums);
    for (size_t i = 0; i < TRUTH_DIM; i++) {
        if (j->dw)
            truth_put(t, TRUTH_DW, i, sums[i][0], sums[i][1]);
        if (j->db)
            truth_put(t, TRUTH_DB, i, sums[i][2], sums[i][3]);
    }
}

truth_maker *truth_of_gradients(bench_case *c)
{
    const char *kernel = bench_kernel_of(c->family);
    truth_maker *maker = NULL;
    if (strcmp(kernel, "norm_backward") == 0)
        maker = norm;
    else if (strcmp(kernel, "activation_backward") == 0)
        maker = activation;
    else if (strcmp(kernel, "glu_backward") == 0)
        maker = glu;
    if (maker)
        c->shape = (bench_shape)BENCH_ROWS(truth_rows(c), TRUTH_DIM);
    return maker;
}
#endif
