/* The walks over rows of more than 512 elements, or of more than a segment: one loop applies a row while it sums the next.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_LONG_H
#define NRG_TEMPLATE_NORM_NORM_LONG_H

#include "norm_rows.h"

/* Rows that one loop walks: those of `row` become outputs while `next` is summed. */
typedef struct norm_walk {
    norm_sums sums;
    some_scalars s;
    fast_along along;
    norm_row rows[2], *row, *next;
    norm_part then; /* of next */
    size_t n, end;
    float *stage; /* where r of a row is kept; NULL */
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
    walk->row->stage = walk->stage;
    for (norm_part *const then = &walk->then; then->begin < dim; then->begin = then->end) {
        then->end = chunk_end(then->begin, dim, NORM_SEGMENT);
        sum_one(&walk->sums, then, D);
    }
}

/* Scalars of the row that is summed; along: it may become outputs in the loop that sums the next. Returns 0 after the last one,
 * which is done then. */
static int walk_on(norm_walk *walk, const nrg_norm_job *job, const norm_options *opt, nrg_dtype D, int along)
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
    walk->next->stage = walk->stage;
    walk->then.row = walk->next;
    walk->then.along = NULL;
    if (along && along_serves(opt, D) && !needs_fallback(&walk->s, opt, 0)) {
        walk->along = (fast_along){*walk->row, fast_factors_of(&walk->s.fast, 0)};
        walk->then.along = &walk->along;
    }
    return 1;
}

static void walk_piece(norm_walk *walk, size_t begin, size_t end, nrg_dtype D)
{
    norm_part now = {.opt = walk->then.opt, .row = walk->row, .count = 1, .begin = begin, .end = end};
    const int kept = now.opt->how & NORM_KEEP_R; /* in the place where next's is to be */
    walk->then.begin = begin;
    walk->then.end = end;
    if (kept)
        apply_any(&now, &walk->s, D);
    sum_one(&walk->sums, &walk->then, D);
    if (!walk->then.along && !kept)
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
NRG_INLINE void long_rows_in(const nrg_norm_job *job, const norm_options *opt, float *stage, nrg_dtype D)
{
    const size_t dim = opt->dim, most = 2 * NORM_BLOCK, piece = opt->how & NORM_PREFETCH && dim > most ? NORM_BLOCK : most;
    norm_walk walk;
    walk.stage = stage;
    walk_begin(&walk, job, opt, job->row_begin, job->row_end, D);
    while (walk_on(&walk, job, opt, D, 1)) {
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = chunk_end(begin, dim, walk.then.along ? NORM_SEGMENT : piece);
            walk_piece(&walk, begin, end, D);
        }
        walk_swap(&walk);
    }
}

static __attribute__((noinline)) void long_rows(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    long_rows_in(job, opt, NULL, D);
}

/* Whether r of 16 bits goes past the cache and would have to be made of x and y once more. */
static int kept_serves(const norm_options *opt, nrg_dtype D)
{
    const unsigned all = NORM_ADD_Y | NORM_STORE_R | NORM_STREAM_R;
    return !V_SMALL && D != NRG_F32 && (opt->how & all) == all && opt->dim <= NORM_SEGMENT &&
           !(opt->how & (NORM_R_F32 | NORM_LAST));
}

/* Such rows, with r of one of them kept on the stack as it is stored: 512 and 8192 rows of 4096 take 0.71 to 0.83 and 0.85 to
 * 0.89 of the time (Granite Rapids, f16 and bf16). Pieces of 256 and of 1024 elements gave nothing. */
static __attribute__((noinline)) void long_rows_kept(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    _Alignas(64) uint16_t stage[NORM_SEGMENT];
    norm_options kept = *opt;
    kept.how |= NORM_KEEP_R;
    long_rows_in(job, &kept, (float *)stage, D);
}

enum { NORM_WALKS = 4, NORM_FAR = 1 << 26 };

/* Whether the rows, without a residual, come from memory that no cache holds: measured in docs/speed/rows.md. */
static int walks_serve(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t rows = job->row_end - job->row_begin;
    return !V_SMALL && D == NRG_F32 && opt->how & NORM_PREFETCH && !(opt->how & (NORM_FIRST | NORM_LAST)) &&
           opt->dim > FAST_BLOCK && rows >= 2 * NORM_WALKS && rows > NORM_FAR / (2 * sizeof(float) * opt->dim);
}

/* Such rows, in four parts of the tensor by turns, a block of each: 8192 rows of 4096 1.06 to 1.5 × as fast as in one (Granite
 * Rapids; the exact grade 1.07 to 1.4), and 512 rows, which L3 holds there, 0.9 to 1.0. In two parts 1.07,
 * in eight 1.01 to 1.3; with a residual, which makes sixteen streams, 0.9. */
static __attribute__((noinline)) void long_rows_by_turns(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const size_t dim = opt->dim, rows = job->row_end - job->row_begin;
    /* without a mean, in vectors of 32 bytes along the sums, 1.1 to 1.17 × as fast as in pieces; in those of 64, 0.83 × */
    const int along = VN < 16 && !(opt->how & NORM_CENTRED);
    norm_walk walks[NORM_WALKS];
    size_t begin = job->row_begin;
    for (size_t k = 0; k < NORM_WALKS; k++) {
        const size_t end = begin + rows / NORM_WALKS + (k < rows % NORM_WALKS);
        walks[k].stage = NULL;
        walk_begin(&walks[k], job, opt, begin, end, D);
        begin = end;
    }
    for (;;) {
        int open = 0; /* the first ones have a row more, perhaps */
        for (int k = 0; k < NORM_WALKS && walks[k].n != walks[k].end; k++)
            open += walk_on(&walks[k], job, opt, D, along);
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
