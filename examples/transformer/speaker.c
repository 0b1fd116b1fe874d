/* A sequence that grows. A prompt in one batch and the same prompt token by token are bit-identical: each step processes rows,
 * and each sum of a row has one order.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "multiply.h"

enum { AT_ONCE = 64 }; /* rows that buffers have room for: longer prompts go in pieces */

struct speaker {
    shape shape;
    size_t positions, heard;
    float *keys, *values; /* [layers][kv_heads · head of each position] */
    float *x, *r, *normed, *qkv, *q, *scores, *heads, *step, *up, *gated, *table, *logits;
    float *memory;
};

static size_t divide(speaker *p, float *base)
{
    const shape *s = &p->shape;
    const size_t cache = s->layers * p->positions * kv_width(s), dim = (size_t)AT_ONCE * s->dim;
    size_t total = 0;
#define CUT(name, size) (p->name = base == NULL ? NULL : base + total, total += (size))
    CUT(keys, cache);
    CUT(values, cache);
    CUT(x, dim);
    CUT(r, dim);
    CUT(normed, dim);
    CUT(step, dim);
    CUT(qkv, AT_ONCE * qkv_width(s));
    CUT(q, AT_ONCE * q_width(s));
    CUT(heads, AT_ONCE * q_width(s));
    CUT(scores, AT_ONCE * s->heads * p->positions);
    CUT(up, (size_t)AT_ONCE * 2 * s->ff);
    CUT(gated, (size_t)AT_ONCE * s->ff);
    CUT(table, p->positions * s->head);
    CUT(logits, p->positions * VOCABULARY);
#undef CUT
    return total;
}

speaker *speaker_begin(const shape *s, size_t positions)
{
    speaker *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->shape = *s;
        p->positions = positions;
        p->memory = calloc(divide(p, NULL), sizeof(float));
    }
    if (p == NULL || p->memory == NULL) {
        fprintf(stderr, "transformer: no memory for %zu positions\n", positions);
        exit(1);
    }
    divide(p, p->memory);
    make_rope_table(s, 0, positions, p->table);
    return p;
}

void speaker_end(speaker *p)
{
    free(p->memory);
    free(p);
}

typedef struct hearing {
    speaker *p;
    const tensors *w;
    const int32_t *tokens;
    size_t count;
} hearing;

/* Heads of the new tokens, over all keys so far. */
static void attend_cached(speaker *p, const float *keys, const float *values, size_t count, team *t, int ith)
{
    const shape *s = &p->shape;
    const size_t q = q_width(s), kv = kv_width(s), seen = p->heard + count, group = s->heads / s->kv_heads, head = s->head;
    for (size_t h = (size_t)ith; h < s->heads; h += (size_t)t->nth)
        multiply(count, seen, head, rows_of(p->q + h * head, q), transposed(rows_of(keys + h / group * head, kv)),
                 p->scores + h * AT_ONCE * p->positions, p->positions, SUM_NEW, 0, 1);
    team_wait(t);
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, s->heads, count, seen, p->scores, p->scores);
    args.scale = 1 / sqrtf((float)head);
    args.causal = 1;
    args.x_strides.row = args.o_strides.row = p->positions * sizeof(float);
    args.x_strides.head = args.o_strides.head = AT_ONCE * p->positions * sizeof(float);
    require(nrg_softmax_forward(&args, ith, t->nth), "softmax");
    team_wait(t);
    for (size_t h = (size_t)ith; h < s->heads; h += (size_t)t->nth)
        multiply(count, head, seen, rows_of(p->scores + h * AT_ONCE * p->positions, p->positions),
                 rows_of(values + h / group * head, kv), p->heads + h * head, q, SUM_NEW, 0, 1);
}

static void hear_layer(speaker *p, const layer_tensors *w, size_t layer, size_t count, const float *y, team *t, int ith)
{
    const shape *s = &p->shape;
    const size_t dim = s->dim, q = q_width(s), kv = kv_width(s), qkv = qkv_width(s), up = 2 * (size_t)s->ff;
    const int nth = t->nth;
    float *keys = p->keys + layer * p->positions * kv, *values = p->values + layer * p->positions * kv;
    norm_rows(count, dim, layer == 0 ? p->x : p->r, y, w->norm1, p->r, p->normed, ith, nth);
    team_wait(t);
    multiply(count, qkv, dim, rows_of(p->normed, dim), rows_of(w->qkv, qkv), p->qkv, qkv, SUM_NEW, ith, nth);
    team_wait(t);
    rotate_heads(s, 1, count, p->table + p->heard * s->head, p->qkv, w, p->q, keys + p->heard * kv, ith, nth);
    for (size_t i = (size_t)ith; i < count; i += (size_t)nth)
        memcpy(values + (p->heard + i) * kv, p->qkv + i * qkv + q + kv, kv * sizeof *values);
    team_wait(t);
    attend_cached(p, keys, values, count, t, ith);
    team_wait(t);
    multiply(count, dim, q, rows_of(p->heads, q), rows_of(w->out, dim), p->step, dim, SUM_NEW, ith, nth);
    team_wait(t);
    norm_rows(count, dim, p->r, p->step, w->norm2, p->r, p->normed, ith, nth);
    team_wait(t);
    multiply(count, up, dim, rows_of(p->normed, dim), rows_of(w->up, up), p->up, up, SUM_NEW, ith, nth);
    team_wait(t);
    gate_rows(s, count, p->up, p->gated, ith, nth);
    team_wait(t);
    multiply(count, dim, s->ff, rows_of(p->gated, s->ff), rows_of(w->down, dim), p->step, dim, SUM_NEW, ith, nth);
    team_wait(t);
}

static void hear_some(void *data, team *t, int ith)
{
    const hearing *h = data;
    speaker *p = h->p;
    const tensors *w = h->w;
    const shape *s = &p->shape;
    const size_t dim = s->dim, count = h->count;
    nrg_embed_args embed = nrg_embed_args_init(NRG_F32, count, dim, p->x);
    nrg_embed_table table = nrg_embed_table_init(VOCABULARY, w->embedding, h->tokens);
    embed.tables = &table;
    embed.table_count = 1;
    table.scale = embedding_scale(s);
    require(nrg_embed_forward(&embed, ith, t->nth), "embedding");
    team_wait(t);
    for (size_t layer = 0; layer < s->layers; layer++)
        hear_layer(p, &w->layer[layer], layer, count, layer == 0 ? NULL : p->step, t, ith);
    norm_rows(count, dim, p->r, p->step, w->norm, p->r, p->normed, ith, t->nth);
    team_wait(t);
    multiply(count, VOCABULARY, dim, rows_of(p->normed, dim), transposed(rows_of(w->embedding, dim)),
             p->logits + p->heard * VOCABULARY, VOCABULARY, SUM_NEW, ith, t->nth);
}

const float *speaker_hear(speaker *p, const tensors *w, const int32_t *tokens, size_t count, team *t)
{
    const size_t first = p->heard;
    while (count > 0) {
        hearing h = {p, w, tokens, count < AT_ONCE ? count : AT_ONCE};
        team_run(t, hear_some, &h);
        p->heard += h.count;
        tokens += h.count;
        count -= h.count;
    }
    return p->logits + first * VOCABULARY;
}
