/* The walks over the rows of a job.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_ROWS_H
#define NRG_TEMPLATE_NORM_NORM_ROWS_H

#include "norm_apply.h"
#include "norm_fallback.h"
#include "norm_sum_rows.h"

/* ---- the loops over elements, for any dtype ---- */

static void sum_any(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (part->opt->how & NORM_CENTRED) {
        if (D == NRG_F32)
            sum_centred_f32(lanes, t, tt, part);
        else if (D == NRG_F16)
            sum_centred_f16(lanes, t, tt, part);
        else
            sum_centred_bf16(lanes, t, tt, part);
        return;
    }
    if (D == NRG_F32)
        sum_rms_f32(lanes, t, tt, part);
    else if (D == NRG_F16)
        sum_rms_f16(lanes, t, tt, part);
    else
        sum_rms_bf16(lanes, t, tt, part);
}

static void apply_any(const norm_part *part, const norm_scalars *s, nrg_dtype D)
{
    if (D == NRG_F32)
        apply_f32(part, s);
    else if (D == NRG_F16)
        apply_f16(part, s);
    else
        apply_bf16(part, s);
}

/* ---- sums and scalars ---- */

static __attribute__((noinline)) void row_scalars(norm_scalars *s, const nrg_norm_job *job, double t, double tt)
{
    scalars_of(s, job, &t, &tt, 1);
}

static __attribute__((noinline)) void batch_scalars(norm_scalars *s, const nrg_norm_job *job, const double *t, const double *tt)
{
    scalars_of(s, job, t, tt, NORM_BATCH);
}

/* Adds a part of one row to its sums; no segment ends within it. */
static void sum_one(norm_sums *sums, norm_part *part, nrg_dtype D)
{
    vd8 t, tt;
    const int ends = ends_segment(part);
    part->fold = ends && whole_end(part->begin, part->end) == part->end;
    sum_any(&sums->lanes, &t, &tt, part, D);
    if (!ends)
        return;
    if (NRG_RARELY(!part->fold))
        finish_lanes(&sums->lanes, &t, &tt, part, D);
    add_row_segment(sums, &t, &tt, part);
}

/* Sums and scalars of some short rows. */
static void sum_batch(norm_scalars *s, double *total_t, double *total_tt, const nrg_norm_job *job, const norm_part *part,
                      nrg_dtype D)
{
    norm_lanes lanes[NORM_BATCH];
    vd8 t[NORM_BATCH], tt[NORM_BATCH];
    const int count = part->count, centred = part->opt->how & NORM_CENTRED;
    sum_any(lanes, t, tt, part, D);
    if (NRG_RARELY(!part->fold))
        finish_lanes(lanes, t, tt, part, D);
    for (int k = count; k < NORM_BATCH; k++)
        tt[k] = tt[0];
    vd8_sum_rows(tt, total_tt);
    if (centred) {
        for (int k = count; k < NORM_BATCH; k++)
            t[k] = t[0];
        vd8_sum_rows(t, total_t);
    }
    batch_scalars(s, job, total_t, total_tt);
}

/* ---- rows ---- */

/* What a row's scalars have to say about it; rows that need the fallback are done here. */
static void row_finish(const nrg_norm_job *job, const norm_scalars *s, double t, double tt, int k, size_t n, nrg_dtype D)
{
    if (NRG_RARELY(s->needs_fallback[k] != 0)) {
        fallback_row(job, n, t, tt, D);
        return;
    }
    if (job->mean)
        job->mean[n] = (float)s->mean[k];
    if (job->rstd)
        job->rstd[n] = (float)s->inverse[k];
}

