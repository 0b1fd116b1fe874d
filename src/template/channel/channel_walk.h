/* What the walks over planes and over columns share: the job, statistics from sums, the way from a stage to the output.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_WALK_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_WALK_H

#include "channel_factors.h"

/* What is the same for a whole share. */
typedef struct channel_walk {
    const nrg_channel_norm_job *job;
    nrg_dtype D;
    size_t size; /* of an element */
    nrg_segments cut;
    channel_finish finish;
    int plain_weights;
    int stream; /* o past the cache, where its lines are not there because the call is in place */
} channel_walk;

/* ---- from sums to statistics ---- */

/* A set whose sums two doubles do not hold, or that has a segment which needs care: seldom, and left to the reference. */
static __attribute__((noinline)) void sum_in_integers(const nrg_channel_norm_job *job, size_t set, int64_t *record, nrg_dtype D)
{
    nrg_channel_norm_job one = *job;
    one.sums = (int64_t *)((uintptr_t)record - set * NRG_SUMS_WORDS * sizeof *record);
    one.begin = set;
    one.end = set + 1;
    if (D == NRG_F32)
        nrg_scalar_channel_norm_forward_f32(&one);
    else if (D == NRG_F16)
        nrg_scalar_channel_norm_forward_f16(&one);
    else
        nrg_scalar_channel_norm_forward_bf16(&one);
}

static __attribute__((noinline)) nrg_channel_statistics lost_statistics(const channel_walk *w, size_t set)
{
    int64_t record[NRG_SUMS_WORDS];
    sum_in_integers(w->job, set, record, w->D);
    const nrg_set_sums sums = nrg_sums_value(record);
    return nrg_statistics_of(&sums, w->job->centred, w->job->eps);
}

static inline void write_statistics(const nrg_channel_norm_job *job, size_t set, const nrg_channel_statistics *stat)
{
    if (job->mean)
        job->mean[set] = (float)(stat->mean + stat->mean_low);
    if (job->rstd)
        job->rstd[set] = (float)stat->rstd;
    if (job->statistics)
        job->statistics[set] = *stat;
}

static inline nrg_channel_statistics total_statistics(const channel_walk *w, size_t set, const channel_total *total)
{
    nrg_channel_statistics stat;
    if (total->lost)
        stat = lost_statistics(w, set);
    else {
        const nrg_set_sums sums = total_sums(total);
        stat = nrg_statistics_of(&sums, w->job->centred, w->job->eps);
    }
    write_statistics(w->job, set, &stat);
    return stat;
}

/* The sums are all that is wanted. */
static __attribute__((noinline)) void write_sums(const channel_walk *w, size_t set, const channel_total *total)
{
    int64_t *record = w->job->sums + set * NRG_SUMS_WORDS;
    if (total->lost) {
        sum_in_integers(w->job, set, record, w->D);
        return;
    }
    const nrg_set_sums sums = total_sums(total);
    nrg_sums_put(record, &sums);
}

/* Channels of `per` columns each that `room` columns hold: as many as keep the pieces of a row where vectors, or at least
 * streamed stores, begin if the row does. */
static inline size_t channels_in(size_t room, size_t per)
{
    const size_t most = room / per;
    return most >= 16 ? most / 16 * 16 : most >= 4 ? most / 4 * 4 : most;
}

/* ---- staged elements ---- */

NRG_INLINE void store_stage_of(const float *stage, char *o, size_t n, int stream, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    vf v[V_APPLY];
    size_t i = 0;
    if (stream)
        for (const size_t first = before_line(o, n, D); i < first;) {
            const size_t lanes = lanes_at(i, first);
            load_step(v, 1, (const char *)stage, i, lanes, NRG_F32);
            store_step(v, 1, o, i, lanes, D, 0);
            i += lanes;
        }
    for (; i + step <= n; i += step) {
        load_step(v, V_APPLY, (const char *)stage, i, step, NRG_F32);
        store_step(v, V_APPLY, o, i, step, D, stream);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        load_step(v, 1, (const char *)stage, i, lanes, NRG_F32);
        store_step(v, 1, o, i, lanes, D, 0);
    }
}

/* n floats to elements of a tensor. */
static __attribute__((noinline)) void store_stage(const float *stage, char *o, size_t n, int stream, nrg_dtype D)
{
    if (D == NRG_F32)
        store_stage_of(stage, o, n, stream, NRG_F32);
    else if (D == NRG_F16)
        store_stage_of(stage, o, n, stream, NRG_F16);
    else
        store_stage_of(stage, o, n, stream, NRG_BF16);
}

static inline channel_block block_of(const channel_walk *w, const nrg_channel_statistics *stat, size_t c, size_t channels,
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
                           .plain_weights = w->plain_weights};
}

