/* The public layer of nrg/relative_shift.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/relative.h"
#include "../operands/place.h"
#include "../operands/relative.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/relative_shift_calls.def"

/* ---- the shift ---- */

NRG_TABLES(relative_shift)

/* Forward and backward: the other slope. */
static nrg_status shift(const nrg_relative_shift_args *a, int backward, int ith, int nth)
{
    nrg_laid l;
    const nrg_call *call = backward ? &nrg_call_relative_shift_backward : &nrg_call_relative_shift_forward;
    const nrg_status status = nrg_lay(&l, call, (const void *const[]){a}, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t out_dim = backward ? a->rel : a->keys;
    /* fits where there are elements, since a tensor has so many rows */
    const size_t rows = a->batch && a->heads && a->queries && out_dim ? a->batch * a->heads * a->queries : 0;
    const nrg_relative_shift_job job = {
        .in = backward ? a->d_scores : a->x,
        .out = backward ? a->dx : a->scores,
        .in_strides = nrg_rows_together(l.stride[NRG_RELATIVE_SHIFT_IN]),
        .out_strides = nrg_rows_together(l.stride[NRG_RELATIVE_SHIFT_OUT]),
        .heads = a->heads,
        .rows = a->queries,
        .in_dim = backward ? a->keys : a->rel,
        .out_dim = out_dim,
        .first = backward ? -a->shift : a->shift,
        .slope = backward ? 1 : -1,
        .begin = nrg_share(rows, ith, nth),
        .end = nrg_share(rows, ith + 1, nth),
        .accumulate = a->accumulate != 0,
        .stream = !a->accumulate && nrg_wants_stream(a->store, l.bytes),
        .prefetch = nrg_wants_stream(NRG_STORE_AUTO, l.bytes),
    };
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(relative_shift, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_relative_shift_forward(const nrg_relative_shift_args *args, int ith, int nth) { return shift(args, 0, ith, nth); }

nrg_status nrg_relative_shift_forward_check(const nrg_relative_shift_args *args) { return NRG_ASK(relative_shift_forward, args); }

#ifndef NRG_NO_BACKWARD
nrg_status nrg_relative_shift_backward(const nrg_relative_shift_args *args, int ith, int nth) { return shift(args, 1, ith, nth); }

nrg_status nrg_relative_shift_backward_check(const nrg_relative_shift_args *args)
{
    return NRG_ASK(relative_shift_backward, args);
}
#endif

/* ---- the two biases ---- */

/* Whether the heads of a row lie together in a tensor; one that is not there does not matter. */
static int heads_together(const void *tensor, const nrg_head_strides *s, const nrg_head_bias_args *a)
{
    return !tensor || a->heads == 1 || s->head == a->dim * (a->dtype == NRG_F32 ? 4 : 2);
}

NRG_TABLES(head_bias_pair)

nrg_status nrg_head_bias_forward(const nrg_head_bias_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, head_bias_forward, a);
    if (status != NRG_OK)
        return status;
    const int in_place = a->o_u == a->q || a->o_v == a->q;
    nrg_head_bias_job job = {
        .q = a->q,
        .u = a->u,
        .v = a->v,
        .o_u = a->o_u,
        .o_v = a->o_v,
        .q_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_Q]),
        .o_u_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_O_U]),
        .o_v_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_O_V]),
        .heads = a->heads,
        .rows = a->rows,
        .dim = a->dim,
        .bias_f32 = nrg_own_dtype(a->bias_dtype, a->dtype) == NRG_F32,
        .stream = !in_place && nrg_wants_stream(a->store, l.bytes),
        .prefetch = nrg_wants_stream(NRG_STORE_AUTO, l.bytes),
        .out_far = l.bytes > NRG_NEAR_BYTES,
    };
    job.out_far &= !job.stream;
    if (!a->batch || !a->heads || !a->rows || !(a->o_u || a->o_v))
        return NRG_OK;
    if (heads_together(a->q, &job.q_strides, a) && heads_together(a->o_u, &job.o_u_strides, a) &&
        heads_together(a->o_v, &job.o_v_strides, a)) {
        job.dim *= job.heads;
        job.heads = 1;
    }
    const size_t rows = a->batch * a->rows * job.heads;
    job.begin = nrg_share(rows, ith, nth);
    job.end = nrg_share(rows, ith + 1, nth);
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(head_bias_pair, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_head_bias_forward_check(const nrg_head_bias_args *args) { return NRG_ASK(head_bias_forward, args); }

#ifndef NRG_NO_BACKWARD
NRG_TABLES(head_bias_pair_backward)

nrg_status nrg_head_bias_backward(const nrg_head_bias_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, head_bias_backward, a);
    if (status != NRG_OK)
        return status;
    const int any = a->batch && a->heads && a->rows, in_place = a->dq == a->d_o_u || a->dq == a->d_o_v;
    nrg_head_bias_backward_job job = {
        .d_o_u = a->d_o_u,
        .d_o_v = a->d_o_v,
        .dq = a->dq,
        .du = a->du,
        .dv = a->dv,
        .d_o_u_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_BACKWARD_D_O_U]),
        .d_o_v_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_BACKWARD_D_O_V]),
        .dq_strides = nrg_heads_together(l.stride[NRG_HEAD_BIAS_BACKWARD_DQ]),
        .batch = any ? a->batch : 0,
        .heads = a->heads,
        .rows = a->rows,
        .dim = a->dim,
        .accumulate = a->accumulate != 0,
        .stream = any && a->dq && !in_place && nrg_wants_stream(a->store, l.bytes),
        .prefetch = any && nrg_wants_stream(NRG_STORE_AUTO, l.bytes),
    };
    /* without rows the sums are 0 */
    if (!a->heads || !(a->du || a->dv || (a->dq && any)))
        return NRG_OK;
    const size_t columns = a->heads * a->dim, groups = columns / NRG_BIAS_COLUMNS + (columns % NRG_BIAS_COLUMNS != 0);
    const size_t end = nrg_share(groups, ith + 1, nth) * NRG_BIAS_COLUMNS;
    if (heads_together(a->d_o_u, &job.d_o_u_strides, a) && heads_together(a->d_o_v, &job.d_o_v_strides, a) &&
        heads_together(a->dq, &job.dq_strides, a)) {
        job.dim = columns;
        job.heads = 1;
    }
    job.begin = nrg_share(groups, ith, nth) * NRG_BIAS_COLUMNS;
    job.end = end < columns ? end : columns;
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(head_bias_pair_backward, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_head_bias_backward_check(const nrg_head_bias_args *args) { return NRG_ASK(head_bias_backward, args); }
#endif
