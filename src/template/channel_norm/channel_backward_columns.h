/* The backward walk over columns: sets whose channels, or positions, lie side by side.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_COLUMNS_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_COLUMNS_H

#include "channel_backward_walk.h"

/* What a walk over the rows of a block needs beside its sets. */
typedef struct backward_rows {
    channel_block block;
    const backward_known *known;
    size_t k, begin, end; /* the block's first column in a row; rows */
} backward_rows;

/* `channels` channels of a block, which begins with a group, from number `first` on. */
static inline backward_rows some_columns(const backward_rows *all, size_t first, size_t channels)
{
    const size_t group = first / all->block.group;
    backward_rows at = *all;
    at.block.c += first;
    at.block.channels = channels;
    at.block.into = first - group * all->block.group;
    at.block.stat = block_stat(&all->block, group);
    at.known += group;
    at.k += first * all->block.per;
    return at;
}

/* How many channels are done at once from number `first` on, where some are done in double and do1 is staged: few columns, so
 * that what is worked out of them serves some rows. */
static inline size_t narrow_channels(const channel_block *block, size_t first)
{
    const size_t left = block->channels - first, most = FALLBACK_COLUMNS < block->per ? 1 : FALLBACK_COLUMNS / block->per;
    return left < most ? left : most;
}

/* Adds some columns over their rows to a and b. centre: of every column. */
static __attribute__((noinline)) void sum_some_rows(const backward_walk *w, const backward_rows *at,
                                                    const channel_column_factors *f, const float *centre, double *a, double *b)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t width = at->block.channels * at->block.per, most = rows_at_once(w, width, at->end - at->begin, f->plain, 0);
    backward_stage room;
    fallback_factors own;
    const fallback_factors *fallback = strip_factors(w, &own, &at->block, f);
    for (size_t i = 0; i < (width + VN - 1) / VN * VN; i++)
        a[i] = b[i] = 0;
    for (size_t row = at->begin, rows; row < at->end; row += rows) {
        rows = at->end - row < most ? at->end - row : most;
        backward_columns columns = {.x = job->x + row * job->x_stride + at->k * w->size,
                                    .x_stride = job->x_stride,
                                    .rows = rows,
                                    .width = width,
                                    .prefetch = job->stream};
        columns.d = rows_backward(w, &room, &at->block, f, fallback, at->k, row, rows, 0, &columns.d_stride);
        add_columns(&columns, centre, a, b, w->D);
    }
}

/* Of a block. a and b have room for BACKWARD_ROOM. */
static __attribute__((noinline)) void sum_block_rows(const backward_walk *w, const backward_rows *at,
                                                     const channel_column_factors *f, const float *centre, double *a, double *b)
{
    for (size_t first = 0, some; first < at->block.channels; first += some) {
        some = f->plain ? at->block.channels : narrow_channels(&at->block, first);
        const backward_rows part = some_columns(at, first, some);
        const size_t k = first * at->block.per;
        channel_column_factors own = factors_from(f, k);
        own.plain = f->plain;
        sum_some_rows(w, &part, &own, centre + k, a + k, b + k);
    }
}

/* Factors of the forward pass, where do1 needs o1. */
static void forward_factors(const backward_walk *w, const channel_block *block, channel_column_factors *f)
{
    if (w->job->activation)
        fill_factors(f, block, w->D);
}

/* The gradient's factors of n channels of a set, in vectors. */
NRG_INLINE void fill_alpha_of(float *alpha, const char *weights, double rstd, size_t n, nrg_dtype D)
{
    const vd inverse = vd_set1(rstd);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf w = !weights ? v_set1(1) : lanes == VN ? load_whole(weights, i, D) : load_part(weights, i, lanes, D);
        store_lanes(alpha + i, v_from_vd(vd_mul(inverse, vd_low(w)), vd_mul(inverse, vd_high(w))), lanes);
    }
}

