/* Schedule of planes: the positions of a channel are adjacent (NCHW), and so are the channels of a group.
 *
 * One loop normalizes a chunk of a set and sums a chunk of the next set. The memory is then never idle: it fetches the second
 * chunk while the first is computed and written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_PLANES_H
#define NRG_TEMPLATE_CHANNEL_PLANES_H

#include "small.h"

enum { PLANE_CHANNELS = 64 }; /* whose factors are computed together */

/* Whether planes of s elements go through the staging buffer. Short ones of an output outside the cache do, so that it is written
 * in full lines. The loop of SiLU does full steps, and short planes have too few. */
static inline int planes_are_staged(const channel_pass *w, size_t s, int plain)
{
    return w->finish == CHANNEL_TO_STAGE || (w->stream && s < CHANNEL_STAGE / 4) ||
           (w->finish == CHANNEL_STORE_SILU && (!plain || s < CHANNEL_STAGE / 8));
}

/* `rows` rows of `width` elements from element `at` of sample n on; rows == 1: a part of a plane. f: of the first. */
static inline channel_run plane_run(const channel_pass *w, size_t n, size_t at, size_t rows, size_t width,
                                    const channel_column_factors *f)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t bytes = width * w->size, first = at * w->size;
    return (channel_run){.x = job->x + n * job->x_stride + first,
                         .y = job->y ? job->y + n * job->y_stride + first : NULL,
                         .o = job->o + n * job->o_stride + first,
                         .x_stride = bytes,
                         .y_stride = bytes,
                         .o_stride = bytes,
                         .rows = rows,
                         .width = width,
                         .f = *f,
                         .planes = 1,
                         .folded = job->folded,
                         .fast = job->fast,
                         .stream = w->stream,
                         .finish = planes_are_staged(w, job->s, f->plain) ? CHANNEL_TO_STAGE : w->finish,
                         .turns = 1};
}

/* The channels of a block that have been normalized in samples n to n_end. */
typedef struct plane_apply {
    channel_block block;
    size_t n, n_end, i;   /* i: of the elements of a sample's channels */
    size_t first, filled; /* channels of the block whose factors are there */
    channel_column_factors f;
    _Alignas(64) float store[4 * PLANE_CHANNELS];
    const char *ahead; /* what is summed next, or NULL */
} plane_apply;

static inline void start_apply(plane_apply *a, const channel_block *block, size_t n, size_t n_end)
{
    a->block = *block;
    a->n = n;
    a->n_end = n_end;
    a->i = a->first = a->filled = 0;
    a->f = factors_in(a->store, PLANE_CHANNELS);
    a->ahead = NULL;
}

/* Whether the next planes, of which `left` have their factors, are streamed side by side: nothing is summed at the same time. f32
 * only: with 16-bit elements the loop took 8.5 KB and gained at most 2 % (32x64x112x112, AVX2, Zen 4). */
static inline int planes_go_side_by_side(const channel_pass *w, const plane_apply *a, size_t at, size_t left)
{
    const nrg_channel_norm_job *job = w->job;
    return !V_SMALL && w->D == NRG_F32 && (job->folded || job->fixed_mean || job->given) && w->stream && a->f.plain &&
           a->i % job->s == 0 && w->finish != CHANNEL_STORE_SILU && left >= CHANNEL_TURNS && job->s % (V_APPLY * VN) == 0 &&
           ((uintptr_t)(job->o + a->n * job->o_stride + at * w->size) & 63) == 0;
}

