/* Channel normalization, forward: the reference. docs/ops/channel_norm.md says in words what these loops do to the last bit.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/channel_norm.h"
#include "activation.h"
#include "channel_set.h"

/* g(o1 + y) of all elements of channel c in positions i_begin to i_end of sample n. */
static void apply(const nrg_channel_norm_job *job, const channel_tensor *t, size_t n, size_t c, size_t begin, size_t end,
                  const nrg_channel_statistics *stat, nrg_dtype dtype)
{
    const channel_factors f = job->folded ? (channel_factors){.w = parameter(job->w, c, job->w_f32, dtype, 1),
                                                              .b = parameter(job->b, c, job->w_f32, dtype, 0)}
                                          : factors_of(stat, job->fast, job->w, job->b, c, job->w_f32, dtype);
    for (size_t s = begin; s < end; s++) {
        const float x = load(t->x, element_at(t, t->x_stride, n, c, s), dtype);
        float out = job->folded ? fmaf(x, f.w, f.b) : normalized(&f, x);
        if (job->y)
            out += load(job->y, element_at(t, job->y_stride, n, c, s), dtype);
        store(job->o, element_at(t, job->o_stride, n, c, s), dtype, activate(job->activation, out));
    }
}

static void write_statistics(const nrg_channel_norm_job *job, size_t set, const nrg_channel_statistics *stat)
{
    if (job->mean)
        job->mean[set] = (float)(stat->mean + stat->mean_low);
    if (job->rstd)
        job->rstd[set] = (float)stat->rstd;
    if (job->statistics)
        job->statistics[set] = *stat;
}

/* Where the statistics are there already: element by element. */
static void apply_share(const nrg_channel_norm_job *job, const channel_tensor *t, nrg_dtype dtype)
{
    for (size_t at = job->begin; at < job->end; at++)
        for (size_t k = 0; k < (job->nhwc ? job->c : 1); k++) {
            const size_t n = job->nhwc ? at / job->s : at / job->c, s = job->nhwc ? at % job->s : 0;
            const size_t c = job->nhwc ? k : at % job->c;
            nrg_channel_statistics stat = {0, 0, 0, 0, 0};
            if (job->fixed_mean)
                stat = fixed_statistics(job->fixed_mean[c], job->fixed_var[c], job->eps);
            else if (job->given)
                stat = job->given[job->groups ? n * job->groups + c / job->group_channels : c];
            apply(job, t, n, c, s, job->nhwc ? s + 1 : job->s, &stat, dtype);
        }
    for (size_t set = job->out_begin; set < job->out_end; set++) {
        nrg_channel_statistics stat;
        if (job->fixed_mean) {
            const size_t c = job->groups ? set % job->c : set;
            stat = fixed_statistics(job->fixed_mean[c], job->fixed_var[c], job->eps);
        } else
            stat = job->given[set];
        write_statistics(job, set, &stat);
    }
}

/* One set, whole. */
static nrg_channel_statistics normalize_set(const nrg_channel_norm_job *job, const channel_tensor *t, size_t set, nrg_dtype dtype)
{
    const channel_set at = set_at(t, set);
    nrg_channel_statistics stat = set_statistics(t, &at, job->segment, job->centred, job->eps, dtype);
    write_statistics(job, set, &stat);
    for (size_t n = at.n; n < at.n_end; n++)
        for (size_t c = at.c; c < at.c_end; c++)
            apply(job, t, n, c, 0, job->s, &stat, dtype);
    return stat;
}

static void channel_norm(const nrg_channel_norm_job *job, nrg_dtype dtype)
{
    const channel_tensor t = {job->x,    job->x_stride,       job->n,   job->c, job->s, job->groups, job->group_channels,
                              job->nhwc, element_size(dtype), job->fast};
    if (job->sums) {
        for (size_t set = job->begin; set < job->end; set++) {
            const channel_set at = set_at(&t, set);
            sum_segments(&t, &at, job->segment, job->centred, job->sums + set * NRG_CHANNEL_NORM_SUMS_WORDS, dtype);
        }
        return;
    }
    if (job->folded || job->fixed_mean || job->given) {
        apply_share(job, &t, dtype);
        return;
    }
    for (size_t at = job->begin; at < job->end; at++) {
        /* a set; or the sets of a channel */
        const size_t samples = job->by_channel && job->groups ? job->n : 1;
        running_sums running = {0, 0};
        for (size_t n = 0; n < samples; n++) {
            const nrg_channel_statistics stat = normalize_set(job, &t, n * job->groups + at, dtype);
            add_to_running(&running, &stat);
        }
        if (job->running_mean)
            update_running(job->running_mean + at, job->running_var + at, &running, samples, job->momentum);
    }
}

SCALAR_KERNELS(channel_norm_forward, channel_norm, channel_norm)
