/* The walk over columns: sets whose channels, or positions, lie side by side.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_COLUMNS_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_COLUMNS_H

#include "channel_small.h"

/* Rows begin to end of some columns, `width` from column k of a row on. Rows are positions, or with NCHW samples. */
static inline channel_column_run column_run(const channel_walk *w, size_t k, size_t width, size_t begin, size_t end)
{
    const nrg_channel_norm_job *job = w->job;
    channel_column_run run = {.x = job->x + begin * job->x_stride + k * w->size,
                              .y = job->y ? job->y + begin * job->y_stride + k * w->size : NULL,
                              .o = job->o + begin * job->o_stride + k * w->size,
                              .x_stride = job->x_stride,
                              .y_stride = job->y_stride,
                              .o_stride = job->o_stride,
                              .rows = end - begin,
                              .width = width,
                              .folded = job->folded,
                              .fast = job->fast,
                              .finish = w->finish};
    /* pieces of rows in whole lines: what a line lacks would be read first */
    const size_t bytes = width * w->size, alignment = bytes == job->o_stride ? 15 : 63;
    run.stream = w->stream && (((uintptr_t)run.o | run.o_stride | bytes) & alignment) == 0;
    return run;
}

/* Rows whose activation takes a stage. */
static __attribute__((noinline)) void apply_run_staged(const channel_walk *w, const channel_column_run *run,
                                                       const channel_block *block, const channel_column_factors *f)
{
    _Alignas(64) float stage[CHANNEL_STAGE];
    const size_t at_once = CHANNEL_STAGE / run->width;
    for (size_t row = 0; row < run->rows; row += at_once) {
        channel_column_run part = *run;
        part.rows = run->rows - row < at_once ? run->rows - row : at_once;
        part.x += row * run->x_stride;
        part.y = part.y ? part.y + row * run->y_stride : NULL;
        part.o = (char *)stage;
        part.o_stride = run->width * sizeof(float);
        part.stream = 0;
        part.finish = CHANNEL_TO_STAGE;
        if (block)
            apply_columns_fallback(&part, block, f, w->D);
        else
            apply_columns(&part, f, w->D);
        NRG_PATH_NAME(activate)(w->job->activation, stage, stage, part.rows * run->width);
        for (size_t i = 0; i < part.rows; i++)
            store_stage(stage + i * run->width, run->o + (row + i) * run->o_stride, run->width, run->stream, w->D);
    }
}

/* block: where not all columns are plain; else NULL. */
static __attribute__((noinline)) void apply_run_columns(const channel_walk *w, const channel_column_run *run,
                                                        const channel_block *block, const channel_column_factors *f)
{
    if (run->finish != CHANNEL_TO_STAGE && !(block && run->finish == CHANNEL_STORE_SILU)) {
        if (block)
            apply_columns_fallback(run, block, f, w->D);
        else
            apply_columns(run, f, w->D);
        return;
    }
    apply_run_staged(w, run, block, f);
}

/* A block with its factors. */
static void apply_rows(const channel_walk *w, const channel_block *block, const channel_column_factors *f, size_t k, size_t begin,
                       size_t end)
{
    const channel_column_run run = column_run(w, k, block->channels * block->per, begin, end);
    apply_run_columns(w, &run, f->plain ? NULL : block, f);
}

/* Columns that are all plain; f has room for CHANNEL_WIDE. Of few columns without gaps, several rows are one wide row. */
static void apply_wide(const channel_walk *w, const channel_column_factors *f, size_t k, size_t width, size_t begin, size_t end)
{
    if (!width)
        return;
    channel_column_run run = column_run(w, k, width, begin, end);
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
        channel_column_run wide = run;
        wide.rows = rows;
        wide.width = times * width;
        wide.x_stride = wide.y_stride = wide.o_stride = times * bytes;
        wide.stream = w->stream && (((uintptr_t)wide.o | wide.o_stride) & 15) == 0;
        apply_run_columns(w, &wide, NULL, f);
        run = column_run(w, k, width, begin + rows * times, end);
        if (!run.rows)
            return;
    }
    apply_run_columns(w, &run, NULL, f);
}

/* A block with columns that are done in double, a few sets at a time: their statistics once more. */
static __attribute__((noinline)) void apply_fallback_sets(const channel_walk *w, const channel_sets *sets,
                                                          const channel_totals *totals, const channel_column_factors *f,
                                                          size_t row, size_t row_end)
{
    enum { AT_ONCE = 16 };
    const size_t columns = sets->channels_each * sets->per;
    nrg_channel_statistics stat[AT_ONCE];
    for (size_t i = 0, count; i < sets->count; i += count) {
        count = sets->count - i < AT_ONCE ? sets->count - i : AT_ONCE;
        for (size_t j = 0; j < count; j++)
            stat[j] = statistics_of(w, totals, i + j);
        const channel_block block = sets_block(w, sets, i, count, stat);
        channel_column_factors from = factors_from(f, i * columns);
        from.plain = 0;
        apply_rows(w, &block, &from, (sets->c + i * sets->channels_each) * sets->per, row, row_end);
    }
}

