/* Schedule of columns: sets whose channels, or positions, are side by side in a row.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_COLUMNS_H
#define NRG_TEMPLATE_CHANNEL_COLUMNS_H

#include "small.h"

/* Rows begin to end of some columns, from column k of a row on. Rows are positions, or with NCHW samples. */
static inline channel_run column_run(const channel_pass *w, size_t k, size_t width, size_t begin, size_t end,
                                     const channel_column_factors *f)
{
    const nrg_channel_norm_job *job = w->job;
    channel_run run = {.x = job->x + begin * job->x_stride + k * w->size,
                       .y = job->y ? job->y + begin * job->y_stride + k * w->size : NULL,
                       .o = job->o + begin * job->o_stride + k * w->size,
                       .x_stride = job->x_stride,
                       .y_stride = job->y_stride,
                       .o_stride = job->o_stride,
                       .rows = end - begin,
                       .width = width,
                       .f = *f,
                       .folded = job->folded,
                       .fast = job->fast,
                       .finish = w->finish};
    /* pieces of rows in full lines: of a line that is written in part, the rest would be read first */
    const size_t bytes = width * w->size, alignment = bytes == job->o_stride ? 15 : 63;
    run.stream = w->stream && (((uintptr_t)run.o | run.o_stride | bytes) & alignment) == 0;
    run.turns = channel_turns(run.stream, run.rows);
    return run;
}

/* A block with its factors. */
static __attribute__((noinline)) void apply_block(const channel_pass *w, const channel_block *block,
                                                  const channel_column_factors *f, size_t k, size_t begin, size_t end)
{
    channel_run run = column_run(w, k, block->channels * block->per, begin, end, f);
    if (!f->plain && run.finish == CHANNEL_STORE_SILU)
        run.finish = CHANNEL_TO_STAGE;
    apply_rows(w, &run, f->plain ? NULL : block);
}

/* Columns that are all plain; f has room for CHANNEL_WIDE. If there are few without gaps, several rows are one wide row. */
static __attribute__((noinline)) void apply_wide(const channel_pass *w, const channel_column_factors *f, size_t k, size_t width,
                                                 size_t begin, size_t end)
{
    if (!width)
        return;
    channel_run run = column_run(w, k, width, begin, end, f);
    const size_t bytes = width * w->size, times = CHANNEL_WIDE / width;
    if (times > 1 && run.rows >= 2 * times && run.x_stride == bytes && run.o_stride == bytes &&
        (!run.y || run.y_stride == bytes)) {
        for (size_t i = width; i < times * width; i++) {
            f->hi[i] = f->hi[i - width];
            f->lo[i] = f->lo[i - width];
            f->shift[i] = f->shift[i - width];
            if (!w->job->fast)
                f->shift_lo[i] = f->shift_lo[i - width];
        }
        const size_t rows = run.rows / times;
        run.rows = rows;
        run.width = times * width;
        run.x_stride = run.y_stride = run.o_stride = times * bytes;
        run.stream = w->stream && (((uintptr_t)run.o | run.o_stride) & 15) == 0;
        run.turns = channel_turns(run.stream, rows);
        apply_rows(w, &run, NULL);
        run = column_run(w, k, width, begin + rows * times, end, f);
    }
    if (run.rows)
        apply_rows(w, &run, NULL);
}

/* A block with columns that are computed in double, a few sets at a time: their statistics once more. */
static __attribute__((noinline, cold)) void apply_fallback_sets(const channel_pass *w, const channel_sets *sets,
                                                                const channel_totals *totals, const channel_column_factors *f,
                                                                size_t row, size_t row_end)
{
    enum { AT_ONCE = 16 };
    const size_t columns = sets->channels_each * sets->per;
    nrg_channel_statistics stat[AT_ONCE];
    for (size_t i = 0, count; i < sets->count; i += count) {
        count = lesser(sets->count - i, AT_ONCE);
        for (size_t j = 0; j < count; j++)
            stat[j] = statistics_of(w, totals, i + j);
        const channel_block block = sets_block(w, sets, i, count, stat);
        channel_column_factors from = factors_from(f, i * columns);
        from.plain = 0;
        apply_block(w, &block, &from, (sets->c + i * sets->channels_each) * sets->per, row, row_end);
    }
}

