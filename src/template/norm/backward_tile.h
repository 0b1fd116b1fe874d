/* Schedule of the backward pass: tiles of rows that loops read and write where they are, of up to a segment each. The rows of a
 * tile are summed, their factors follow side by side, then their columns; for short rows on paths with few registers, the next
 * tile is summed before these, so that its factors are there in time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_TILE_H
#define NRG_TEMPLATE_NORM_BACKWARD_TILE_H

#include "backward_batch.h"

enum {
    GRADIENT_TILE_ELEMENTS = 1024, /* but four rows at least */
    /* Longer rows' columns come right after their own sums, from L1: 512x768 in 0.91 to 0.97 of the time, with AVX-512 also
     * 4096x64 and 4096x128 in 0.94 to 0.98. With AVX2 these take 1.2 times as long in LayerNorm with a saved mean, and
     * otherwise the same. */
    SUMMED_AHEAD_MAX = VN > 8 ? 0 : 256
};

typedef struct gradient_tile {
    size_t n;
    int count;
    unsigned fallback; /* a bit a row */
    const char *d[TILE], *p[TILE], *dr_in[TILE];
    char *dx[TILE];
    gradient_factors f[TILE];
} gradient_tile;

NRG_INLINE int gradient_tiles_fit(const backward *b)
{
    const int is_staged = b->is_half || b->job->formula.w_offset != 0;
    return !NORM_IS_SMALL && b->is_direct && !b->job->y &&
           b->job->dim <= (is_staged ? (size_t)BACKWARD_STAGE : (size_t)NORM_SEGMENT);
}

static void find_tile(gradient_tile *t, const backward *b, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t fit = GRADIENT_TILE_ELEMENTS / job->dim / NRG_ROW_BATCH * NRG_ROW_BATCH;
    const size_t most = fit < NRG_ROW_BATCH ? NRG_ROW_BATCH : lesser(fit, TILE);
    const backward_row *first = &b->first;
    backward_row row;
    t->n = n;
    t->count = (int)lesser(b->end - n, most);
    for (size_t k = 0; k < (size_t)t->count; k++) {
        const size_t rows = job->planes ? 0 : k; /* from the one that is found */
        if (rows == 0 && n + k != b->begin) {
            find_row_of_run(&row, b, n + k);
            first = &row;
        }
        t->d[k] = first->d_o + rows * job->d_o_stride;
        t->p[k] = first->x + rows * job->x_stride;
        t->dr_in[k] = operand_at(first->dr_in, rows * job->dr_in_stride);
        t->dx[k] = first->dx + rows * job->dx_stride;
        t->f[k].mean = mean_of_row(b, n + k);
    }
}

/* ---- sums and factors ---- */

NRG_INLINE int rows_from(const gradient_tile *t, int first) { return t->count - first < 8 ? t->count - first : 8; }

/* Rows from `first` on, eight at most, of whole steps and a block at most. Each kind in a frame of its own: compilers put those
 * of functions that are inlined one behind the other into one. */
NRG_INLINE void fold_short_rows(folded_gradients *to, const gradient_tile *t, int first, run_weights w, size_t dim, norm_policy P)
{
    for (int k = 0; k < rows_from(t, first); k++) {
        const int row = first + k;
        const gradient_chunk c = {.d = t->d[row], .p = t->p[row], .w = w, .mean = t->f[row].mean};
        gradient_sums sums;
        sum_short_gradient(&sums, &c, dim, P);
        fold_gradient(to, k, &sums, is_centred(P));
    }
}

NRG_INLINE void fold_short_rms_of(folded_gradients *to, const gradient_tile *t, int first, run_weights w, size_t dim, nrg_dtype D)
{
    fold_short_rows(to, t, first, w, dim, gradient_policy(D, 0));
}
NRG_BY_DTYPE(fold_short_rms, (to, t, first, w, dim), folded_gradients *to, const gradient_tile *t, int first, run_weights w,
             size_t dim)

NRG_INLINE void fold_short_layer_of(folded_gradients *to, const gradient_tile *t, int first, run_weights w, size_t dim,
                                    nrg_dtype D)
{
    fold_short_rows(to, t, first, w, dim, gradient_policy(D, 1));
}
NRG_BY_DTYPE(fold_short_layer, (to, t, first, w, dim), folded_gradients *to, const gradient_tile *t, int first, run_weights w,
             size_t dim)

static __attribute__((noinline)) void fold_any_rows(folded_gradients *to, const backward *b, const gradient_tile *t, int first,
                                                    run_weights w)
{
    const int count = rows_from(t, first);
    gradient_chunk rows[8];
    gradient_sums sums;
    for (int k = 0; k < count; k++)
        rows[k] = (gradient_chunk){t->d[first + k], t->p[first + k], w, t->f[first + k].mean, b->job->stream, 1};
    add_gradient_rows(&sums, to, rows, count, b->job->dim, b->job->formula.centred, b->D);
}

NRG_INLINE void fold_rows(folded_gradients *to, const backward *b, const gradient_tile *t, int first, run_weights w)
{
    const size_t dim = b->job->dim;
    const int has_mean = b->job->formula.centred;
    if (dim % EXACT_LANES != 0 || dim > GRADIENT_BLOCK)
        fold_any_rows(to, b, t, first, w);
    else if (has_mean)
        fold_short_layer(to, t, first, w, dim, b->D);
    else
        fold_short_rms(to, t, first, w, dim, b->D);
}

