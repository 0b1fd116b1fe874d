/* The public layer of channel normalization's backward pass: checks the arguments once, then calls through the table; and the
 * second phase, which needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../job/channel_norm.h"
#include "../operands/channel_norm_backward.h"
#include "../operands/check.h"
#include "channel_spec.h"
#include "reduce.h"
#include "share.h"
#include "stream.h"

/* Whether all statistics and sums that are given are of sets with elements. */
static int have_elements(const nrg_channel_statistics *statistics, const int64_t *sums, size_t sets)
{
    for (size_t set = 0; set < sets; set++)
        if ((sums && sums[set * NRG_CHANNEL_NORM_SUMS_WORDS] < 1) || (statistics && statistics[set].count < 1))
            return 0;
    return 1;
}

/* Everything that is checked, and the job without a share. *c then has this version's structs. */
static nrg_status make_job(nrg_channel_norm_backward_job *job, nrg_checked *c, const nrg_call *call, const void *const *part,
                           int ith, int nth)
{
    const nrg_status status = nrg_check(c, call, part, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_channel_norm_spec *s = c->part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_backward_args *a = c->part[NRG_CHANNEL_ARGS];
    const int running = s->source == NRG_STATISTICS_RUNNING, partial = call == &nrg_call_channel_norm_backward_sums;
    /* what is not read or written is not looked at */
    const int64_t *sums = partial ? NULL : a->sums;
    if (!have_elements(a->statistics, sums, c->sizes.n[NRG_CHANNEL_BACKWARD_N_SETS]))
        return NRG_ERR_COUNT;

    const channel_shape shape = shape_of(s, a->positions);
    double *blocks = a->workspace;
    *job = (nrg_channel_norm_backward_job){
        .d_o = a->d_o,
        .x = a->x,
        .y = a->y,
        .w = a->w,
        .b = a->b,
        .dx = partial ? NULL : a->dx,
        .dy = partial ? NULL : a->dy,
        .dw = shape.groups ? NULL : a->dw,
        .db = shape.groups ? NULL : a->db,
        .block_dw = shape.groups && a->dw ? blocks : NULL,
        .block_db = shape.groups && a->db
                        ? (a->dw && blocks ? blocks + nrg_channel_block_count(a->samples) * s->channels : blocks)
                        : NULL,
        .given = a->statistics,
        .given_mean = a->mean,
        .given_rstd = a->rstd,
        .fixed_mean = running ? a->running_mean : NULL,
        .fixed_var = running ? a->running_var : NULL,
        .given_sums = sums,
        .n = a->samples,
        .c = s->channels,
        .s = a->positions,
        .groups = shape.groups,
        .group_channels = shape.group_channels,
        .d_o_stride = c->laid.stride[NRG_CHANNEL_BACKWARD_D_O][0],
        .x_stride = c->laid.stride[NRG_CHANNEL_BACKWARD_X][0],
        .y_stride = c->laid.stride[NRG_CHANNEL_BACKWARD_Y][0],
        .dx_stride = partial ? 0 : c->laid.stride[NRG_CHANNEL_BACKWARD_DX][0],
        .dy_stride = partial ? 0 : c->laid.stride[NRG_CHANNEL_BACKWARD_DY][0],
        .segment = shape.segment,
        .block_samples = shape.groups && (a->dw || a->db) ? nrg_channel_block_samples(a->samples) : 1,
        .by_channel = !shape.groups,
        .nhwc = shape.nhwc,
        .centred = s->centred != 0,
        .fast = is_fast(s),
        .w_f32 = c->sizes.type[NRG_CHANNEL_TYPE_W] == NRG_F32,
        .stream = nrg_wants_stream(a->store, c->laid.bytes),
        .accumulate = a->accumulate != 0,
        .activation = s->activation,
        .eps = shape.eps,
    };
    return NRG_OK;
}

nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                               size_t *bytes)
{
    nrg_checked c;
    if (!bytes)
        return NRG_ERR_NULL;
    const nrg_status status = nrg_check_options(&c, &nrg_call_channel_norm_backward_workspace, (const void *const[]){spec, args});
    if (status != NRG_OK)
        return status;
    *bytes = c.sizes.n[NRG_CHANNEL_BACKWARD_WORKSPACE_N_SPACE] * sizeof(double);
    return NRG_OK;
}

