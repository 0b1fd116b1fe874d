/* Schedule of a backward pass: the sums of some sets, their scalars, and then their elements, of either source.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_SETS_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_SETS_H

#include "backward_apply.h"

/* ---- pieces ---- */

/* Elements `begin` to `begin` + width of a channel in some samples (planes). */
static inline backward_piece plane_piece(const backward_pass *w, const backward_rows *at, size_t row, size_t rows, size_t channel,
                                         size_t begin, size_t width)
{
    return (backward_piece){at, channel, row, rows, (at->block.c + channel) * w->job->s + begin, width};
}

static inline backward_piece column_piece(const backward_rows *at, size_t row, size_t rows)
{
    return (backward_piece){at, 0, row, rows, at->block.c * at->block.per, at->block.channels * at->block.per};
}

/* ---- sums ---- */

NRG_BY_DTYPE(add_gradients, (lanes, d, x, mean, n), channel_lanes *lanes, const float *d, const char *x, float mean, size_t n)

static __attribute__((noinline)) void add_columns(const channel_columns *c, double *a, double *b, nrg_dtype D)
{
    NRG_CALL_BY_DTYPE(D, add_columns_of, c, a, b);
}

/* Planes of a channel whose do1 is computed together: few are not worth it, since all but the first do not start at a line. */
static inline size_t planes_at_once(size_t width, size_t most) { return most / width < 4 ? 1 : most / width; }

/* Σ do1 and Σ do1 ⊙ (x - μ) of elements begin to end of a channel, over its rows. */
static __attribute__((noinline)) void sum_channel(const backward_pass *w, const backward_rows *at, size_t channel, size_t begin,
                                                  size_t end, double sums[2])
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t most = do1_at_once(w, at->f.plain, 0), chunk = lesser(end - begin, most);
    const float centre = at->centre[channel];
    channel_lanes lanes;
    do1_stage room;
    clear_lanes(&lanes);
    for (size_t row = at->begin, rows; row < at->end; row += rows) {
        rows = lesser(at->end - row, planes_at_once(end - begin, most));
        for (size_t i = begin, n, stride; i < end; i += n) {
            n = lesser(end - i, chunk);
            const backward_piece piece = plane_piece(w, at, row, rows, channel, i, n);
            const char *x = job->x + row * job->x_stride + piece.k * w->size,
                       *d = (const char *)make_do1(w, &room, &piece, 0, &stride);
            for (size_t k = 0; k < rows; k++)
                add_gradients(&lanes, (const float *)(const void *)(d + k * stride), x + k * job->x_stride, centre, n, w->D);
        }
    }
    fold_sums(&lanes, &sums[0], &sums[1]);
}

/* The same of all columns. a and b have room for BACKWARD_ROOM. */
static __attribute__((noinline)) void sum_all_columns(const backward_pass *w, const backward_rows *at, double *a, double *b)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t width = at->block.channels * at->block.per,
                 most = lesser(at->end - at->begin, do1_at_once(w, at->f.plain, 0) / width);
    do1_stage room;
    for (size_t i = 0; i < (width + VN - 1) / VN * VN; i++)
        a[i] = b[i] = 0;
    for (size_t row = at->begin, rows; row < at->end; row += rows) {
        rows = lesser(at->end - row, most);
        const backward_piece piece = column_piece(at, row, rows);
        channel_columns columns = {.x = job->x + row * job->x_stride + piece.k * w->size,
                                   .centre = at->centre,
                                   .stride = job->x_stride,
                                   .rows = rows,
                                   .width = width,
                                   .prefetch = job->stream};
        columns.d = make_do1(w, &room, &piece, 0, &columns.d_stride);
        add_columns(&columns, a, b, w->D);
    }
}

/* Room for what sums need of a block: the forward pass's factors and the centres. */
typedef struct backward_room {
    _Alignas(64) float store[4 * BACKWARD_COLUMNS + VN];
    float centre[BACKWARD_ROOM];
} backward_room;

