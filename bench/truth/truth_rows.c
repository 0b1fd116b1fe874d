/* Rows: softmax and its logarithm, rotations, activations, gated linear units, sandwich norms; and the table of the
 * function that computes each op's truth. Softmax's gradient has none: the benchmark's inputs are no outputs of softmax.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../norm/norm.h"
#include "truth.h"

#ifdef TRUTH_IS_HERE

/* The second norm is of r as it was stored. */
static void sandwich(truth *t, const bench_case *c, const rival_job *j)
{
    const quad eps = (quad)bench_norm_spec(c).eps;
    for (size_t row = 0; row < truth_rows(c); row++) {
        const size_t first = row * TRUTH_DIM;
        quad of_x = 0, of_r = 0;
        for (size_t i = first; i < first + TRUTH_DIM; i++) {
            const quad x = truth_at(c, j->x, i), r = truth_at(c, j->r, i);
            of_x += x * x / TRUTH_DIM;
            of_r += r * r / TRUTH_DIM;
        }
        of_x = 1 / quad_sqrt(of_x + eps);
        of_r = 1 / quad_sqrt(of_r + eps);
        for (size_t i = 0; i < TRUTH_DIM; i++) {
            const quad y = truth_at(c, j->y, first + i), normed = truth_at(c, j->x, first + i) * of_x * truth_at(c, j->w, i);
            const quad o = truth_at(c, j->r, first + i) * of_r * truth_at(c, j->w2, i);
            truth_put(t, TRUTH_R, first + i, y + normed, truth_larger(y, normed));
            truth_put(t, TRUTH_O, first + i, o, o);
        }
    }
}

enum { PLAIN, LOG, CAUSAL };

/* causal: the last row sees every key. */
static void softmax_row(truth *t, const bench_case *c, const rival_job *j, size_t row, int kind)
{
    static quad e[TRUTH_DIM];
    const quad scale = (quad)0.125; /* bench/softmax */
    const size_t first = row * TRUTH_DIM, seen = kind == CAUSAL ? TRUTH_DIM - truth_rows(c) + row + 1 : TRUTH_DIM;
    quad most = truth_at(c, j->x, first), sum = 0;
    for (size_t i = 0; i < seen; i++)
        most = truth_at(c, j->x, first + i) > most ? truth_at(c, j->x, first + i) : most;
    for (size_t i = 0; i < seen; i++)
        sum += e[i] = quad_exp((truth_at(c, j->x, first + i) - most) * scale);
    const quad logarithm = quad_log(sum);
    for (size_t i = 0; i < TRUTH_DIM; i++) {
        const quad below = (truth_at(c, j->x, first + i) - most) * scale, part = i < seen ? e[i] / sum : 0;
        if (kind == LOG)
            truth_put(t, TRUTH_O, first + i, below - logarithm, truth_larger(below, logarithm));
        else
            truth_put(t, TRUTH_O, first + i, part, part);
    }
}

static void softmax(truth *t, const bench_case *c, const rival_job *j)
{
    const int kind = strcmp(c->op->name, "log-softmax") == 0 ? LOG : strcmp(c->op->name, "causal") == 0 ? CAUSAL : PLAIN;
    for (size_t row = 0; row < truth_rows(c); row++)
        softmax_row(t, c, j, row, kind);
}

/* The table is taken as it is; its own errors are in docs/ops/rope.md. */
static void rope_head(truth *t, const bench_case *c, const rival_job *j, size_t head, const float *table)
{
    const size_t pairs = j->head_dim / 2;
    const int is_neox = strstr(c->op->name, "neox") != NULL, normed = j->w != NULL;
    const size_t step = is_neox ? 1 : 2, apart = is_neox ? pairs : 1;
    quad squares = 0, scale = 1;
    for (size_t i = 0; normed && i < j->head_dim; i++)
        squares += (quad)truth_at(c, j->x, head + i) * truth_at(c, j->x, head + i);
    if (normed)
        scale = 1 / quad_sqrt(squares / (quad)j->head_dim + (quad)1e-6);
    for (size_t p = 0; p < pairs; p++) {
        const size_t one = step * p, two = one + apart;
        quad a = truth_at(c, j->x, head + one) * scale * (normed ? truth_at(c, j->w, one) : 1);
        quad b = truth_at(c, j->x, head + two) * scale * (normed ? truth_at(c, j->w, two) : 1);
        if (c->dtype != NRG_F32) { /* a norm is rounded before it is turned */
            a = truth_stored(c, (float)a);
            b = truth_stored(c, (float)b);
        }
        const quad cosine = table[p], sine = table[pairs + p];
        truth_put(t, TRUTH_O, head + one, a * cosine - b * sine, truth_larger(a * cosine, b * sine));
        truth_put(t, TRUTH_O, head + two, a * sine + b * cosine, truth_larger(a * sine, b * cosine));
    }
}

