/* What a forward pass has for both sources: its job, statistics from sums, and rows of elements with their factors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_PASS_H
#define NRG_TEMPLATE_CHANNEL_PASS_H

#include "../../job/activation.h"
#include "around.h"
#include "source.h"

/* What is the same for a whole share. */
typedef struct channel_pass {
    const nrg_channel_norm_job *job;
    nrg_dtype D;
    size_t size; /* of an element */
    nrg_segments cut;
    channel_finish finish;
    int plain_weights;
    int stream; /* o past the cache, where its lines are not there because the call is in place */
} channel_pass;

/* ---- from sums to statistics ---- */

static inline void write_statistics(const nrg_channel_norm_job *job, size_t set, const nrg_channel_statistics *stat)
{
    if (job->mean)
        job->mean[set] = (float)(stat->mean + stat->mean_low);
    if (job->rstd)
        job->rstd[set] = (float)stat->rstd;
    if (job->statistics)
        job->statistics[set] = *stat;
}

/* Adds a segment that is a run, or several: its sums are t and q, and again around its mean if that is large beside σ. */
static __attribute__((noinline)) void add_run(const channel_pass *w, channel_total *total, int64_t *record,
                                              const channel_runs *runs, double t, double q)
{
    const double count = (double)runs->count;
    if (!w->job->centred || !segment_needs_centring(count, t, q)) {
        add_segment(total, record, count, t, q);
        return;
    }
    const double a = (double)(float)(t / count);
    const channel_around around = around_runs(runs, a, w->D);
    add_segment_around(total, record, count, a, around.u, around.v);
}

/* Inline: of a call's result, a copy waits for what has just been stored word by word, 10 ns a channel. */
static inline nrg_channel_statistics set_statistics(const channel_pass *w, const nrg_set_sums *sums)
{
    return nrg_statistics_of(sums, w->job->centred, w->job->eps);
}

/* What is asked for of a set, from its sums. running: of the set, or NULL. */
static __attribute__((noinline)) nrg_channel_statistics finish_set(const channel_pass *w, size_t set, const nrg_set_sums *sums,
                                                                   nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const nrg_channel_statistics stat = set_statistics(w, sums);
    write_statistics(job, set, &stat);
    if (running)
        nrg_running_add(running, &stat);
    else if (job->running_mean) { /* of batch norm, whose sets are channels */
        nrg_running_sums one = {0, 0};
        nrg_running_add(&one, &stat);
        nrg_running_update(job->running_mean + set, job->running_var + set, &one, 1, job->momentum);
    }
    return stat;
}

/* Channels of `per` columns each that `room` columns hold: as many as keep the pieces of a row where vectors, or at least
 * streamed stores, begin if the row does. */
static inline size_t channels_in(size_t room, size_t per)
{
    const size_t most = room / per;
    return most >= 16 ? most / 16 * 16 : most >= 4 ? most / 4 * 4 : most;
}

static inline channel_block block_of(const channel_pass *w, const nrg_channel_statistics *stat, size_t c, size_t channels,
                                     size_t per)
{
    const nrg_channel_norm_job *job = w->job;
    return (channel_block){.stat = stat,
                           .stat_stride = sizeof *stat,
                           .group = job->groups ? job->group_channels : 1,
                           .c = c,
                           .channels = channels,
                           .per = per,
                           .w = job->w,
                           .b = job->b,
                           .w_f32 = job->w_f32,
                           .fast = job->fast,
                           .plain_weights = w->plain_weights};
}

/* ---- rows of elements ---- */

/* block: of rows whose factors are not all plain; otherwise NULL. run is overwritten: a copy of what has just been stored word by
 * word would wait for it, and for the streamed stores before it. */
static __attribute__((noinline)) void apply_staged(const channel_pass *w, channel_run *run, const channel_block *block)
{
    _Alignas(64) float stage[CHANNEL_STAGE];
    const size_t all = run->rows, at_once = CHANNEL_STAGE / run->width, bytes = run->width * w->size, o_stride = run->o_stride;
    const int stream = run->stream;
    char *o = run->o;
    run->o = (char *)stage;
    run->o_stride = run->width * sizeof(float);
    run->stream = 0;
    run->turns = 1;
    for (size_t row = 0, rows; row < all; row += rows) {
        rows = run->rows = lesser(all - row, at_once);
        if (block) {
            const channel_block own = run->planes ? some_channels(block, row, rows) : *block;
            apply_run_fallback(run, &own, w->D);
        } else
            apply_run(run, w->D);
        if (w->job->activation != NRG_ACT_IDENTITY)
            NRG_PATH_NAME(activate)(w->job->activation, stage, stage, rows * run->width);
        if (o_stride == bytes)
            store_stage(stage, o, rows * run->width, stream, w->D);
        else
            for (size_t i = 0; i < rows; i++)
                store_stage(stage + i * run->width, o + i * o_stride, run->width, stream, w->D);
        if (row + rows == all)
            return;
        o += rows * o_stride;
        run->x += rows * run->x_stride;
        run->y = run->y ? run->y + rows * run->y_stride : NULL;
        if (run->planes)
            run->f = factors_from(&run->f, rows);
    }
}

/* Rows of either source with their factors. block: as above. */
static __attribute__((noinline)) void apply_rows(const channel_pass *w, channel_run *run, const channel_block *block)
{
    if (run->finish == CHANNEL_TO_STAGE)
        apply_staged(w, run, block);
    else if (block)
        apply_run_fallback(run, block, w->D);
    else
        apply_run(run, w->D);
}

#endif
