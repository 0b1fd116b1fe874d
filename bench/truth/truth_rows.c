/* Rows: norms with residuals and gates, softmax and its logarithm, rotations, gated linear units, sandwich norms.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../norm/norm.h"
#include "truth.h"

#ifdef TRUTH_IS_HERE

/* Groups of a row each have their own statistics; w and b go on through the row. */
static void norm_group(truth *t, const bench_case *c, const rival_job *j, size_t row, size_t group, size_t dim)
{
    static quad p[TRUTH_DIM], g[TRUTH_DIM];
    const int pre = c->op->gate == NRG_GATE_PRE, post = c->op->gate == NRG_GATE_POST;
    const size_t first = row * TRUTH_DIM + group * dim;
    quad mean = 0, squares = 0;
    for (size_t i = 0; i < dim; i++) {
        const size_t at = first + i;
        const float x = truth_at(c, j->x, at), r = j->y ? truth_stored(c, x + truth_at(c, j->y, at)) : x;
        g[i] = pre || post ? quad_activation(c->op->activation, truth_at(c, j->z, at)).value : 1;
        p[i] = pre ? r * g[i] : r;
        mean += p[i] / (quad)dim;
    }
    mean = c->op->centred ? mean : 0;
    for (size_t i = 0; i < dim; i++)
        squares += (p[i] - mean) * (p[i] - mean);
    const quad scale = 1 / quad_sqrt(squares / (quad)dim + (quad)bench_norm_spec(c).eps);
    for (size_t i = 0; i < dim; i++) {
        const size_t column = group * dim + i;
        const quad w = truth_at(c, j->w, column), bias = j->b ? truth_at(c, j->b, column) : 0;
        const quad normed = (p[i] - mean) * scale * w, all = normed + bias;
        const quad term = c->op->centred ? truth_larger(truth_larger(p[i], mean) * scale * w, bias) : normed;
        if (post)
            truth_put(t, TRUTH_O, first + i, all * g[i], term * g[i]);
        else if (!pre && c->op->activation != NRG_ACT_IDENTITY)
            truth_put(t, TRUTH_O, first + i, quad_activation(c->op->activation, all).value,
                      quad_activation(c->op->activation, all).value);
        else
            truth_put(t, TRUTH_O, first + i, all, term);
    }
}

static void norm(truth *t, const bench_case *c, const rival_job *j)
{
    const size_t groups = c->op->groups ? c->op->groups : 1;
    for (size_t n = 0; n < truth_rows(c) * groups; n++)
        norm_group(t, c, j, n / groups, n % groups, TRUTH_DIM / groups);
}

/* The second norm is of r as it was stored. */
int truth_is_of_results(const bench_case *c) { return strcmp(bench_kernel_of(c->family), "norm_sandwich") == 0; }

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

truth_maker *truth_of_rows(bench_case *c)
{
    const char *kernel = bench_kernel_of(c->family), *op = c->op->name;
    const bench_shape rows = BENCH_ROWS(truth_rows(c), TRUTH_DIM), scores = BENCH_IMAGES(1, 1, truth_rows(c), TRUTH_DIM);
    truth_maker *maker = NULL;
    if (strcmp(kernel, "norm_forward") == 0) /* rows of strides lie elsewhere, and statistics are no tensor */
        maker = c->op->fixed_strides || strstr(op, "statistics") ? NULL : norm;
    else if (strcmp(kernel, "norm_sandwich") == 0)
        maker = strcmp(op, "sandwich") == 0 || strcmp(op, "turns") == 0 ? sandwich : NULL;
    else if (strcmp(kernel, "rope") == 0 || strcmp(kernel, "norm_rope") == 0)
        maker = strchr(op, ',') ? NULL : rope; /* of two calls */
    else if (strcmp(kernel, "glu") == 0)
        maker = glu;
    else if (strcmp(kernel, "softmax") == 0)
        maker = strcmp(op, "softmax") == 0 || strcmp(op, "log-softmax") == 0 || strcmp(op, "causal") == 0 ? softmax : NULL;
    if (maker)
        c->shape = maker == softmax ? scores : rows;
    return maker;
}
#endif