static void fill_constant(float *to, float value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* Factors of all columns. */
static __attribute__((noinline)) void fill_gradient(const backward_walk *w, const channel_block *block,
                                                    const backward_known *known, backward_column_factors *f)
{
    f->plain = 1;
    f->frozen = w->job->fixed_mean != NULL;
    if (block->group > 1 && block->per == 1 && block->plain_weights) {
        for (size_t k = 0, n; k < block->channels; k += n) {
            const size_t left = block->channels - k, at = bytes_of(block->c + k, w->D, block->w_f32);
            const channel_backward g = backward_of(w, &known[k / block->group]);
            const char *weights = block->w ? block->w + at : NULL;
            n = left < block->group ? left : block->group;
            /* weights and 1/s from 2^-40 to 2^40 leave no room for an alpha that is not plain */
            f->plain &= backward_is_plain(&g, 1) && backward_between(g.rstd, 0x1p-40, 0x1p40);
            if (w->D == NRG_F32 || block->w_f32)
                fill_alpha_of(f->at + F_ALPHA + k, weights, g.rstd, n, NRG_F32);
            else if (w->D == NRG_F16)
                fill_alpha_of(f->at + F_ALPHA + k, weights, g.rstd, n, NRG_F16);
            else
                fill_alpha_of(f->at + F_ALPHA + k, weights, g.rstd, n, NRG_BF16);
            fill_constant(f->at + F_CENTRE + k, g.centre, n);
            fill_constant(f->at + F_MINUS_BETA + k, -(float)g.beta, n);
            fill_constant(f->at + F_GAMMA + k, (float)g.gamma, n);
        }
        return;
    }
    for (size_t channel = 0; channel < block->channels; channel++) {
        const backward_known *of = &known[channel / block->group];
        const channel_backward g = backward_of(w, of);
        const float w_c = channel_parameter(block->w, block->c + channel, block->w_f32, w->D, 1);
        const backward_factors factors = backward_factors_of(&g, &of->stat, w_c);
        const size_t k = channel * block->per;
        f->plain &= factors.plain;
        fill_constant(f->at + F_CENTRE + k, factors.centre, block->per);
        fill_constant(f->at + F_ALPHA + k, factors.alpha, block->per);
        fill_constant(f->at + F_MINUS_BETA + k, factors.minus_beta, block->per);
        fill_constant(f->at + F_GAMMA + k, factors.gamma, block->per);
    }
}

static __attribute__((noinline)) void apply_fallback_block(const backward_walk *w, const backward_column_run *run,
                                                           const backward_rows *at, const backward_column_factors *f)
{
    const channel_block *block = &at->block;
    for (size_t first = 0; first < run->width; first += BACKWARD_FALLBACK_COLUMNS) {
        const size_t left = run->width - first;
        backward_fallback_factors c;
        backward_column_run part = *run;
        memset(&c, 0, sizeof c);
        part.width = left < BACKWARD_FALLBACK_COLUMNS ? left : BACKWARD_FALLBACK_COLUMNS;
        part.d += first;
        part.x += first * w->size;
        part.dx = part.dx ? part.dx + first * w->size : NULL;
        part.dy = part.dy ? part.dy + first * w->size : NULL;
        part.stream_dx = part.stream_dy = 0;
        for (size_t k = 0; k < part.width; k++) {
            const size_t channel = (first + k) / block->per;
            const backward_known *of = &at->known[block_group(block, channel)];
            const channel_backward g = backward_of(w, of);
            const float w_c = channel_parameter(block->w, block->c + channel, block->w_f32, w->D, 1);
            const backward_factors factors = backward_factors_of(&g, &of->stat, w_c);
            c.plain[k] = factors.plain ? 1 : 0;
            c.mean[k] = factors.mean;
            c.mean_low[k] = factors.mean_low;
            c.alpha[k] = factors.exact_alpha;
            c.minus_beta[k] = factors.exact_minus_beta;
            c.gamma[k] = factors.exact_gamma;
        }
        apply_backward_columns_fallback(&part, f, first, &c, w->D);
    }
}

/* Rows of some columns, with their factors of both passes. */
static __attribute__((noinline)) void apply_some_rows(const backward_walk *w, const backward_rows *at,
                                                      const backward_column_factors *f, const channel_column_factors *forward)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t width = at->block.channels * at->block.per,
                 most = rows_at_once(w, width, at->end - at->begin, forward->plain, 1);
    backward_stage room;
    fallback_factors own;
    const fallback_factors *fallback = strip_factors(w, &own, &at->block, forward);
    for (size_t row = at->begin, rows; row < at->end; row += rows) {
        rows = at->end - row < most ? at->end - row : most;
        backward_column_run run = {.x = job->x + row * job->x_stride + at->k * w->size,
                                   .dx = job->dx ? job->dx + row * job->dx_stride + at->k * w->size : NULL,
                                   .dy = job->dy ? job->dy + row * job->dy_stride + at->k * w->size : NULL,
                                   .x_stride = job->x_stride,
                                   .dx_stride = job->dx_stride,
                                   .dy_stride = job->dy_stride,
                                   .rows = rows,
                                   .width = width,
                                   .prefetch = job->stream ? BACKWARD_PREFETCH : 0};
        /* pieces of rows in whole lines: what a line lacks would be read first */
        run.stream_dx = w->stream_dx && (((uintptr_t)run.dx | run.dx_stride | width * w->size) & 63) == 0;
        run.stream_dy = w->stream_dy && (((uintptr_t)run.dy | run.dy_stride | width * w->size) & 63) == 0;
        run.d = rows_backward(w, &room, &at->block, forward, fallback, at->k, row, rows, 1, &run.d_stride);
        if (f->plain)
            apply_backward_columns(&run, f, w->D);
        else
            apply_fallback_block(w, &run, at, f);
    }
}

