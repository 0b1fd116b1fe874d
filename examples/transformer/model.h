/* A decoder-only transformer over bytes.
 *
 *     x  = E[byte]·√dim
 *     of each layer:  h = rms_norm(x);  q, k, v = h·Wqkv;  q, k = rope(rms_norm of heads);  x += softmax(q kᵀ/√head)·v·Wo
 *                     h = rms_norm(x);  x += (silu(h·Wgate) ⊙ h·Wup)·Wdown
 *     logits = rms_norm(x)·Eᵀ
 *
 * It is pre-norm with QK-norm (the layer of Qwen 3) and grouped heads. The output matrix is the embedding. Matrices are
 * [in][out], E is [256][dim].
 *
 * SPDX-License-Identifier: MIT */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/base.h>

#include "team.h"

enum { VOCABULARY = 256, MOST_LAYERS = 32 };

/* A checkpoint has these as they are here. */
typedef struct shape {
    uint32_t layers, dim, heads, kv_heads, head, ff, context;
} shape;

static inline size_t q_width(const shape *s) { return (size_t)s->heads * s->head; }
static inline size_t kv_width(const shape *s) { return (size_t)s->kv_heads * s->head; }
static inline size_t qkv_width(const shape *s) { return q_width(s) + 2 * kv_width(s); }

/* Where the tensors of one array of floats are: the weights, or their gradients, or what AdamW keeps of each. */
typedef struct layer_tensors {
    float *norm1, *qkv, *q_norm, *k_norm, *out, *norm2, *up, *down; /* up is [dim][gate | up] */
} layer_tensors;

typedef struct tensors {
    float *embedding, *norm;
    layer_tensors layer[MOST_LAYERS];
} tensors;

/* Floats of all tensors; lays them out where t and base are given. */
size_t lay_out(const shape *s, float *base, tensors *t);

/* What is wrong with a shape, or NULL. */
const char *shape_complaint(const shape *s);

/* Weights to begin with, from a seed. */
void draw_weights(const shape *s, float *base, uint64_t seed);

/* What a layer's forward pass leaves for its backward pass. Rows are tokens, batch after batch. */
typedef struct layer_memory {
    float *residual1, *normed1, *qkv, *q, *k, *weights, *heads, *residual2, *normed2, *up, *gated;
} layer_memory;

/* A batch's forward and backward pass. */
typedef struct minibatch {
    shape shape;
    size_t sequences, length, rows; /* rows = sequences · length */
    const int32_t *in, *out;        /* [rows] bytes, and those that follow; out below 0: not asked for */
    layer_memory layer[MOST_LAYERS];
    float *embedded, *step, *attended, *residual, *normed, *logits, *loss, *d_loss, *m;
    double *others; /* with m: what the loss leaves for its backward pass */
    float *rope_table;
    /* backward */
    float *d_rows, *d_normed, *d_qkv, *d_q, *d_k, *d_heads, *d_weights, *d_up, *d_gated, *d_logits;
    void *workspace;
    size_t workspace_size;
    void *memory;
} minibatch;

/* Memory for so many sequences of that length; gradients too, where backward is not 0. Ends the program where there is none. */
void batch_begin(minibatch *b, const shape *s, size_t sequences, size_t length, int backward);
void batch_end(minibatch *b);

/* logits, and with out the loss of each row: every thread of the team calls it. */
void forward(minibatch *b, const tensors *w, team *t, int ith);

/* gradients of the sum of loss · d_loss, overwritten. */
void backward(minibatch *b, const tensors *w, const tensors *d, team *t, int ith);

/* Between the two: softmax(q kᵀ/√head)·v of all heads, and its gradients. */
void attend(minibatch *b, size_t layer, team *t, int ith);
void attend_backward(minibatch *b, size_t layer, team *t, int ith);

/* Steps that both passes and the generator have. */
void require(nrg_status status, const char *what);
extern const double norm_eps, rope_base;
float embedding_scale(const shape *s); /* √dim, so that rows begin around 1 */
void make_rope_table(const shape *s, size_t first, size_t tokens, float *table);
void norm_rows(size_t rows, size_t dim, const float *x, const float *y, const float *w, float *r, float *o, int ith, int nth);
void rotate_heads(const shape *s, size_t sequences, size_t tokens, const float *table, const float *qkv, const layer_tensors *w,
                  float *q, float *k, int ith, int nth);
void gate_rows(const shape *s, size_t rows, const float *up, float *o, int ith, int nth);

/* A cache of keys and values, and one sequence that grows. */
typedef struct speaker speaker;
speaker *speaker_begin(const shape *s, size_t positions);
void speaker_end(speaker *p);
/* tokens more: the logits of each of them, [tokens][256]. */
const float *speaker_hear(speaker *p, const tensors *w, const int32_t *tokens, size_t count, team *t);

/* The same draws everywhere: the nth number of a seed (SplitMix64: Steele, Lea, Flood, OOPSLA 2014). */
uint64_t drawn(uint64_t seed, uint64_t n);
uint64_t hash_of(uint64_t hash, const void *bytes, size_t size); /* FNV-1a; begin with HASH_BEGIN */
#define HASH_BEGIN 0xcbf29ce484222325u

#endif
