/* Channel normalization, backward: the reference. docs/ops/channel_norm.md says in words what these loops do to the last bit.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/channel_norm.h"
#include "activation.h"
#include "channel_set.h"

/* What the backward pass makes of a set: docs/ops/channel_norm.md, "Backward", 3. */
typedef struct set_gradient {
    float centre; /* μ, the mean as f32 */
    double delta; /* what it lacks */
    double rstd, beta, gamma, exact_gamma;
    int frozen; /* the statistics are constants */
} set_gradient;

static set_gradient backward_around(const nrg_channel_statistics *stat, int frozen)
{
    set_gradient g = {.centre = (float)(stat->mean + stat->mean_low), .rstd = stat->rstd, .frozen = frozen};
    g.delta = (stat->mean - (double)g.centre) + stat->mean_low;
    return g;
}

/* Σdo1 ⊙ (x - m) from that around μ. */
static double around_mean(const set_gradient *g, double a, double b) { return fma(-g->delta, a, b); }

/* a, b: A* and B* of the set. */
static void find_gradient(set_gradient *g, const nrg_channel_norm_backward_job *job, double a, double b, double count)
{
    const int centred = job->centred;
    const double inverse = 1 / count;
    if (nrg_channel_has_no_gradient(job, count))
        g->rstd = 0;
    g->beta = (g->rstd * ((around_mean(g, a, b) * g->rstd) * inverse)) * g->rstd;
    g->exact_gamma = centred ? -(g->rstd * (a * inverse)) : -0.0;
    g->gamma = fma(g->delta, g->beta, g->exact_gamma);
}

/* Whether a channel's elements can be done in f32. */
static int is_plain(const set_gradient *g, double alpha)
{
    if (!between(fabs(alpha), 0x1p-100, 0x1p100))
        return 0;
    return g->frozen || (between(fabs(g->rstd), 0x1p-40, 0x1p40) && between(fabs(g->beta), 0x1p-100, 0x1p100) &&
                         fabs(g->gamma) <= (double)FLT_MAX);
}

/* What of a job the loops need. */
typedef struct backward {
    const nrg_channel_norm_backward_job *job;
    channel_tensor t;
    nrg_dtype dtype;
} backward;

/* do1 of one element. */
static float gradient(const backward *b, const channel_factors *f, size_t n, size_t c, size_t s)
{
    const nrg_channel_norm_backward_job *job = b->job;
    const float d = load(job->d_o, element_at(&b->t, job->d_o_stride, n, c, s), b->dtype);
    if (job->activation == NRG_ACT_IDENTITY)
        return d;
    float out = normalized(f, load(job->x, element_at(&b->t, job->x_stride, n, c, s), b->dtype));
    if (job->y)
        out += load(job->y, element_at(&b->t, job->y_stride, n, c, s), b->dtype);
    return d * slope_of(job->activation, out);
}

/* do1 and x - μ of one element, added up. */
static void add_element(const backward *b, const channel_factors *f, const set_gradient *g, size_t n, size_t c, size_t s,
                        double *sum_a, double *sum_b)
{
    const double d = (double)gradient(b, f, n, c, s);
    const float x = load(b->job->x, element_at(&b->t, b->job->x_stride, n, c, s), b->dtype);
    *sum_a += d;
    *sum_b = fma(d, (double)x - (double)g->centre, *sum_b);
}

/* ---- batch: a channel is a set ---- */

/* A and B of elements begin to end of a channel, which are a segment. */
static void sum_batch_segment(const backward *b, size_t c, const channel_factors *f, const set_gradient *g, size_t begin,
                              size_t end, double *total_a, double *total_b)
{
    const size_t s = b->t.s;
    const channel_order order = order_of(&b->t, begin);
    if (order.columns) {
        double lanes_a[COLUMN_LANES] = {0}, lanes_b[COLUMN_LANES] = {0};
        for (size_t k = 0; k < order.columns; k++) {
            double column_a = 0, column_b = 0;
            for (size_t i = begin + k; i < end; i += order.columns)
                add_element(b, f, g, i / s, c, i % s, &column_a, &column_b);
            lanes_a[k % COLUMN_LANES] += column_a;
            lanes_b[k % COLUMN_LANES] += column_b;
        }
        *total_a = fold_doubles(lanes_a, COLUMN_LANES, 1);
        *total_b = fold_doubles(lanes_b, COLUMN_LANES, 1);
        return;
    }
    double lanes_a[LANES] = {0}, lanes_b[LANES] = {0};
    for (size_t i = begin; i < end; i++) {
        const size_t lane = (i - begin) % order.period % LANES;
        add_element(b, f, g, i / s, c, i % s, &lanes_a[lane], &lanes_b[lane]);
    }
    *total_a = fold_doubles(lanes_a, LANES, 1);
    *total_b = fold_doubles(lanes_b, LANES, 1);
}