static __attribute__((noinline)) void apply_block_rows(const backward_walk *w, const backward_rows *at)
{
    _Alignas(64) float store[4 * BACKWARD_COLUMNS + VN], forward_store[4 * BACKWARD_COLUMNS + VN];
    backward_column_factors f = {store, 1, 0};
    channel_column_factors forward = factors_in(forward_store, BACKWARD_COLUMNS);
    if (!w->job->dx && !w->job->dy)
        return;
    fill_gradient(w, &at->block, at->known, &f);
    if (!w->kept)
        forward_factors(w, &at->block, &forward);
    const int narrow = w->staged && !(f.plain && forward.plain);
    for (size_t first = 0, some; first < at->block.channels; first += some) {
        some = narrow ? narrow_channels(&at->block, first) : at->block.channels;
        const backward_rows part = some_columns(at, first, some);
        const size_t k = first * at->block.per;
        const backward_column_factors own = {f.at + k, f.plain, f.frozen};
        channel_column_factors own_forward = factors_from(&forward, k);
        own_forward.plain = forward.plain;
        apply_some_rows(w, &part, &own, &own_forward);
    }
}

/* The sums of channels of batch norm that fill a block, to totals, or where records are given to these, one a channel. */
static __attribute__((noinline)) void sum_block_columns(const backward_walk *w, const backward_rows *at, channel_totals *totals,
                                                        int64_t *records)
{
    const size_t channels = at->block.channels, per = at->block.per, all_rows = at->end;
    const size_t length = w->cut.length / per, period = w->job->nhwc ? w->cut.period : all_rows; /* in rows */
    _Alignas(64) float store[4 * BACKWARD_COLUMNS + VN];
    channel_column_factors f = factors_in(store, BACKWARD_COLUMNS);
    _Alignas(64) double a[BACKWARD_ROOM], b[BACKWARD_ROOM];
    float centre[BACKWARD_ROOM] = {0};
    forward_factors(w, &at->block, &f);
    for (size_t k = 0; k < channels * per; k++)
        centre[k] = backward_around(&at->known[k / per].stat, 0).centre;
    backward_rows part = *at;
    for (size_t row = 0; row < all_rows; row = part.end) {
        const size_t left = period - row % period, segment = left < length ? left : length;
        /* segments of less than a row of a channel's positions are pieces of it */
        const size_t piece = length == 0 ? w->cut.length : per;
        part.begin = row;
        part.end = length == 0 ? row + 1 : row + segment;
        sum_block_rows(w, &part, &f, centre, a, b);
        for (size_t i = 0; i < channels; i++)
            for (size_t begin = 0, n; begin < per; begin += n) {
                const size_t k = i * per + begin;
                n = per - begin < piece ? per - begin : piece;
                add_segment_of(totals, records, i, (double)((part.end - row) * n), per == 1 ? a[k] : fold_columns(a + k, n),
                               per == 1 ? b[k] : fold_columns(b + k, n));
            }
    }
}

