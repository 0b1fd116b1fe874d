/* The walk over planes: the positions of a channel lie together (NCHW), and so do the channels of a group.
 *
 * One loop normalizes a chunk of a set and sums a chunk of the next, so that the memory is never idle: what the second reads is
 * on its way while the first computes and writes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_PLANES_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_PLANES_H

#include "channel_small.h"

enum { PLANE_CHANNELS = 64 }; /* whose factors are made at once */

/* ---- elements ---- */

/* Whether planes of s elements go by the stage. Those of an output past the cache that are short do, too: it is written in whole
 * lines. SiLU's loop does whole steps, and has them where planes are not short. */
static inline int planes_are_staged(const channel_walk *w, size_t s, int plain)
{
    return w->finish == CHANNEL_TO_STAGE || (w->stream && s < CHANNEL_STAGE / 4) ||
           (w->finish == CHANNEL_STORE_SILU && (!plain || s < CHANNEL_STAGE / 8));
}

/* How far the channels of a block have been normalized, in samples n to n_end. */
typedef struct plane_apply {
    channel_block block;
    size_t n, n_end, i;   /* i: of the elements of a sample's channels */
    size_t first, filled; /* channels of the block whose factors are there */
    channel_column_factors f;
    _Alignas(64) float store[4 * PLANE_CHANNELS];
    float stage[CHANNEL_STAGE];
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

/* Factors from a channel of the block on. */
static __attribute__((noinline)) void fill_planes(const channel_walk *w, plane_apply *a, size_t channel)
{
    channel_block block = a->block;
    const size_t into = channel % block.group, left = block.channels - channel;
    block.c += channel;
    block.channels = left < PLANE_CHANNELS ? left : PLANE_CHANNELS;
    if (into && block.channels > block.group - into)
        block.channels = block.group - into; /* a block begins with a group, or is in one */
    if (block.stat)
        block.stat = block_stat(&block, channel / block.group);
    fill_factors(&a->f, &block, w->D);
    a->first = channel;
    a->filled = block.channels;
}

/* Planes of which some are done in double, from a channel of the block on. */
static __attribute__((noinline)) void apply_run_mixed(const channel_run *run, const channel_block *block, size_t channel,
                                                      nrg_dtype D)
{
    const size_t bytes = bytes_of(run->n, D, 0), o_bytes = run->finish == CHANNEL_TO_STAGE ? run->n * sizeof(float) : bytes;
    for (size_t plane = 0; plane < run->planes; plane++) {
        const channel_factors f = block_factors(block, channel + plane, D);
        channel_run one = *run;
        one.x += plane * bytes;
        one.y = one.y ? one.y + plane * bytes : NULL;
        one.o += plane * o_bytes;
        one.planes = 1;
        one.f = factors_from(&run->f, plane);
        if (f.plain)
            apply_run(&one, D);
        else
            apply_run_fallback(&one, &f, D);
    }
}

/* Whether the next planes of a block, of which `left` have their factors, can be streamed in turn. */
static inline int planes_in_turn(const channel_walk *w, const channel_run *run, size_t left)
{
    const nrg_channel_norm_job *job = w->job;
    return !V_SMALL && (job->folded || job->fixed_mean || job->given) && run->stream && run->finish != CHANNEL_STORE_SILU &&
           left >= CHANNEL_TURNS && job->s % (V_APPLY * VN) == 0 && ((uintptr_t)run->o & 63) == 0;
}

/* The next chunk: some whole planes, or a part of one. Returns 0 when there are no more. */
static int apply_some(const channel_walk *w, plane_apply *a)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t s = job->s, channel = a->i / s, at = (a->block.c * s + a->i) * w->size;
    if (a->n == a->n_end)
        return 0;
    if (channel < a->first || channel >= a->first + a->filled)
        fill_planes(w, a, channel);
    const int staged = planes_are_staged(w, s, a->f.plain);
    char *o = job->o + a->n * job->o_stride + at;
    channel_run run = {.x = job->x + a->n * job->x_stride + at,
                       .y = job->y ? job->y + a->n * job->y_stride + at : NULL,
                       .o = staged ? (char *)a->stage : o,
                       .planes = 1,
                       .folded = job->folded,
                       .fast = job->fast,
                       .stream = w->stream && !staged,
                       .finish = staged ? CHANNEL_TO_STAGE : w->finish,
                       .f = factors_from(&a->f, channel - a->first),
                       .ahead = a->ahead};
    const size_t most = staged ? CHANNEL_STAGE : plane_chunk(w), left = a->first + a->filled - channel;
    if (s > most && a->i % s == 0 && a->f.plain && planes_in_turn(w, &run, left)) {
        run.n = s;
        run.planes = CHANNEL_TURNS;
        run.in_turn = 1;
    } else if (s <= most) {
        const size_t room = most / s;
        run.n = s;
        run.planes = room < left ? room : left;
    } else {
        const size_t rest = (channel + 1) * s - a->i;
        run.n = rest < most ? rest : most;
    }
    const size_t count = run.n * run.planes;
    if (a->f.plain)
        apply_run(&run, w->D);
    else
        apply_run_mixed(&run, &a->block, channel, w->D);
    if (staged) {
        if (job->activation != NRG_ACT_IDENTITY)
            NRG_PATH_NAME(activate)(job->activation, a->stage, a->stage, count);
        store_stage(a->stage, o, count, w->stream, w->D);
    }
    a->i += count;
    if (a->i == a->block.channels * s) {
        a->i = 0;
        a->n++;
    }
    return 1;
}

