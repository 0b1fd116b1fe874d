/* Channel normalization, forward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/channel_norm.c.
 *
 * The steps are those of the row norms: source (source.h), sum (sum.h, fast_sum.h), total (total.h, around.h), scalars
 * (scalars.h), apply (apply.h, fallback.h). There are two sources, planes and columns. Each has a schedule (planes.h, columns.h),
 * which orders sums (plane_sum.h, column_sum.h), statistics (pass.h) and elements. Small sets share the vectors of some
 * statistics (small.h).
 *
 * Some sets need more than their sums in double. If a mean is large beside σ, the segment is summed again around it at once
 * (around.h). If two doubles do not hold the sum of the segments, the set is summed again in integers (total.h). Elements for
 * which f32 is not accurate enough are computed in double (fallback.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_NORM_H

#include "columns.h"
#include "planes.h"

/* ---- shares ---- */

static void group_sets(const channel_pass *w, size_t n, size_t begin, size_t end, nrg_running_sums *running)
{
    if (groups_are_small(w))
        small_plane_sets(w, n, begin, end, running);
    else if (!w->job->nhwc)
        plane_sets(w, n, begin, end, running);
    else if (w->job->group_channels <= CHANNEL_COLUMNS)
        column_sets(w, n, begin, end, running);
    else
        for (size_t group = begin; group < end; group++)
            wide_group(w, n, group, running ? &running[group - begin] : NULL);
}

/* The same where statistics, or sums, are all that is wanted. */
static void group_statistics(const channel_pass *w, size_t n, size_t begin, size_t end)
{
    if (w->job->nhwc || groups_are_small(w))
        column_statistics(w, n, begin, end);
    else
        plane_sets(w, n, begin, end, NULL);
}

/* Instance norm that updates running statistics: all samples of a channel, for some channels at once. */
static __attribute__((noinline)) void instance_running(const channel_pass *w)
{
    enum { AT_ONCE = 16 };
    const nrg_channel_norm_job *job = w->job;
    nrg_running_sums running[AT_ONCE];
    for (size_t c = job->begin, channels; c < job->end; c += channels) {
        channels = job->end - c < AT_ONCE ? job->end - c : AT_ONCE;
        memset(running, 0, sizeof running);
        for (size_t n = 0; n < job->n; n++)
            group_sets(w, n, c, c + channels, running);
        for (size_t i = 0; i < channels; i++)
            nrg_running_update(job->running_mean + c + i, job->running_var + c + i, &running[i], job->n, job->momentum);
    }
}

/* Channels begin to end of samples (or, with NHWC, positions) row to row_end, whose statistics are there already. */
static __attribute__((noinline)) void apply_known(const channel_pass *w, size_t row, size_t row_end, size_t begin, size_t end)
{
    enum { AT_ONCE = 64 }; /* running statistics */
    const nrg_channel_norm_job *job = w->job;
    const int by_columns = job->nhwc || job->s < CHANNEL_LANES_S;
    const size_t per = job->nhwc || !by_columns ? 1 : job->s, most = by_columns ? channels_in(CHANNEL_WIDE, per) : AT_ONCE;
    const size_t sample = job->nhwc ? row / job->s : row; /* of all rows, where there are groups */
    _Alignas(64) float store[CHANNEL_FACTORS];
    nrg_channel_statistics fixed[AT_ONCE];
    const channel_column_factors wide = factors_in(store, CHANNEL_WIDE);
    size_t first = begin; /* channels from here on wait to be normalized */
    for (size_t c = begin, channels; c < end; c += channels) {
        channels = end - c < most ? end - c : most;
        channel_block block = block_of(w, NULL, c, channels, per);
        if (job->fixed_mean) {
            block.channels = channels = channels < AT_ONCE ? channels : AT_ONCE;
            for (size_t i = 0; i < channels; i++)
                fixed[i] = nrg_statistics_fixed(job->fixed_mean[c + i], job->fixed_var[c + i], job->eps);
            block.stat = fixed;
            block.group = 1;
        } else if (job->given && job->groups) {
            block.stat = job->given + sample * job->groups + c / job->group_channels;
            block.into = c % job->group_channels;
        } else if (job->given)
            block.stat = job->given + c;
        if (!by_columns) {
            apply_planes(w, &block, row, row_end);
            continue;
        }
        if ((c + channels - first) * per > CHANNEL_WIDE) {
            apply_wide(w, &wide, first * per, (c - first) * per, row, row_end);
            first = c;
        }
        channel_column_factors f = factors_from(&wide, (c - first) * per);
        fill_factors(&f, &block, w->D);
        if (f.plain)
            continue;
        apply_wide(w, &wide, first * per, (c - first) * per, row, row_end);
        apply_block(w, &block, &f, c * per, row, row_end);
        first = c + channels;
    }
    if (by_columns)
        apply_wide(w, &wide, first * per, (end - first) * per, row, row_end);
}

