/* Attention of a batch, and its gradients. A thread takes full groups of heads of a sequence, so the sum over a group's
 * queries has one order. All threads share the rows of softmax. A block of queries reads the keys up to its last query's
 * position.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <nrg/nrg.h>

#include "model.h"
#include "multiply.h"

enum { QUERIES = 48 };

/* Head h of sequence i: where its rows begin, and how far they are apart. */
static size_t place(const minibatch *b, size_t i, size_t h, size_t width) { return i * b->length * width + h * b->shape.head; }

static float *scores_of(const minibatch *b, float *scores, size_t i, size_t h)
{
    return scores + (i * b->shape.heads + h) * b->length * b->length;
}

/* c = q-like · k-likeᵀ, for queries and the keys they see */
static void queries_by_keys(const minibatch *b, const float *q, size_t q_row, const float *k, size_t k_row, float *scores)
{
    for (size_t from = 0; from < b->length; from += QUERIES) {
        const size_t to = from + QUERIES < b->length ? from + QUERIES : b->length;
        multiply(to - from, to, b->shape.head, rows_of(q + from * q_row, q_row), transposed(rows_of(k, k_row)),
                 scores + from * b->length, b->length, SUM_NEW, 0, 1);
    }
}

/* o = weights · v-like, of the keys each query sees: what is past them is zeros */
static void weights_by_values(const minibatch *b, const float *weights, const float *v, size_t v_row, float *o, size_t o_row)
{
    for (size_t from = 0; from < b->length; from += QUERIES) {
        const size_t to = from + QUERIES < b->length ? from + QUERIES : b->length;
        multiply(to - from, b->shape.head, to, rows_of(weights + from * b->length, b->length), rows_of(v, v_row),
                 o + from * o_row, o_row, SUM_NEW, 0, 1);
    }
}

/* c += weightsᵀ · q-like, of each key and the queries that see it */
static void weights_by_queries(const minibatch *b, const float *weights, const float *q, size_t q_row, float *c, size_t c_row,
                               sum_mode mode)
{
    for (size_t from = 0; from < b->length; from += QUERIES) {
        const size_t to = from + QUERIES < b->length ? from + QUERIES : b->length;
        multiply(to - from, b->shape.head, b->length - from, transposed(rows_of(weights + from * b->length + from, b->length)),
                 rows_of(q + from * q_row, q_row), c + from * c_row, c_row, mode, 0, 1);
    }
}

static float score_scale(const minibatch *b) { return 1 / sqrtf((float)b->shape.head); }

void attend(minibatch *b, size_t layer, team *t, int ith)
{
    const shape *s = &b->shape;
    const layer_memory *m = &b->layer[layer];
    const size_t q = q_width(s), kv = kv_width(s), qkv = qkv_width(s), group = s->heads / s->kv_heads;
    for (size_t task = (size_t)ith; task < b->sequences * s->kv_heads; task += (size_t)t->nth)
        for (size_t in = 0; in < group; in++) {
            const size_t i = task / s->kv_heads, h_kv = task % s->kv_heads, h = h_kv * group + in;
            queries_by_keys(b, m->q + place(b, i, h, q), q, m->k + place(b, i, h_kv, kv), kv, scores_of(b, m->weights, i, h));
        }
    team_wait(t);
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, b->sequences, s->heads, b->length, b->length, m->weights, m->weights);
    args.scale = score_scale(b);
    args.causal = 1;
    require(nrg_softmax_forward(&args, ith, t->nth), "softmax");
    team_wait(t);
    for (size_t task = (size_t)ith; task < b->sequences * s->kv_heads; task += (size_t)t->nth)
        for (size_t in = 0; in < group; in++) {
            const size_t i = task / s->kv_heads, h_kv = task % s->kv_heads, h = h_kv * group + in;
            weights_by_values(b, scores_of(b, m->weights, i, h), m->qkv + q + kv + place(b, i, h_kv, qkv), qkv,
                              m->heads + place(b, i, h, q), q);
        }
}

void attend_backward(minibatch *b, size_t layer, team *t, int ith)
{
    const shape *s = &b->shape;
    const layer_memory *m = &b->layer[layer];
    const size_t q = q_width(s), kv = kv_width(s), qkv = qkv_width(s), group = s->heads / s->kv_heads;
    for (size_t task = (size_t)ith; task < b->sequences * s->kv_heads; task += (size_t)t->nth)
        for (size_t in = 0; in < group; in++) {
            const size_t i = task / s->kv_heads, h_kv = task % s->kv_heads, h = h_kv * group + in, v = place(b, i, h_kv, qkv);
            const float *d_heads = b->d_heads + place(b, i, h, q);
            queries_by_keys(b, d_heads, q, m->qkv + q + kv + v, qkv, scores_of(b, b->d_weights, i, h));
            weights_by_queries(b, scores_of(b, m->weights, i, h), d_heads, q, b->d_qkv + q + kv + v, qkv,
                               in == 0 ? SUM_NEW : SUM_ADD);
        }
    team_wait(t);
    nrg_softmax_backward_args args = nrg_softmax_backward_args_init(NRG_F32, b->sequences, s->heads, b->length, b->length,
                                                                    m->weights, b->d_weights, b->d_weights);
    args.scale = score_scale(b);
    args.causal = 1;
    require(nrg_softmax_backward(&args, ith, t->nth), "softmax, backward");
    team_wait(t);
    for (size_t task = (size_t)ith; task < b->sequences * s->kv_heads; task += (size_t)t->nth)
        for (size_t in = 0; in < group; in++) {
            const size_t i = task / s->kv_heads, h_kv = task % s->kv_heads, h = h_kv * group + in;
            const float *d_scores = scores_of(b, b->d_weights, i, h);
            weights_by_values(b, d_scores, m->k + place(b, i, h_kv, kv), kv, b->d_q + place(b, i, h, q), q);
            weights_by_queries(b, d_scores, m->q + place(b, i, h, q), q, b->d_k + place(b, i, h_kv, kv), kv,
                               in == 0 ? SUM_NEW : SUM_ADD);
        }
}
