/* The backward pass of a batch, last step first. All threads of the team call each function.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "model.h"
#include "multiply.h"

/* o = x · w: dx, and dw overwritten. */
static void product_backward(size_t rows, size_t in, size_t out, const float *x, const float *w, const float *d_o, float *dx,
                             float *dw, int ith, int nth)
{
    multiply(rows, in, out, rows_of(d_o, out), transposed(rows_of(w, out)), dx, in, SUM_NEW, ith, nth);
    multiply(in, out, rows, transposed(rows_of(x, in)), rows_of(d_o, out), dw, out, SUM_NEW, ith, nth);
}

/* The norm of r, to whose gradient dr_in is added: dr, and dw. Two phases. */
static void norm_backward(minibatch *b, const float *r, const float *w, const float *d_o, const float *dr_in, float *dr,
                          float *dw, team *t, int ith)
{
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, b->shape.dim, norm_eps);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(b->rows, NULL, w, d_o, dr);
    args.r = r;
    args.dr_in = dr_in;
    args.dw = dw;
    args.workspace = b->workspace;
    args.workspace_size = b->workspace_size / 2;
    require(nrg_norm_backward(&spec, &args, ith, t->nth), "norm, backward");
    team_wait(t);
    require(nrg_norm_backward_reduce(&spec, &args, ith, t->nth), "norm, backward: weights");
    team_wait(t);
}

/* From the gradients of rotated heads to those of the first two parts of the rows of qkv. */
static void rotate_backward(minibatch *b, const layer_tensors *w, const layer_tensors *d, size_t layer, team *t, int ith)
{
    const shape *s = &b->shape;
    const float *qkv = b->layer[layer].qkv;
    const size_t row = qkv_width(s) * sizeof *qkv, head = s->head * sizeof *qkv, half = b->workspace_size / 2;
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, s->head, norm_eps);
    const nrg_rope_spec rope = nrg_rope_spec_init(s->head, NRG_ROPE_NEOX, rope_base);
    nrg_rope_args args = nrg_rope_args_init(NRG_F32, b->length, s->head, b->rope_table);
    args.batch = b->sequences;
    args.q_heads = s->heads;
    args.k_heads = s->kv_heads;
    args.q = b->d_q;
    args.k = b->d_k;
    args.q_o = b->d_qkv;
    args.k_o = b->d_qkv + q_width(s);
    args.q_o_strides.row = args.k_o_strides.row = row;
    nrg_norm_backward_args q = nrg_norm_backward_args_init(b->rows * s->heads, qkv, w->q_norm, NULL, NULL), k;
    q.x_stride[0] = head;
    q.x_stride[1] = row;
    q.dw = d->q_norm;
    q.workspace = b->workspace;
    q.workspace_size = half;
    k = q;
    k.rows = b->rows * s->kv_heads;
    k.x = qkv + q_width(s);
    k.w = w->k_norm;
    k.dw = d->k_norm;
    k.workspace = (char *)b->workspace + half;
    require(nrg_norm_rope_backward(&norm, &rope, &args, &q, &k, ith, t->nth), "rotation, backward");
    team_wait(t);
    require(nrg_norm_rope_backward_reduce(&norm, &rope, &args, &q, &k, ith, t->nth), "rotation, backward: weights");
    team_wait(t);
}

static void gate_backward(minibatch *b, const float *up, int ith, int nth)
{
    const size_t ff = b->shape.ff;
    nrg_glu_args args = nrg_glu_args_halves(NRG_ACT_SILU, NRG_F32, b->rows, ff, up, 0, NULL);
    args.d_o = b->d_gated;
    args.da = b->d_up;
    args.db = b->d_up + ff;
    args.da_stride[0] = args.db_stride[0] = 2 * ff * sizeof *up;
    require(nrg_glu_backward(&args, ith, nth), "SwiGLU, backward");
}

/* d_rows: the gradient of what the layer has added up, and then of what it was given. */
static void backward_layer(minibatch *b, const layer_tensors *w, const layer_tensors *d, size_t layer, team *t, int ith)
{
    const shape *s = &b->shape;
    const layer_memory *m = &b->layer[layer];
    const size_t rows = b->rows, dim = s->dim, up = 2 * (size_t)s->ff;
    const int nth = t->nth;
    product_backward(rows, s->ff, dim, m->gated, w->down, b->d_rows, b->d_gated, d->down, ith, nth);
    team_wait(t);
    gate_backward(b, m->up, ith, nth);
    team_wait(t);
    product_backward(rows, dim, up, m->normed2, w->up, b->d_up, b->d_normed, d->up, ith, nth);
    team_wait(t);
    norm_backward(b, m->residual2, w->norm2, b->d_normed, b->d_rows, b->d_rows, d->norm2, t, ith);
    product_backward(rows, q_width(s), dim, m->heads, w->out, b->d_rows, b->d_heads, d->out, ith, nth);
    team_wait(t);
    attend_backward(b, layer, t, ith);
    team_wait(t);
    rotate_backward(b, w, d, layer, t, ith);
    product_backward(rows, dim, qkv_width(s), m->normed1, w->qkv, b->d_qkv, b->d_normed, d->qkv, ith, nth);
    team_wait(t);
    norm_backward(b, m->residual1, w->norm1, b->d_normed, b->d_rows, b->d_rows, d->norm1, t, ith);
}

static void embedding_backward(minibatch *b, const tensors *w, const tensors *d, team *t, int ith)
{
    const shape *s = &b->shape;
    nrg_embed_table table = nrg_embed_table_init(VOCABULARY, w->embedding, b->in);
    table.scale = embedding_scale(s);
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, b->rows, s->dim, b->d_rows);
    nrg_embed_gradient gradient_of_table = nrg_embed_gradient_init(table, d->embedding);
    args.tables = &gradient_of_table;
    args.table_count = 1;
    gradient_of_table.accumulate = 1; /* to what the head has left there */
    args.workspace = b->workspace;
    args.workspace_size = b->workspace_size;
    if (ith == 0)
        require(nrg_embed_backward_order(&args), "embedding, backward: order");
    team_wait(t);
    require(nrg_embed_backward(&args, ith, t->nth), "embedding, backward");
    team_wait(t);
}

void backward(minibatch *b, const tensors *w, const tensors *d, team *t, int ith)
{
    const shape *s = &b->shape;
    const size_t rows = b->rows, dim = s->dim;
    const int nth = t->nth;
    nrg_cross_entropy_args loss = nrg_cross_entropy_args_init(NRG_F32, rows, VOCABULARY, b->logits, b->out, NULL, NULL, NULL);
    loss.m_in = b->m;
    loss.others_in = b->others;
    loss.d_loss = b->d_loss;
    loss.dx = b->d_logits;
    require(nrg_cross_entropy_backward(&loss, ith, nth), "cross-entropy, backward");
    team_wait(t);
    multiply(rows, dim, VOCABULARY, rows_of(b->d_logits, VOCABULARY), rows_of(w->embedding, dim), b->d_normed, dim, SUM_NEW, ith,
             nth);
    multiply(VOCABULARY, dim, rows, transposed(rows_of(b->d_logits, VOCABULARY)), rows_of(b->normed, dim), d->embedding, dim,
             SUM_NEW, ith, nth);
    team_wait(t);
    norm_backward(b, b->residual, w->norm, b->d_normed, NULL, b->d_rows, d->norm, t, ith);
    for (size_t layer = s->layers; layer-- > 0;)
        backward_layer(b, &w->layer[layer], &d->layer[layer], layer, t, ith);
    embedding_backward(b, w, d, t, ith);
}
