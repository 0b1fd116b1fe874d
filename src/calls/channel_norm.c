/* The public layer of channel normalization: checks the arguments once, then calls through the table; and what needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/channel_norm.h"
#include "../exact/channel_sums.h"
#include "../exact/element.h"
#include "../operands/channel_norm.h"
#include "../operands/place.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/channel_norm_calls.def"

/* 1/(batches + 1), or the spec's momentum. */
static double momentum_of(const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a)
{
    return s->cumulative ? 1 / ((double)a->batches + 1) : s->momentum;
}

/* A share of a forward pass, or of the sums alone, which look at x and nothing else; one without sets or anything else to do is
 * empty. */
NRG_OWN_FRAME nrg_status make_job(nrg_channel_norm_job *job, const nrg_channel_norm_spec *s, const nrg_channel_norm_args *args,
                                  int64_t *sums, int only_sums, int ith, int nth)
{
    nrg_laid l;
    const nrg_channel_sums more = {sums};
    const nrg_status status =
        only_sums ? NRG_LAY(&l, channel_norm_sums, s, args, &more) : NRG_LAY(&l, channel_norm_forward, s, args);
    if (status != NRG_OK)
        return status;
    const nrg_channel_norm_args x_alone = {
        .x = args->x, .samples = args->samples, .positions = args->positions, .store = NRG_STORE_KEEP};
    const nrg_channel_norm_args *const a = only_sums ? &x_alone : args;
    const nrg_statistics_source source = only_sums ? NRG_STATISTICS_COMPUTE : s->source;
    const size_t groups = nrg_channel_groups(s);
    const size_t sets = only_sums || a->samples ? nrg_channel_sets(s, a->samples) : 0;
    const int given = source == NRG_STATISTICS_GIVEN, folded = source == NRG_STATISTICS_FOLDED,
              fixed = source == NRG_STATISTICS_RUNNING;
    *job = (nrg_channel_norm_job){
        .x = a->x,
        .y = a->y,
        .w = a->w,
        .b = a->b,
        .o = a->o,
        .mean = a->mean,
        .rstd = a->rstd,
        .statistics = a->statistics,
        .given = a->statistics_in,
        .fixed_mean = fixed ? a->running_mean_in : NULL,
        .fixed_var = fixed ? a->running_var_in : NULL,
        .running_mean = a->running_mean,
        .running_var = a->running_var,
        .sums = sums,
        .n = a->samples,
        .c = s->channels,
        .s = a->positions,
        .groups = groups,
        .group_channels = nrg_channel_group_channels(s),
        .x_stride = l.stride[NRG_CHANNEL_X][0],
        .y_stride = a->y ? l.stride[NRG_CHANNEL_Y][0] : 0,
        .o_stride = a->o ? l.stride[NRG_CHANNEL_O][0] : 0,
        .segment = s->segment,
        .by_channel = !groups || a->running_mean,
        .nhwc = nrg_channel_is_nhwc(s, a->positions),
        .folded = folded,
        .centred = s->centred != 0,
        .fast = nrg_channel_is_fast(s),
        .w_f32 = nrg_own_dtype(s->w_dtype, s->dtype) == NRG_F32,
        .stream = nrg_wants_stream(a->store, l.bytes),
        .activation = only_sums ? NRG_ACT_IDENTITY : s->activation,
        .eps = nrg_channel_eps(s),
        .momentum = momentum_of(s, a),
    };
    /* rows · channels fits, since elements do; sums alone are of channels without samples, too */
    const size_t units = given || fixed || folded ? (job->nhwc ? a->samples * a->positions : a->samples * s->channels)
                         : !a->samples            ? sets
                         : job->by_channel        ? s->channels
                                                  : sets;
    job->begin = nrg_share(units, ith, nth);
    job->end = nrg_share(units, ith + 1, nth);
    if ((given || fixed) && (a->mean || a->rstd || job->statistics)) {
        job->out_begin = nrg_share(sets, ith, nth);
        job->out_end = nrg_share(sets, ith + 1, nth);
    }
    return NRG_OK;
}

/* The share's channels of running statistics, which kernels update in place. */
static void copy_channels(float *to, const float *from, const nrg_channel_norm_job *job)
{
    for (size_t c = job->begin; c < job->end; c++)
        to[c] = from[c];
}

NRG_TABLES(channel_norm_forward)

nrg_status nrg_channel_norm_forward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_channel_norm_job job;
    const nrg_status status = make_job(&job, spec, args, NULL, 0, ith, nth);
    if (status != NRG_OK)
        return status;
    if (job.running_mean && job.running_mean != args->running_mean_in)
        copy_channels(job.running_mean, args->running_mean_in, &job);
    if (job.running_var && job.running_var != args->running_var_in)
        copy_channels(job.running_var, args->running_var_in, &job);
    if (job.begin < job.end || job.out_begin < job.out_end)
        NRG_ACTIVE_KERNEL(channel_norm_forward, spec->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_channel_norm_forward_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args)
{
    return NRG_ASK(channel_norm_forward, spec, args);
}

