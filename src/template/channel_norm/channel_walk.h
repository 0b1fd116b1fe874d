/* What the walks over planes and over columns share: the job, statistics from sums, the way from a stage to the output.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_WALK_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_WALK_H

#include "../../job/activation.h"
#include "../../job/channel_norm.h"
#include "channel_around.h"
#include "channel_elements.h"
#include "channel_sum_fast.h"
#include "channel_total.h"

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

static inline void write_statistics(const nrg_channel_norm_job *job, size_t set, const nrg_channel_statistics *stat)
{
    if (job->mean)
        job->mean[set] = (float)(stat->mean + stat->mean_low);
    if (job->rstd)
        job->rstd[set] = (float)stat->rstd;
    if (job->statistics)
        job->statistics[set] = *stat;
}

static inline nrg_channel_statistics set_statistics(const channel_walk *w, const nrg_set_sums *sums)
{
    return nrg_statistics_of(sums, w->job->centred, w->job->eps);
}

/* What is asked for of a set, from its sums. running: of the set, or NULL. */
static __attribute__((noinline)) nrg_channel_statistics finish_set(const channel_walk *w, size_t set, const nrg_set_sums *sums,
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
                           .fast = job->fast,
                           .plain_weights = w->plain_weights};
}

#endif