/* ---- sets side by side ---- */

/* A block's sums so far: of its channels, or its groups. */
typedef struct channel_sums {
    double t[CHANNEL_COLUMNS], t_low[CHANNEL_COLUMNS], q[CHANNEL_COLUMNS], q_low[CHANNEL_COLUMNS];
    unsigned char lost[CHANNEL_COLUMNS];
    double count; /* of each */
} channel_sums;

static void clear_sums(channel_sums *sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums->t[i] = sums->t_low[i] = sums->q[i] = sums->q_low[i] = sums->lost[i] = 0;
    sums->count = 0;
}

static inline channel_total total_of(const channel_sums *sums, size_t i)
{
    return (channel_total){sums->count, sums->t[i], sums->t_low[i], sums->q[i], sums->q_low[i], sums->lost[i]};
}

/* A segment of `count` elements of each of n sets, whose columns lie side by side. */
static void add_segments(channel_sums *sums, size_t n, size_t columns, double count, const double *t, const double *q,
                         int centred)
{
    for (size_t i = 0; i < n; i++) {
        channel_total total = total_of(sums, i);
        if (columns == 1)
            add_segment(&total, count, t[i], q[i], centred);
        else
            add_segment(&total, count, fold_columns(t + i * columns, columns), fold_columns(q + i * columns, columns), centred);
        sums->t[i] = total.t;
        sums->t_low[i] = total.t_low;
        sums->q[i] = total.q;
        sums->q_low[i] = total.q_low;
        sums->lost[i] = (unsigned char)total.lost;
    }
    sums->count += count;
}

/* Small sets, n elements each, one after the other. */
static __attribute__((noinline)) void sum_small_sets(const channel_walk *w, const char *x, size_t n, size_t sets,
                                                     channel_sums *sums)
{
    double t[CHANNEL_COLUMNS], q[CHANNEL_COLUMNS];
    for (size_t i = 0; i < sets; i += NORM_BATCH) {
        const size_t count = sets - i < NORM_BATCH ? sets - i : NORM_BATCH;
        sum_small(x + i * n * w->size, n, count, t + i, q + i, w->job->centred, w->D);
    }
    clear_sums(sums, sets);
    add_segments(sums, sets, 1, (double)n, t, q, w->job->centred);
}

/* Sets side by side in a block of columns: channels of batch norm from channel c on (per: columns of each), or groups of sample n
 * (per: 1).
 */
typedef struct channel_sets {
    size_t set, count, c, channels_each, per;
} channel_sets;

static inline channel_block sets_block(const channel_walk *w, const channel_sets *sets, size_t i, size_t count,
                                       const nrg_channel_statistics *stat)
{
    channel_block block = block_of(w, stat, sets->c + i * sets->channels_each, count * sets->channels_each, sets->per);
    block.group = sets->channels_each;
    return block;
}

/* What is asked for of a set, from its sums. running: of the set, or NULL. */
static inline nrg_channel_statistics finish_set(const channel_walk *w, size_t set, const channel_total *total,
                                                nrg_running_sums *running)
{
    const nrg_channel_norm_job *job = w->job;
    const nrg_channel_statistics stat = total_statistics(w, set, total);
    if (running)
        nrg_running_add(running, &stat);
    else if (job->running_mean) { /* of batch norm, whose sets are channels */
        nrg_running_sums one = {0, 0};
        nrg_running_add(&one, &stat);
        nrg_running_update(job->running_mean + set, job->running_var + set, &one, 1, job->momentum);
    }
    return stat;
}

/* The same of a block of sets, and their factors. running: of the sets, or NULL. */
static __attribute__((noinline)) void finish_sets(const channel_walk *w, const channel_sets *sets, const channel_sums *sums,
                                                  channel_column_factors *f, nrg_running_sums *running)
{
    const size_t columns = sets->channels_each * sets->per;
    f->plain = 1;
    for (size_t i = 0; i < sets->count; i++) {
        const channel_total total = total_of(sums, i);
        const nrg_channel_statistics stat = finish_set(w, sets->set + i, &total, running ? &running[i] : NULL);
        const channel_block block = sets_block(w, sets, i, 1, &stat);
        channel_column_factors from = factors_from(f, i * columns);
        fill_factors(&from, &block, w->D);
        f->plain &= from.plain;
    }
}

/* Where there is nothing to normalize: the sums of a block of sets from number `set` on, or their statistics. */
static __attribute__((noinline)) void write_sets(const channel_walk *w, size_t set, size_t count, const channel_sums *sums)
{
    for (size_t i = 0; i < count; i++) {
        const channel_total total = total_of(sums, i);
        if (w->job->sums)
            write_sums(w, set + i, &total);
        else
            total_statistics(w, set + i, &total);
    }
}

#endif