static inline void finish_column(const backward_walk *w, const backward_rows *at, size_t i, const nrg_set_sums *sums,
                                 backward_known *known)
{
    const size_t c = at->block.c + i;
    finish_channel(w, c, sums, &known[i], channel_parameter(w->job->w, c, w->job->w_f32, w->D, 1));
}

enum { BACKWARD_AGAIN = 4 }; /* channels whose integers are on the stack */

/* The sums of channels that fill a block, and what follows from them. Those that two doubles do not hold are left to
 * finish_again: returned is one bit for every BACKWARD_AGAIN channels. */
static __attribute__((noinline)) unsigned sum_channel_columns(const backward_walk *w, const backward_rows *at,
                                                              backward_known *known)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t channels = at->block.channels;
    double store[4 * BACKWARD_COLUMNS];
    unsigned char state[BACKWARD_COLUMNS];
    channel_totals totals = totals_in(store, state, BACKWARD_COLUMNS);
    unsigned again = 0;
    clear_totals(&totals, channels);
    totals.count = (double)((at->end - at->begin) * at->block.per);
    if (!job->given_sums)
        sum_block_columns(w, at, &totals, NULL);
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
        finish_column(w, at, i, &sums, known);
    }
    return again;
}

/* BACKWARD_AGAIN channels from number `first` on, in integers. */
static __attribute__((noinline)) void finish_again(const backward_walk *w, const backward_rows *at, size_t first,
                                                   backward_known *known)
{
    const size_t left = at->block.channels - first, channels = left < BACKWARD_AGAIN ? left : BACKWARD_AGAIN;
    const backward_rows some = some_columns(at, first, channels);
    int64_t own[BACKWARD_AGAIN * NRG_CHANNEL_NORM_SUMS_WORDS],
        *records = w->job->sums ? w->job->sums + some.block.c * NRG_CHANNEL_NORM_SUMS_WORDS : own;
    for (size_t i = 0; i < channels; i++)
        nrg_sums_clear(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
    sum_block_columns(w, &some, NULL, records);
    for (size_t i = 0; i < channels; i++) {
        nrg_sums_carry(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
        const nrg_set_sums sums = nrg_sums_value(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
        finish_column(w, at, first + i, &sums, known);
    }
}

/* Statistics of sets side by side. */
static __attribute__((noinline)) void know_sets(const backward_walk *w, size_t set, size_t count, backward_known *known)
{
    enum { AT_ONCE = 16 };
    nrg_channel_statistics stat[AT_ONCE];
    for (size_t i = 0, some; i < count; i += some) {
        some = count - i < AT_ONCE ? count - i : AT_ONCE;
        find_statistics(w, set + i, some, stat);
        for (size_t j = 0; j < some; j++)
            known[i + j] = (backward_known){.stat = stat[j]};
    }
}

/* Whole channels of batch norm, side by side. */
static __attribute__((noinline)) void batch_columns(const backward_walk *w)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t per = job->nhwc ? 1 : job->s, most = BACKWARD_COLUMNS / per, all_rows = job->nhwc ? job->n * job->s : job->n;
    backward_known known[BACKWARD_COLUMNS];
    for (size_t c = job->begin, channels; c < job->end; c += channels) {
        channels = job->end - c < most ? job->end - c : most;
        know_sets(w, c, channels, known);
        const backward_rows at = {.block = backward_block(w, &known[0].stat, sizeof known[0], c, channels, per),
                                  .known = known,
                                  .k = c * per,
                                  .end = all_rows};
        const unsigned again = sum_channel_columns(w, &at, known);
        for (size_t first = 0; first < channels; first += BACKWARD_AGAIN)
            if (again >> first / BACKWARD_AGAIN & 1)
                finish_again(w, &at, first, known);
        if (!job->sums)
            apply_block_rows(w, &at);
    }
}

/* The sums of a block of columns of one sample, `into` channels into its first group, added to its groups' lanes, and to dw and
 * db. */
static __attribute__((noinline)) void sum_group_columns(const backward_walk *w, const backward_rows *at, size_t into,
                                                        double *lanes_a, double *lanes_b, size_t block_number, int first)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const channel_block *block = &at->block;
    _Alignas(64) double a[BACKWARD_ROOM], b[BACKWARD_ROOM];
    float centre[BACKWARD_ROOM] = {0};
    _Alignas(64) float store[4 * BACKWARD_COLUMNS + VN];
    channel_column_factors f = factors_in(store, BACKWARD_COLUMNS);
    forward_factors(w, block, &f);
    for (size_t k = 0; k < block->channels; k++)
        centre[k] = backward_around(&at->known[k / block->group].stat, 0).centre;
    sum_block_rows(w, at, &f, centre, a, b);
    for (size_t begin = 0, n; begin < block->channels; begin += n) {
        const size_t group = begin / block->group, left = block->channels - begin;
        const channel_backward g = backward_around(&at->known[group].stat, job->fixed_mean != NULL);
        double *lane_a = lanes_a + group * CHANNEL_COLUMN_LANES, *lane_b = lanes_b + group * CHANNEL_COLUMN_LANES;
        n = left < block->group ? left : block->group;
        for (size_t k = 0; k < n; k++) {
            const size_t lane = (into + k) % CHANNEL_COLUMN_LANES, c = block->c + begin + k;
            const double w_c = (double)channel_parameter(job->w, c, job->w_f32, w->D, 1);
            lane_a[lane] = fma(w_c, a[begin + k], lane_a[lane]);
            lane_b[lane] = fma(w_c, b[begin + k], lane_b[lane]);
            add_parameters(w, block_number, c, first, backward_around_mean(&g, a[begin + k], b[begin + k]) * g.rstd,
                           a[begin + k]);
        }
    }
}

enum { BACKWARD_GROUPS = BACKWARD_COLUMNS / 2 }; /* at once */

/* Columns c to c + BACKWARD_COLUMNS of `all` that some groups of sample n have, the first of them group `begin`. */
static inline backward_rows group_rows(const backward_walk *w, const backward_known *known, size_t n, size_t begin, size_t c,
                                       size_t all)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t width = all - c < BACKWARD_COLUMNS ? all - c : BACKWARD_COLUMNS, k = begin * job->group_channels + c;
    return (backward_rows){.block = backward_block(w, &known[0].stat, sizeof known[0], k, width, 1),
                           .known = known,
                           .k = k,
                           .begin = n * job->s,
                           .end = (n + 1) * job->s};
}

