/* Schedule of small sets, backward, some side by side: groups and instances of few positions, in f32 without an activation.
 *
 * A set by itself is a chain of folds, conversions and roundings with a call for every channel: a set of 4 elements took 96 ns.
 * Here the sums of eight planes share their shuffles, and the scalars are computed in vectors of channels.
 *
 * A block with a set that is not plain is computed in the general way.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_SMALL_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_SMALL_H

#include "backward_sets.h"

enum {
    BACKWARD_SMALL_SETS = 32, /* at a time, of BACKWARD_COLUMNS channels in all */
    BACKWARD_SMALL_S = 256    /* positions of a plane; beyond, its own sums are what takes the time */
};

/* Some sets of a sample, and the factors of all of their channels. */
typedef struct backward_small {
    const backward_pass *w;
    const nrg_channel_statistics *stat;
    size_t n, c, sets, channels; /* sample, first channel; of all sets */
    size_t block;
    int first; /* sample of the block */
    double weight[BACKWARD_ROOM], a[BACKWARD_ROOM], b[BACKWARD_ROOM], minus_delta[BACKWARD_ROOM], rstd[BACKWARD_ROOM];
    _Alignas(64) float factors[4 * BACKWARD_COLUMNS + VN];
} backward_small;

/* The same of sets, which go by whole vectors: those past the last are as the first. */
typedef struct small_set_factors {
    double a[BACKWARD_SMALL_SETS], b[BACKWARD_SMALL_SETS], minus_delta[BACKWARD_SMALL_SETS], rstd[BACKWARD_SMALL_SETS],
        count[BACKWARD_SMALL_SETS];
    float both[2 * BACKWARD_SMALL_SETS]; /* -β of VN / 2 sets, then their γ */
} small_set_factors;

/* Whether the sets of a share can be done so, if they turn out to be plain. */
static inline int backward_small_serves(const backward_pass *w)
{
    const nrg_channel_norm_backward_job *job = w->job;
    return !V_SMALL && !job->by_channel && !w->staged && w->plain_weights && job->dx && !job->dy && !job->fixed_mean &&
           job->group_channels <= BACKWARD_COLUMNS && (job->nhwc || job->s <= BACKWARD_SMALL_S);
}

/* ---- sums of planes ---- */

/* Σd and Σd·(x - μ) of all planes: the folds of eight share their shuffles. */
static __attribute__((noinline)) void sum_small_planes(backward_small *m, const float *d, const float *x)
{
    const size_t s = m->w->job->s;
    for (size_t first = 0, count; first < m->channels; first += count) {
        channel_folds folds;
        count = lesser(m->channels - first, CHANNEL_BATCH);
        for (size_t p = 0; p < count; p++, d += s, x += s) {
            vd centre[2 * NORM_STEP];
            const sum_source from = {SUM_GRADIENT, (const char *)x, d, centre};
            fill_centre(centre, (double)m->factors[F_CENTRE + first + p]);
            fold_set(&folds, p, &from, s, NRG_F32);
        }
        sum_folds(&folds, count, m->a + first, m->b + first);
    }
}

/* ---- scalars ---- */

/* The statistics of all channels. Whole vectors, a set after the other: what is past a set is the next one's to write. */
NRG_INLINE void small_statistics(backward_small *m)
{
    const size_t each = m->channels / m->sets;
    v_st_f32(m->factors + F_CENTRE + (m->channels - 1) / VN * VN, v_zero()); /* not what happened to be there */
    for (size_t i = 0; i < m->sets; i++) {
        const channel_backward g = backward_around(&m->stat[i], 0);
        const vd delta = vd_set1(-g.delta), rstd = vd_set1(g.rstd);
        const vf centre = v_set1(g.centre);
        if (each == 1) {
            m->minus_delta[i] = -g.delta;
            m->rstd[i] = g.rstd;
            m->factors[F_CENTRE + i] = g.centre;
            continue;
        }
        for (size_t k = i * each; k < (i + 1) * each; k += VN) {
            vd_st(m->minus_delta + k, delta);
            vd_st(m->minus_delta + k + VN / 2, delta);
            vd_st(m->rstd + k, rstd);
            vd_st(m->rstd + k + VN / 2, rstd);
            v_st_f32(m->factors + F_CENTRE + k, centre);
        }
    }
}