/* A share of planes, or positions: where its statistics are there already. */
static __attribute__((noinline)) void apply_share(const channel_pass *w)
{
    const nrg_channel_norm_job *job = w->job;
    const int by_sample = job->given && job->groups; /* statistics of its own */
    if (job->nhwc)
        for (size_t row = job->begin, next; row < job->end; row = next) {
            next = by_sample && (row / job->s + 1) * job->s < job->end ? (row / job->s + 1) * job->s : job->end;
            apply_known(w, row, next, 0, job->c);
        }
    else
        for (size_t at = job->begin, next; at < job->end; at = next) {
            /* the rest of a sample, or whole samples */
            const size_t n = at / job->c, c = at % job->c, left = job->end - at;
            if (c || left < job->c || by_sample) {
                next = left < job->c - c ? job->end : at + job->c - c;
                apply_known(w, n, n + 1, c, c + next - at);
            } else {
                next = at + left / job->c * job->c;
                apply_known(w, n, n + left / job->c, 0, job->c);
            }
        }
    for (size_t set = job->out_begin; set < job->out_end; set++) {
        const size_t c = job->groups ? set % job->c : set;
        const nrg_channel_statistics stat =
            job->fixed_mean ? nrg_statistics_fixed(job->fixed_mean[c], job->fixed_var[c], job->eps) : job->given[set];
        write_statistics(job, set, &stat);
    }
}

/* A share of sets. */
static void normalize_share(const channel_pass *w)
{
    const nrg_channel_norm_job *job = w->job;
    if (!job->groups && !job->nhwc && job->s >= CHANNEL_LANES_S)
        plane_sets(w, 0, job->begin, job->end, NULL);
    else if (!job->groups)
        column_sets(w, 0, job->begin, job->end, NULL);
    else if (job->by_channel)
        instance_running(w);
    else
        for (size_t set = job->begin, next; set < job->end; set = next) {
            const size_t n = set / job->groups, first = n * job->groups;
            next = first + job->groups < job->end ? first + job->groups : job->end;
            group_sets(w, n, set - first, next - first, NULL);
        }
}

/* What becomes of elements without a fallback. */
static channel_finish finish_of(const nrg_channel_norm_job *job, nrg_dtype D)
{
    switch (job->activation) {
    case NRG_ACT_IDENTITY:
        return CHANNEL_STORE;
    case NRG_ACT_RELU:
        return CHANNEL_STORE_RELU;
    case NRG_ACT_SILU:
        return !V_SMALL && job->fast && !job->folded && !job->y && D == NRG_F32 ? CHANNEL_STORE_SILU : CHANNEL_TO_STAGE;
    default:
        return CHANNEL_TO_STAGE;
    }
}

static channel_pass walk_of(const nrg_channel_norm_job *job, nrg_dtype D)
{
    return (channel_pass){.job = job,
                          .D = D,
                          .size = bytes_of(1, D, 0),
                          .cut = nrg_segments_of(job->n, job->s, job->groups, job->group_channels, job->nhwc, job->segment),
                          .finish = finish_of(job, D),
                          .stream = job->stream && job->o != job->x && job->o != job->y,
                          .plain_weights = weights_are_plain(job->w, job->w_f32, job->c, D)};
}

/* Statistics of a share of sets, or their sums, and nothing else: apart from the rest, since the backward pass calls it from deep
 * in the stack. */
static void channel_statistics(const nrg_channel_norm_job *job, nrg_dtype D)
{
    const channel_pass w = walk_of(job, D);
    if (!job->groups && !job->nhwc && job->s >= CHANNEL_LANES_S)
        plane_sets(&w, 0, job->begin, job->end, NULL);
    else if (!job->groups)
        column_statistics(&w, 0, job->begin, job->end);
    else
        for (size_t set = job->begin, next; set < job->end; set = next) {
            const size_t n = set / job->groups, first = n * job->groups;
            next = first + job->groups < job->end ? first + job->groups : job->end;
            group_statistics(&w, n, set - first, next - first);
        }
}

static void channel_norm(const nrg_channel_norm_job *job, nrg_dtype D)
{
    if (!job->o) {
        channel_statistics(job, D);
        return;
    }
    const channel_pass w = walk_of(job, D);
    if (job->folded || job->fixed_mean || job->given)
        apply_share(&w);
    else
        normalize_share(&w);
    v_nt_fence();
}

void find_channel_statistics(const nrg_channel_norm_job *job, nrg_dtype D) { channel_statistics(job, D); }

NRG_PATH_KERNELS(channel_norm_forward, channel_norm, channel_norm)

#endif
