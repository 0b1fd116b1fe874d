/* Rows that are done where they lie, without gates, of up to a segment each: several at a time. Their sums come first, then their
 * factors side by side, then their elements; with few registers and short rows, before these the sums and factors of the next
 * rows, so that the factors are there when they are wanted.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_ROWS_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_ROWS_H

#include "norm_backward_chunk.h"
#include "norm_backward_find.h"
#include "norm_backward_scalars.h"
#include "norm_backward_walk.h"
#include "norm_fast_scalars.h"

enum {
    BACKWARD_ROWS_ELEMENTS = 1024, /* at a time, but four rows at least */
    /* Longer rows' elements come right after their own sums, from L1: 512x768 in 0.91 to 0.97 of the time, AVX-512 also 4096x64
     * and 4096x128 in 0.94 to 0.98. AVX2 takes 1.2 times as long there for LayerNorm with a saved mean, and for the others the
     * same. */
    BACKWARD_ROWS_AHEAD = VN > 8 ? 0 : 256
};

/* Some rows of one group. */
typedef struct backward_some {
    size_t n, group;
    int count;
    unsigned fallback; /* bit k: floats do not serve row k */
    const char *d[BACKWARD_ROWS], *p[BACKWARD_ROWS], *dr_in[BACKWARD_ROWS];
    char *dx[BACKWARD_ROWS];
    backward_plain f[BACKWARD_ROWS];
} backward_some;

/* Weights that are not as they are wanted are made so once: there is room for one group's. */
NRG_INLINE int some_rows_serve(const backward *b)
{
    const nrg_norm_backward_job *job = b->job;
    if (V_SMALL || !b->direct || job->y)
        return 0;
    if (b->raw || job->formula.w_offset != 0)
        return job->groups == 1 && job->dim <= BACKWARD_SCRATCH;
    return job->dim <= NORM_SEGMENT;
}

/* The weights as the loops want them; 16-bit rows without weights are given ones. */
static __attribute__((noinline)) const float *some_weights(const backward *b, size_t group)
{
    const nrg_norm_backward_job *job = b->job;
    const backward_row row = {.w = group_of(job->w, 0, 0, group * job->dim, b->D, job->w_f32)};
    if (!row.w && b->raw) {
        fill_floats(b->scratch, 1, job->dim);
        return b->scratch;
    }
    return weight_floats(job, &row, b->D, 0, job->dim, b->scratch);
}

static __attribute__((noinline)) void some_in_planes(const backward *b, backward_some *s)
{
    const nrg_planes *p = b->job->planes;
    for (int k = 0; k < s->count; k++) {
        const size_t n = s->n + (size_t)k;
        backward_row row = backward_row_at(b->job, n % p->count[0], s->group, b->D);
        move_to_plane(&row, p, n / p->count[0]);
        s->d[k] = row.d_o;
        s->p[k] = row.x;
        s->dr_in[k] = row.dr_in;
        s->dx[k] = row.dx;
    }
}

static void find_some(const backward *b, backward_some *s, size_t n, size_t group)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t left = job->row_end - n, fit = BACKWARD_ROWS_ELEMENTS / job->dim / NRG_ROW_BATCH * NRG_ROW_BATCH;
    const size_t most = fit < NRG_ROW_BATCH ? NRG_ROW_BATCH : fit < BACKWARD_ROWS ? fit : BACKWARD_ROWS;
    s->n = n;
    s->group = group;
    s->count = (int)(left < most ? left : most);
    if (job->planes) {
        some_in_planes(b, s);
        return;
    }
    const backward_row row = backward_row_at(job, n, group, b->D);
    for (int k = 0; k < s->count; k++) {
        s->d[k] = row.d_o + (size_t)k * job->d_o_stride;
        s->p[k] = row.x + (size_t)k * job->x_stride;
        s->dr_in[k] = row.dr_in ? row.dr_in + (size_t)k * job->dr_in_stride : NULL;
        s->dx[k] = row.dx + (size_t)k * job->dx_stride;
    }
}

/* Some rows as the general walk has them. */
static void batch_of_some(const backward *b, backward_batch *batch, const backward_some *s, int first)
{
    batch->n = s->n + (size_t)first;
    batch->group = s->group;
    batch->rows = s->count - first < NRG_ROW_BATCH ? s->count - first : NRG_ROW_BATCH;
    find_batch(b, batch);
}

/* ---- means that were not saved ---- */

/* By a walk over the row alone: of the exact grade, and where the fast one's sums do not serve. */
static __attribute__((noinline)) float mean_alone(const backward *b, const backward_some *s, int k)
{
    backward_batch batch;
    backward_walk walk;
    batch_of_some(b, &batch, s, k);
    start_batch(b, &walk, &batch);
    while (!walk.summing)
        walk_on(b, &walk);
    some_weights(b, s->group); /* the walk has used the scratch */
    return batch.f[0].plain.mean;
}

