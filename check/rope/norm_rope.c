/* Norms fused with a rotation, against a norm and a rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "../layout.h"
#include "../norm/settle.h"
#include "rope.h"

/* The structs of a call, forward or backward. */
typedef struct norm_rope_call {
    nrg_norm_spec norm;
    nrg_rope_spec spec;
    nrg_rope_args rope;
    nrg_norm_args forward[2];
    nrg_norm_backward_args backward[2];
} norm_rope_call;
#define PARTS(call, args) ((void *const[]){&(call)->norm, &(call)->spec, &(call)->rope, &(call)->args[0], &(call)->args[1]})

static norm_rope_call call_of(const sweep_case *c, const rope_case *r)
{
    norm_rope_call call = {.norm = r->norm, .spec = r->spec, .rope = sweep_rope_args(c, r)};
    for (int k = 0; k < 2; k++) {
        call.forward[k] = nrg_norm_args_init(r->tokens * r->heads[k], NULL, NULL, NULL);
        call.backward[k] = nrg_norm_backward_args_init(r->tokens * r->heads[k], NULL, NULL, NULL, NULL);
        call.backward[k].accumulate = r->accumulate;
    }
    return call;
}

static void add_forward(sweep_case *c, const rope_case *r, norm_rope_call *call, uint32_t there)
{
    for (int k = 0; k < 2; k++) {
        if (!r->tokens || !r->heads[k])
            continue;
        there |= r->has_w[k] ? NRG_BIT(NRG_NORM_ROPE_Q_W + k) : 0;
        there |= r->has_b[k] ? NRG_BIT(NRG_NORM_ROPE_Q_B + k) : 0;
        there |= r->has_statistics[k] ? NRG_BIT(NRG_NORM_ROPE_Q_MEAN + k) | NRG_BIT(NRG_NORM_ROPE_Q_RSTD + k) : 0;
    }
    c->weights |= ~(uint32_t)0 << NRG_NORM_ROPE_Q_W;
    there |= sweep_rope_tensors(NRG_NORM_ROPE_Q_O);
    sweep_add_call(c, &nrg_call_norm_rope_forward, PARTS(call, forward), NULL, there,
                   sweep_rope_transposed(r, NRG_NORM_ROPE_Q_O));
}

#ifndef NRG_NO_BACKWARD
static void add_backward(sweep_case *c, const rope_case *r, norm_rope_call *call, uint32_t there)
{
    for (int k = 0; k < 2; k++) {
        if (!r->tokens || !r->heads[k])
            continue;
        there |= r->has_w[k] ? NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_W + k) | NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_DW + k) : 0;
        there |= r->has_b[k] ? NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_B + k) | NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_DB + k) : 0;
    }
    c->weights |= ~(uint32_t)0 << NRG_NORM_ROPE_BACKWARD_Q_W;
    there |= sweep_rope_tensors(NRG_NORM_ROPE_BACKWARD_Q_O);
    c->accumulate = r->accumulate;
    sweep_add_call(c, &nrg_call_norm_rope_backward, PARTS(call, backward), NULL, there,
                   sweep_rope_transposed(r, NRG_NORM_ROPE_BACKWARD_Q_O));
    for (int k = 0; k < 2; k++)
        if (!r->in_place[k])
            c->operands[SWEEP_OUT + k].over = 0;
}
#endif

void sweep_norm_rope_add(sweep_case *c, const rope_case *r)
{
    norm_rope_call call = call_of(c, r);
    call.norm.weight_offset = 0; /* of no operand's shape; run has weights for it, see norm_weights */
    const uint32_t there = r->has_positions ? NRG_BIT(NRG_ROPE_POSITIONS) : 0;
#ifndef NRG_NO_BACKWARD
    if (r->kind == ROPE_NORM_BACKWARD) {
        add_backward(c, r, &call, there);
        return;
    }
#endif
    add_forward(c, r, &call, there);
}

/* ---- forward ---- */

/* The real strides of heads and tokens. */
static nrg_head_strides strides_of(const nrg_head_strides *given, size_t heads, size_t bytes)
{
    nrg_head_strides real = *given;
    real.head = real.head ? real.head : bytes;
    real.row = real.row ? real.row : heads * real.head;
    return real;
}