static __attribute__((noinline)) void apply_planes(const channel_walk *w, const channel_block *block, size_t n, size_t n_end)
{
    plane_apply a;
    start_apply(&a, block, n, n_end);
    while (apply_some(w, &a))
        ;
}

/* ---- sets ---- */

/* Planes of sample n from channel c on whose factors are all there, and plain. */
static __attribute__((noinline)) void apply_filled(const channel_walk *w, const channel_column_factors *f, size_t n, size_t c,
                                                   size_t planes)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t s = job->s;
    _Alignas(64) float stage[CHANNEL_STAGE];
    const int staged = planes_are_staged(w, s, 1);
    const size_t most = staged ? CHANNEL_STAGE / s : planes;
    for (size_t done = 0, some; done < planes; done += some) {
        const size_t at = (c + done) * s * w->size;
        some = planes - done < most ? planes - done : most;
        char *o = job->o + n * job->o_stride + at;
        const channel_run run = {.x = job->x + n * job->x_stride + at,
                                 .y = job->y ? job->y + n * job->y_stride + at : NULL,
                                 .o = staged ? (char *)stage : o,
                                 .n = s,
                                 .planes = some,
                                 .folded = job->folded,
                                 .fast = job->fast,
                                 .stream = w->stream && !staged,
                                 .finish = staged ? CHANNEL_TO_STAGE : w->finish,
                                 .f = factors_from(f, done)};
        apply_run(&run, w->D);
        if (!staged)
            continue;
        if (job->activation != NRG_ACT_IDENTITY)
            NRG_PATH_NAME(activate)(job->activation, stage, stage, some * s);
        store_stage(stage, o, some * s, w->stream, w->D);
    }
}

static __attribute__((noinline)) void small_plane_sets(const channel_walk *w, size_t n, size_t begin, size_t end,
                                                       nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels;
    const size_t most = CHANNEL_WIDE / channels < CHANNEL_COLUMNS ? CHANNEL_WIDE / channels : CHANNEL_COLUMNS;
    const int small = !running && small_sets_serve(w);
    _Alignas(64) float store[CHANNEL_FACTORS];
    for (size_t group = begin, groups; group < end; group += groups) {
        totals_room room;
        channel_totals totals = block_totals(&room);
        channel_column_factors f = factors_in(store, CHANNEL_WIDE);
        groups = end - group < most ? end - group : most;
        const channel_sets sets = {n * job->groups + group, groups, group * channels, channels, 1};
        const int done = small && finish_small(w, &sets, &totals, &f);
        if (!done) {
            sum_set_block(w, &sets, &totals);
            finish_sets(w, &sets, &totals, &f, running ? running + (group - begin) : NULL);
        }
        if (f.plain) {
            apply_filled(w, &f, n, group * channels, groups * channels);
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
static __attribute__((noinline)) void plane_sets(const channel_walk *w, size_t n, size_t begin, size_t end,
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
