/* Norms of rows and of channels, forward and backward: what differs is where the elements of a set are, of which a mean and a
 * variance are.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../norm/norm.h"
#include "truth.h"

#ifdef TRUTH_IS_HERE

typedef struct set {
    size_t count, at[TRUTH_ELEMENTS], column[TRUTH_ELEMENTS]; /* at: in the tensors; column: in w and b */
    quad p[TRUTH_ELEMENTS];                                   /* what is normalized */
    quad mean, inverse;
} set;

static size_t groups_of(const bench_case *c, const rival_job *j)
{
    return c->shape.channels ? j->groups : c->op->groups ? c->op->groups : 1;
}

static size_t sets_of(const bench_case *c, const rival_job *j)
{
    const int over_batch = c->shape.channels && c->op->over == NRG_CHANNEL_OVER_BATCH;
    return over_batch ? c->shape.channels : c->shape.rows * groups_of(c, j);
}

/* Over the batch a channel of all images; otherwise a group of columns, or of channels, of one row. */
static void place(set *s, const bench_case *c, const rival_job *j, size_t n)
{
    const bench_shape shape = c->shape;
    const size_t columns = shape.channels ? shape.channels : shape.dim, positions = shape.dim / columns;
    const int over_batch = shape.channels && c->op->over == NRG_CHANNEL_OVER_BATCH;
    const size_t groups = over_batch ? columns : groups_of(c, j), each = columns / groups;
    s->count = 0;
    for (size_t row = over_batch ? 0 : n / groups; row < (over_batch ? shape.rows : n / groups + 1); row++)
        for (size_t column = n % groups * each; column < (n % groups + 1) * each; column++)
            for (size_t p = 0; p < positions; p++) {
                s->column[s->count] = column;
                s->at[s->count++] = c->op->layout == NRG_LAYOUT_NHWC ? (row * positions + p) * columns + column
                                                                     : (row * columns + column) * positions + p;
            }
}

static void find_statistics(set *s, const bench_case *c, const rival_job *j, size_t n)
{
    const quad count = (quad)s->count, eps = c->shape.channels ? (quad)j->eps : (quad)bench_norm_spec(c).eps;
    quad variance = 0;
    s->mean = 0;
    s->inverse = 1;
    if (c->op->source == NRG_STATISTICS_FOLDED)
        return;
    if (c->op->source == NRG_STATISTICS_RUNNING) {
        s->mean = j->running_mean[n];
        variance = j->running_var[n];
    } else {
        for (size_t i = 0; i < s->count && (c->op->centred || c->shape.channels); i++)
            s->mean += s->p[i] / count;
        for (size_t i = 0; i < s->count; i++)
            variance += (s->p[i] - s->mean) * (s->p[i] - s->mean) / count;
    }
    s->inverse = 1 / quad_sqrt(variance + eps);
}

void truth_norm(truth *t, const bench_case *c, const rival_job *j)
{
    static set s;
    static quad g[TRUTH_ELEMENTS];
    const int pre = c->op->gate == NRG_GATE_PRE, post = c->op->gate == NRG_GATE_POST, of_channels = c->shape.channels != 0;
    bench_case of_weights = *c;
    if (c->op->source == NRG_STATISTICS_FOLDED)
        of_weights.dtype = NRG_F32; /* as nrg_channel_norm_fold makes them */
    for (size_t n = 0; n < sets_of(c, j); n++) {
        place(&s, c, j, n);
        for (size_t i = 0; i < s.count; i++) {
            const float x = truth_at(c, j->x, s.at[i]);
            const float r = j->y && !of_channels ? truth_stored(c, x + truth_at(c, j->y, s.at[i])) : x;
            g[i] = pre || post ? quad_activation(c->op->activation, truth_at(c, j->z, s.at[i])).value : 1;
            s.p[i] = pre ? r * g[i] : r;
        }
        find_statistics(&s, c, j, n);
        for (size_t i = 0; i < s.count; i++) {
            const quad w = truth_at(&of_weights, j->w, s.column[i]), b = j->b ? truth_at(&of_weights, j->b, s.column[i]) : 0;
            const quad y = j->y && of_channels ? truth_at(c, j->y, s.at[i]) : 0;
            const quad all = (s.p[i] - s.mean) * s.inverse * w + b + y;
            quad exact = all, term = truth_larger(truth_larger(s.p[i], s.mean) * s.inverse * w, truth_larger(b, y));
            if (post) {
                exact *= g[i];
                term *= g[i];
            } else if (!pre) {
                exact = quad_activation(c->op->activation, all).value;
                if (!of_channels && c->op->activation != NRG_ACT_IDENTITY)
                    term = exact;
            }
            truth_put(t, TRUTH_O, s.at[i], exact, term);
        }
    }
}

