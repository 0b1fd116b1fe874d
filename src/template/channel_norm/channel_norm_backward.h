/* Channel normalization, backward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/channel_norm_backward.c.
 *
 * Two walks over a set: its sums (channel_backward_sum.h), and once the set's factors follow from them, its elements
 * (channel_backward_apply.h). Both read do1, which is d_o as it is in memory, or a chunk at a time staged in f32: converted, and
 * where there is an activation multiplied with its slope at o1 + y, which is computed as in the forward pass
 * (channel_elements.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_BACKWARD_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_BACKWARD_H

#include "channel_backward_small.h"

static int apart_from(const char *out, const nrg_channel_norm_backward_job *job)
{
    return out != job->x && out != job->y && out != job->d_o;
}

/* Where do1 may be kept: dy is do1, and dx is written after it has been read. Not over an input: the sums may have to be taken
 * again. */
static void find_kept(backward_walk *w)
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
    backward_walk w = {
        .job = job,
        .D = D,
        .size = bytes_of(1, D, 0),
        .plain_weights = weights_are_plain(job->w, job->w_f32, job->c, D),
        .cut = nrg_segments_of(job->n, job->s, job->groups, job->group_channels, job->nhwc, job->segment),
        .staged = D != NRG_F32 || job->activation,
        .loop = !V_SMALL && do1_has_loop(job, D),
    };
    find_kept(&w);
    /* streaming does nothing for lines that are in cache because the call is in place, or because do1 has been kept there */
    w.stream_dx = job->stream && apart_from(job->dx, job) && (!w.kept || w.kept != job->dx);
    w.stream_dy = job->stream && apart_from(job->dy, job) && (!w.kept || w.kept != job->dy);
    const int small = backward_small_serves(&w);
    if (job->by_channel && !job->nhwc && job->s >= CHANNEL_LANES_S)
        batch_planes(&w);
    else if (job->by_channel)
        batch_columns(&w);
    else
        /* blocks of samples, and of each a range of its groups */
        for (size_t at = job->begin, next; at < job->end; at = next) {
            const size_t block = at / job->groups, group = at % job->groups, first = block * job->block_samples;
            const size_t end = job->n - first < job->block_samples ? job->n : first + job->block_samples;
            const size_t fit = job->group_channels < 2 ? BACKWARD_GROUPS : BACKWARD_COLUMNS / job->group_channels;
            const size_t left = job->groups - group, most = small ? left : !job->nhwc || fit == 0 ? 1 : fit;
            const size_t groups = left < most ? left : most;
            next = job->end - at < groups ? job->end : at + groups;
            for (size_t n = first; n < end; n++)
                if (small)
                    small_groups(&w, n, group, group + next - at, block, n == first);
                else if (job->nhwc)
                    group_columns(&w, n, group, group + next - at, block, n == first);
                else
                    group_planes(&w, n, group, block, n == first);
        }
    v_nt_fence();
}

NRG_PATH_KERNELS(channel_norm_backward, channel_norm_backward, channel_norm_backward)

#endif