NRG_INLINE void small_weights(backward_small *m)
{
    const nrg_channel_norm_backward_job *job = m->w->job;
    const float *w = (const float *)(const void *)job->w;
    for (size_t k = 0; k < m->channels; k += VN) {
        const vf v = w ? v_ldn_f32(w + m->c + k, lanes_at(k, m->channels)) : v_set1(1);
        vd_st(m->weight + k, vd_low(v));
        vd_st(m->weight + k + VN / 2, vd_high(v));
    }
}

/* Σ w ⊙ sums of a set, in the lanes of its channels. Weights past a set are the next one's: 0 instead. */
NRG_INLINE double small_weighted(const double *weight, const double *sums, size_t each)
{
    enum { VECTORS = CHANNEL_COLUMN_LANES / (VN / 2) };
    double rest[CHANNEL_COLUMN_LANES] = {0};
    vd8 lanes;
    size_t k = 0;
    if (each == 1)
        return fma(weight[0], sums[0], 0.0);
    NRG_UNROLL
    for (int j = 0; j < VECTORS; j++)
        lanes.v[j] = vd_zero();
    for (; k + CHANNEL_COLUMN_LANES <= each; k += CHANNEL_COLUMN_LANES) {
        NRG_UNROLL
        for (int j = 0; j < VECTORS; j++)
            lanes.v[j] = vd_fma(vd_ld(weight + k + j * (VN / 2)), vd_ld(sums + k + j * (VN / 2)), lanes.v[j]);
    }
    if (k == each)
        return vd8_sum(&lanes);
    NRG_UNROLL
    for (int j = 0; j < VECTORS; j++)
        vd_st(rest + j * (VN / 2), lanes.v[j]);
    for (int l = 0; k < each; k++, l++)
        rest[l] = fma(weight[k], sums[k], rest[l]);
    return fold_of(rest);
}

/* What backward_of_set makes of sums, in vectors. Returns whether all are plain, as fill_gradient has it; but for β of 0, or
 * nearly so. */
NRG_INLINE int small_set_betas(small_set_factors *f, size_t sets, int centred)
{
    const vd one = vd_set1(1), minus = vd_set1(-1), largest = vd_set1((double)FLT_MAX);
    vd wrong = vd_zero();
    for (size_t i = 0; i < sets; i += VN / 2) {
        const vd rstd = vd_ld(f->rstd + i), minus_delta = vd_ld(f->minus_delta + i), a = vd_ld(f->a + i);
        const vd inverse = vd_div(one, vd_ld(f->count + i)), b = vd_fma(minus_delta, a, vd_ld(f->b + i));
        const vd beta = vd_mul(vd_mul(rstd, vd_mul(vd_mul(b, rstd), inverse)), rstd), square = vd_mul(beta, beta);
        const vd exact_gamma = centred ? vd_mul(vd_mul(rstd, vd_mul(a, inverse)), minus) : vd_set1(-0.0);
        const vd gamma = vd_fma(vd_mul(minus_delta, minus), beta, exact_gamma);
        wrong = vd_or(wrong, vd_or(vd_unless_le(rstd, vd_set1(0x1p40)), vd_unless_le(vd_set1(0x1p-40), rstd)));
        wrong = vd_or(wrong, vd_or(vd_unless_le(square, vd_set1(0x1p200)), vd_unless_le(vd_set1(0x1p-200), square)));
        wrong = vd_or(wrong, vd_or(vd_unless_le(gamma, largest), vd_unless_le(vd_mul(largest, minus), gamma)));
        v_st_f32(f->both + 2 * i, v_from_vd(vd_mul(beta, minus), gamma));
    }
    return !vd_any(wrong);
}

/* The same to the last case. */
static __attribute__((noinline, cold)) int small_sets_are_plain(const backward_small *m, const small_set_factors *f)
{
    int plain = 1;
    for (size_t i = 0; i < m->sets; i++) {
        channel_backward g = backward_around(&m->stat[i], 0);
        backward_of_set(&g, m->w->job, f->a[i], f->b[i], m->stat[i].count);
        plain &= backward_is_plain(&g, 1) && backward_between(g.rstd, 0x1p-40, 0x1p40);
    }
    return plain;
}

