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
    if (part->along) {
        sum_along(blocks, pilot, t, tt, part);
        return;
    }
    if (part->opt->how & NORM_CENTRED) {
        if (D == NRG_F32)
            fast_centred_f32(blocks, pilot, t, tt, part);
        else if (D == NRG_F16)
            fast_centred_f16(blocks, pilot, t, tt, part);
        else
            fast_centred_bf16(blocks, pilot, t, tt, part);
        return;
    }
    if (D == NRG_F32)
        fast_rms_f32(blocks, tt, part);
    else if (D == NRG_F16)
        fast_rms_f16(blocks, tt, part);
    else
        fast_rms_bf16(blocks, tt, part);
}

/* Scalars of one grade or the other, which are those of the job's options. */
typedef union some_scalars {
    norm_scalars exact;
    fast_scalars fast;
} some_scalars;

static void apply_fast(const norm_part *part, const fast_scalars *s, nrg_dtype D)
{
    if (D == NRG_F32)
        fast_apply_f32(part, s);
    else if (D == NRG_F16)
        fast_apply_f16(part, s);
    else
        fast_apply_bf16(part, s);
}

static void apply_any(const norm_part *part, const some_scalars *s, nrg_dtype D)
{
    if (part->opt->fast)
        apply_fast(part, &s->fast, D);
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
    else if (D == NRG_F32)
        fast_short_rms_f32(b, job, n, most);
    else if (D == NRG_F16)
        fast_short_rms_f16(b, job, n, most);
    else
        fast_short_rms_bf16(b, job, n, most);
}

static void short_sums(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    b->x = job->x + n * job->x_stride;
    b->x_stride = job->x_stride;
    short_sums_of(b, job, n, most, D);
}

