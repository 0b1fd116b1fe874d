/* The public layer of nrg/relative.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../internal.h"
#include "../job/relative.h"
#include "../operands/check.h"
#include "../operands/heads.h"
#include "../operands/relative.h"
#include "share.h"

/* Whether there is anything to add up. */
static int has_terms(const nrg_relative_args *a) { return a->batch && a->heads && a->queries && a->keys; }

/* What the jobs of the three have in common. */
static nrg_relative_job common_job(const nrg_checked *c)
{
    const nrg_relative_args *a = c->part[NRG_RELATIVE_ARGS];
    return (nrg_relative_job){
        .batch = a->batch,
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .dim = a->dim,
        .slots = c->sizes.n[NRG_RELATIVE_SCORES_N_CLASSES],
        .zero = a->first_position - a->p_max,
        .step = 1,
        .tables = c->sizes.n[NRG_RELATIVE_SCORES_N_TABLES],
        .table_f32 = c->sizes.type[NRG_RELATIVE_SCORES_TYPE_TABLE] == NRG_F32,
        .accumulate = a->accumulate != 0,
    };
}

/* The table's first slot, which is its last row. */
static void set_table(nrg_relative_job *job, const nrg_relative_args *a, const size_t stride[NRG_LEVELS])
{
    job->table = (const char *)a->table + (job->slots - 1) * stride[0];
    job->table_stride = stride[0];
    job->table_head_stride = job->tables > 1 ? stride[1] : 0;
}

static void share_rows(nrg_relative_job *job, int ith, int nth)
{
    const size_t rows = job->batch * job->heads * job->queries;
    job->begin = nrg_share(rows, ith, nth);
    job->end = nrg_share(rows, ith + 1, nth);
}

/* The jobs are made in frames of their own: what checking takes shall not lie below the kernel. A job from begin to begin has
 * nothing to do. */
static __attribute__((noinline)) nrg_status make_scores(nrg_relative_job *job, nrg_dtype *dtype, const nrg_relative_args *args,
                                                        int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_relative_scores, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_relative_args *a = c.part[NRG_RELATIVE_ARGS];
    *dtype = a->dtype;
    *job = common_job(&c);
    if (!has_terms(a))
        return NRG_OK;
    set_table(job, a, c.laid.stride[NRG_RELATIVE_SCORES_TABLE]);
    job->q = a->q;
    job->out = a->scores;
    job->q_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_SCORES_Q]);
    job->out_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_SCORES_SCORES]);
    share_rows(job, ith, nth);
    return NRG_OK;
}

nrg_status nrg_relative_scores(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    const nrg_status status = make_scores(&job, &dtype, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_scores, dtype)(&job);
    return status;
}

nrg_status nrg_relative_scores_check(const nrg_relative_args *args)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    return nrg_asked(make_scores(&job, &dtype, args, 0, 1));
}

static __attribute__((noinline)) nrg_status make_values(nrg_relative_job *job, nrg_dtype *dtype, const nrg_relative_args *args,
                                                        int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_relative_values, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_relative_args *a = c.part[NRG_RELATIVE_ARGS];
    *dtype = a->dtype;
    *job = common_job(&c);
    if (has_terms(a)) {
        set_table(job, a, c.laid.stride[NRG_RELATIVE_VALUES_TABLE]);
        job->a = a->a;
        job->a_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_VALUES_A]);
    }
    job->out = a->o;
    job->ends_out = a->ends;
    job->out_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_VALUES_O]);
    share_rows(job, ith, nth);
    return NRG_OK;
}

nrg_status nrg_relative_values(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    const nrg_status status = make_values(&job, &dtype, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_values, dtype)(&job);
    return status;
}

nrg_status nrg_relative_values_check(const nrg_relative_args *args)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    return nrg_asked(make_values(&job, &dtype, args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
/* Every nth piece. */
static void share_pieces(nrg_relative_job *job, int ith, int nth)
{
    const size_t chunks = job->dim / NRG_RELATIVE_COLUMNS + (job->dim % NRG_RELATIVE_COLUMNS != 0);
    const size_t blocks = job->slots / NRG_RELATIVE_SLOTS + (job->slots % NRG_RELATIVE_SLOTS != 0);
    job->begin = (size_t)ith;
    job->end = chunks * job->tables * blocks;
    job->step = (size_t)nth;
}

static __attribute__((noinline)) nrg_status make_backward(nrg_relative_job *job, nrg_dtype *dtype, const nrg_relative_args *args,
                                                          int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_relative_backward, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_relative_args *a = c.part[NRG_RELATIVE_ARGS];
    const size_t *const stride = c.laid.stride[NRG_RELATIVE_BACKWARD_D_TABLE];
    *dtype = a->dtype;
    *job = common_job(&c);
    if (!job->tables || (!has_terms(a) && a->accumulate))
        return NRG_OK;
    if (has_terms(a)) {
        job->q = a->q;
        job->a = a->a;
        job->ends = a->ends_in;
        job->q_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_BACKWARD_Q]);
        job->a_strides = nrg_rows_together(c.laid.stride[NRG_RELATIVE_BACKWARD_A]);
    } else {
        job->batch = 0;
    }
    job->d_table = (float *)(void *)((char *)a->d_table + (job->slots - 1) * stride[0]);
    job->d_table_stride = stride[0];
    job->d_table_head_stride = job->tables > 1 ? stride[1] : 0;
    share_pieces(job, ith, nth);
    return NRG_OK;
}

nrg_status nrg_relative_backward(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    const nrg_status status = make_backward(&job, &dtype, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_backward, dtype)(&job);
    return status;
}

nrg_status nrg_relative_backward_check(const nrg_relative_args *args)
{
    nrg_relative_job job;
    nrg_dtype dtype;
    return nrg_asked(make_backward(&job, &dtype, args, 0, 1));
}
#endif
