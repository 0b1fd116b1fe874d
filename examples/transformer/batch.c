/* Memory of the passes of a batch. See model.h. SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

typedef struct block {
    float *at;
    size_t total;
} block;

/* Each tensor begins at a cache line, so that the speed of none depends on the sizes of others. */
static float *cut(block *m, size_t size)
{
    float *at = m->at == NULL ? NULL : m->at + m->total;
    m->total += (size + 15) / 16 * 16;
    return at;
}

static void divide(minibatch *b, block *m, int backward)
{
    const shape *s = &b->shape;
    const size_t n = b->rows, dim = n * s->dim, q = n * q_width(s), kv = n * kv_width(s), qkv = n * qkv_width(s);
    const size_t scores = n * s->heads * b->length, ff = n * s->ff, logits = n * VOCABULARY;
    for (size_t i = 0; i < s->layers; i++)
        b->layer[i] = (layer_memory){.residual1 = cut(m, dim),
                                     .normed1 = cut(m, dim),
                                     .qkv = cut(m, qkv),
                                     .q = cut(m, q),
                                     .k = cut(m, kv),
                                     .weights = cut(m, scores),
                                     .heads = cut(m, q),
                                     .residual2 = cut(m, dim),
                                     .normed2 = cut(m, dim),
                                     .up = cut(m, 2 * ff),
                                     .gated = cut(m, ff)};
    b->embedded = cut(m, dim);
    b->attended = cut(m, dim);
    b->step = cut(m, dim);
    b->residual = cut(m, dim);
    b->normed = cut(m, dim);
    b->logits = cut(m, logits);
    b->loss = cut(m, n);
    b->d_loss = cut(m, n);
    b->m = cut(m, n);
    b->others = (double *)(void *)cut(m, 2 * n);
    b->rope_table = cut(m, b->length * s->head);
    if (!backward)
        return;
    b->d_rows = cut(m, dim);
    b->d_normed = cut(m, dim);
    b->d_qkv = cut(m, qkv);
    b->d_q = cut(m, q);
    b->d_k = cut(m, kv);
    b->d_heads = cut(m, q);
    b->d_weights = cut(m, scores);
    b->d_up = cut(m, 2 * ff);
    b->d_gated = cut(m, ff);
    b->d_logits = cut(m, logits);
    b->workspace = cut(m, b->workspace_size / sizeof(float));
}

/* The most that a call of the backward pass asks for; twice that of a norm, since q and k have one each. */
static size_t most_workspace(const minibatch *b)
{
    const shape *s = &b->shape;
    size_t most = 0, bytes = 0;
    float any = 0;
    const nrg_norm_spec row = nrg_norm_spec_rms(NRG_F32, s->dim, norm_eps), head = nrg_norm_spec_rms(NRG_F32, s->head, norm_eps);
    nrg_norm_backward_args norm = nrg_norm_backward_args_init(b->rows, &any, NULL, &any, &any);
    norm.dw = &any;
    require(nrg_norm_backward_workspace(&row, &norm, &bytes), "workspace of a norm");
    most = 2 * bytes;
    norm.rows = b->rows * s->heads;
    require(nrg_norm_backward_workspace(&head, &norm, &bytes), "workspace of heads");
    most = 2 * bytes > most ? 2 * bytes : most;
    const int32_t id = 0;
    nrg_embed_backward_args embed = nrg_embed_backward_args_init(NRG_F32, b->rows, s->dim, &any);
    nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_init(VOCABULARY, &any, &id), &any);
    embed.tables = &table;
    embed.table_count = 1;
    require(nrg_embed_backward_workspace(&embed, &bytes), "workspace of the embedding");
    most = bytes > most ? bytes : most;
    return (most + 63) / 64 * 64;
}

void batch_begin(minibatch *b, const shape *s, size_t sequences, size_t length, int backward)
{
    *b = (minibatch){.shape = *s, .sequences = sequences, .length = length, .rows = sequences * length};
    b->workspace_size = backward ? most_workspace(b) : 0;
    block measure = {NULL, 0};
    divide(b, &measure, backward);
    b->memory = malloc(measure.total * sizeof(float) + 64);
    if (b->memory == NULL) {
        fprintf(stderr, "transformer: no memory for a batch of %zu bytes of text\n", b->rows);
        exit(1);
    }
    const size_t past = (uintptr_t)b->memory % 64;
    block whole = {(float *)(void *)((char *)b->memory + (past == 0 ? 0 : 64 - past)), 0};
    divide(b, &whole, backward);
    make_rope_table(s, 0, length, b->rope_table);
}

void batch_end(minibatch *b) { free(b->memory); }
