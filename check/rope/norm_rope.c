/* Norms fused with a rotation, against a norm and a rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "../layout.h"
#include "../position.h"
#include "rope.h"

static float any;

/* What phase 1 and 2 of the gradient take beside the rotation's tensors. */
static nrg_norm_backward_args backward_args(const sweep_case *c, const rope_case *r, int k, unsigned char *memory)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(r->tokens * r->heads[k], NULL, NULL, NULL);
    args.x = sweep_place(c, ROPE_Q_X + k, memory);
    args.x_stride = sweep_stride(c, ROPE_Q_X + k);
    args.w = sweep_place(c, ROPE_Q_W + k, memory);
    args.b = sweep_place(c, ROPE_Q_B + k, memory);
    args.dw = sweep_place(c, ROPE_Q_DW + k, memory);
    args.db = sweep_place(c, ROPE_Q_DB + k, memory);
    args.workspace = sweep_place(c, ROPE_Q_WORKSPACE + k, memory);
    args.workspace_size = c->operands[ROPE_Q_WORKSPACE + k].length * sizeof(float);
    args.accumulate = r->accumulate;
    return args;
}

static void add_gradients(sweep_case *c, const rope_case *r, int k)
{
    size_t bytes;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(r->tokens * r->heads[k], NULL, NULL, NULL);
    args.dw = r->has_w[k] ? &any : NULL;
    args.db = r->has_b[k] ? &any : NULL;
    sweep_add_tensor(c, ROPE_Q_X + k, c->spec.dtype, r->dim, r->tokens * r->heads[k]);
    if (r->has_w[k])
        sweep_add_dense(c, ROPE_Q_DW + k, NRG_F32, r->dim, 1);
    if (r->has_b[k])
        sweep_add_dense(c, ROPE_Q_DB + k, NRG_F32, r->dim, 1);
    if (r->accumulate) {
        sweep_accumulate(c, ROPE_Q_DW + k);
        sweep_accumulate(c, ROPE_Q_DB + k);
    }
    if (nrg_norm_backward_workspace(&r->norm, &args, &bytes) == NRG_OK && bytes)
        sweep_add_dense(c, ROPE_Q_WORKSPACE + k, NRG_F32, bytes / sizeof(float), 1);
}

void sweep_norm_rope_add(sweep_case *c, const rope_case *r)
{
    for (int k = 0; k < 2; k++) {
        size_t rows = r->tokens * r->heads[k];
        if (!rows)
            continue;
        if (r->has_w[k])
            sweep_add_dense(c, ROPE_Q_W + k, r->norm.w_dtype, r->dim, 1);
        if (r->has_b[k])
            sweep_add_dense(c, ROPE_Q_B + k, r->norm.w_dtype, r->dim, 1);
        if (r->kind == ROPE_NORM_BACKWARD)
            add_gradients(c, r, k);
        else if (r->has_statistics[k]) {
            sweep_add_dense(c, ROPE_Q_MEAN + k, NRG_F32, r->norm.groups ? r->norm.groups : 1, rows);
            sweep_add_dense(c, ROPE_Q_RSTD + k, NRG_F32, r->norm.groups ? r->norm.groups : 1, rows);
        }
    }
}

static nrg_norm_args forward_args(const sweep_case *c, int k, unsigned char *memory)
{
    nrg_norm_args args = nrg_norm_args_init(0, NULL, NULL);
    args.w = sweep_place(c, ROPE_Q_W + k, memory);
    args.b = sweep_place(c, ROPE_Q_B + k, memory);
    args.mean = sweep_place(c, ROPE_Q_MEAN + k, memory);
    args.rstd = sweep_place(c, ROPE_Q_RSTD + k, memory);
    return args;
}