/* Sets f and centre. */
static __attribute__((noinline)) void prepare_sums(const backward_pass *w, backward_rows *at, backward_room *room)
{
    const size_t per = at->block.per, columns = at->block.channels * per;
    at->f = factors_in(room->store, BACKWARD_COLUMNS);
    at->centre = room->centre;
    if (w->job->activation)
        fill_factors(&at->f, &at->block, w->D);
    for (size_t k = 0, known = 0, n; k < columns; k += n, known++) { /* a set after the other */
        n = lesser(columns - k, at->block.group * per);
        fill_constant(room->centre + k, backward_around(&at->known[known].stat, 0).centre, n);
    }
    fill_constant(room->centre + columns, 0, (VN - columns % VN) % VN);
}

/* Of channels of batch norm that fill a block, segment by segment: to totals, or to records, one a channel, if there are any. */
static __attribute__((noinline)) void sum_gradient_batch(const backward_pass *w, backward_rows *at, channel_totals *totals,
                                                         int64_t *records)
{
    const size_t channels = at->block.channels, per = w->planes ? w->job->s : at->block.per, all_rows = at->end;
    const size_t length = w->cut.length / per, period = w->job->nhwc ? w->cut.period : all_rows; /* in rows */
    /* segments of less than a row of a channel's positions are pieces of it */
    const size_t piece = length == 0 ? w->cut.length : per;
    _Alignas(64) double a[BACKWARD_ROOM], b[BACKWARD_ROOM];
    backward_room room;
    prepare_sums(w, at, &room);
    for (size_t row = 0; row < all_rows; row = at->end) { /* at: of a segment, and of all rows again after the last */
        at->begin = row;
        at->end = row + (length == 0 ? 1 : lesser(period - row % period, length));
        if (!w->planes)
            sum_all_columns(w, at, a, b);
        for (size_t i = 0; i < channels; i++)
            for (size_t begin = 0, n; begin < per; begin += n) {
                const size_t k = i * per + begin;
                double sums[2];
                n = lesser(per - begin, piece);
                if (w->planes)
                    sum_channel(w, at, i, begin, begin + n, sums);
                else {
                    sums[0] = per == 1 ? a[k] : fold_columns(a + k, n);
                    sums[1] = per == 1 ? b[k] : fold_columns(b + k, n);
                }
                add_segment_of(totals, records, i, (double)((at->end - row) * n), sums[0], sums[1]);
            }
    }
    at->begin = 0;
}

/* ---- scalars ---- */

/* a, b: Σ dh and Σ dh ⊙ (x - μ) of the set. */
static inline void set_backward(const backward_pass *w, backward_known *known, double a, double b)
{
    channel_backward g = backward_around(&known->stat, w->job->fixed_mean != NULL);
    backward_of_set(&g, w->job, a, b, known->stat.count);
    known->beta = g.beta;
    known->exact_gamma = g.exact_gamma;
}

/* What follows from the sums of channel i of a block of batch norm. */
static __attribute__((noinline)) void finish_channel(const backward_pass *w, const backward_rows *at, size_t i,
                                                     const nrg_set_sums *sums, backward_known *known)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t c = at->block.c + i;
    const double weight = (double)channel_parameter(job->w, c, job->w_f32, w->D, 1);
    const channel_backward g = backward_around(&known[i].stat, job->fixed_mean != NULL);
    const double dw = backward_around_mean(&g, sums->t, sums->q) * g.rstd;
    if (job->dw)
        job->dw[c] = (float)(job->accumulate ? (double)job->dw[c] + dw : dw);
    if (job->db)
        job->db[c] = (float)(job->accumulate ? (double)job->db[c] + sums->t : sums->t);
    set_backward(w, &known[i], weight * sums->t, weight * sums->q);
}

enum { BACKWARD_AGAIN = 4 }; /* channels whose integers are on the stack */

/* The sums of channels that fill a block, and what follows from them, except of channels whose sums two doubles do not hold:
 * returned is one bit for every BACKWARD_AGAIN channels. */
