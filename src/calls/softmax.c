/* The public layer of softmax: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/softmax.h"
#include "../operands/place.h"
#include "../operands/softmax.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/softmax_calls.def"

/* The first position is within ±2^61, and queries and keys are at most 2^61. So no query is 2^62 away from a key, and a window of
 * 2^62 cuts nothing. */
static nrg_softmax_sight sight_of(int causal, size_t window, int64_t first)
{
    const int64_t far = (int64_t)1 << 62;
    const int has_window = window != SIZE_MAX && (uint64_t)window < (uint64_t)far;
    const int64_t w = has_window ? (int64_t)window : far;
    return (nrg_softmax_sight){.first = has_window ? first - w + 1 : -far,
                               .last = causal       ? first + 1
                                       : has_window ? first + w
                                                    : far};
}

/* Field by field: a literal clears all of it first, by a string instruction. */
static inline void fill_job(nrg_softmax_job *job, const nrg_softmax_args *a, const nrg_laid *l, int ith, int nth)
{
    const size_t rows = a->keys ? a->batch * a->heads * a->queries : 0;
    job->x = a->x;
    job->mask = a->mask;
    job->diagonals = (const char *)a->diagonals;
    job->slopes = a->slopes;
    job->sinks = a->sinks;
    job->o = a->o;
    job->m_in = NULL;
    job->s_in = NULL;
    job->m = job->factor = NULL;
    job->s = NULL;
    job->given = NULL;
    job->without = 0;
    job->x_stride = nrg_rows_together(l->stride[NRG_SOFTMAX_X]);
    job->mask_stride = nrg_rows_together(l->stride[NRG_SOFTMAX_MASK]);
    job->o_stride = nrg_rows_together(l->stride[NRG_SOFTMAX_O]);
    job->diagonals_stride = l->stride[NRG_SOFTMAX_DIAGONALS][0];
    job->heads = a->heads;
    job->queries = a->queries;
    job->keys = a->keys;
    job->begin = nrg_share(rows, ith, nth);
    job->end = nrg_share(rows, ith + 1, nth);
    job->sight = sight_of(a->causal, a->window, a->first_position);
    job->scale = a->cap < FLT_MAX ? a->scale / a->cap : a->scale;
    job->cap = a->cap < FLT_MAX ? a->cap : 0;
    job->mask_dtype = nrg_own_dtype(a->mask_dtype, a->dtype);
    job->log = a->log != 0;
    job->stream = nrg_wants_stream(a->store, l->bytes);
}

NRG_OWN_FRAME nrg_status make_job(nrg_softmax_job *job, const nrg_softmax_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = softmax_forward_precheck(a, ith, nth, &l) == NRG_OK ? NRG_OK : NRG_LAY(&l, softmax_forward, a);
    if (status == NRG_OK)
        fill_job(job, a, &l, ith, nth);
    return status;
}

NRG_TABLES(softmax)

nrg_status nrg_softmax_forward(const nrg_softmax_args *args, int ith, int nth)
{
    nrg_softmax_job job;
    const nrg_status status = make_job(&job, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(softmax, args->dtype)(&job);
    return status;
}

nrg_status nrg_softmax_forward_check(const nrg_softmax_args *args) { return NRG_ASK(softmax_forward, args); }

NRG_OWN_FRAME nrg_status make_part(nrg_softmax_job *job, const nrg_softmax_args *a, const nrg_softmax_state *state, int ith,
                                   int nth)
{
    nrg_laid l;
    const nrg_status status =
        softmax_part_precheck(a, state, ith, nth, &l) == NRG_OK ? NRG_OK : NRG_LAY(&l, softmax_part, a, state);
    if (status != NRG_OK)
        return status;
    fill_job(job, a, &l, ith, nth);
    job->m_in = state->m_in;
    job->s_in = state->sum_in;
    job->m = state->m;
    job->s = state->sum;
    job->factor = state->factor;
    return NRG_OK;
}

nrg_status nrg_softmax_part(const nrg_softmax_args *args, const nrg_softmax_state *state, int ith, int nth)
{
    nrg_softmax_job job;
    const nrg_status status = make_part(&job, args, state, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(softmax, args->dtype)(&job);
    return status;
}

nrg_status nrg_softmax_part_check(const nrg_softmax_args *args, const nrg_softmax_state *state)
{
    return NRG_ASK(softmax_part, args, state);
}

#ifndef NRG_NO_BACKWARD
NRG_OWN_FRAME nrg_status make_backward_job(nrg_softmax_backward_job *job, const nrg_softmax_backward_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = softmax_backward_precheck(a, ith, nth, &l) == NRG_OK ? NRG_OK : NRG_LAY(&l, softmax_backward, a);
    if (status != NRG_OK)
        return status;
    const size_t rows = a->keys ? a->batch * a->heads * a->queries : 0;
    *job = (nrg_softmax_backward_job){
        .o = a->o,
        .d_o = a->d_o,
        .x = a->x,
        .dx = a->dx,
        .o_stride = nrg_rows_together(l.stride[NRG_SOFTMAX_BACKWARD_O]),
        .d_o_stride = nrg_rows_together(l.stride[NRG_SOFTMAX_BACKWARD_D_O]),
        .x_stride = nrg_rows_together(l.stride[NRG_SOFTMAX_BACKWARD_X]),
        .dx_stride = nrg_rows_together(l.stride[NRG_SOFTMAX_BACKWARD_DX]),
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .begin = nrg_share(rows, ith, nth),
        .end = nrg_share(rows, ith + 1, nth),
        .sight = sight_of(a->causal, a->window, a->first_position),
        .scale = a->scale,
        .inner = a->cap < FLT_MAX ? a->scale / a->cap : a->scale,
        .log = a->log != 0,
        .stream = nrg_wants_stream(a->store, l.bytes),
    };
    return NRG_OK;
}

NRG_TABLES(softmax_backward)

nrg_status nrg_softmax_backward(const nrg_softmax_backward_args *args, int ith, int nth)
{
    nrg_softmax_backward_job job;
    const nrg_status status = make_backward_job(&job, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(softmax_backward, args->dtype)(&job);
    return status;
}

nrg_status nrg_softmax_backward_check(const nrg_softmax_backward_args *args) { return NRG_ASK(softmax_backward, args); }
#endif