static __attribute__((noinline)) void sum_groups_columns(const backward_walk *w, backward_known *known, size_t n, size_t begin,
                                                         size_t groups, size_t block_number, int first)
{
    const size_t all = groups * w->job->group_channels;
    double lanes_a[CHANNEL_COLUMN_LANES * BACKWARD_GROUPS], lanes_b[CHANNEL_COLUMN_LANES * BACKWARD_GROUPS];
    memset(lanes_a, 0, groups * CHANNEL_COLUMN_LANES * sizeof lanes_a[0]);
    memset(lanes_b, 0, groups * CHANNEL_COLUMN_LANES * sizeof lanes_b[0]);
    for (size_t c = 0; c < all; c += BACKWARD_COLUMNS) {
        const backward_rows at = group_rows(w, known, n, begin, c, all);
        sum_group_columns(w, &at, c, lanes_a, lanes_b, block_number, first);
    }
    for (size_t i = 0; i < groups; i++)
        set_backward(w, &known[i], fold_of(lanes_a + i * CHANNEL_COLUMN_LANES), fold_of(lanes_b + i * CHANNEL_COLUMN_LANES));
}

/* Groups begin to end of sample n, which fill a block together, or one that is wider. */
static __attribute__((noinline)) void group_columns(const backward_walk *w, size_t n, size_t begin, size_t end,
                                                    size_t block_number, int first)
{
    const size_t all = (end - begin) * w->job->group_channels;
    backward_known known[BACKWARD_GROUPS];
    know_sets(w, n * w->job->groups + begin, end - begin, known);
    sum_groups_columns(w, known, n, begin, end - begin, block_number, first);
    for (size_t c = 0; c < all; c += BACKWARD_COLUMNS) {
        const backward_rows at = group_rows(w, known, n, begin, c, all);
        apply_block_rows(w, &at);
    }
}

#endif