static void sum_batch(const backward *b, size_t c, const channel_factors *f, const set_gradient *g, int64_t *record)
{
    const channel_tensor *t = &b->t;
    const size_t count = t->n * t->s;
    memset(record, 0, NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *record);
    for (size_t begin = 0, end; begin < count; begin = end) {
        double total_a, total_b;
        end = segment_end(t, count, b->job->segment, begin);
        sum_batch_segment(b, c, f, g, begin, end, &total_a, &total_b);
        add_segment(record, (double)(end - begin), total_a, total_b);
    }
    carry_sums(record);
}

/* ---- elements ---- */

static void write_element(const backward *b, const channel_factors *f, const set_gradient *g, size_t n, size_t c, size_t s)
{
    const nrg_channel_norm_backward_job *job = b->job;
    const float d = gradient(b, f, n, c, s);
    const double alpha = g->rstd * (double)f->w;
    const int plain = is_plain(g, alpha);
    float dx;
    if (g->frozen)
        dx = plain ? d * (float)alpha : (float)((double)d * alpha);
    else {
        const float x = load(job->x, element_at(&b->t, job->x_stride, n, c, s), b->dtype);
        if (plain)
            dx = fmaf(d, (float)alpha, fmaf(x - g->centre, -(float)g->beta, (float)g->gamma));
        else
            dx = (float)fma((double)d, alpha, fma(((double)x - f->mean) - f->mean_low, -g->beta, g->exact_gamma));
    }
    if (job->dx)
        store(job->dx, element_at(&b->t, job->dx_stride, n, c, s), b->dtype, dx);
    if (job->dy)
        store(job->dy, element_at(&b->t, job->dy_stride, n, c, s), b->dtype, d);
}

static nrg_channel_statistics statistics_at(const backward *b, size_t set)
{
    const nrg_channel_norm_backward_job *job = b->job;
    if (job->fixed_mean) {
        const size_t c = job->groups ? set % job->c : set;
        return fixed_statistics(job->fixed_mean[c], job->fixed_var[c], job->eps);
    }
    if (job->given)
        return job->given[set];
    if (job->given_rstd) {
        const size_t count = job->groups ? job->group_channels * job->s : job->n * job->s;
        return (nrg_channel_statistics){
            .mean = job->given_mean ? (double)job->given_mean[set] : 0,
            .rstd = (double)job->given_rstd[set],
            .count = job->given_sums ? (double)job->given_sums[set * NRG_CHANNEL_NORM_SUMS_WORDS + SUMS_COUNT] : (double)count,
        };
    }
    const channel_set at = set_at(&b->t, set);
    return set_statistics(&b->t, &at, job->segment, job->centred, job->eps, b->dtype);
}

static void put_gradient(float *to, size_t c, double value, int accumulate)
{
    if (to)
        to[c] = (float)(accumulate ? (double)to[c] + value : value);
}

static void batch_channel(const backward *b, size_t c)
{
    const nrg_channel_norm_backward_job *job = b->job;
    const nrg_channel_statistics stat = statistics_at(b, c);
    const channel_factors f = factors_of(&stat, job->fast, job->w, job->b, c, job->w_f32, b->dtype);
    set_gradient g = backward_around(&stat, job->fixed_mean != NULL);
    int64_t own[NRG_CHANNEL_NORM_SUMS_WORDS], *record = job->sums ? job->sums + c * NRG_CHANNEL_NORM_SUMS_WORDS : own;
    if (!job->given_sums)
        sum_batch(b, c, &f, &g, record);
    const set_sums sums = sums_of(job->given_sums ? job->given_sums + c * NRG_CHANNEL_NORM_SUMS_WORDS : record);
    put_gradient(job->dw, c, around_mean(&g, sums.t, sums.q) * g.rstd, job->accumulate);
    put_gradient(job->db, c, sums.t, job->accumulate);
    if (job->sums)
        return;
    find_gradient(&g, job, (double)f.w * sums.t, (double)f.w * sums.q, stat.count);
    for (size_t n = 0; n < job->n; n++)
        for (size_t s = 0; s < job->s; s++)
            write_element(b, &f, &g, n, c, s);
}