/* The next chunk: some full planes, or a part of one. Returns 0 when there are no more. */
static int apply_some(const channel_pass *w, plane_apply *a)
{
    const size_t s = w->job->s, channel = a->i / s, at = a->block.c * s + a->i;
    if (a->n == a->n_end)
        return 0;
    if (channel < a->first || channel >= a->first + a->filled) {
        const channel_block some = some_channels(&a->block, channel, lesser(a->block.channels - channel, PLANE_CHANNELS));
        fill_factors(&a->f, &some, w->D);
        a->first = channel;
        a->filled = some.channels;
    }
    const channel_column_factors f = factors_from(&a->f, channel - a->first);
    const int staged = planes_are_staged(w, s, f.plain);
    const size_t most = staged && s > CHANNEL_STAGE ? CHANNEL_STAGE : plane_chunk(w), left = a->first + a->filled - channel;
    size_t rows = 1, width = s, turns = 1;
    if (s <= most)
        rows = lesser(most / s, left);
    else if (!staged && planes_go_side_by_side(w, a, at, left))
        rows = turns = CHANNEL_TURNS;
    else
        width = lesser((channel + 1) * s - a->i, most);
    channel_run run = plane_run(w, a->n, at, rows, width, &f);
    run.turns = turns;
    run.ahead = a->ahead;
    if (f.plain)
        apply_rows(w, &run, NULL);
    else {
        const channel_block block = some_channels(&a->block, channel, rows);
        apply_rows(w, &run, &block);
    }
    a->i += rows * width;
    if (a->i == a->block.channels * s) {
        a->i = 0;
        a->n++;
    }
    return 1;
}

static __attribute__((noinline)) void apply_planes(const channel_pass *w, const channel_block *block, size_t n, size_t n_end)
{
    plane_apply a;
    start_apply(&a, block, n, n_end);
    while (apply_some(w, &a))
        ;
}

/* ---- sets ---- */

static __attribute__((noinline)) void small_plane_sets(const channel_pass *w, size_t n, size_t begin, size_t end,
                                                       nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, most = lesser(CHANNEL_WIDE / channels, CHANNEL_COLUMNS);
    const int small = !running && small_sets_serve(w);
    _Alignas(64) float store[CHANNEL_FACTORS];
    for (size_t group = begin, groups; group < end; group += groups) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        channel_column_factors f = factors_in(store, CHANNEL_WIDE);
        groups = lesser(end - group, most);
        const channel_sets sets = {n * job->groups + group, groups, group * channels, channels, 1};
        if (!small || !finish_small(w, &sets, &totals, &f)) {
            sum_set_block(w, &sets, &totals);
            finish_sets(w, &sets, &totals, &f, running ? running + (group - begin) : NULL);
        }
        if (f.plain) {
            channel_run run = plane_run(w, n, sets.c * job->s, groups * channels, job->s, &f);
            apply_rows(w, &run, NULL);
            continue;
        }
        for (size_t i = 0; i < groups; i++) {
            const nrg_channel_statistics stat = statistics_of(w, &totals, i);
            const channel_block block = sets_block(w, &sets, i, 1, &stat);
            apply_planes(w, &block, n, n + 1);
        }
    }
}

/* Sets begin to end: groups of sample n, or channels. running: of these, or NULL. */
static __attribute__((noinline)) void plane_sets(const channel_pass *w, size_t n, size_t begin, size_t end,
                                                 nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->groups ? job->group_channels : 1;
    plane_sum sum;
    plane_apply apply;
    start_set(w, &sum, n, begin);
    while (sum_some(w, &sum))
        ;
    for (size_t unit = begin; unit < end; unit++) {
        const channel_total total = sum.total;
        if (unit + 1 < end)
            start_set(w, &sum, n, unit + 1);
        if (job->sums)
            write_sums(w, n, unit, &total);
        else {
            const nrg_channel_statistics stat = finish_plane(w, n, unit, &total, running ? &running[unit - begin] : NULL);
            if (job->o) {
                const channel_block block = block_of(w, &stat, unit * channels, channels, 1);
                start_apply(&apply, &block, job->groups ? n : 0, job->groups ? n + 1 : job->n);
                for (int more = 1; more; sum_some(w, &sum)) {
                    apply.ahead = sum.runs ? sum.x + sum.i * w->size : NULL;
                    more = apply_some(w, &apply);
                }
            }
        }
        while (sum_some(w, &sum))
            ;
    }
}

#endif
