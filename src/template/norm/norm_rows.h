/* The walks over the rows of a job.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_ROWS_H
#define NRG_TEMPLATE_NORM_NORM_ROWS_H

#include "norm_exact_loops.h"
#include "norm_fallback.h"
#include "norm_fast_along.h"
#include "norm_fast_apply.h"
#include "norm_fast_rows.h"
#include "norm_fast_short.h"

/* ---- the loops over elements, for any dtype ---- */

static void sum_exact(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part)
{
    if (part->opt->how & NORM_CENTRED)
        exact_centred(lanes, t, tt, part);
    else
        exact_rms(lanes, t, tt, part);
    if (NRG_RARELY(!part->fold && ends_segment(part)))
        finish_lanes(lanes, t, tt, part, NRG_F32);
}

static void sum_fast(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (!V_SMALL && part->along) {
        sum_along(blocks, pilot, t, tt, part);
        return;
    }
    if (part->opt->how & NORM_CENTRED) {
        fast_centred(blocks, pilot, t, tt, part, D);
        return;
    }
    fast_rms(blocks, tt, part, D);
}

/* Scalars of one grade or the other, which are those of the job's options. */
typedef union some_scalars {
    norm_scalars exact;
    fast_scalars fast;
} some_scalars;

static void apply_any(const norm_part *part, const some_scalars *s, nrg_dtype D)
{
    if (part->opt->fast)
        fast_apply(part, &s->fast, D);
    else
        exact_apply(part, &s->exact);
}

/* ---- sums and scalars ---- */

static __attribute__((noinline)) void exact_row_scalars(norm_scalars *s, const nrg_norm_job *job, double t, double tt)
{
    scalars_of(s, job, &t, &tt, 1);
}

static __attribute__((noinline)) void exact_batch_scalars(norm_scalars *s, const nrg_norm_job *job, const double *t,
                                                          const double *tt)
{
    scalars_of(s, job, t, tt, NORM_BATCH);
}

static __attribute__((noinline)) void fast_batch_scalars(fast_scalars *s, const nrg_norm_job *job, const float *pilot,
                                                         const double *t, const double *tt, int count)
{
    if (job->formula.centred)
        fast_scalars_of(s, job, pilot, t, tt, count, 1);
    else
        fast_scalars_of(s, job, pilot, t, tt, count, 0);
}

static void row_scalars(some_scalars *s, const nrg_norm_job *job, const norm_options *opt, float pilot, double t, double tt)
{
    if (opt->fast)
        fast_scalars_alone(&s->fast, job, pilot, t, tt, 0);
    else
        exact_row_scalars(&s->exact, job, t, tt);
}

static int needs_fallback(const some_scalars *s, const norm_options *opt, int k)
{
    return (opt->fast ? s->fast.needs_fallback[k] : s->exact.needs_fallback[k]) != 0;
}

static void finish_any(const nrg_norm_job *job, const some_scalars *s, const norm_options *opt, double t, double tt, int k,
                       size_t n, nrg_dtype D)
{
    if (opt->fast)
        fast_row_finish(job, &s->fast, k, n, D);
    else
        exact_row_finish(job, &s->exact, t, tt, k, n, D);
}

/* Adds a part of one row to its sums; no segment ends within it. */
static void sum_one(norm_sums *sums, norm_part *part, nrg_dtype D)
{
    vd8 t, tt;
    const int ends = ends_segment(part);
    part->fold = ends && whole_end(part->begin, part->end) == part->end;
    if (part->opt->fast)
        sum_fast(&sums->blocks, &sums->pilot, &t, &tt, part, D);
    else
        sum_exact(&sums->lanes, &t, &tt, part);
    if (ends)
        add_row_segment(sums, &t, &tt, part);
}

/* Sums and scalars of some short rows. */
static void sum_batch(some_scalars *s, double *total_t, double *total_tt, const nrg_norm_job *job, const norm_part *part,
                      nrg_dtype D)
{
    norm_lanes lanes[NORM_BATCH];
    fast_blocks blocks;
    vd8 t[NORM_BATCH], tt[NORM_BATCH];
    float pilot[FAST_ROWS] = {0};
    const int count = part->count, centred = part->opt->how & NORM_CENTRED;
    if (part->opt->fast)
        sum_fast(&blocks, pilot, t, tt, part, D);
    else
        sum_exact(lanes, t, tt, part);
    for (int k = count; k < NORM_BATCH; k++)
        tt[k] = tt[0];
    vd8_sum_rows(tt, total_tt);
    if (centred) {
        for (int k = count; k < NORM_BATCH; k++)
            t[k] = t[0];
        vd8_sum_rows(t, total_t);
    }
    if (part->opt->fast)
        fast_batch_scalars(&s->fast, job, pilot, total_t, total_tt, count);
    else
        exact_batch_scalars(&s->exact, job, total_t, total_tt);
}

