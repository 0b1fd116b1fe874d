/* Channel normalization, backward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/channel_norm_backward.c.
 *
 * A set is read twice: for its sums (sum.h), and after its factors follow from these (backward_source.h), for its
 * elements (backward_apply.h). Both times the source is do1 (backward_source.h). backward_sets.h has the schedule, for planes and
 * columns; small sets have another one (backward_small.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_BACKWARD_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_BACKWARD_H

#include "backward_small.h"

static int apart_from(const char *out, const nrg_channel_norm_backward_job *job)
{
    return out != job->x && out != job->y && out != job->d_o;
}

/* Where do1 may be kept: dy is do1, and dx is written after it has been read. Not over an input: the sums may have to be taken
 * again. */
static void find_kept(backward_pass *w)
{
    const nrg_channel_norm_backward_job *job = w->job;
    if (w->D != NRG_F32 || !job->activation || job->given_sums || job->sums)
        return;
    if (job->dy && apart_from(job->dy, job)) {
        w->kept = job->dy;
        w->kept_stride = job->dy_stride;
    } else if (job->dx && apart_from(job->dx, job)) {
        w->kept = job->dx;
        w->kept_stride = job->dx_stride;
    }
}

static void channel_norm_backward(const nrg_channel_norm_backward_job *job, nrg_dtype D)
{
    backward_pass w = {
        .job = job,
        .D = D,
        .size = bytes_of(1, D, 0),
        .plain_weights = weights_are_plain(job->w, job->w_f32, job->c, D),
        .cut = nrg_segments_of(job->n, job->s, job->groups, job->group_channels, job->nhwc, job->segment),
        .planes = !job->nhwc && (job->by_channel ? job->s >= CHANNEL_LANES_S : job->s > 1),
        .staged = D != NRG_F32 || job->activation,
        .has_loop = !V_SMALL && D == NRG_F32 && job->fast && (job->activation == NRG_ACT_RELU || job->activation == NRG_ACT_SILU),
    };
    find_kept(&w);
    /* streaming does nothing for lines that are in cache because the call is in place, or because do1 has been kept there */
    w.stream_dx = job->stream && apart_from(job->dx, job) && (!w.kept || w.kept != job->dx);
    w.stream_dy = job->stream && apart_from(job->dy, job) && (!w.kept || w.kept != job->dy);
    if (job->by_channel)
        backward_batch_sets(&w);
    const int small = backward_small_serves(&w);
    const size_t fit = job->group_channels < 2 ? BACKWARD_GROUPS : BACKWARD_COLUMNS / job->group_channels,
                 most = small      ? job->groups
                        : fit == 0 ? 1
                        : w.planes ? lesser(fit, sets_in_cache(job->group_channels * job->s))
                                   : fit;
    /* blocks of samples, and of each a range of its groups */
    for (size_t at = job->begin, groups; at < job->end && !job->by_channel; at += groups) {
        const size_t block = at / job->groups, group = at % job->groups, first = block * job->block_samples;
        const size_t end = lesser(job->n, first + job->block_samples);
        groups = lesser(lesser(job->groups - group, most), job->end - at);
        for (size_t n = first; n < end; n++) {
            const backward_groups of = {n, group, group + groups, block, n == first};
            if (small)
                small_groups(&w, &of);
            else
                backward_group_sets(&w, &of);
        }
    }
    v_nt_fence();
}

NRG_PATH_KERNELS(channel_norm_backward, channel_norm_backward, channel_norm_backward)

#endif