/* Of rows `at` to at + count, eight at most. */
NRG_INLINE void totals_of_rows(gradient_totals *t, folded_gradients *f, int at, int count, int has_mean)
{
    if (count == 1) {
        t->qq[at] = vd8_sum(&f->qq[0]);
        t->dq[at] = vd8_sum(&f->dq[0]);
        t->q[at] = has_mean ? vd8_sum(&f->q[0]) : 0;
        t->d[at] = has_mean ? vd8_sum(&f->d[0]) : 0;
        return;
    }
    for (int k = count; k < 8; k++) {
        f->qq[k] = f->qq[0];
        f->dq[k] = f->dq[0];
        if (has_mean) {
            f->q[k] = f->q[0];
            f->d[k] = f->d[0];
        }
    }
    vd8_sum_rows(f->qq, t->qq + at);
    vd8_sum_rows(f->dq, t->dq + at);
    if (has_mean) {
        vd8_sum_rows(f->q, t->q + at);
        vd8_sum_rows(f->d, t->d + at);
    }
}

NRG_INLINE void sum_gradient_tile_by(gradient_tile *t, const backward *b, run_weights w, int has_mean)
{
    gradient_totals totals;
    for (int first = 0; first < t->count; first += 8) {
        folded_gradients folded;
        fold_rows(&folded, b, t, first, w);
        totals_of_rows(&totals, &folded, first, rows_from(t, first), has_mean);
    }
    for (int k = t->count % 8 == 1 ? t->count : (t->count + 7) / 8 * 8; t->count > 1 && k < TILE;
         k++) { /* rows that are not there */
        totals.qq[k] = totals.qq[0];
        totals.dq[k] = totals.dq[0];
        if (has_mean) {
            totals.q[k] = totals.q[0];
            totals.d[k] = totals.d[0];
        }
    }
    t->fallback = factors_of_tile(t->f, &b->job->formula, &totals, t->count, has_mean);
}

static __attribute__((noinline)) void sum_gradient_tile_rms(gradient_tile *t, const backward *b, run_weights w)
{
    sum_gradient_tile_by(t, b, w, 0);
}

static __attribute__((noinline)) void sum_gradient_tile_layer(gradient_tile *t, const backward *b, run_weights w)
{
    sum_gradient_tile_by(t, b, w, 1);
}

/* The tile from row n on, up to its factors. */
static void begin_gradient_tile(gradient_tile *t, const backward *b, size_t n, run_weights w)
{
    find_tile(t, b, n);
    if (b->job->formula.centred)
        sum_gradient_tile_layer(t, b, w);
    else
        sum_gradient_tile_rms(t, b, w);
}

/* ---- columns ---- */

/* Rows one of which needs the fallback. The walk takes the staging buffer, and the weights have to be staged again. */
static __attribute__((noinline)) void batch_of_tile(const backward *b, const gradient_tile *t, size_t first)
{
    gradient_batch batch;
    gradient_walk walk;
    start_batch(b, &walk, &batch, t->n + first, t->n + (size_t)t->count);
    while (walk.row < batch.count)
        walk_on(b, &walk);
    single_rows_chunk(b, &batch, 0, b->job->dim);
    weights_of_run(b, 0, b->job->dim, b->stage);
}

/* Four rows of a tile at most. ahead: tiles from this one to the one that is prefetched. */
static __attribute__((noinline)) void output_tile_rows(const backward *b, const gradient_tile *t, int first, run_weights w,
                                                       size_t ahead)
{
    const nrg_norm_backward_job *job = b->job;
    column_rows rows; /* field by field: zeros for all of it would take as long as a short row */
    rows.count = t->count - first < NRG_ROW_BATCH ? t->count - first : NRG_ROW_BATCH;
    rows.w = w;
    rows.options = (b->stream_dx ? COLUMN_STREAM : 0) | (job->dr_in ? COLUMN_DR_IN : 0) | (job->r_f32 ? COLUMN_DR_F32 : 0);
    if (b->stream_dx && job->far) {
        rows.options |= COLUMN_AHEAD;
        rows.ahead_d = ahead * (size_t)t->count * job->d_o_stride;
        rows.ahead_p = (b->x_ahead ? b->x_ahead : ahead * (size_t)t->count) * job->x_stride;
    }
    for (int k = 0; k < rows.count; k++) {
        rows.d[k] = t->d[first + k];
        rows.p[k] = t->p[first + k];
        rows.dp[k] = t->dx[first + k];
        rows.dr_in[k] = t->dr_in[first + k];
        rows.f[k] = column_factors_of(&t->f[first + k]);
    }
    find_columns(&rows, b, t->n + (size_t)first, 0);
    output_columns(&rows, job, job->dim, b->D);
}

static void end_gradient_tile(const backward *b, const gradient_tile *t, run_weights w, size_t ahead)
{
    for (int first = 0; first < t->count; first += NRG_ROW_BATCH)
        if (NRG_RARELY(t->fallback >> first & ((1u << NRG_ROW_BATCH) - 1)))
            batch_of_tile(b, t, (size_t)first);
        else
            output_tile_rows(b, t, first, w, ahead);
}

static __attribute__((noinline)) void schedule_gradient_tiles(const backward *b)
{
    const run_weights w = weights_of_run(b, 0, b->job->dim, b->stage);
    const int is_ahead = SUMMED_AHEAD_MAX > 0 && b->job->dim <= SUMMED_AHEAD_MAX;
    gradient_tile tiles[SUMMED_AHEAD_MAX > 0 ? 2 : 1];
    size_t n = b->begin;
    for (int turn = 0;; turn ^= is_ahead) {
        gradient_tile *const next = &tiles[turn];
        const size_t begin = n;
        if (n < b->end) {
            begin_gradient_tile(next, b, n, w);
            n += (size_t)next->count;
        }
        if (!is_ahead)
            end_gradient_tile(b, next, w, 1);
        else if (begin > b->begin)
            end_gradient_tile(b, &tiles[turn ^ 1], w, 2); /* the next one is summed already */
        if (is_ahead ? begin == b->end : n == b->end)
            return;
    }
}

#endif
