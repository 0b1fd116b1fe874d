/* The forward pass of a batch. All threads of the team call each function. SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "model.h"
#include "multiply.h"

static void forward_layer(minibatch *b, const layer_tensors *w, size_t layer, const float *x, const float *y, team *t, int ith)
{
    const shape *s = &b->shape;
    const layer_memory *m = &b->layer[layer];
    const size_t rows = b->rows, dim = s->dim, qkv = qkv_width(s), q = q_width(s), up = 2 * (size_t)s->ff;
    const int nth = t->nth;
    norm_rows(rows, dim, x, y, w->norm1, m->residual1, m->normed1, ith, nth);
    team_wait(t);
    multiply(rows, qkv, dim, rows_of(m->normed1, dim), rows_of(w->qkv, qkv), m->qkv, qkv, SUM_NEW, ith, nth);
    team_wait(t);
    rotate_heads(s, b->sequences, b->length, b->rope_table, m->qkv, w, m->q, m->k, ith, nth);
    team_wait(t);
    attend(b, layer, t, ith);
    team_wait(t);
    multiply(rows, dim, q, rows_of(m->heads, q), rows_of(w->out, dim), b->attended, dim, SUM_NEW, ith, nth);
    team_wait(t);
    norm_rows(rows, dim, m->residual1, b->attended, w->norm2, m->residual2, m->normed2, ith, nth);
    team_wait(t);
    multiply(rows, up, dim, rows_of(m->normed2, dim), rows_of(w->up, up), m->up, up, SUM_NEW, ith, nth);
    team_wait(t);
    gate_rows(s, rows, m->up, m->gated, ith, nth);
    team_wait(t);
    multiply(rows, dim, s->ff, rows_of(m->gated, s->ff), rows_of(w->down, dim), b->step, dim, SUM_NEW, ith, nth);
    team_wait(t);
}

void forward(minibatch *b, const tensors *w, team *t, int ith)
{
    const shape *s = &b->shape;
    const size_t rows = b->rows, dim = s->dim;
    const int nth = t->nth;
    nrg_embed_args embed = nrg_embed_args_init(NRG_F32, rows, dim, b->embedded);
    nrg_embed_table table = nrg_embed_table_init(VOCABULARY, w->embedding, b->in);
    embed.tables = &table;
    embed.table_count = 1;
    table.scale = embedding_scale(s);
    require(nrg_embed_forward(&embed, ith, nth), "embedding");
    team_wait(t);
    const float *x = b->embedded, *y = NULL;
    for (size_t layer = 0; layer < s->layers; layer++) {
        forward_layer(b, &w->layer[layer], layer, x, y, t, ith);
        x = b->layer[layer].residual2;
        y = b->step;
    }
    norm_rows(rows, dim, x, y, w->norm, b->residual, b->normed, ith, nth);
    team_wait(t);
    multiply(rows, VOCABULARY, dim, rows_of(b->normed, dim), transposed(rows_of(w->embedding, dim)), b->logits, VOCABULARY,
             SUM_NEW, ith, nth);
    team_wait(t);
    if (b->out != NULL) {
        const nrg_cross_entropy_args loss =
            nrg_cross_entropy_args_init(NRG_F32, rows, VOCABULARY, b->logits, b->out, b->loss, b->m, b->others);
        require(nrg_cross_entropy_forward(&loss, ith, nth), "cross-entropy");
        team_wait(t);
    }
}
