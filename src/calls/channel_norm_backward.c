/* The public layer of channel normalization's backward pass: checks the arguments once, then calls through the table; and the
 * second phase, which needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/channel_norm.h"
#include "../operands/channel_norm.h"
#include "../operands/place.h"
#include "call.h"
#include "reduce.h"

#define NRG_MAKE_TABLES
#include "../operands/channel_norm_backward_calls.def"

/* Whether all statistics and sums that are given are of sets with elements. */
static int have_elements(const nrg_channel_statistics *statistics, const int64_t *sums, size_t sets)
{
    for (size_t set = 0; set < sets; set++)
        if ((sums && sums[set * NRG_CHANNEL_NORM_SUMS_WORDS] < 1) || (statistics && statistics[set].count < 1))
            return 0;
    return 1;
}

NRG_OWN_FRAME nrg_status make_job(nrg_channel_norm_backward_job *job, const nrg_call *call, const nrg_channel_norm_spec *s,
                                  const nrg_channel_norm_backward_args *a, int64_t *own_sums, int ith, int nth)
{
    nrg_laid l;
    const nrg_channel_sums more = {own_sums};
    const nrg_status status = nrg_lay(&l, call, (const void *const[]){s, a, &more}, ith, nth);
    if (status != NRG_OK)
        return status;
    const int running = s->source == NRG_STATISTICS_RUNNING, partial = call == &nrg_call_channel_norm_backward_sums;
    /* what is not read or written is not looked at */
    const int64_t *sums = partial ? NULL : a->sums;
    if (!have_elements(a->statistics, sums, a->samples ? nrg_channel_sets(s, a->samples) : 0))
        return NRG_ERR_COUNT;

    const size_t groups = nrg_channel_groups(s);
    double *blocks = a->workspace;
    *job = (nrg_channel_norm_backward_job){
        .d_o = a->d_o,
        .x = a->x,
        .y = a->y,
        .w = a->w,
        .b = a->b,
        .dx = partial ? NULL : a->dx,
        .dy = partial ? NULL : a->dy,
        .dw = groups ? NULL : a->dw,
        .db = groups ? NULL : a->db,
        .block_dw = groups && a->dw ? blocks : NULL,
        .block_db =
            groups && a->db ? (a->dw && blocks ? blocks + nrg_channel_block_count(a->samples) * s->channels : blocks) : NULL,
        .given = a->statistics,
        .given_mean = a->mean,
        .given_rstd = a->rstd,
        .fixed_mean = running ? a->running_mean : NULL,
        .fixed_var = running ? a->running_var : NULL,
        .given_sums = sums,
        .sums = own_sums,
        .n = a->samples,
        .c = s->channels,
        .s = a->positions,
        .groups = groups,
        .group_channels = nrg_channel_group_channels(s),
        .d_o_stride = l.stride[NRG_CHANNEL_BACKWARD_D_O][0],
        .x_stride = l.stride[NRG_CHANNEL_BACKWARD_X][0],
        .y_stride = l.stride[NRG_CHANNEL_BACKWARD_Y][0],
        .dx_stride = partial ? 0 : l.stride[NRG_CHANNEL_BACKWARD_DX][0],
        .dy_stride = partial ? 0 : l.stride[NRG_CHANNEL_BACKWARD_DY][0],
        .segment = s->segment,
        .block_samples = groups && (a->dw || a->db) ? nrg_channel_block_samples(a->samples) : 1,
        .by_channel = !groups,
        .nhwc = nrg_channel_is_nhwc(s, a->positions),
        .centred = s->centred != 0,
        .fast = nrg_channel_is_fast(s),
        .w_f32 = nrg_own_dtype(s->w_dtype, s->dtype) == NRG_F32,
        .stream = nrg_wants_stream(a->store, l.bytes),
        .accumulate = a->accumulate != 0,
        .activation = s->activation,
        .eps = nrg_channel_eps(s),
    };
    const size_t sets = job->n * job->groups, block_groups = nrg_channel_block_count(job->n) * job->groups;
    const size_t units = job->by_channel ? job->c : job->block_samples == 1 ? sets : block_groups;
    job->begin = nrg_share(units, ith, nth);
    job->end = nrg_share(units, ith + 1, nth);
    return NRG_OK;
}

nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                               size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_channel_norm_backward_workspace, (const void *const[]){spec, args},
                         NRG_CHANNEL_BACKWARD_WORKSPACE_N_SPACE, sizeof(double));
}

/* The channels of a share without samples. */
static void clear_channels(const nrg_channel_norm_backward_job *job)
{
    for (size_t c = job->begin; c < job->end; c++) {
        if (job->dw && !job->accumulate)
            job->dw[c] = 0;
        if (job->db && !job->accumulate)
            job->db[c] = 0;
        if (job->sums)
            memset(job->sums + c * NRG_CHANNEL_NORM_SUMS_WORDS, 0, NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *job->sums);
    }
}

/* Channels begin to end of dw and db with NRG_CHANNEL_OVER_GROUP. No samples, no blocks, no workspace: the sums are 0. */
static void reduce_blocks(const nrg_channel_norm_backward_job *job, const nrg_channel_norm_backward_args *args, size_t begin,
                          size_t end)
{
    const size_t blocks = nrg_channel_block_count(job->n);
    if (args->dw)
        reduce(job->block_dw, job->c, blocks, begin, end, args->dw, 1, job->accumulate);
    if (args->db)
        reduce(job->block_db, job->c, blocks, begin, end, args->db, 1, job->accumulate);
}

NRG_TABLES(channel_norm_backward)

static nrg_status backward(const nrg_call *call, const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                           int64_t *sums, int ith, int nth)
{
    nrg_channel_norm_backward_job job;
    const nrg_status status = make_job(&job, call, spec, args, sums, ith, nth);
    if (status != NRG_OK)
        return status;
    if (!job.n)
        clear_channels(&job);
    else if (job.begin < job.end && (job.dx || job.dy || job.dw || job.db || job.block_dw || job.block_db || job.sums))
        NRG_ACTIVE_KERNEL(channel_norm_backward, spec->dtype)(&job);
    if (nth == 1 && job.groups) {
        reduce_blocks(&job, args, 0, job.c);
        if (job.n && (job.block_dw || job.block_db))
            reduce_mark_done(job.block_dw ? job.block_dw : job.block_db);
    }
    return NRG_OK;
}

static nrg_status check(const nrg_call *call, const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                        int64_t *sums)
{
    nrg_channel_norm_backward_job job;
    return nrg_asked(make_job(&job, call, spec, args, sums, 0, 1));
}

nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith,
                                     int nth)
{
    return backward(&nrg_call_channel_norm_backward, spec, args, NULL, ith, nth);
}

nrg_status nrg_channel_norm_backward_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    return check(&nrg_call_channel_norm_backward, spec, args, NULL);
}

nrg_status nrg_channel_norm_backward_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                          int64_t *sums, int ith, int nth)
{
    return backward(&nrg_call_channel_norm_backward_sums, spec, args, sums, ith, nth);
}

nrg_status nrg_channel_norm_backward_sums_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                                int64_t *sums)
{
    return check(&nrg_call_channel_norm_backward_sums, spec, args, sums);
}

nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                            int ith, int nth)
{
    nrg_channel_norm_backward_job job;
    const nrg_status status = make_job(&job, &nrg_call_channel_norm_backward_reduce, spec, args, NULL, ith, nth);
    if (status != NRG_OK)
        return status;
    const double *const first = job.block_dw ? job.block_dw : job.block_db;
    if (job.groups && !(first && job.n && reduce_is_done(first)))
        reduce_blocks(&job, args, nrg_share(job.c, ith, nth), nrg_share(job.c, ith + 1, nth));
    return NRG_OK;
}

nrg_status nrg_channel_norm_backward_reduce_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    return check(&nrg_call_channel_norm_backward_reduce, spec, args, NULL);
}