/* Rows n to n + count. */
static void rows_at(norm_row *row, const nrg_norm_job *job, size_t n, int count, nrg_dtype D)
{
    const size_t y_stride = job->y ? job->y_stride : 0, r_stride = job->r ? job->r_stride : 0;
    row[0] = row_at(job, n, D);
    for (int k = 1; k < count; k++)
        if (job->groups > 1)
            row[k] = row_at(job, n + (size_t)k, D);
        else {
            row[k].x = row[k - 1].x + job->x_stride;
            row[k].y = row[k - 1].y + y_stride;
            row[k].w = row[0].w;
            row[k].b = row[0].b;
            row[k].r = row[k - 1].r + r_stride;
            row[k].o = row[k - 1].o + job->o_stride;
        }
}

/* Rows of one block: the sums of up to eight rows first, then their scalars side by side, then the elements, still in L1. */
static __attribute__((noinline)) void short_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    norm_row row[NORM_BATCH];
    norm_part part = {.opt = opt, .row = row, .end = opt->dim};
    part.fold = can_fold(&part);
    for (size_t n = job->row_begin; n < job->row_end; n += NORM_BATCH) {
        const int count = job->row_end - n < NORM_BATCH ? (int)(job->row_end - n) : NORM_BATCH;
        double total_t[NORM_BATCH] = {0}, total_tt[NORM_BATCH];
        norm_scalars s;
        part.count = count;
        rows_at(row, job, n, count, D);
        sum_batch(&s, total_t, total_tt, job, &part, D);
        apply_any(&part, &s, D);
        for (int k = 0; k < count; k++)
            row_finish(job, &s, total_t[k], total_tt[k], k, n + (size_t)k, D);
    }
}

NRG_INLINE size_t chunk_end(size_t begin, size_t dim, size_t chunk) { return dim - begin > chunk ? begin + chunk : dim; }

/* One row of one segment. */
static __attribute__((noinline)) void one_row(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t n = job->row_begin;
    const norm_row row = row_at(job, n, D);
    norm_part part = {.opt = opt, .row = &row, .count = 1, .end = opt->dim};
    norm_lanes lanes;
    vd8 t, tt;
    norm_scalars s;
    part.fold = can_fold(&part);
    sum_any(&lanes, &t, &tt, &part, D);
    if (NRG_RARELY(!part.fold))
        finish_lanes(&lanes, &t, &tt, &part, D);
    const double total_t = opt->how & NORM_CENTRED ? vd8_sum(&t) : 0, total_tt = vd8_sum(&tt);
    row_scalars(&s, job, total_t, total_tt);
    apply_any(&part, &s, D);
    row_finish(job, &s, total_t, total_tt, 0, n, D);
}

/* Longer rows: one loop applies a row while it sums the next, piece by piece, so that the memory never waits for arithmetic nor a
 * row's tail for its statistics. Two blocks a piece are up to 10 % faster in cache (512 rows of 768), and 14 % slower from memory
 * (8192 of 4096; RMSNorm, Zen 3). Measured in docs/speed.md, with what did not help: several streams in turn. */
static __attribute__((noinline)) void long_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t dim = opt->dim, most = 2 * NORM_BLOCK, piece = opt->how & NORM_PREFETCH && dim > most ? NORM_BLOCK : most;
    norm_sums sums;
    norm_scalars s;
    norm_row rows[2], *row = &rows[0], *next = &rows[1];
    norm_part now = {.opt = opt, .count = 1}, then = now;
    then.row = row;
    *row = row_at(job, job->row_begin, D);
    for (; then.begin < dim; then.begin = then.end) {
        then.end = chunk_end(then.begin, dim, NORM_SEGMENT);
        sum_one(&sums, &then, D);
    }
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        const int last = n + 1 == job->row_end;
        if (!last)
            *next = row_at(job, n + 1, D);
        now.row = row;
        then.row = next;
        row_scalars(&s, job, sums.total_t, sums.total_tt);
        row_finish(job, &s, sums.total_t, sums.total_tt, 0, n, D);
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = last ? dim : chunk_end(begin, dim, piece);
            now.begin = then.begin = begin;
            now.end = then.end = end;
            if (!last)
                sum_one(&sums, &then, D);
            apply_any(&now, &s, D);
        }
        norm_row *done = row;
        row = next;
        next = done;
    }
}

#endif