/* ---- rows ---- */

/* Rows n to n + count. */
static void rows_at(norm_row *row, const nrg_norm_job *job, size_t n, int count, nrg_dtype D)
{
    const size_t groups = job->groups, dim = job->dim, x_group = bytes_of(dim, D, 0), y_group = bytes_of(dim, D, job->y_f32),
                 r_group = bytes_of(dim, D, job->r_f32), w_group = bytes_of(dim, D, job->w_f32);
    norm_row at = row_at(job, n, D);
    for (size_t k = 0, group = groups > 1 ? n % groups : 0;;) {
        row[k] = at;
        if (++k == (size_t)count)
            return;
        if (NRG_RARELY(groups > 1) && ++group < groups) {
            at.x += x_group;
            if (at.y)
                at.y += y_group;
            if (at.z)
                at.z += x_group;
            if (at.w)
                at.w += w_group;
            if (at.b)
                at.b += w_group;
            if (at.r)
                at.r += r_group;
            at.o += x_group;
        } else if (groups > 1) {
            group = 0;
            at = row_at(job, n + k, D);
        } else {
            at.x += job->x_stride;
            if (at.y)
                at.y += job->y_stride;
            if (at.z)
                at.z += job->z_stride;
            if (at.r)
                at.r += job->r_stride;
            at.o += job->o_stride;
        }
    }
}

static __attribute__((noinline)) void fast_short_centred(fast_some *b, const nrg_norm_job *job, size_t n, size_t most)
{
    fast_short_sums(b, job, n, most, NRG_F32, 1);
}

/* Of the rows that lie where b->x says; centred ones are floats. */
static void short_sums_of(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    if (job->formula.centred)
        fast_short_centred(b, job, n, most);
    else
        fast_short_rms(b, job, n, most, D);
}

static void short_sums(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    b->x = job->x + n * job->x_stride;
    b->x_stride = job->x_stride;
    short_sums_of(b, job, n, most, D);
}

NRG_INLINE void widen_row(float *to, const char *x, size_t dim, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= dim; i += VN)
        v_st_f32(to + i, load_whole(x, i, D));
    if (i < dim)
        v_stn_f32(to + i, load_part(x, i, dim - i, D), dim - i);
}

/* Rows of 16 bits, made floats first: the sums then take the loops there are. */
static __attribute__((noinline)) void fast_short_centred_half(fast_some *b, const nrg_norm_job *job, size_t n, size_t most,
                                                              nrg_dtype D)
{
    float rows[FAST_SHORT_WIDENED];
    const size_t dim = job->dim, left = job->row_end - n, count = left < most ? left : most;
    for (size_t k = 0; k < count; k++) {
        const char *const x = job->x + (n + k) * job->x_stride;
        if (D == NRG_F16)
            widen_row(rows + k * dim, x, dim, NRG_F16);
        else
            widen_row(rows + k * dim, x, dim, NRG_BF16);
    }
    b->x = (const char *)rows;
    b->x_stride = dim * sizeof *rows;
    fast_short_centred(b, job, n, most);
    b->x = job->x + n * job->x_stride;
    b->x_stride = job->x_stride;
}

static void short_row_sums(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    if (job->formula.centred && D != NRG_F32)
        fast_short_centred_half(b, job, n, most, D);
    else
        short_sums(b, job, n, most, D);
}