static __attribute__((noinline)) unsigned finish_channels(const backward_pass *w, backward_rows *at, backward_known *known)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t channels = at->block.channels;
    double store[4 * BACKWARD_COLUMNS];
    unsigned char state[BACKWARD_COLUMNS];
    channel_totals totals = totals_in(store, state, BACKWARD_COLUMNS);
    unsigned again = 0;
    clear_totals(&totals, channels);
    totals.count = (double)((at->end - at->begin) * (w->planes ? job->s : at->block.per));
    if (!job->given_sums)
        sum_gradient_batch(w, at, &totals, NULL);
    for (size_t i = 0; i < channels; i++)
        again |= (unsigned)needs_integers(state[i], job->sums != NULL) << i / BACKWARD_AGAIN;
    for (size_t i = 0; i < channels; i++) {
        const size_t c = (at->block.c + i) * NRG_CHANNEL_NORM_SUMS_WORDS;
        const channel_total total = total_of(&totals, i);
        if (again >> i / BACKWARD_AGAIN & 1)
            continue;
        const nrg_set_sums sums = job->given_sums ? nrg_sums_value(job->given_sums + c) : total_sums(&total);
        if (job->sums)
            nrg_sums_put(job->sums + c, &sums);
        finish_channel(w, at, i, &sums, known);
    }
    return again;
}