NRG_INLINE void widen_row(float *to, const char *x, size_t dim, nrg_dtype D)
{
    for (size_t i = 0; i < dim; i += VN)
        v_st_f32(to + i, load_whole(x, i, D));
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

static void short_elements(const fast_some *b, const nrg_norm_job *job, const norm_options *opt,
                           const fast_short_weights *weights, nrg_dtype D)
{
    if (D == NRG_F32)
        fast_short_elements_f32(b, job, opt, weights);
    else if (D == NRG_F16)
        fast_short_elements_f16(b, job, opt, weights);
    else
        fast_short_elements_bf16(b, job, opt, weights);
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
    weights.w = fast_short_floats(place_w, job->w, opt, opt->w_offset, D);
    weights.b = fast_short_floats(place_b, job->b, opt, 0, D);
    short_row_sums(now, job, job->row_begin, most, D);
    for (;;) {
        const size_t n = now->n + (size_t)now->count;
        const int is_last = n == job->row_end;
        if (!is_last)
            short_row_sums(next, job, n, most, D);
        short_elements(now, job, opt, &weights, D);
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
            fast_short_elements_f32(&both[turn ^ 1], job, opt, &weights);
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

/* Rows that one loop walks: those of `row` become outputs while `next` is summed. */
typedef struct norm_walk {
    norm_sums sums;
    some_scalars s;
    norm_row rows[2], *row, *next;
    norm_part then; /* of next */
    size_t n, end;
} norm_walk;

/* Sums the first row. */
static void walk_begin(norm_walk *walk, const nrg_norm_job *job, const norm_options *opt, size_t n, size_t end, nrg_dtype D)
{
    const size_t dim = opt->dim;
    walk->n = n;
    walk->end = end;
    walk->sums.pilot = 0;
    walk->row = &walk->rows[0];
    walk->next = &walk->rows[1];
    walk->then = (norm_part){.opt = opt, .row = walk->row, .count = 1};
    *walk->row = row_at(job, n, D);
    for (norm_part *const then = &walk->then; then->begin < dim; then->begin = then->end) {
        then->end = chunk_end(then->begin, dim, NORM_SEGMENT);
        sum_one(&walk->sums, then, D);
    }
}

/* Scalars of the row that is summed. Returns 0 after the last one, which is done then. */
static int walk_on(norm_walk *walk, const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const double total_t = value_of(&walk->sums.t), total_tt = value_of(&walk->sums.tt);
    row_scalars(&walk->s, job, opt, walk->sums.pilot, total_t, total_tt);
    finish_any(job, &walk->s, opt, total_t, total_tt, 0, walk->n, D);
    if (++walk->n == walk->end) {
        norm_part now = {.opt = opt, .row = walk->row, .count = 1, .end = opt->dim};
        apply_from_end(&now, &walk->s, D);
        return 0;
    }
    *walk->next = row_at(job, walk->n, D);
    walk->then.row = walk->next;
    return 1;
}

static void walk_piece(norm_walk *walk, size_t begin, size_t end, nrg_dtype D)
{
    norm_part now = {.opt = walk->then.opt, .row = walk->row, .count = 1, .begin = begin, .end = end};
    walk->then.begin = begin;
    walk->then.end = end;
    sum_one(&walk->sums, &walk->then, D);
    if (!walk->then.along)
        apply_any(&now, &walk->s, D);
}

static void walk_swap(norm_walk *walk)
{
    norm_row *const done = walk->row;
    walk->row = walk->next;
    walk->next = done;
}

/* Longer rows: one loop applies a row while it sums the next, piece by piece, so that the memory never waits for arithmetic nor a
 * row's tail for its statistics. Two blocks a piece are up to 10 % faster in cache (512 rows of 768), and 14 % slower from memory
 * (8192 of 4096; RMSNorm, Zen 3). */
static __attribute__((noinline)) void long_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t dim = opt->dim, most = 2 * NORM_BLOCK, piece = opt->how & NORM_PREFETCH && dim > most ? NORM_BLOCK : most;
    norm_walk walk;
    walk_begin(&walk, job, opt, job->row_begin, job->row_end, D);
    while (walk_on(&walk, job, opt, D)) {
        const int alongside = along_serves(opt, D) && !needs_fallback(&walk.s, opt, 0);
        fast_along along;
        if (alongside)
            along = (fast_along){*walk.row, fast_factors_of(&walk.s.fast, 0)};
        walk.then.along = alongside ? &along : NULL;
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = chunk_end(begin, dim, alongside ? NORM_SEGMENT : piece);
            walk_piece(&walk, begin, end, D);
        }
        walk_swap(&walk);
    }
}

enum { NORM_WALKS = 4, NORM_FAR = 1 << 26 };

/* Whether the rows, without a residual, come from memory that no cache holds: measured in docs/speed.md. */
static int walks_serve(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t rows = job->row_end - job->row_begin;
    return D == NRG_F32 && opt->how & NORM_PREFETCH && !(opt->how & (NORM_FIRST | NORM_LAST)) && opt->dim > FAST_BLOCK &&
           rows >= 2 * NORM_WALKS && rows > NORM_FAR / (2 * sizeof(float) * opt->dim);
}

/* Such rows, in four parts of the tensor by turns, a block of each: 8192 rows of 4096 1.06 to 1.5 × as fast as in one (Granite
 * Rapids; the exact grade 1.07 to 1.4), and 512 rows, which L3 holds there, 0.9 to 1.0. With outputs along the sums 0.98 to 1.18,
 * in two parts 1.07, in eight 1.01 to 1.3; with a residual, which makes sixteen streams, 0.9. */
static __attribute__((noinline)) void long_rows_by_turns(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t dim = opt->dim, rows = job->row_end - job->row_begin;
    norm_walk walks[NORM_WALKS];
    size_t begin = job->row_begin;
    for (size_t k = 0; k < NORM_WALKS; k++) {
        const size_t end = begin + rows / NORM_WALKS + (k < rows % NORM_WALKS);
        walk_begin(&walks[k], job, opt, begin, end, D);
        begin = end;
    }
    for (;;) {
        int open = 0; /* the first ones have a row more, perhaps */
        for (int k = 0; k < NORM_WALKS && walks[k].n != walks[k].end; k++)
            open += walk_on(&walks[k], job, opt, D);
        if (open == 0)
            return;
        for (size_t at = 0; at < dim; at = chunk_end(at, dim, FAST_BLOCK))
            for (int k = 0; k < open; k++)
                walk_piece(&walks[k], at, chunk_end(at, dim, FAST_BLOCK), D);
        for (int k = 0; k < open; k++)
            walk_swap(&walks[k]);
    }
}

#endif