/* One row at a time, so that strides are nobody's business. */
static nrg_status normalize(const rope_case *r, const norm_rope_call *call, int k)
{
    const nrg_rope_args *rope = &call->rope;
    nrg_norm_spec spec = r->norm;
    nrg_norm_args args = call->forward[k];
    const char *x = k ? rope->k : rope->q;
    char *o = k ? rope->k_o : rope->q_o;
    const size_t bytes = r->dim * nrg_dtype_size(rope->dtype), groups = r->norm.groups;
    const nrg_head_strides x_strides = strides_of(k ? &rope->k_strides : &rope->q_strides, r->heads[k], bytes);
    const nrg_head_strides o_strides = strides_of(k ? &rope->k_o_strides : &rope->q_o_strides, r->heads[k], bytes);
    nrg_status status = NRG_OK;
    args.rows = 1;
    norm_settle(&spec, args.w != NULL);
    for (size_t row = 0; row < r->tokens * r->heads[k] && status == NRG_OK; row++) {
        args.x = x + row / r->heads[k] * x_strides.row + row % r->heads[k] * x_strides.head;
        args.o = o + row / r->heads[k] * o_strides.row + row % r->heads[k] * o_strides.head;
        status = nrg_norm_forward(&spec, &args, 0, 1);
        if (args.mean)
            args.mean += groups;
        if (args.rstd)
            args.rstd += groups;
    }
    return status;
}

static nrg_status run_forward(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
    norm_rope_call call = call_of(c, r);
    nrg_rope_args *rope = &call.rope;
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_rope_forward, PARTS(&call, forward), NULL, memory);
    if (!c->recompute) {
        for (int k = 0; k < 2; k++)
            call.forward[k].w = norm_weights(&call.norm, call.forward[k].w);
        SWEEP_EACH_SHARE(status, c, c->shares,
                         nrg_norm_rope_forward(&call.norm, &call.spec, rope, &call.forward[0], &call.forward[1], ith, nth));
        return status;
    }
    status = normalize(r, &call, 0);
    if (status == NRG_OK)
        status = normalize(r, &call, 1);
    rope->q = rope->q_o;
    rope->k = rope->k_o;
    rope->q_strides = rope->q_o_strides;
    rope->k_strides = rope->k_o_strides;
    return status == NRG_OK ? nrg_rope_forward(&r->spec, rope, 0, 1) : status;
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

/* The gradient of a norm whose rotated gradient is in the place of the result. Tokens lie at equal distances over batches. */
static nrg_status differentiate(const sweep_case *c, const rope_case *r, nrg_norm_backward_args *args, int k,
                                unsigned char *memory)
{
    args->d_o = args->dx = sweep_place(c, SWEEP_OUT + k, memory);
    args->rows = r->tokens ? r->heads[k] : 0;
    args->rows2 = r->tokens;
    args->d_o_stride[0] = args->dx_stride[0] = sweep_stride(c, SWEEP_OUT + k);
    args->d_o_stride[1] = args->dx_stride[1] = sweep_run_stride(c, SWEEP_OUT + k);
    nrg_norm_spec spec = r->norm;
    norm_settle(&spec, args->w != NULL);
    const nrg_status status = nrg_norm_backward(&spec, args, 0, 1);
    return status == NRG_OK ? nrg_norm_backward_reduce(&spec, args, 0, 1) : status;
}

static nrg_status run_backward(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
    norm_rope_call call = call_of(c, r);
    nrg_norm_backward_args *q = &call.backward[0], *k = &call.backward[1];
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_rope_backward, PARTS(&call, backward), NULL, memory);
    if (!c->recompute) {
        q->w = norm_weights(&call.norm, q->w);
        k->w = norm_weights(&call.norm, k->w);
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_rope_backward(&call.norm, &call.spec, &call.rope, q, k, ith, nth));
        SWEEP_EACH_SHARE(status, c, c->reduce_shares,
                         nrg_norm_rope_backward_reduce(&call.norm, &call.spec, &call.rope, q, k, ith, nth));
        return status;
    }
    status = nrg_rope_backward(&r->spec, &call.rope, 0, 1);
    for (int i = 0; i < 2 && status == NRG_OK; i++)
        if (r->heads[i])
            status = differentiate(c, r, &call.backward[i], i, memory);
    return status;
}
#endif

nrg_status sweep_norm_rope_run(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
#ifndef NRG_NO_BACKWARD
    if (r->kind == ROPE_NORM_BACKWARD)
        return run_backward(c, r, memory);
#endif
    return run_forward(c, r, memory);
}