/* BACKWARD_AGAIN channels from number `first` on, in integers. */
static __attribute__((noinline, cold)) void finish_again(const backward_pass *w, const backward_rows *at, size_t first,
                                                         backward_known *known)
{
    const size_t channels = lesser(at->block.channels - first, BACKWARD_AGAIN);
    backward_rows some = some_backward_rows(at, first, channels);
    int64_t own[BACKWARD_AGAIN * NRG_CHANNEL_NORM_SUMS_WORDS],
        *records = w->job->sums ? w->job->sums + some.block.c * NRG_CHANNEL_NORM_SUMS_WORDS : own;
    for (size_t i = 0; i < channels; i++)
        nrg_sums_clear(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
    sum_gradient_batch(w, &some, NULL, records);
    for (size_t i = 0; i < channels; i++) {
        nrg_sums_carry(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
        const nrg_set_sums sums = nrg_sums_value(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
        finish_channel(w, at, first + i, &sums, known);
    }
}

/* ---- elements ---- */

/* dy is do1. d: as apply_piece has it. In a loop apart from dx, which is written later, since it may be d_o. */
static __attribute__((noinline)) void store_dy(const backward_pass *w, const backward_piece *piece, const float *d,
                                               size_t d_stride)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t stride = w->planes && job->groups ? piece->width * w->size : job->dy_stride;
    char *dy = job->dy + piece->row * job->dy_stride + piece->k * w->size;
    const int lines = (((uintptr_t)dy | stride | piece->width * w->size) & 63) == 0;
    for (size_t i = 0; i < piece->rows; i++)
        store_stage((const float *)(const void *)((const char *)d + i * d_stride), dy + i * stride, piece->width,
                    w->stream_dy && (w->planes || lines), w->D);
}

static __attribute__((noinline)) void apply_piece(const backward_pass *w, const backward_piece *piece, const float *f, int plain)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t first = piece->k * w->size, bytes = piece->width * w->size;
    do1_stage room;
    backward_run run = {.x = job->x + piece->row * job->x_stride + first,
                        .dx = job->dx ? job->dx + piece->row * job->dx_stride + first : NULL,
                        .x_stride = job->x_stride,
                        .dx_stride = job->dx_stride,
                        .rows = piece->rows,
                        .width = piece->width,
                        .f = f,
                        .planes = w->planes,
                        .frozen = job->fixed_mean != NULL,
                        .prefetch = job->stream && !w->planes ? CHANNEL_GRADIENT_ROWS : 0};
    run.d = make_do1(w, &room, piece, 1, &run.d_stride);
    if (w->planes && job->groups) { /* planes of adjacent channels; of batch norm, one channel of some samples */
        run.f_step = 1;
        run.x_stride = run.d_stride = run.dx_stride = bytes;
    }
    if (job->dy && job->dy != w->kept)
        store_dy(w, piece, run.d, run.d_stride);
    if (!run.dx)
        return;
    /* pieces of rows in full lines: of a line that is written in part, the rest would be read first */
    const size_t end = w->planes ? 0 : bytes, rest = w->planes ? 15 : 63; /* one row has no stride */
    run.stream_dx = w->stream_dx && (((uintptr_t)run.dx | (w->planes && run.rows == 1 ? 0 : run.dx_stride) | end) & rest) == 0;
    if (plain)
        apply_backward(&run, w->D);
    else {
        const backward_rows at = w->planes ? some_backward_rows(piece->of, piece->channel, 1) : *piece->of;
        apply_backward_fallback(w, &run, &at);
    }
}

/* All rows of a block, whose sets are finished. */
static __attribute__((noinline)) void apply_gradient_block(const backward_pass *w, backward_rows *at)
{
    _Alignas(64) float store[4 * BACKWARD_COLUMNS + VN];
    backward_room room;
    const size_t s = w->job->s, channels = at->block.channels, width = channels * at->block.per;
    if (!w->job->dx && !w->job->dy)
        return;
    const int plain = fill_gradient(w, at, at->block.per, store);
    at->f = factors_in(room.store, BACKWARD_COLUMNS);
    if (w->job->activation && !w->kept)
        fill_factors(&at->f, &at->block, w->D);
    const size_t most = do1_at_once(w, at->f.plain, 1);
    if (!w->planes) {
        for (size_t row = at->begin, rows; row < at->end; row += rows) {
            rows = lesser(at->end - row, most / width);
            const backward_piece piece = column_piece(at, row, rows);
            apply_piece(w, &piece, store, plain);
        }
        return;
    }
    /* planes of adjacent channels, if do1 is in memory, or of samples; or chunks of a plane */
    const size_t chunk = lesser(s, most), some = most == SIZE_MAX && plain && w->job->groups ? channels : 1,
                 samples = plain && !w->job->groups ? planes_at_once(s, most) : 1;
    for (size_t row = at->begin, rows; row < at->end; row += rows) {
        rows = lesser(at->end - row, samples);
        for (size_t channel = 0; channel < channels; channel += some)
            for (size_t i = 0, n; i < s; i += n) {
                n = lesser(s - i, chunk);
                const backward_piece piece = plane_piece(w, at, row, rows * some, channel, i, n);
                apply_piece(w, &piece, store + channel, plain);
            }
    }
}

/* ---- sets ---- */

/* Sets of so many elements that stay in cache between their sums and their elements, or one. */
static inline size_t sets_in_cache(size_t elements)
{
    enum { IN_CACHE = 16384 };
    return elements < IN_CACHE ? IN_CACHE / elements : 1;
}

/* Channels of batch norm: of columns as many as fill a block; of planes those that stay in cache, or where do1 is computed twice
 * one, which stays in L1. */
static __attribute__((noinline)) void backward_batch_sets(const backward_pass *w)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t per = job->nhwc || w->planes ? 1 : job->s, most = !w->planes ? BACKWARD_COLUMNS / per
                                                                   : w->staged && !w->kept
                                                                       ? 1
                                                                       : lesser(BACKWARD_COLUMNS, sets_in_cache(job->n * job->s));
    backward_known known[BACKWARD_COLUMNS];
    for (size_t c = job->begin, channels; c < job->end; c += channels) {
        channels = lesser(job->end - c, most);
        know_sets(w, c, channels, known);
        backward_rows at = rows_of(w, known, c, channels, per);
        at.end = job->nhwc ? job->n * job->s : job->n;
        const unsigned again = finish_channels(w, &at, known);
        for (size_t first = 0; first < channels; first += BACKWARD_AGAIN)
            if (again >> first / BACKWARD_AGAIN & 1)
                finish_again(w, &at, first, known);
        if (!job->sums)
            apply_gradient_block(w, &at);
    }
}

enum { BACKWARD_GROUPS = BACKWARD_COLUMNS / 2 }; /* at once */