/* ---- group ---- */

/* A and B of a channel of one sample. */
static void sum_channel(const backward *b, size_t n, size_t c, const channel_factors *f, const set_gradient *g, double *total_a,
                        double *total_b)
{
    if (b->t.nhwc || b->t.s == 1) {
        *total_a = *total_b = 0;
        for (size_t s = 0; s < b->t.s; s++)
            add_element(b, f, g, n, c, s, total_a, total_b);
        return;
    }
    double lanes_a[LANES] = {0}, lanes_b[LANES] = {0};
    for (size_t s = 0; s < b->t.s; s++)
        add_element(b, f, g, n, c, s, &lanes_a[s % LANES], &lanes_b[s % LANES]);
    *total_a = fold_doubles(lanes_a, LANES, 1);
    *total_b = fold_doubles(lanes_b, LANES, 1);
}

/* One group of one sample. first: of its block. */
static void group_set(const backward *b, size_t n, size_t group, size_t block, int first)
{
    const nrg_channel_norm_backward_job *job = b->job;
    const size_t set = n * job->groups + group, c_begin = group * job->group_channels;
    double lanes_a[COLUMN_LANES] = {0}, lanes_b[COLUMN_LANES] = {0};
    nrg_channel_statistics stat = statistics_at(b, set);
    set_gradient g = backward_around(&stat, job->fixed_mean != NULL);
    for (size_t k = 0; k < job->group_channels; k++) {
        const size_t c = c_begin + k, at = block * job->c + c;
        const channel_factors f = factors_of(&stat, job->fast, job->w, job->b, c, job->w_f32, b->dtype);
        double sum_a, sum_b;
        sum_channel(b, n, c, &f, &g, &sum_a, &sum_b);
        lanes_a[k % COLUMN_LANES] = fma((double)f.w, sum_a, lanes_a[k % COLUMN_LANES]);
        lanes_b[k % COLUMN_LANES] = fma((double)f.w, sum_b, lanes_b[k % COLUMN_LANES]);
        const double dw = around_mean(&g, sum_a, sum_b) * g.rstd;
        if (job->block_dw)
            job->block_dw[at] = first ? dw : job->block_dw[at] + dw;
        if (job->block_db)
            job->block_db[at] = first ? sum_a : job->block_db[at] + sum_a;
    }
    find_gradient(&g, job, fold_doubles(lanes_a, COLUMN_LANES, 1), fold_doubles(lanes_b, COLUMN_LANES, 1), stat.count);
    for (size_t k = 0; k < job->group_channels; k++) {
        const channel_factors f = factors_of(&stat, job->fast, job->w, job->b, c_begin + k, job->w_f32, b->dtype);
        for (size_t s = 0; s < job->s; s++)
            write_element(b, &f, &g, n, c_begin + k, s);
    }
}

static void channel_norm_backward(const nrg_channel_norm_backward_job *job, nrg_dtype dtype)
{
    const backward b = {job,
                        {job->x, job->x_stride, job->n, job->c, job->s, job->groups, job->group_channels, job->nhwc,
                         element_size(dtype), job->fast},
                        dtype};
    for (size_t at = job->begin; at < job->end; at++) {
        if (job->by_channel) {
            batch_channel(&b, at);
            continue;
        }
        const size_t block = at / job->groups, first = block * job->block_samples;
        const size_t end = job->n - first < job->block_samples ? job->n : first + job->block_samples;
        for (size_t n = first; n < end; n++)
            group_set(&b, n, at % job->groups, block, n == first);
    }
}

SCALAR_KERNELS(channel_norm_backward, channel_norm_backward, channel_norm_backward)