nrg_status nrg_channel_norm_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                                 int nth)
{
    nrg_channel_norm_job job;
    const nrg_status status = make_job(&job, spec, args, sums, 1, ith, nth);
    if (status != NRG_OK)
        return status;
    /* no samples: batch norm has as many channels nevertheless, each with the sum of nothing */
    if (!job.n)
        for (size_t set = job.begin; set < job.end; set++)
            nrg_sums_clear(sums + set * NRG_CHANNEL_NORM_SUMS_WORDS);
    else if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(channel_norm_forward, spec->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_channel_norm_sums_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums)
{
    return NRG_ASK(channel_norm_sums, spec, args, &(nrg_channel_sums){sums});
}

nrg_status nrg_channel_norm_sums_add(size_t sets, int64_t *into, const int64_t *from)
{
    const nrg_channel_norm_sums_add_args args = {sets, from, into};
    nrg_laid laid;
    const nrg_status status = sums_add_precheck(&args, 0, 1, &laid) == NRG_OK
                                  ? NRG_OK
                                  : nrg_lay(&laid, &nrg_call_sums_add, (const void *const[]){&args}, 0, 1);
    if (status != NRG_OK)
        return status;
    /* wraps around, as sums may */
    for (size_t i = 0; i < sets * NRG_CHANNEL_NORM_SUMS_WORDS; i++)
        into[i] = (int64_t)((uint64_t)into[i] + (uint64_t)from[i]);
    return NRG_OK;
}

static nrg_status check_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                   int ith, int nth)
{
    nrg_laid l;
    const nrg_channel_sums more = {sums};
    const nrg_status status = NRG_LAY(&l, channel_norm_statistics, spec, args, &more);
    if (status != NRG_OK)
        return status;
    for (size_t set = 0; set < nrg_channel_sets(spec, args->samples); set++)
        if (sums[set * NRG_CHANNEL_NORM_SUMS_WORDS] < (args->running_mean ? 2 : 1)) /* the count */
            return NRG_ERR_COUNT;
    return NRG_OK;
}

nrg_status nrg_channel_norm_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                       int ith, int nth)
{
    const nrg_status status = check_statistics(spec, args, sums, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t sets = nrg_channel_sets(spec, args->samples);
    const int update = args->running_mean != NULL;

    /* by channels, where those have running statistics */
    const size_t samples = sets && update && nrg_channel_groups(spec) ? args->samples : 1, units = sets / samples;
    const double momentum = momentum_of(spec, args);
    for (size_t at = nrg_share(units, ith, nth); at < nrg_share(units, ith + 1, nth); at++) {
        nrg_running_sums running = {0, 0};
        for (size_t n = 0; n < samples; n++) {
            const size_t set = n * units + at;
            const nrg_set_sums value = nrg_sums_value(sums + set * NRG_CHANNEL_NORM_SUMS_WORDS);
            const nrg_channel_statistics stat = nrg_statistics_of(&value, spec->centred != 0, nrg_channel_eps(spec));
            nrg_running_add(&running, &stat);
            if (args->mean)
                args->mean[set] = (float)(stat.mean + stat.mean_low);
            if (args->rstd)
                args->rstd[set] = (float)stat.rstd;
            if (args->statistics)
                args->statistics[set] = stat;
        }
        if (update) {
            args->running_mean[at] = args->running_mean_in[at];
            args->running_var[at] = args->running_var_in[at];
            nrg_running_update(args->running_mean + at, args->running_var + at, &running, samples, momentum);
        }
    }
    return NRG_OK;
}

nrg_status nrg_channel_norm_statistics_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                             const int64_t *sums)
{
    return nrg_asked(check_statistics(spec, args, sums, 0, 1));
}

/* Element c of w or b, in double. */
static double parameter(const void *p, size_t c, nrg_dtype dtype, double absent)
{
    return p ? (double)load(p, c, dtype) : absent;
}

nrg_status nrg_channel_norm_fold(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, float *scale, float *shift)
{
    nrg_laid l;
    const nrg_channel_factors factors = {scale, shift};
    const nrg_status status = nrg_lay(&l, &nrg_call_channel_norm_fold, (const void *const[]){spec, args, &factors}, 0, 1);
    if (status != NRG_OK)
        return status;
    const nrg_dtype w_dtype = nrg_own_dtype(spec->w_dtype, spec->dtype);
    for (size_t i = 0; i < spec->channels; i++) {
        const nrg_channel_statistics stat =
            nrg_statistics_fixed(args->running_mean_in[i], args->running_var_in[i], nrg_channel_eps(spec));
        const double factor = stat.rstd * parameter(args->w, i, w_dtype, 1);
        scale[i] = (float)factor;
        shift[i] = (float)fma(-stat.mean, factor, parameter(args->b, i, w_dtype, 0));
    }
    return NRG_OK;
}