/* One row at a time, so that strides are nobody's business. */
static nrg_status normalize(const sweep_case *c, const rope_case *r, const nrg_rope_args *rope, int k, unsigned char *memory)
{
    nrg_norm_args args = forward_args(c, k, memory);
    const char *x = k ? rope->k : rope->q;
    char *o = k ? rope->k_o : rope->q_o;
    size_t token_stride = k ? rope->k_token_stride : rope->q_token_stride,
           head_stride = k ? rope->k_head_stride : rope->q_head_stride;
    size_t o_token_stride = k ? rope->k_o_token_stride : rope->q_o_token_stride,
           o_head_stride = k ? rope->k_o_head_stride : rope->q_o_head_stride, groups = r->norm.groups ? r->norm.groups : 1;
    nrg_status status = NRG_OK;
    args.rows = 1;
    for (size_t row = 0; row < r->tokens * r->heads[k] && status == NRG_OK; row++) {
        size_t token = row / r->heads[k], head = row % r->heads[k];
        args.x = x + token * token_stride + head * head_stride;
        args.o = o + token * o_token_stride + head * o_head_stride;
        status = nrg_norm_forward(&r->norm, &args, 0, 1);
        args.mean += args.mean ? groups : 0;
        args.rstd += args.rstd ? groups : 0;
    }
    return status;
}

static nrg_status run_forward(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
    nrg_rope_args rope = sweep_rope_args(c, r, memory);
    nrg_norm_args q = forward_args(c, 0, memory), k = forward_args(c, 1, memory);
    nrg_status status = NRG_OK;
    if (!c->recompute) {
        for (int i = 0; i < c->shares && status == NRG_OK; i++)
            status = nrg_norm_rope_forward(&r->norm, &r->spec, &rope, &q, &k, sweep_share(c, i, c->shares), c->shares);
        return status;
    }
    status = normalize(c, r, &rope, 0, memory);
    if (status == NRG_OK)
        status = normalize(c, r, &rope, 1, memory);
    rope.q = rope.q_o;
    rope.k = rope.k_o;
    rope.q_token_stride = rope.q_o_token_stride;
    rope.q_head_stride = rope.q_o_head_stride;
    rope.k_token_stride = rope.k_o_token_stride;
    rope.k_head_stride = rope.k_o_head_stride;
    return status == NRG_OK ? nrg_rope(&r->spec, &rope, 0, 1) : status;
}

/* The gradient of a norm whose rotated gradient is in the place of the result. */
static nrg_status differentiate(const sweep_case *c, const rope_case *r, int k, unsigned char *memory)
{
    nrg_norm_backward_args args = backward_args(c, r, k, memory);
    args.d_o = args.dx = sweep_place(c, ROPE_Q_O + k, memory);
    args.d_o_stride = args.dx_stride = sweep_stride(c, ROPE_Q_O + k);
    nrg_status status = nrg_norm_backward(&r->norm, &args, 0, 1);
    return status == NRG_OK ? nrg_norm_backward_reduce(&r->norm, &args, 0, 1) : status;
}

static nrg_status run_backward(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
    nrg_rope_args rope = sweep_rope_args(c, r, memory);
    nrg_norm_backward_args q = backward_args(c, r, 0, memory), k = backward_args(c, r, 1, memory);
    nrg_status status = NRG_OK;
    if (!c->recompute) {
        for (int i = 0; i < c->shares && status == NRG_OK; i++)
            status = nrg_norm_rope_backward(&r->norm, &r->spec, &rope, &q, &k, sweep_share(c, i, c->shares), c->shares);
        for (int i = 0; i < c->reduce_shares && status == NRG_OK; i++)
            status = nrg_norm_rope_backward_reduce(&r->norm, &r->spec, &rope, &q, &k, sweep_share(c, i, c->reduce_shares),
                                                   c->reduce_shares);
        return status;
    }
    rope.backward = 1;
    status = nrg_rope(&r->spec, &rope, 0, 1);
    for (int i = 0; i < 2 && status == NRG_OK; i++)
        if (r->heads[i])
            status = differentiate(c, r, i, memory);
    return status;
}

nrg_status sweep_norm_rope_run(const sweep_case *c, const rope_case *r, unsigned char *memory)
{
    return r->kind == ROPE_NORM_BACKWARD ? run_backward(c, r, memory) : run_forward(c, r, memory);
}