/* Channels begin to end of dw and db where there are no samples. */
static void clear_gradients(float *dw, float *db, size_t begin, size_t end)
{
    for (size_t c = begin; c < end; c++) {
        if (dw)
            dw[c] = 0;
        if (db)
            db[c] = 0;
    }
}

/* The same with a share, and without what checking takes, which shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_share(nrg_channel_norm_backward_job *job, nrg_dtype *dtype, const nrg_call *call,
                                                       const void *const *part, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = make_job(job, &c, call, part, ith, nth);
    if (status != NRG_OK)
        return status;
    *dtype = ((const nrg_channel_norm_spec *)c.part[NRG_CHANNEL_SPEC])->dtype;
    const size_t sets = job->n * job->groups, blocks = nrg_channel_block_count(job->n) * job->groups;
    const size_t units = job->by_channel ? job->c : job->block_samples == 1 ? sets : blocks;
    job->begin = nrg_share(units, ith, nth);
    job->end = nrg_share(units, ith + 1, nth);
    return NRG_OK;
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

static void run(nrg_channel_norm_backward_job *job, nrg_dtype dtype)
{
    if (!job->n) {
        if (job->by_channel && !job->accumulate && (job->dw || job->db))
            clear_gradients(job->dw, job->db, job->begin, job->end);
        for (size_t c = job->begin; c < job->end && job->sums; c++)
            memset(job->sums + c * NRG_CHANNEL_NORM_SUMS_WORDS, 0, NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *job->sums);
    } else if (job->begin < job->end && (job->dx || job->dy || job->dw || job->db || job->block_dw || job->block_db || job->sums))
        NRG_ACTIVE_KERNEL(channel_norm_backward, dtype)(job);
}

static nrg_status backward(const nrg_call *call, const void *const *part, int64_t *sums, int ith, int nth)
{
    nrg_channel_norm_backward_job job;
    nrg_dtype dtype;
    const nrg_status status = make_share(&job, &dtype, call, part, ith, nth);
    if (status != NRG_OK)
        return status;
    job.sums = sums;
    run(&job, dtype);
    if (nth == 1 && job.groups) {
        reduce_blocks(&job, part[NRG_CHANNEL_ARGS], 0, job.c);
        if (job.n && (job.block_dw || job.block_db))
            reduce_mark_done(job.block_dw ? job.block_dw : job.block_db);
    }
    return NRG_OK;
}

/* What the call would say. */
static nrg_status ask(const nrg_call *call, const void *const *part)
{
    nrg_channel_norm_backward_job job;
    nrg_checked c;
    return make_job(&job, &c, call, part, 0, 1);
}

nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith,
                                     int nth)
{
    return backward(&nrg_call_channel_norm_backward, (const void *const[]){spec, args}, NULL, ith, nth);
}

nrg_status nrg_channel_norm_backward_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    return nrg_asked(ask(&nrg_call_channel_norm_backward, (const void *const[]){spec, args}));
}

nrg_status nrg_channel_norm_backward_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                          int64_t *sums, int ith, int nth)
{
    const nrg_channel_sums more = {sums};
    return backward(&nrg_call_channel_norm_backward_sums, (const void *const[]){spec, args, &more}, sums, ith, nth);
}

nrg_status nrg_channel_norm_backward_sums_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                                int64_t *sums)
{
    const nrg_channel_sums more = {sums};
    return nrg_asked(ask(&nrg_call_channel_norm_backward_sums, (const void *const[]){spec, args, &more}));
}

nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                            int ith, int nth)
{
    nrg_checked c;
    nrg_channel_norm_backward_job job;
    const nrg_status status =
        make_job(&job, &c, &nrg_call_channel_norm_backward_reduce, (const void *const[]){spec, args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const double *const first = job.block_dw ? job.block_dw : job.block_db;
    if (job.groups && !(first && job.n && reduce_is_done(first)))
        reduce_blocks(&job, args, nrg_share(job.c, ith, nth), nrg_share(job.c, ith + 1, nth));
    return NRG_OK;
}

nrg_status nrg_channel_norm_backward_reduce_check(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args)
{
    return nrg_asked(ask(&nrg_call_channel_norm_backward_reduce, (const void *const[]){spec, args}));
}
