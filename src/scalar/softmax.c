/* Softmax: the reference. docs/ops/softmax.md says it in words.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/softmax.h"

#include "activation.h"
#include "exponential.h"
#include "softmax_sum.h"

/* Row n of all, as a place in each of the operands. */
typedef struct place {
    size_t b, h, i;
} place;

static place place_of(size_t n, size_t heads, size_t queries)
{
    return (place){.b = n / queries / heads, .h = n / queries % heads, .i = n % queries};
}

static const char *row_of(const char *tensor, nrg_head_strides stride, place p)
{
    return tensor ? tensor + p.b * stride.batch + p.h * stride.head + p.i * stride.row : NULL;
}

static char *row_into(char *tensor, nrg_head_strides stride, place p)
{
    return tensor + p.b * stride.batch + p.h * stride.head + p.i * stride.row;
}

static int is_seen(nrg_softmax_sight sight, size_t i, size_t j)
{
    const int64_t away = (int64_t)j - (int64_t)i;
    return away >= sight.first && away < sight.last;
}

/* ---- forward ---- */

typedef struct scores {
    const nrg_softmax_job *job;
    place at;
    const char *x, *mask;
    const float *bias;
    float slope;
    nrg_dtype dtype;
} scores;

static scores scores_of(const nrg_softmax_job *job, size_t n, nrg_dtype dtype)
{
    scores s = {.job = job, .at = place_of(n, job->heads, job->queries), .slope = 1, .dtype = dtype};
    s.x = row_of(job->x, job->x_stride, s.at);
    s.mask = row_of(job->mask, job->mask_stride, s.at);
    if (job->diagonals)
        s.bias = (const float *)(job->diagonals + s.at.h * job->diagonals_stride) + (job->queries - 1 - s.at.i);
    if (job->slopes)
        s.slope = job->slopes[s.at.h];
    return s;
}

/* t of key j; -infinity where it is not seen. */
static float score(const scores *s, size_t j)
{
    const nrg_softmax_job *job = s->job;
    if (j >= job->keys || !is_seen(job->sight, s->at.i, j))
        return -INFINITY;
    float x = load(s->x, j, s->dtype), factor = job->scale;
    if (job->cap > 0) {
        x = activate(NRG_ACT_TANH, x * job->scale);
        factor = job->cap;
    }
    const float t = s->bias ? fmaf(x, factor, s->bias[j]) : x * factor;
    return s->mask ? fmaf(load(s->mask, j, job->mask_dtype), s->slope, t) : t;
}

/* The largest t, with a +0 for zeros; NaN where there is one. */
static float largest(const scores *s, float m)
{
    for (size_t j = 0; j < s->job->keys; j++) {
        const float t = score(s, j);
        if (isnan(t) || t > m)
            m = t;
        if (isnan(m))
            return m;
    }
    return m + 0.0f;
}

/* Σ e^t, in SOFTMAX_UNIT. From the start of the first block in which a key is seen, up to as many lanes as hold the last
 * one, all count: what is -infinity as e^-110. */
static double sum_of(const scores *s, const softmax_base *base)
{
    const size_t i = s->at.i, keys = s->job->keys;
    size_t begin = 0, end = keys;
    while (begin < keys && !is_seen(s->job->sight, i, begin))
        begin++;
    while (end > begin && !is_seen(s->job->sight, i, end - 1))
        end--;
    softmax_powers sum = {.total = {0, 0}};
    for (size_t j = begin / SOFTMAX_BLOCK * SOFTMAX_BLOCK;
         begin < end && j < (end + SOFTMAX_LANES - 1) / SOFTMAX_LANES * SOFTMAX_LANES; j++)
        softmax_add_power(&sum, j, j + 1 == s->job->without ? 0 : softmax_power(base, score(s, j)));
    softmax_end_powers(&sum);
    return sum.total.sum + sum.total.lost;
}

static void write_row(const scores *s, char *o, const softmax_base *base, softmax_end end)
{
    const float masked = s->job->log ? -INFINITY : 0;
    for (size_t j = 0; j < s->job->keys; j++)
        store(o, j, s->dtype, is_seen(s->job->sight, s->at.i, j) ? softmax_result(base, end, score(s, j), s->job->log) : masked);
}