/* The factors of all channels, but for their centres. Returns whether all sets are plain, and have a gradient. */
static __attribute__((noinline)) int small_factors(backward_small *m)
{
    const size_t each = m->channels / m->sets;
    small_set_factors f;
    f.a[0] = f.b[0] = 0;
    for (size_t i = 0; i < m->sets; i++) {
        const size_t at = i * each;
        if (NRG_RARELY(nrg_channel_has_no_gradient(m->w->job, m->stat[i].count)))
            return 0;
        f.minus_delta[i] = m->minus_delta[at];
        f.rstd[i] = m->rstd[at];
        f.count[i] = m->stat[i].count;
        f.a[i] = small_weighted(m->weight + at, m->a + at, each);
        f.b[i] = small_weighted(m->weight + at, m->b + at, each);
    }
    for (size_t i = m->sets; i % (VN / 2); i++) {
        f.minus_delta[i] = f.minus_delta[0];
        f.rstd[i] = f.rstd[0];
        f.count[i] = f.count[0];
        f.a[i] = f.a[0];
        f.b[i] = f.b[0];
    }
    if (!small_set_betas(&f, m->sets, m->w->job->centred) && !small_sets_are_plain(m, &f))
        return 0;
    for (size_t i = 0; i < m->sets; i++) {
        const float *both = f.both + i / (VN / 2) * VN + i % (VN / 2);
        if (each == 1) {
            m->factors[F_MINUS_BETA + i] = both[0];
            m->factors[F_GAMMA + i] = both[VN / 2];
            continue;
        }
        /* the last vector of a factor goes over the first of the next one, which is not there yet: F_GAMMA is the last */
        const vf minus_beta = v_set1(both[0]), gamma = v_set1(both[VN / 2]);
        for (size_t k = i * each, end = k + each; k < end; k += VN) {
            v_st_f32(m->factors + F_GAMMA + k, gamma);
            store_lanes(m->factors + F_MINUS_BETA + k, minus_beta, lanes_at(k, end));
        }
    }
    NRG_NOBODYS_LANES(m->rstd, m->channels);
    for (size_t k = 0; k < m->channels; k += VN) {
        const vd low = vd_mul(vd_ld(m->rstd + k), vd_ld(m->weight + k)),
                 high = vd_mul(vd_ld(m->rstd + k + VN / 2), vd_ld(m->weight + k + VN / 2));
        store_lanes(m->factors + F_ALPHA + k, v_from_vd(low, high), lanes_at(k, m->channels));
    }
    return 1;
}

/* n numbers, some of them the first of their block. */
NRG_INLINE void small_add(double *to, const double *from, size_t n, int first)
{
    size_t i = 0;
    for (; i + VN / 2 <= n; i += VN / 2)
        vd_st(to + i, first ? vd_ld(from + i) : vd_add(vd_ld(to + i), vd_ld(from + i)));
    for (; i < n; i++)
        to[i] = first ? from[i] : to[i] + from[i];
}

/* dw and db of all channels. b becomes dw. */
NRG_INLINE void small_parameters(backward_small *m, const backward_groups *groups)
{
    const nrg_channel_norm_backward_job *job = m->w->job;
    const size_t at = groups->block * job->c + m->c;
    if (job->block_dw) {
        for (size_t k = 0; k < m->channels; k += VN / 2)
            vd_st(m->b + k, vd_mul(vd_fma(vd_ld(m->minus_delta + k), vd_ld(m->a + k), vd_ld(m->b + k)), vd_ld(m->rstd + k)));
        small_add(job->block_dw + at, m->b, m->channels, groups->first);
    }
    if (job->block_db)
        small_add(job->block_db + at, m->a, m->channels, groups->first);
}

/* ---- elements ---- */

/* As apply_backward, without its options: 1x2048x7x7 takes 0.9 of the time. */
static __attribute__((noinline)) void apply_small_planes(const backward_small *m, const backward_run *run)
{
    const float *d = run->d, *x = (const float *)(const void *)run->x;
    float *dx = (float *)(void *)run->dx;
    const size_t s = run->width, all = run->rows * s;
    /* full vectors where the elements past a plane are written later, and not read before */
    const size_t whole = dx != x && dx != d && all >= VN ? all - VN : 0;
    for (size_t c = 0; c < run->rows; c++) {
        const vf centre = v_set1(m->factors[F_CENTRE + c]), alpha = v_set1(m->factors[F_ALPHA + c]),
                 minus_beta = v_set1(m->factors[F_MINUS_BETA + c]), gamma = v_set1(m->factors[F_GAMMA + c]);
        const size_t end = (c + 1) * s;
        for (size_t i = c * s; i < end; i += VN) {
            const size_t n = lanes_at(i, end);
            if (n == VN || i < whole)
                v_st_f32(dx + i, backward_plain(v_ld_f32(d + i), v_ld_f32(x + i), centre, alpha, minus_beta, gamma));
            else
                v_stn_f32(dx + i, backward_plain(v_ldn_f32(d + i, n), v_ldn_f32(x + i, n), centre, alpha, minus_beta, gamma), n);
        }
    }
}