/* Statistics, or sums, and nothing else: channels of batch norm, or groups of sample n. A function of its own, since the backward
 * pass calls it from deep in the stack. */
static __attribute__((noinline)) void column_statistics(const channel_walk *w, size_t n, size_t begin, size_t end)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t per = job->nhwc || job->groups ? 1 : job->s, channels = job->groups ? job->group_channels : 1;
    const size_t each = groups_are_small(w) ? 1 : channels * per, most = each < CHANNEL_COLUMNS ? CHANNEL_COLUMNS / each : 1;
    for (size_t at = begin, count; at < end; at += count) {
        count = end - at < most ? end - at : most;
        const channel_sets sets = {n * job->groups + at, count, at * channels, channels, per};
        write_sets(w, &sets);
    }
}

/* Channels of batch norm. */
static __attribute__((noinline)) void batch_columns(const channel_walk *w, size_t begin, size_t end)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t per = job->nhwc ? 1 : job->s, most = channels_in(CHANNEL_COLUMNS, per),
                 all_rows = job->nhwc ? job->n * job->s : job->n;
    _Alignas(64) float store[CHANNEL_FACTORS];
    const channel_column_factors wide = factors_in(store, CHANNEL_WIDE);
    size_t first = begin; /* channels from here on wait to be normalized */
    for (size_t c = begin, channels; c < end; c += channels) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        channels = end - c < most ? end - c : most;
        if ((c + channels - first) * per > CHANNEL_WIDE) {
            apply_wide(w, &wide, first * per, (c - first) * per, 0, all_rows);
            first = c;
        }
        const channel_sets sets = {c, channels, c, 1, per};
        channel_column_factors f = factors_from(&wide, (c - first) * per);
        sum_set_block(w, &sets, &totals);
        finish_sets(w, &sets, &totals, &f, NULL);
        if (f.plain)
            continue;
        apply_wide(w, &wide, first * per, (c - first) * per, 0, all_rows);
        apply_fallback_sets(w, &sets, &totals, &f, 0, all_rows);
        first = c + channels;
    }
    apply_wide(w, &wide, first * per, (end - first) * per, 0, all_rows);
}

/* Groups begin to end of sample n, where a position's channels lie together, and more than a block holds in each group. */
static __attribute__((noinline)) void wide_groups(const channel_walk *w, size_t n, size_t begin, size_t end,
                                                  nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, row = n * job->s;
    _Alignas(64) float store[CHANNEL_FACTORS];
    for (size_t group = begin; group < end; group++) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        const channel_sets set = {n * job->groups + group, 1, group * channels, channels, 1};
        sum_set_block(w, &set, &totals);
        const nrg_set_sums value = sums_of(&totals, 0);
        const nrg_channel_statistics stat = finish_set(w, set.set, &value, running ? &running[group - begin] : NULL);
        for (size_t c = 0, width; c < channels; c += width) {
            width = channels - c < CHANNEL_WIDE ? channels - c : CHANNEL_WIDE;
            channel_column_factors f = factors_in(store, CHANNEL_WIDE);
            const channel_block block = block_of(w, &stat, group * channels + c, width, 1);
            fill_factors(&f, &block, w->D);
            apply_rows(w, &block, &f, block.c, row, row + job->s);
        }
    }
}

/* The same with a block for several groups. */
static __attribute__((noinline)) void group_columns(const channel_walk *w, size_t n, size_t begin, size_t end,
                                                    nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, row = n * job->s;
    const size_t most = CHANNEL_COLUMNS / channels;
    const int small = !running && small_sets_serve(w);
    _Alignas(64) float store[CHANNEL_FACTORS];
    const channel_column_factors wide = factors_in(store, CHANNEL_WIDE);
    size_t first = begin; /* groups from here on wait to be normalized */
    for (size_t group = begin, groups; group < end; group += groups) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        groups = end - group < most ? end - group : most;
        if ((group + groups - first) * channels > CHANNEL_WIDE) {
            apply_wide(w, &wide, first * channels, (group - first) * channels, row, row + job->s);
            first = group;
        }
        const channel_sets sets = {n * job->groups + group, groups, group * channels, channels, 1};
        channel_column_factors f = factors_from(&wide, (group - first) * channels);
        if (small && finish_small(w, &sets, &totals, &f))
            continue;
        sum_set_block(w, &sets, &totals);
        finish_sets(w, &sets, &totals, &f, running ? running + (group - begin) : NULL);
        if (f.plain)
            continue;
        apply_wide(w, &wide, first * channels, (group - first) * channels, row, row + job->s);
        apply_fallback_sets(w, &sets, &totals, &f, row, row + job->s);
        first = group + groups;
    }
    apply_wide(w, &wide, first * channels, (end - first) * channels, row, row + job->s);
}

#endif
