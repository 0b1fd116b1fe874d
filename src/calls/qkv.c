/* The public layer of what lies between the projections and attention: checks the arguments once, makes what is missing in the
 * share's slice of the workspace, then calls through the table: a share's tokens, as many at a time as the slice has a table for.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/place.h"
#include "../operands/qkv.h"
#include "norm_formula.h"
#include "qkv_slots.h"
#include "rope_slice.h"

#define NRG_MAKE_TABLES
#include "../operands/qkv_calls.def"

enum { Q, K, V, TENSORS };

/* What q, k and v have each of their own. Strides: of heads, then of tokens. */
typedef struct qkv_tensor {
    const char *x;
    char *o;
    size_t x_strides[2], o_strides[2];
    size_t heads, dim;
    nrg_dtype o_dtype; /* of q8_0: of the halves it is made of */
    int is_quantized;
} qkv_tensor;

/* A call whose arguments are sound. */
typedef struct qkv_call {
    const nrg_rope_spec *spec;
    const nrg_qkv_args *args;
    nrg_rope_slice slice; /* of the share */
    rope_table table;     /* of the tokens that are next */
    qkv_tensor tensor[TENSORS];
    nrg_qkv_job job; /* of one after the other: what they have in common */
    size_t heads;    /* of a token's q, k and v together */
    nrg_rope_space space;
    int is_turned, stream, far; /* is_turned: there is q or k */
} qkv_call;

NRG_OWN_FRAME nrg_status make_call(qkv_call *call, const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *a,
                                   int backward, int ith, int nth)
{
    nrg_laid l;
    const nrg_rope_shares shares = {nth > 0 ? nth : 1, backward};
    /* without a norm the call is plain where it is with one that takes nothing */
    const nrg_norm_spec none = nrg_norm_spec_rms(NRG_F32, a ? a->dim : 0, 0);
    const int is_bare = !norm && a && !(a->q_w || a->k_w || a->q_b || a->k_b);
    const int is_plain = qkv_precheck(rope, a, &shares, is_bare ? &none : norm, ith, nth, &l) == NRG_OK;
    nrg_status status = is_plain ? NRG_OK
                        : norm   ? NRG_LAY(&l, qkv, rope, a, &shares, norm)
                                 : NRG_LAY(&l, qkv_bare, rope, a, &shares);
    if (status != NRG_OK)
        return status;
    call->heads = a->tokens ? a->q_heads + a->k_heads + a->v_heads : 0;
    if (!call->heads)
        return NRG_OK;
    if (a->slots && (status = qkv_check_slots(a->slots, a->tokens, a->slot_count)) != NRG_OK)
        return status;
    call->table.positions_stride = l.stride[NRG_QKV_POSITIONS][0];
    const size_t heads[TENSORS] = {a->q_heads, a->k_heads, a->v_heads};
    const void *const x[TENSORS] = {a->q, a->k, a->v};
    void *const o[TENSORS] = {a->q_o, a->k_o, a->v_o};
    const nrg_dtype o_dtype[TENSORS] = {a->q_o_dtype, a->k_o_dtype, a->v_o_dtype};
    const nrg_quant_format format[TENSORS] = {NRG_QUANT_NONE, a->k_o_format, a->v_o_format};
    size_t bytes = 0;
    for (unsigned i = 0; i < TENSORS; i++) {
        call->tensor[i] = (qkv_tensor){
            .x = x[i],
            .o = o[i],
            .x_strides = {l.stride[NRG_QKV_Q + i][0], l.stride[NRG_QKV_Q + i][1]},
            .o_strides = {l.stride[NRG_QKV_Q_O + i][0], l.stride[NRG_QKV_Q_O + i][1]},
            .heads = heads[i],
            .dim = i == V ? a->v_dim : a->dim,
            .o_dtype = nrg_qkv_cache_dtype(format[i], o_dtype[i], a->dtype),
            .is_quantized = format[i] != NRG_QUANT_NONE,
        };
        const qkv_tensor *const t = &call->tensor[i];
        bytes += a->tokens * t->heads * t->dim * (nrg_dtype_size(a->dtype) + nrg_dtype_size(t->o_dtype));
    }
    call->space = (nrg_rope_space){
        .slices = (size_t)nth,
        .tokens = a->tokens,
        .block = nrg_qkv_block_rows(a) * a->dim * sizeof(float),
        .pairs = nrg_rope_pairs_of(rope),
        .axes = nrg_rope_axes(rope),
    };
    call->spec = rope;
    call->args = a;
    call->is_turned = (a->q_heads | a->k_heads) != 0;
    call->slice = nrg_rope_slice_at(&call->space, a->workspace, a->workspace_size, (size_t)ith);
    call->table.axes = call->space.axes;
    call->stream = nrg_wants_stream_past_l3(a->store, bytes);
    call->far = nrg_is_far(bytes);
    nrg_qkv_job *const job = &call->job;
    job->block = call->slice.block;
    job->block_rows = nrg_qkv_block_rows(a);
    job->has_norm = norm != NULL;
    if (job->has_norm)
        begin_norm(&job->turn.norm, norm, NULL, NULL); /* those of q or k */
    job->turn.rope.positions = NULL;
    job->turn.rope.table_stride = 2 * call->space.pairs * sizeof(float);
    job->turn.rope.offset = a->rotate_from;
    job->turn.rope.pairs = call->space.pairs;
    job->turn.rope.interleaved = rope->mode == NRG_ROPE_NORMAL;
    job->turn.rope.backward = backward;
    return NRG_OK;
}

