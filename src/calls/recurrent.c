/* The public layer of the recurrent encodings: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/recurrent.h"
#include "../operands/place.h"
#include "../operands/recurrent.h"
#include "call.h"
#include "reduce.h"

#define NRG_MAKE_TABLES
#include "../operands/recurrent_calls.def"

/* ---- forward ---- */

NRG_TABLES(recurrent)

nrg_status nrg_recurrent_forward(const nrg_recurrent_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, recurrent_forward, a);
    if (status != NRG_OK)
        return status;
    const nrg_recurrent_job job = {
        .w = a->w,
        .b = a->b,
        .p0 = a->p0,
        .p = a->p,
        .dim = a->dim,
        .n = a->positions,
        .w_stride = l.stride[NRG_RECURRENT_W][0],
        .p0_stride = l.stride[NRG_RECURRENT_P0][0],
        .p_stride = l.stride[NRG_RECURRENT_P][0],
        .p_chain_stride = l.stride[NRG_RECURRENT_P][1],
        .begin = nrg_share(a->chains, ith, nth),
        .end = nrg_share(a->chains, ith + 1, nth),
        .w_f32 = nrg_own_dtype(a->w_dtype, a->dtype) == NRG_F32,
        .p0_f32 = nrg_own_dtype(a->p0_dtype, a->dtype) == NRG_F32,
    };
    if (job.n && job.begin < job.end)
        NRG_ACTIVE_KERNEL(recurrent, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_recurrent_forward_check(const nrg_recurrent_args *args) { return NRG_ASK(recurrent_forward, args); }

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

nrg_status nrg_recurrent_backward_workspace(const nrg_recurrent_backward_args *args, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_recurrent_backward_workspace, (const void *const[]){args},
                         NRG_RECURRENT_BACKWARD_WORKSPACE_N_SPACE, sizeof(float));
}

/* Everything that the two phases check. The job has no share yet. */
NRG_OWN_FRAME nrg_status make_backward_job(nrg_recurrent_backward_job *job, const nrg_recurrent_backward_args *a, int ith,
                                           int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, recurrent_backward, a);
    if (status != NRG_OK)
        return status;
    *job = (nrg_recurrent_backward_job){
        .w = a->w,
        .p0 = a->dw ? a->p0 : NULL,
        .p = a->p,
        .dp = a->dp,
        .g = a->workspace,
        .dp0 = a->d_p0,
        .dw = a->dw,
        .db = a->db,
        .dim = a->dim,
        .n = a->positions,
        .chains = a->chains,
        .w_stride = l.stride[NRG_RECURRENT_BACKWARD_W][0],
        .p0_stride = l.stride[NRG_RECURRENT_BACKWARD_P0][0],
        .p_stride = l.stride[NRG_RECURRENT_BACKWARD_P][0],
        .p_chain_stride = l.stride[NRG_RECURRENT_BACKWARD_P][1],
        .dp_stride = l.stride[NRG_RECURRENT_BACKWARD_DP][0],
        .dp_chain_stride = l.stride[NRG_RECURRENT_BACKWARD_DP][1],
        .dw_stride = l.stride[NRG_RECURRENT_BACKWARD_DW][0],
        .dp0_stride = l.stride[NRG_RECURRENT_BACKWARD_D_P0][0],
        .w_f32 = nrg_own_dtype(a->w_dtype, a->dtype) == NRG_F32,
        .p0_f32 = nrg_own_dtype(a->p0_dtype, a->dtype) == NRG_F32,
        .accumulate = a->accumulate != 0,
    };
    return NRG_OK;
}

/* Where phase 1 marks what it has done: behind the gradients; NULL where there are none. */
static float *mark_of(const nrg_recurrent_backward_job *job)
{
    const size_t floats = job->chains * job->n * job->dim;
    return floats ? job->g + floats : NULL;
}

NRG_TABLES(recurrent_reduce)

/* Share ith of nth of the rows of dw and db. */
static void reduce_rows(nrg_recurrent_backward_job *job, nrg_dtype dtype, int ith, int nth)
{
    job->begin = nrg_share(job->dim, ith, nth);
    job->end = nrg_share(job->dim, ith + 1, nth);
    if (job->begin < job->end && (job->dw || job->db))
        NRG_ACTIVE_KERNEL(recurrent_reduce, dtype)(job);
}

NRG_TABLES(recurrent_backward)

nrg_status nrg_recurrent_backward(const nrg_recurrent_backward_args *args, int ith, int nth)
{
    nrg_recurrent_backward_job job;
    const nrg_status status = make_backward_job(&job, args, ith, nth);
    if (status != NRG_OK)
        return status;
    job.begin = nrg_share(job.chains, ith, nth);
    job.end = nrg_share(job.chains, ith + 1, nth);
    if (job.begin < job.end && (job.n || job.dp0))
        NRG_ACTIVE_KERNEL(recurrent_backward, args->dtype)(&job);
    if (nth == 1)
        reduce_rows(&job, args->dtype, ith, nth);
    float *const mark = ith == 0 ? mark_of(&job) : NULL;
    if (mark && nth == 1 && (job.dw || job.db))
        reduce_mark_done(mark);
    else if (mark)
        memset(mark, 0, NRG_RECURRENT_MARK * sizeof *mark);
    return NRG_OK;
}

nrg_status nrg_recurrent_backward_check(const nrg_recurrent_backward_args *args) { return NRG_ASK(recurrent_backward, args); }

nrg_status nrg_recurrent_backward_reduce(const nrg_recurrent_backward_args *args, int ith, int nth)
{
    nrg_recurrent_backward_job job;
    const nrg_status status = make_backward_job(&job, args, ith, nth);
    if (status != NRG_OK)
        return status;
    const float *const mark = mark_of(&job);
    if (!mark || !reduce_is_done(mark))
        reduce_rows(&job, args->dtype, ith, nth);
    return NRG_OK;
}

nrg_status nrg_recurrent_backward_reduce_check(const nrg_recurrent_backward_args *args)
{
    return nrg_recurrent_backward_check(args); /* the same operands */
}
#endif