/* ---- schedule ---- */

/* Sets of a sample, whose statistics are there. Returns 0, and has written nothing, if some are not plain. */
static __attribute__((noinline)) int some_small_backward(const backward_pass *w, const nrg_channel_statistics *stat,
                                                         const backward_groups *groups)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t c = groups->begin * job->group_channels, rows = job->nhwc ? job->s : 1, row = groups->n * rows,
                 at = (job->nhwc ? c : c * job->s) * sizeof(float);
    const char *d = job->d_o + row * job->d_o_stride + at, *x = job->x + row * job->x_stride + at;
    char *dx = job->dx + row * job->dx_stride + at;
    backward_small m;
    m.w = w;
    m.stat = stat;
    m.c = c;
    m.sets = groups->end - groups->begin;
    m.channels = m.sets * job->group_channels;
    backward_run run = {.d = (const float *)(const void *)d, .x = x, .dx = dx, .f = m.factors, .f_step = 1, .planes = w->planes};
    run.rows = w->planes ? m.channels : rows;
    run.width = w->planes ? job->s : m.channels;
    run.d_stride = w->planes ? job->s * sizeof(float) : job->d_o_stride;
    run.x_stride = w->planes ? run.d_stride : job->x_stride;
    run.dx_stride = w->planes ? run.d_stride : job->dx_stride;
    run.prefetch = !w->planes && job->stream && rows > 1;
    run.stream_dx = !w->planes && w->stream_dx && (((uintptr_t)dx | job->dx_stride | m.channels * sizeof(float)) & 63) == 0;
    small_statistics(&m);
    small_weights(&m);
    if (w->planes)
        sum_small_planes(&m, run.d, (const float *)(const void *)x);
    else {
        const channel_columns columns = {.x = x,
                                         .d = run.d,
                                         .centre = m.factors + F_CENTRE,
                                         .stride = run.x_stride,
                                         .d_stride = run.d_stride,
                                         .rows = rows,
                                         .width = m.channels,
                                         .prefetch = run.prefetch != 0};
        for (size_t k = 0; k < m.channels; k += VN / 2)
            vd_st(m.a + k, vd_zero()), vd_st(m.b + k, vd_zero());
        add_columns(&columns, m.a, m.b, NRG_F32);
    }
    if (!small_factors(&m))
        return 0;
    small_parameters(&m, groups);
    if (w->planes)
        apply_small_planes(&m, &run);
    else
        apply_backward(&run, NRG_F32);
    return 1;
}

/* The same, and their statistics first: these are not below the general way, which has its own. */
static __attribute__((noinline)) int find_small_backward(const backward_pass *w, const backward_groups *groups)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t set = groups->n * job->groups + groups->begin;
    nrg_channel_statistics own[BACKWARD_SMALL_SETS];
    if (job->given)
        return some_small_backward(w, job->given + set, groups);
    find_statistics(w, set, groups->end - groups->begin, own);
    return some_small_backward(w, own, groups);
}

static __attribute__((noinline)) void small_groups(const backward_pass *w, const backward_groups *all)
{
    const size_t most = lesser(BACKWARD_COLUMNS / w->job->group_channels, BACKWARD_SMALL_SETS);
    backward_groups groups = *all;
    for (; groups.begin < all->end; groups.begin = groups.end) {
        groups.end = lesser(all->end, groups.begin + most);
        if (find_small_backward(w, &groups))
            continue;
        /* planes one group at a time */
        for (backward_groups some = groups; some.begin < groups.end; some.begin = some.end) {
            some.end = w->planes ? some.begin + 1 : groups.end;
            backward_group_sets(w, &some);
        }
    }
}

#endif