/* Statistics, or sums, and nothing else: channels of batch norm, or groups of sample n. A separate function, since the backward
 * pass calls it from deep in the stack. */
static __attribute__((noinline)) void column_statistics(const channel_pass *w, size_t n, size_t begin, size_t end)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t per = job->nhwc || job->groups ? 1 : job->s, channels = job->groups ? job->group_channels : 1;
    const size_t each = groups_are_small(w) ? 1 : channels * per, most = each < CHANNEL_COLUMNS ? CHANNEL_COLUMNS / each : 1;
    for (size_t at = begin, count; at < end; at += count) {
        count = lesser(end - at, most);
        const channel_sets sets = {n * job->groups + at, count, at * channels, channels, per};
        write_sets(w, &sets);
    }
}

/* One group of sample n with more channels than a block has columns. */
static __attribute__((noinline)) void wide_group(const channel_pass *w, size_t n, size_t group, nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, row = n * job->s;
    _Alignas(64) float store[CHANNEL_FACTORS];
    totals_room room;
    channel_totals totals = block_totals(&room);
    const channel_sets set = {n * job->groups + group, 1, group * channels, channels, 1};
    sum_set_block(w, &set, &totals);
    const nrg_set_sums value = sums_of(&totals, 0);
    const nrg_channel_statistics stat = finish_set(w, set.set, &value, running);
    const channel_block all = block_of(w, &stat, set.c, channels, 1);
    for (size_t c = 0, width; c < channels; c += width) {
        width = lesser(channels - c, CHANNEL_WIDE);
        channel_column_factors f = factors_in(store, CHANNEL_WIDE);
        const channel_block block = some_channels(&all, c, width);
        fill_factors(&f, &block, w->D);
        apply_block(w, &block, &f, block.c, row, row + job->s);
    }
}

/* Sets begin to end: channels of batch norm, or groups of sample n, that fill blocks of columns. running: of these, or NULL. */
static __attribute__((noinline)) void column_sets(const channel_pass *w, size_t n, size_t begin, size_t end,
                                                  nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->groups ? job->group_channels : 1, per = job->groups || job->nhwc ? 1 : job->s,
                 each = channels * per, most = job->groups ? CHANNEL_COLUMNS / channels : channels_in(CHANNEL_COLUMNS, per);
    const size_t row = job->groups ? n * job->s : 0, rows = job->groups ? job->s : job->nhwc ? job->n * job->s : job->n;
    const int small = job->groups && !running && small_sets_serve(w);
    _Alignas(64) float store[CHANNEL_FACTORS];
    const channel_column_factors wide = factors_in(store, CHANNEL_WIDE);
    size_t first = begin; /* sets from here on wait to be normalized */
    for (size_t set = begin, count; set < end; set += count) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        count = lesser(end - set, most);
        if ((set + count - first) * each > CHANNEL_WIDE) {
            apply_wide(w, &wide, first * each, (set - first) * each, row, row + rows);
            first = set;
        }
        const channel_sets sets = {n * job->groups + set, count, set * channels, channels, per};
        channel_column_factors f = factors_from(&wide, (set - first) * each);
        if (small && finish_small(w, &sets, &totals, &f))
            continue;
        sum_set_block(w, &sets, &totals);
        finish_sets(w, &sets, &totals, &f, running ? running + (set - begin) : NULL);
        if (f.plain)
            continue;
        apply_wide(w, &wide, first * each, (set - first) * each, row, row + rows);
        apply_fallback_sets(w, &sets, &totals, &f, row, row + rows);
        first = set + count;
    }
    apply_wide(w, &wide, first * each, (end - first) * each, row, row + rows);
}

#endif