NRG_TABLES(qkv)

/* Rows first to end of a tensor of tokens that the table has, of which `token` is the first. slots: of these tokens; NULL: they
 * follow each other from `row` on. Everything that a kernel may have changed is set. */
static inline void run_rows(qkv_call *call, int which, size_t token, const int64_t *slots, size_t row, size_t first, size_t end)
{
    const qkv_tensor *const t = &call->tensor[which];
    nrg_qkv_job *const job = &call->job;
    nrg_rope_job *const rope = &job->turn.rope;
    job->slots = slots;
    job->is_copy = which == V;
    job->is_quantized = t->is_quantized;
    job->o_dtype = t->o_dtype;
    if (which != V) {
        job->turn.norm.w = (const char *)(which == Q ? call->args->q_w : call->args->k_w);
        job->turn.norm.b = (const char *)(which == Q ? call->args->q_b : call->args->k_b);
    }
    rope->begin = first;
    rope->end = end;
    rope->x = t->x + token * t->x_strides[1];
    rope->o = slots ? t->o : t->o + row * t->o_strides[1];
    rope->table = (const char *)call->slice.table;
    rope->x_head_stride = t->x_strides[0];
    rope->x_token_stride = t->x_strides[1];
    rope->o_head_stride = t->o_strides[0];
    rope->o_token_stride = t->o_strides[1];
    rope->heads = t->heads;
    rope->dim = t->dim;
    rope->stream = which == Q && call->stream;
    rope->far = call->far;
    NRG_ACTIVE_KERNEL(qkv, call->args->dtype)(job);
}

/* Units begin to end, whose tokens the slice has room for. */
static void run_units(qkv_call *call, size_t begin, size_t end)
{
    const size_t token = begin / call->heads, tokens = (end - 1) / call->heads + 1 - token;
    if (call->is_turned)
        rope_make_rows(&call->slice, call->spec, &call->table, call->args->positions, call->args->first_position, token, tokens,
                       call->args->keep != 0);
    const int64_t *const slots = call->args->slots ? call->args->slots + token : NULL;
    const int in_turn = !slots || qkv_slots_are_in_turn(slots, tokens);
    size_t before = 0;
    begin -= token * call->heads;
    end -= token * call->heads;
    for (int i = 0; i < TENSORS; i++) {
        const size_t heads = call->tensor[i].heads;
        if (!heads)
            continue;
        const int64_t *const own = i == Q || in_turn ? NULL : slots;
        const size_t row = i != Q && slots && in_turn ? (size_t)slots[0] : token;
        size_t first = rope_rows_before(begin, call->heads, before, heads);
        const size_t last = rope_rows_before(end, call->heads, before, heads);
        before += heads;
        for (size_t past; first < last; first = past) {
            past = own ? qkv_rows_with_slots(own, heads, &first, last) : last;
            if (first < past)
                run_rows(call, i, token, own, row, first, past);
        }
    }
}

static nrg_status run(qkv_call *call, int ith, int nth)
{
    if (call->is_turned && !rope_make_frequencies(&call->slice, call->spec, call->space.pairs, call->args->keep != 0, nth))
        return NRG_ERR_CONSTANT;
    const size_t units = call->args->tokens * call->heads, end = nrg_share(units, ith + 1, nth);
    for (size_t unit = nrg_share(units, ith, nth); unit < end;) {
        const size_t most = (unit / call->heads + call->slice.rows) * call->heads, past = most < end ? most : end;
        run_units(call, unit, past);
        unit = past;
    }
    return NRG_OK;
}

nrg_status nrg_qkv_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *args, int ith, int nth)
{
    qkv_call call;
    const nrg_status status = make_call(&call, norm, rope, args, 0, ith, nth);
    return status != NRG_OK || !call.heads ? status : run(&call, ith, nth);
}

static nrg_status check(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *a, int backward, int nth)
{
    qkv_call call;
    const nrg_status status = make_call(&call, norm, rope, a, backward, 0, nth);
    if (status != NRG_OK || !call.heads || !call.is_turned)
        return status;
    return nrg_rope_turns_exist(rope, call.space.pairs) ? NRG_OK : NRG_ERR_CONSTANT;
}

nrg_status nrg_qkv_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth)
{
    return nrg_asked(check(norm, rope, args, 0, nth));
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_qkv_backward(const nrg_rope_spec *rope, const nrg_qkv_args *args, int ith, int nth)
{
    qkv_call call;
    const nrg_status status = make_call(&call, NULL, rope, args, 1, ith, nth);
    return status != NRG_OK || !call.heads ? status : run(&call, ith, nth);
}

nrg_status nrg_qkv_backward_check(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth)
{
    return nrg_asked(check(NULL, rope, args, 1, nth));
}
#endif

nrg_status nrg_qkv_workspace(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, size_t *bytes)
{
    const nrg_rope_shares shares = {nth, 0};
    return nrg_ask_bytes(bytes, &nrg_call_qkv_workspace, (const void *const[]){rope, args, &shares}, NRG_QKV_WORKSPACE_N_SPACE,
                         sizeof(double));
}