static void part_row(const nrg_softmax_job *job, const scores *s, size_t n)
{
    const float sink = job->sinks ? job->sinks[s->at.h] : -INFINITY, m_in = job->m_in ? job->m_in[n] : -INFINITY;
    const double s_in = job->s_in ? job->s_in[n] : 0;
    float m = largest(s, m_in > sink || isnan(m_in) ? m_in : sink);
    if (isnan(sink) || isnan(s_in) || m == INFINITY)
        m = NAN;
    const softmax_base base = softmax_base_of(m), before = softmax_base_of(m_in);
    const double of_sink = job->sinks ? (double)softmax_power(&base, sink) : 0,
                 block = ldexp(sum_of(s, &base) + of_sink, -SOFTMAX_UNIT);
    const double factor = isnan(m) ? (double)NAN : m == m_in ? 1 : m_in < -FLT_MAX ? 0 : softmax_factor(&before, &base);
    const softmax_end end = {.high = isnan(m) ? NAN : m < -FLT_MAX ? 0 : ldexpf(1, -SOFTMAX_UNIT)};
    job->m[n] = m;
    job->s[n] = isnan(m) ? (double)NAN : m < -FLT_MAX ? 0 : s_in * factor + block;
    job->factor[n] = (float)factor;
    if (job->o)
        write_row(s, row_into(job->o, job->o_stride, s->at), &base, end);
}

/* Powers beside a base that may be any: what is far above it counts as e^40. */
static void given_row(const nrg_softmax_job *job, const scores *s, size_t n)
{
    const softmax_base base = softmax_base_of(job->m_in[n]);
    const softmax_base plain = {.n = base.n, .low = base.low};
    const float most = fmaf(base.n, NRG_LN2_HI, 40);
    const softmax_end end = {job->given[2 * n], job->given[2 * n + 1]};
    char *o = row_into(job->o, job->o_stride, s->at);
    for (size_t j = 0; j < job->keys; j++)
        store(o, j, s->dtype,
              is_seen(job->sight, s->at.i, j) ? softmax_result(&plain, end, at_most(most, score(s, j) - base.shift), 0) : 0);
}

static void forward(const nrg_softmax_job *job, nrg_dtype dtype)
{
    for (size_t n = job->begin; n < job->end; n++) {
        const scores s = scores_of(job, n, dtype);
        if (job->m) {
            part_row(job, &s, n);
            continue;
        }
        if (job->given) {
            given_row(job, &s, n);
            continue;
        }
        const float sink = job->sinks ? job->sinks[s.at.h] : -INFINITY;
        const float m = largest(&s, sink);
        const softmax_base base = softmax_base_of(m);
        const double total = sum_of(&s, &base) + (job->sinks ? (double)softmax_power(&base, sink) : 0);
        write_row(&s, row_into(job->o, job->o_stride, s.at), &base, softmax_end_of(&base, m, total, job->log));
    }
}

SCALAR_KERNELS(softmax, softmax, forward)

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static void backward(const nrg_softmax_backward_job *job, nrg_dtype dtype)
{
    static const softmax_base none = {.low = -110};
    for (size_t n = job->begin; n < job->end; n++) {
        const place p = place_of(n, job->heads, job->queries);
        const char *o = row_of(job->o, job->o_stride, p), *d_o = row_of(job->d_o, job->d_o_stride, p);
        const char *x = row_of(job->x, job->x_stride, p);
        char *dx = row_into(job->dx, job->dx_stride, p);
        softmax_sum sum = {.total = {0, 0}};
        for (size_t j = 0; j < job->keys; j++)
            if (is_seen(job->sight, p.i, j)) {
                if (job->log)
                    softmax_add(&sum, j, load(d_o, j, dtype));
                else
                    softmax_add_product(&sum, j, load(o, j, dtype), load(d_o, j, dtype));
            }
        const float all = (float)softmax_total(&sum);
        for (size_t j = 0; j < job->keys; j++) {
            float d = 0;
            if (is_seen(job->sight, p.i, j)) {
                const float y = load(o, j, dtype), up = load(d_o, j, dtype);
                d = job->log ? fmaf(-ldexpf(softmax_power(&none, at_most(1, y)), -SOFTMAX_UNIT), all, up) : y * (up - all);
                d *= job->scale;
                if (x)
                    d *= slope_of(NRG_ACT_TANH, load(x, j, dtype) * job->inner);
            }
            store(dx, j, dtype, d);
        }
    }
}

SCALAR_KERNELS(softmax_backward, softmax_backward, backward)
#endif