/* Rows that the loops of norm_fast_short.h know: the next ones are summed before the elements of these are done. */
static __attribute__((noinline)) void short_fast_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const int widened = opt->how & NORM_CENTRED && D != NRG_F32;
    const size_t fit = (widened ? FAST_SHORT_WIDENED : FAST_SHORT_ELEMENTS) / opt->dim, most = fit > FAST_ROWS ? FAST_ROWS : fit;
    fast_some both[2], *now = &both[0], *next = &both[1];
    fast_short_weights weights;
    float place_w[FAST_BLOCK], place_b[FAST_BLOCK];
    now->half = next->half = opt->half;
    weights.w = fast_short_floats(place_w, job->w, opt, opt->w_offset, D);
    weights.b = fast_short_floats(place_b, job->b, opt, 0, D);
    short_row_sums(now, job, job->row_begin, most, D);
    for (;;) {
        const size_t n = now->n + (size_t)now->count;
        const int is_last = n == job->row_end;
        if (!is_last)
            short_row_sums(next, job, n, most, D);
        fast_short_elements(now, job, opt, &weights, D);
        if (is_last)
            return;
        fast_some *const done = now;
        now = next;
        next = done;
    }
}

/* The same with a residual. r is read back where it is stored in cache, and otherwise from a stage: of two lots of rows, since
 * the next ones are summed before the elements of these are done. */
static __attribute__((noinline)) void short_residual_rows(const nrg_norm_job *job, const norm_options *opt)
{
    const int staged = !(opt->how & NORM_READ_R);
    const size_t fit = (staged ? FAST_SHORT_STAGE : FAST_SHORT_ELEMENTS) / opt->dim, most = fit > FAST_ROWS ? FAST_ROWS : fit;
    float stage[2][FAST_SHORT_STAGE];
    fast_some both[2];
    fast_short_weights weights;
    float place_w[FAST_BLOCK];
    weights.w = fast_short_floats(place_w, job->w, opt, opt->w_offset, NRG_F32);
    weights.b = job->b;
    size_t n = job->row_begin;
    for (int turn = 0;; turn ^= 1) {
        if (n != job->row_end) {
            fast_short_residual(&both[turn], job, opt, n, most, staged ? stage[turn] : NULL);
            short_sums_of(&both[turn], job, n, most, NRG_F32);
        }
        if (n != job->row_begin)
            fast_short_elements(&both[turn ^ 1], job, opt, &weights, NRG_F32);
        if (n == job->row_end)
            return;
        n += (size_t)both[turn].count;
    }
}

/* Rows of up to 512 elements: the sums of up to eight rows first, then their scalars side by side, then the elements, still in
 * L1. */
static __attribute__((noinline)) void short_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    norm_row row[NORM_BATCH];
    norm_part part = {.opt = opt, .row = row, .end = opt->dim};
    part.fold = can_fold(&part);
    for (size_t n = job->row_begin; n < job->row_end; n += NORM_BATCH) {
        const int count = job->row_end - n < NORM_BATCH ? (int)(job->row_end - n) : NORM_BATCH;
        double total_t[FAST_ROWS] = {0}, total_tt[FAST_ROWS] = {0};
        some_scalars s;
        part.count = count;
        rows_at(row, job, n, count, D);
        sum_batch(&s, total_t, total_tt, job, &part, D);
        apply_any(&part, &s, D);
        for (int k = 0; k < count; k++)
            finish_any(job, &s, opt, total_t[k], total_tt[k], k, n + (size_t)k, D);
    }
}

NRG_INLINE size_t chunk_end(size_t begin, size_t dim, size_t chunk) { return dim - begin > chunk ? begin + chunk : dim; }

/* One row's elements, from its last piece to its first: what the first pass has read last is still in L1 (rows of 8192 floats:
 * 1.1 ×, Zen 3). */
static void apply_from_end(norm_part *part, const some_scalars *s, nrg_dtype D)
{
    const size_t piece = 2 * NORM_BLOCK;
    for (part->begin = (part->end - 1) / piece * piece; part->begin != 0; part->begin -= piece) {
        apply_any(part, s, D);
        part->end = part->begin;
    }
    apply_any(part, s, D);
}

/* One row of one segment. */
static __attribute__((noinline)) void one_row(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t n = job->row_begin;
    const norm_row row = row_at(job, n, D);
    norm_part part = {.opt = opt, .row = &row, .count = 1, .end = opt->dim};
    norm_sums sums;
    some_scalars s;
    sums.pilot = 0;
    sum_one(&sums, &part, D);
    row_scalars(&s, job, opt, sums.pilot, value_of(&sums.t), value_of(&sums.tt));
    apply_from_end(&part, &s, D);
    finish_any(job, &s, opt, value_of(&sums.t), value_of(&sums.tt), 0, n, D);
}

#endif
