/* The public layer of a rotation from positions on: checks the arguments once, makes what is missing in the share's slice of the
 * workspace, then calls through the table: a share's tokens, as many at a time as the slice has rows of the table.
 *
 * SPDX-License-Identifier: MIT */
#include "rope_slice.h"

/* A tensor, without its tokens; bytes from batch to batch. */
typedef struct batches {
    nrg_rope_job job;
    size_t x_stride, o_stride;
} batches;

/* A call whose arguments are sound. */
typedef struct positions_call {
    const nrg_rope_spec *spec;
    const nrg_rope_positions_args *args;
    size_t heads; /* of a token's q and k in all batches */
    nrg_rope_slice slice;
    rope_table table;
    batches of[2]; /* q and k */
} positions_call;

static void set_tensors(positions_call *call, const nrg_laid *l, int backward)
{
    const nrg_rope_positions_args *a = call->args;
    const nrg_rope_args rope = {.dim = a->dim,
                                .rotate_from = a->rotate_from,
                                .q_heads = a->q_heads,
                                .k_heads = a->k_heads,
                                .q = a->q,
                                .k = a->k,
                                .q_o = a->q_o,
                                .k_o = a->k_o,
                                .table = call->slice.table};
    for (int k = 0; k < 2; k++) {
        batches *const b = &call->of[k];
        const size_t *const x = l->stride[NRG_ROPE_POSITIONS_Q + k], *const o = (k ? a->k_o : a->q_o)
                                                                                    ? l->stride[NRG_ROPE_POSITIONS_Q_O + k]
                                                                                    : x;
        rope_fill_job(&b->job, call->spec, &rope, k, 2 * nrg_rope_pairs_of(call->spec) * sizeof(float), x, o, backward,
                      nrg_wants_stream_past_l3(a->store, l->bytes), nrg_is_far(l->bytes));
        b->x_stride = x[2];
        b->o_stride = o[2];
    }
}

/* heads is 0 if there is nothing to do. */
NRG_OWN_FRAME nrg_status make_call(positions_call *call, const nrg_rope_spec *spec, const nrg_rope_positions_args *a,
                                   int backward, int ith, int nth)
{
    nrg_laid l;
    const nrg_rope_shares shares = {nth > 0 ? nth : 1, backward};
    const nrg_status status = NRG_LAY(&l, rope_positions, spec, a, &shares);
    if (status != NRG_OK)
        return status;
    call->spec = spec;
    call->args = a;
    call->heads = a->tokens ? a->batch * (a->q_heads + a->k_heads) : 0;
    if (!call->heads)
        return NRG_OK;
    const nrg_rope_space space = {
        .slices = (size_t)nth, .tokens = a->tokens, .pairs = nrg_rope_pairs_of(spec), .axes = nrg_rope_axes(spec)};
    call->slice = nrg_rope_slice_at(&space, a->workspace, a->workspace_size, (size_t)ith);
    call->table.axes = space.axes;
    call->table.positions_stride = l.stride[NRG_ROPE_POSITIONS_POSITIONS][0];
    set_tensors(call, &l, backward);
    return NRG_OK;
}

/* Units begin to end, whose tokens the slice has room for: heads of tokens, a token's batches one after the other, q before k. */
static void run_units(positions_call *call, size_t begin, size_t end)
{
    const size_t token = begin / call->heads;
    rope_make_rows(&call->slice, call->spec, &call->table, call->args->positions, call->args->first_position, token,
                   (end - 1) / call->heads + 1 - token, call->args->keep != 0);
    begin -= token * call->heads;
    end -= token * call->heads;
    size_t before = 0;
    for (size_t batch = 0; batch < call->args->batch; batch++)
        for (int k = 0; k < 2; k++) {
            const batches *const b = &call->of[k];
            nrg_rope_job job = b->job;
            job.begin = rope_rows_before(begin, call->heads, before, job.heads);
            job.end = rope_rows_before(end, call->heads, before, job.heads);
            before += job.heads;
            if (job.begin == job.end)
                continue;
            job.x += batch * b->x_stride + token * job.x_token_stride;
            job.o += batch * b->o_stride + token * job.o_token_stride;
            NRG_ACTIVE_KERNEL(rope, call->args->dtype)(&job);
        }
}

static nrg_status rotate(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int backward, int ith, int nth)
{
    positions_call call;
    const nrg_status status = make_call(&call, spec, args, backward, ith, nth);
    if (status != NRG_OK || !call.heads)
        return status;
    if (!rope_make_frequencies(&call.slice, spec, nrg_rope_pairs_of(spec), args->keep != 0, nth))
        return NRG_ERR_CONSTANT;
    const size_t units = args->tokens * call.heads, end = nrg_share(units, ith + 1, nth);
    for (size_t unit = nrg_share(units, ith, nth); unit < end;) {
        const size_t most = (unit / call.heads + call.slice.rows) * call.heads, past = most < end ? most : end;
        run_units(&call, unit, past);
        unit = past;
    }
    return NRG_OK;
}

static nrg_status check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int backward, int nth)
{
    positions_call call;
    const nrg_status status = make_call(&call, spec, args, backward, 0, nth);
    return status != NRG_OK || !call.heads || nrg_rope_turns_exist(spec, nrg_rope_pairs_of(spec)) ? status : NRG_ERR_CONSTANT;
}

nrg_status nrg_rope_positions_forward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int ith, int nth)
{
    return rotate(spec, args, 0, ith, nth);
}

nrg_status nrg_rope_positions_forward_check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int nth)
{
    return nrg_asked(check(spec, args, 0, nth));
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_rope_positions_backward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int ith, int nth)
{
    return rotate(spec, args, 1, ith, nth);
}

nrg_status nrg_rope_positions_backward_check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int nth)
{
    return nrg_asked(check(spec, args, 1, nth));
}
#endif

nrg_status nrg_rope_positions_workspace(const nrg_rope_spec *spec, const nrg_rope_positions_args *args, int nth, size_t *bytes)
{
    const nrg_rope_shares shares = {nth, 0};
    return nrg_ask_bytes(bytes, &nrg_call_rope_positions_workspace, (const void *const[]){spec, args, &shares},
                         NRG_ROPE_POSITIONS_WORKSPACE_N_SPACE, sizeof(double));
}