void truth_norm_backward(truth *t, const bench_case *c, const rival_job *j)
{
    static set s;
    static quad h[TRUTH_ELEMENTS], dh[TRUTH_ELEMENTS], size[TRUTH_ELEMENTS], sums[TRUTH_DIM][4];
    const size_t columns = c->shape.channels ? c->shape.channels : c->shape.dim;
    const int gated = c->op->gate == NRG_GATE_POST;
    memset(sums, 0, sizeof sums);
    for (size_t n = 0; n < sets_of(c, j); n++) {
        quad sum = 0, sum_terms = 0, cross = 0, cross_terms = 0;
        place(&s, c, j, n);
        for (size_t i = 0; i < s.count; i++)
            s.p[i] = truth_at(c, j->x, s.at[i]);
        find_statistics(&s, c, j, n);
        for (size_t i = 0; i < s.count; i++) {
            const size_t at = s.at[i], column = s.column[i];
            const quad d_o = truth_at(c, j->d_o, at), w = j->w ? truth_at(c, j->w, column) : 1;
            h[i] = (s.p[i] - s.mean) * s.inverse;
            /* a gate is a factor of the gradient, and an activation's slope is one */
            const quad_g g = quad_activation(c->op->activation, gated ? (quad)truth_at(c, j->z, at)
                                                                      : h[i] * w + (j->b ? truth_at(c, j->b, column) : 0));
            const quad d = d_o * (gated ? g.value : g.slope), d_size = quad_abs(d_o * (gated ? g.value : truth_slope_scale(g)));
            if (gated)
                truth_put(t, TRUTH_DZ, at, d_o * h[i] * w * g.slope, d_o * h[i] * w * truth_slope_scale(g));
            dh[i] = d * w;
            size[i] = d_size * quad_abs(w);
            sum += dh[i] / (quad)s.count;
            sum_terms += size[i] / (quad)s.count;
            cross += dh[i] * h[i] / (quad)s.count;
            cross_terms += size[i] * quad_abs(h[i]) / (quad)s.count;
            sums[column][0] += d * h[i];
            sums[column][1] += d_size * quad_abs(h[i]);
            sums[column][2] += d;
            sums[column][3] += d_size;
        }
        if (!c->op->centred && !c->shape.channels)
            sum = sum_terms = 0;
        for (size_t i = 0; i < s.count; i++) {
            const quad more = j->dr_in ? truth_at(c, j->dr_in, s.at[i]) : 0;
            truth_put(t, TRUTH_DX, s.at[i], s.inverse * (dh[i] - sum - h[i] * cross) + more,
                      s.inverse * (size[i] + sum_terms + quad_abs(h[i]) * cross_terms) + quad_abs(more));
        }
    }
    for (size_t i = 0; i < columns; i++) {
        if (j->dw)
            truth_put(t, TRUTH_DW, i, sums[i][0], sums[i][1]);
        if (j->db)
            truth_put(t, TRUTH_DB, i, sums[i][2], sums[i][3]);
    }
}
#endif
