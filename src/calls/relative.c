/* The public layer of nrg/relative.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/relative.h"
#include "../operands/place.h"
#include "../operands/relative.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/relative_calls.def"

_Static_assert((int)NRG_RELATIVE_SCORES_TABLE == (int)NRG_RELATIVE_VALUES_TABLE &&
                   (int)NRG_RELATIVE_SCORES_SCORES == (int)NRG_RELATIVE_VALUES_O &&
                   (int)NRG_RELATIVE_SCORES_Q == (int)NRG_RELATIVE_BACKWARD_Q,
               "operands of one number, whichever the call");

/* A job whose end is not behind its begin has nothing to do. Operands that a call does not have are NULL; the strides of ignored
 * ones are 0. */
NRG_OWN_FRAME nrg_status make_job(nrg_relative_job *job, const nrg_call *call, const nrg_relative_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = nrg_lay(&l, call, (const void *const[]){a}, ith, nth);
    if (status != NRG_OK)
        return status;
    const int is_values = call == &nrg_call_relative_values, has_terms = a->batch && a->heads && a->queries && a->keys;
    size_t(*const stride)[NRG_LEVELS] = l.stride;
    const size_t rows = has_terms || is_values ? a->batch * a->heads * a->queries : 0;
    *job = (nrg_relative_job){
        .q = a->q,
        .a = a->a,
        .out = a->scores ? a->scores : a->o,
        .ends = a->ends_in,
        .ends_out = a->ends,
        .q_strides = nrg_rows_together(stride[NRG_RELATIVE_SCORES_Q]),
        .a_strides = nrg_rows_together(stride[is_values ? NRG_RELATIVE_VALUES_A : NRG_RELATIVE_BACKWARD_A]),
        .out_strides = nrg_rows_together(stride[NRG_RELATIVE_SCORES_SCORES]),
        .batch = a->batch,
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .dim = a->dim,
        .slots = (size_t)((uint64_t)(a->p_max - a->p_min) + 1),
        .zero = a->first_position - a->p_max,
        .begin = nrg_share(rows, ith, nth),
        .end = nrg_share(rows, ith + 1, nth),
        .step = 1,
        .tables = a->table_per_head ? a->heads : 1,
        .table_f32 = nrg_own_dtype(a->table_dtype, a->dtype) == NRG_F32,
        .accumulate = a->accumulate != 0,
    };
    const int is_backward = call == &nrg_call_relative_backward;
    const size_t *const table = stride[is_backward ? NRG_RELATIVE_BACKWARD_D_TABLE : NRG_RELATIVE_SCORES_TABLE];
    const size_t last = job->tables ? (job->slots - 1) * table[0] : 0, head = job->tables > 1 ? table[1] : 0;
    if (!is_backward) {
        job->table = (const char *)a->table + last;
        job->table_stride = table[0];
        job->table_head_stride = head;
        return NRG_OK;
    }
    job->d_table = (float *)(void *)((char *)a->d_table + last);
    job->d_table_stride = table[0];
    job->d_table_head_stride = head;
    job->batch = has_terms ? a->batch : 0;
    /* every nth piece */
    const size_t chunks = job->dim / NRG_RELATIVE_COLUMNS + (job->dim % NRG_RELATIVE_COLUMNS != 0);
    const size_t blocks = job->slots / NRG_RELATIVE_SLOTS + (job->slots % NRG_RELATIVE_SLOTS != 0);
    job->begin = (size_t)ith;
    job->end = has_terms || !a->accumulate ? chunks * job->tables * blocks : 0;
    job->step = (size_t)nth;
    return NRG_OK;
}

NRG_TABLES(relative_scores)

nrg_status nrg_relative_scores(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    const nrg_status status = make_job(&job, &nrg_call_relative_scores, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_scores, args->dtype)(&job);
    return status;
}

nrg_status nrg_relative_scores_check(const nrg_relative_args *args) { return NRG_ASK(relative_scores, args); }

NRG_TABLES(relative_values)

nrg_status nrg_relative_values(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    const nrg_status status = make_job(&job, &nrg_call_relative_values, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_values, args->dtype)(&job);
    return status;
}

nrg_status nrg_relative_values_check(const nrg_relative_args *args) { return NRG_ASK(relative_values, args); }

#ifndef NRG_NO_BACKWARD
NRG_TABLES(relative_backward)

nrg_status nrg_relative_backward(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    const nrg_status status = make_job(&job, &nrg_call_relative_backward, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_backward, args->dtype)(&job);
    return status;
}

nrg_status nrg_relative_backward_check(const nrg_relative_args *args) { return NRG_ASK(relative_backward, args); }
#endif