static void rope(truth *t, const bench_case *c, const rival_job *j)
{
    for (size_t head = 0; head < truth_rows(c) * TRUTH_DIM; head += j->head_dim)
        rope_head(t, c, j, head, j->table + head / TRUTH_DIM * j->head_dim);
}

/* Limits of gpt-oss's units are beyond the benchmark's numbers; the 1 that is added to b is not. */
static void glu(truth *t, const bench_case *c, const rival_job *j)
{
    const int pairs = strstr(c->op->name, "-pairs") != NULL, limited = c->op->option != 0;
    for (size_t i = 0; i < truth_rows(c) * TRUTH_DIM; i++) {
        const quad a = truth_at(c, j->x, pairs ? 2 * i : i), b = pairs ? truth_at(c, j->x, 2 * i + 1) : truth_at(c, j->b, i);
        const quad g = quad_activation(c->op->activation, a).value, v = limited ? b + 1 : b;
        truth_put(t, TRUTH_O, i, g * v, g * (limited ? truth_larger(b, 1) : b));
    }
}

static void activation_backward(truth *t, const bench_case *c, const rival_job *j)
{
    for (size_t i = 0; i < truth_rows(c) * TRUTH_DIM; i++) {
        const quad d_o = truth_at(c, j->d_o, i);
        const quad_g g = quad_activation(c->op->activation, truth_at(c, j->x, i));
        truth_put(t, TRUTH_DX, i, d_o * g.slope, d_o * truth_slope_scale(g));
    }
}

static void glu_backward(truth *t, const bench_case *c, const rival_job *j)
{
    for (size_t i = 0; i < truth_rows(c) * TRUTH_DIM; i++) {
        const quad d_o = truth_at(c, j->d_o, i), b = truth_at(c, j->b, i);
        const quad_g g = quad_activation(c->op->activation, truth_at(c, j->x, i));
        truth_put(t, TRUTH_DX, i, d_o * b * g.slope, d_o * b * truth_slope_scale(g));
        truth_put(t, TRUTH_DZ, i, d_o * g.value, d_o * g.value);
    }
}

/* ops: those that it makes; NULL: all of one call on dense tensors. */
static const struct maker {
    const char *kernel;
    truth_maker *maker;
    const char *ops;
} makers[] = {
    {"norm_forward", truth_norm, NULL},
    {"norm_backward", truth_norm_backward, NULL},
    {"channel_norm_forward", truth_norm, NULL},
    {"channel_norm_backward", truth_norm_backward, NULL},
    {"norm_sandwich", sandwich, "sandwich,turns"},
    {"rope", rope, NULL},
    {"norm_rope", rope, NULL},
    {"glu", glu, NULL},
    {"softmax", softmax, "softmax,log-softmax,causal"},
    {"activation_backward", activation_backward, NULL},
    {"glu_backward", glu_backward, NULL},
};

truth_maker *truth_of(bench_case *c)
{
    enum { IMAGES = 2, CHANNELS = 64, HEIGHT = 16 };
    const size_t rows = truth_rows(c);
    const struct maker *m = makers;
    while (m < makers + NRG_COUNT(makers) && strcmp(m->kernel, bench_kernel_of(c->family)) != 0)
        m++;
    if (m == makers + NRG_COUNT(makers) || (m->ops ? !bench_admits(m->ops, c->op->name) : c->op->fixed_strides) ||
        c->op->function == &call_norm_statistics)
        return NULL;
    if (m->maker == softmax)
        c->shape = (bench_shape)BENCH_IMAGES(1, 1, rows, TRUTH_DIM);
    else if (c->op->shapes[0].channels)
        c->shape = (bench_shape)BENCH_IMAGES(IMAGES, CHANNELS, HEIGHT, rows * TRUTH_DIM / (IMAGES * CHANNELS * HEIGHT));
    else
        c->shape = (bench_shape)BENCH_ROWS(rows, TRUTH_DIM);
    return m->maker;
}
#endif