/* Returns as bits which rows these sums do not serve. */
NRG_INLINE unsigned fast_means(const backward *b, backward_some *s, nrg_dtype D)
{
    const size_t dim = b->job->dim;
    const nrg_norm_job like = {.formula = b->job->formula};
    const int plain = dim <= 2 * FAST_BLOCK;
    float pilot[FAST_ROWS];
    double total_t[FAST_ROWS], total_tt[FAST_ROWS];
    vd8 t8[8], tt8[8];
    fast_scalars scalars;
    memset(t8, 0, sizeof t8);
    memset(tt8, 0, sizeof tt8);
    /* all of them first: a row's own would have to be waited for */
    for (int k = 0; k < s->count; k++) {
        const norm_row row = {.x = s->p[k]};
        pilot[k] = fast_pilot(&row, 0, 0, dim, D);
    }
    for (int k = 0; k < s->count; k++) {
        vd8 t, tt;
        if (plain)
            tt = fast_short_sum(&t, s->p[k], dim, 2 * FAST_BLOCK, 0, v_set1(pilot[k]), D, 1);
        else {
            const norm_options opt = {.dim = dim, .how = NORM_CENTRED, .fast = 1};
            const norm_row row = {.x = s->p[k]};
            const norm_part part = {.opt = &opt, .row = &row, .count = 1, .end = dim};
            vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
            fast_blocks blocks;
            fast_clear(&blocks);
            fast_row(lanes_t, lanes_tt, &blocks, NULL, &part, 0, pilot[k], 0, D, 1, 0);
            t = dim <= FAST_BLOCK ? fast_widen(lanes_t, NULL) : fast_widen(blocks.t, blocks.t_lost);
            tt = dim <= FAST_BLOCK ? fast_widen(lanes_tt, NULL) : fast_widen(blocks.tt, blocks.tt_lost);
        }
        t8[k & 7] = t;
        tt8[k & 7] = tt;
        if (s->count == 1) {
            total_t[0] = vd8_sum(&t);
            total_tt[0] = vd8_sum(&tt);
        } else if ((k & 7) == 7 || k + 1 == s->count) {
            vd8_sum_rows(t8, total_t + (k & ~7));
            vd8_sum_rows(tt8, total_tt + (k & ~7));
        }
    }
    for (int k = s->count; k < FAST_ROWS; k++) {
        pilot[k] = pilot[0];
        total_t[k] = total_t[0];
        total_tt[k] = total_tt[0];
    }
    fast_scalars_of(&scalars, &like, pilot, total_t, total_tt, s->count, 1);
    unsigned alone = 0;
    for (int k = 0; k < s->count; k++) {
        s->f[k].mean = scalars.centre[k];
        if (NRG_RARELY(scalars.any && scalars.needs_fallback[k] != 0))
            alone |= 1u << k;
    }
    return alone;
}

static __attribute__((noinline)) unsigned means_f32(const backward *b, backward_some *s) { return fast_means(b, s, NRG_F32); }
static __attribute__((noinline)) unsigned means_f16(const backward *b, backward_some *s) { return fast_means(b, s, NRG_F16); }
static __attribute__((noinline)) unsigned means_bf16(const backward *b, backward_some *s) { return fast_means(b, s, NRG_BF16); }

static void some_means(const backward *b, backward_some *s)
{
    unsigned alone = (1u << s->count) - 1;
    if (!nrg_norm_is_exact(&b->job->formula, b->D))
        alone = b->D == NRG_F32 ? means_f32(b, s) : b->D == NRG_F16 ? means_f16(b, s) : means_bf16(b, s);
    for (int k = 0; NRG_RARELY(alone >> k); k++)
        if (alone >> k & 1)
            s->f[k].mean = mean_alone(b, s, k);
}

/* ---- sums and factors ---- */

/* The lanes of eight rows, folded to eight. */
typedef struct folded_rows {
    vd8 q[8], qq[8], d[8], dq[8];
} folded_rows;

/* Of short rows, whose lanes do not begin with 0: so that no sum is -0. */
NRG_INLINE void eight_plus_zero(double *sums)
{
    NRG_UNROLL
    for (int k = 0; k < 8; k += (int)VN / 2)
        vd_st(sums + k, vd_add(vd_ld(sums + k), vd_zero()));
}