/* Some sets of a sample, and where their sums over a block of samples go. */
typedef struct backward_groups {
    size_t n, begin, end; /* sample, groups */
    size_t block;         /* of samples */
    int first;            /* sample of the block */
} backward_groups;

/* Channels c to c + BACKWARD_COLUMNS of the groups. */
static inline backward_rows group_rows(const backward_pass *w, const backward_groups *groups, const backward_known *known,
                                       size_t c)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t all = (groups->end - groups->begin) * job->group_channels, rows = job->nhwc ? job->s : 1;
    backward_rows at = rows_of(w, known, groups->begin * job->group_channels + c, lesser(all - c, BACKWARD_COLUMNS), 1);
    at.begin = groups->n * rows;
    at.end = at.begin + rows;
    return at;
}

/* The sums of a block of channels, the first of them number c of its group, to lanes of its groups, and to dw and db. */
static __attribute__((noinline)) void sum_gradient_group(const backward_pass *w, const backward_groups *groups, backward_rows *at,
                                                         size_t c, double *lanes_a, double *lanes_b)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const channel_block *block = &at->block;
    _Alignas(64) double a[BACKWARD_ROOM], b[BACKWARD_ROOM];
    backward_room room;
    prepare_sums(w, at, &room);
    if (!w->planes)
        sum_all_columns(w, at, a, b);
    for (size_t k = 0; k < block->channels; k++) {
        const size_t group = k / block->group,
                     lane = group * CHANNEL_COLUMN_LANES + (c + k % block->group) % CHANNEL_COLUMN_LANES,
                     to = groups->block * job->c + block->c + k;
        const channel_backward g = backward_around(&at->known[group].stat, job->fixed_mean != NULL);
        const double weight = (double)channel_parameter(job->w, block->c + k, job->w_f32, w->D, 1);
        double sums[2] = {a[k], b[k]};
        if (w->planes)
            sum_channel(w, at, k, 0, job->s, sums);
        const double dw = backward_around_mean(&g, sums[0], sums[1]) * g.rstd;
        lanes_a[lane] = fma(weight, sums[0], lanes_a[lane]);
        lanes_b[lane] = fma(weight, sums[1], lanes_b[lane]);
        if (job->block_dw)
            job->block_dw[to] = groups->first ? dw : job->block_dw[to] + dw;
        if (job->block_db)
            job->block_db[to] = groups->first ? sums[0] : job->block_db[to] + sums[0];
    }
}

static __attribute__((noinline)) void sum_groups(const backward_pass *w, const backward_groups *groups, backward_known *known)
{
    const size_t count = groups->end - groups->begin, all = count * w->job->group_channels;
    double lanes_a[CHANNEL_COLUMN_LANES * BACKWARD_GROUPS], lanes_b[CHANNEL_COLUMN_LANES * BACKWARD_GROUPS];
    memset(lanes_a, 0, count * CHANNEL_COLUMN_LANES * sizeof lanes_a[0]);
    memset(lanes_b, 0, count * CHANNEL_COLUMN_LANES * sizeof lanes_b[0]);
    for (size_t c = 0; c < all; c += BACKWARD_COLUMNS) {
        backward_rows at = group_rows(w, groups, known, c);
        sum_gradient_group(w, groups, &at, c, lanes_a, lanes_b);
    }
    for (size_t i = 0; i < count; i++)
        set_backward(w, &known[i], fold_of(lanes_a + i * CHANNEL_COLUMN_LANES), fold_of(lanes_b + i * CHANNEL_COLUMN_LANES));
}

/* Groups that fill a block together, or one that is wider. */
static __attribute__((noinline)) void backward_group_sets(const backward_pass *w, const backward_groups *groups)
{
    backward_known known[BACKWARD_GROUPS];
    know_sets(w, groups->n * w->job->groups + groups->begin, groups->end - groups->begin, known);
    sum_groups(w, groups, known);
    for (size_t c = 0; c < (groups->end - groups->begin) * w->job->group_channels; c += BACKWARD_COLUMNS) {
        backward_rows at = group_rows(w, groups, known, c);
        apply_gradient_block(w, &at);
    }
}

#endif