NRG_INLINE void totals_of(backward_totals *t, folded_rows *f, int at, int count, int centred)
{
    if (count == 1) {
        t->qq[at] = vd8_sum(&f->qq[0]);
        t->dq[at] = 0 + vd8_sum(&f->dq[0]);
        t->q[at] = centred ? 0 + vd8_sum(&f->q[0]) : 0;
        t->d[at] = centred ? 0 + vd8_sum(&f->d[0]) : 0;
        return;
    }
    for (int k = count; k < 8; k++) {
        f->qq[k] = f->qq[0];
        f->dq[k] = f->dq[0];
        if (centred) {
            f->q[k] = f->q[0];
            f->d[k] = f->d[0];
        }
    }
    vd8_sum_rows(f->qq, t->qq + at);
    vd8_sum_rows(f->dq, t->dq + at);
    eight_plus_zero(t->dq + at);
    if (centred) {
        vd8_sum_rows(f->q, t->q + at);
        vd8_sum_rows(f->d, t->d + at);
        eight_plus_zero(t->q + at);
        eight_plus_zero(t->d + at);
    }
}

/* Rows first to first + count, eight at most. steps: of 32 elements, where the rows are two or four; or 0. */
NRG_INLINE void folded_sums(folded_rows *folded, const backward *b, const backward_some *s, int first, int count, const float *w,
                            int steps, int centred, nrg_dtype D)
{
    for (int k = 0; k < count; k++) {
        const backward_chunk c = {.d = s->d[first + k], .p = s->p[first + k], .w = w};
        const float mean = s->f[first + k].mean;
        backward_sums sums;
        if (steps)
            backward_sum_short(&sums, &c, mean, steps, centred, D);
        else {
            backward_clear(&sums);
            backward_sum_any(&sums, &c, mean, b->job->dim, centred, b->job->stream, D);
        }
        folded->qq[k] = fold_lanes(sums.qq);
        folded->dq[k] = fold_lanes(sums.dq);
        if (centred) {
            folded->q[k] = fold_lanes(sums.q);
            folded->d[k] = fold_lanes(sums.d);
        }
    }
}

/* Rows that are not there are as one that is: their factors are made beside the others'. */
NRG_INLINE void fill_totals(backward_totals *t, int count)
{
    for (int k = count % 8 == 1 ? count : (count + 7) / 8 * 8; k < BACKWARD_ROWS; k++) {
        t->qq[k] = t->qq[0];
        t->dq[k] = t->dq[0];
        t->q[k] = t->q[0];
        t->d[k] = t->d[0];
    }
}

/* Sums of 64 and 128 columns, and of any other number, each in a frame of its own: compilers put those of functions that are
 * inlined one behind the other into one. */
NRG_INLINE void sums_two_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                            nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 2, 0, D);
}

NRG_INLINE void sums_four_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                             nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 4, 0, D);
}

NRG_INLINE void sums_any_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                            nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 0, 0, D);
}

NRG_INLINE void centred_two_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                               nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 2, 1, D);
}

NRG_INLINE void centred_four_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                                nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 4, 1, D);
}

NRG_INLINE void centred_any_of(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                               nrg_dtype D)
{
    folded_sums(f, b, s, first, count, w, 0, 1, D);
}

NRG_BY_DTYPE(sums_two, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)
NRG_BY_DTYPE(sums_four, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)
NRG_BY_DTYPE(sums_any, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)
NRG_BY_DTYPE(centred_two, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)
NRG_BY_DTYPE(centred_four, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)
NRG_BY_DTYPE(centred_any, (f, b, s, first, count, w), folded_rows *f, const backward *b, const backward_some *s, int first,
             int count, const float *w)

/* Of rows first to first + count, eight at most. */
NRG_INLINE void eight_sums(folded_rows *f, const backward *b, const backward_some *s, int first, int count, const float *w,
                           int centred)
{
    const int two = !V_SMALL && b->job->dim == 2 * NORM_LANES && w, four = !V_SMALL && b->job->dim == 4 * NORM_LANES && w;
    if (centred && two)
        centred_two(f, b, s, first, count, w, b->D);
    else if (centred && four)
        centred_four(f, b, s, first, count, w, b->D);
    else if (centred)
        centred_any(f, b, s, first, count, w, b->D);
    else if (two)
        sums_two(f, b, s, first, count, w, b->D);
    else if (four)
        sums_four(f, b, s, first, count, w, b->D);
    else
        sums_any(f, b, s, first, count, w, b->D);
}

/* The sums and factors of some rows. */
NRG_INLINE void some_factors_of(const backward *b, backward_some *s, const float *w, int centred)
{
    backward_totals t;
    for (int first = 0; first < s->count; first += 8) {
        const int count = s->count - first < 8 ? s->count - first : 8;
        folded_rows folded;
        eight_sums(&folded, b, s, first, count, w, centred);
        totals_of(&t, &folded, first, count, centred);
    }
    fill_totals(&t, s->count);
    s->fallback = backward_factors_of(s->f, &b->job->formula, &t, s->count, centred);
}

static __attribute__((noinline)) void some_factors_rms(const backward *b, backward_some *s, const float *w)
{
    some_factors_of(b, s, w, 0);
}

static __attribute__((noinline)) void some_factors_centred(const backward *b, backward_some *s, const float *w)
{
    some_factors_of(b, s, w, 1);
}

/* Rows from n on, up to their factors. */
static void begin_some(const backward *b, backward_some *s, size_t n, size_t group, const float *w)
{
    const nrg_norm_backward_job *job = b->job;
    find_some(b, s, n, group);
    if (!job->formula.centred)
        for (int k = 0; k < s->count; k++)
            s->f[k].mean = 0;
    else if (job->mean)
        for (int k = 0; k < s->count; k++)
            s->f[k].mean = job->mean[(n + (size_t)k) * job->groups + group];
    else
        some_means(b, s);
    if (job->formula.centred)
        some_factors_centred(b, s, w);
    else
        some_factors_rms(b, s, w);
}

/* ---- elements ---- */

/* Four rows at most, one of which needs the fallback: as the general walk does them. */
static __attribute__((noinline)) void end_by_walk(const backward *b, const backward_some *s, int first)
{
    backward_batch batch;
    backward_walk walk;
    batch_of_some(b, &batch, s, first);
    start_batch(b, &walk, &batch);
    while (walk.row < batch.rows)
        walk_on(b, &walk);
    row_chunks(b, &batch, 0, b->job->dim);
    some_weights(b, s->group); /* the walk has used the scratch */
}

/* ahead: the rows to be asked for are so many times s->count from these. */
static void end_some(const backward *b, const backward_some *s, const float *w, size_t ahead)
{
    const nrg_norm_backward_job *job = b->job;
    for (int first = 0; first < s->count; first += NRG_ROW_BATCH) {
        const int count = s->count - first < NRG_ROW_BATCH ? s->count - first : NRG_ROW_BATCH;
        if (NRG_RARELY(s->fallback >> first & ((1u << NRG_ROW_BATCH) - 1))) {
            end_by_walk(b, s, first);
            continue;
        }
        backward_rows rows = {.count = count, .w = w, .stream = b->stream_dx, .dr_f32 = job->r_f32};
        if (b->stream_dx && job->far) {
            rows.ahead_d = ahead * (size_t)s->count * job->d_o_stride;
            rows.ahead_p = ahead * (size_t)s->count * job->x_stride;
        }
        for (int k = 0; k < count; k++) {
            rows.d[k] = s->d[first + k];
            rows.p[k] = s->p[first + k];
            rows.dp[k] = s->dx[first + k];
            rows.dr_in[k] = s->dr_in[first + k];
            rows.f[k] = &s->f[first + k];
        }
        column_sums(&rows, job, s->n + (size_t)first, count, s->group, 0);
        plain_elements(&rows, job, job->dim, b->D);
    }
}

/* To the next group, or to the first one of the next rows. */
NRG_INLINE void after_some(const backward *b, const backward_some *s, size_t *n, size_t *group)
{
    const int turn = s->group + 1 == b->job->groups;
    *n = turn ? s->n + (size_t)s->count : s->n;
    *group = turn ? 0 : s->group + 1;
}

/* With the sums of the next rows before the elements of these. */
static void some_rows_ahead(const backward *b, const float *w)
{
    const nrg_norm_backward_job *job = b->job;
    backward_some both[2], *now = &both[0], *next = &both[1];
    const float *next_w = w;
    size_t n, group;
    begin_some(b, now, job->row_begin, 0, w);
    for (;;) {
        after_some(b, now, &n, &group);
        if (n < job->row_end) {
            if (job->groups > 1)
                next_w = some_weights(b, group);
            begin_some(b, next, n, group, next_w);
        }
        end_some(b, now, w, 2); /* the next ones are summed already */
        if (n >= job->row_end)
            return;
        w = next_w;
        backward_some *const done = now;
        now = next;
        next = done;
    }
}

static __attribute__((noinline)) void some_rows(const backward *b)
{
    const nrg_norm_backward_job *job = b->job;
    const float *w = some_weights(b, 0);
    if (job->dim <= BACKWARD_ROWS_AHEAD) {
        some_rows_ahead(b, w);
        return;
    }
    backward_some s;
    for (size_t n = job->row_begin, group = 0; n < job->row_end; after_some(b, &s, &n, &group)) {
        if (job->groups > 1)
            w = some_weights(b, group);
        begin_some(b, &s, n, group, w);
        end_some(b, &s, w, 1);
    }
}

#endif
