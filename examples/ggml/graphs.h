/* Ops and layers of a model as graphs of ggml, each in two versions: with ggml's ops, and with nrg in custom ops.
 *
 * SPDX-License-Identifier: MIT */
#ifndef GRAPHS_H
#define GRAPHS_H

#include "nrg_ggml.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>

enum { SLOTS = 768, CACHES = 2 };

typedef struct shape {
    const char *name;
    int dim, heads, kv_heads, head, ff;
    int qk_norm;
    int rope_mode; /* ggml's number and nrg's are the same */
    float freq_base;
    enum ggml_type k_type; /* of the cache of k */
} shape;

/* Tensors that are there before any graph: weights, a cache for each of the two ways, what goes into an op. */
typedef struct model {
    const shape *s;
    int tokens, first; /* tokens of the batch, and the position of the first: those before it are in the cache */
    struct ggml_tensor *norm1, *norm2, *q_norm, *k_norm;
    struct ggml_tensor *wq, *wk, *wv, *wo, *gate, *up, *down; /* q8_0 */
    struct ggml_tensor *k_cache[CACHES], *v_cache[CACHES];    /* v is transposed, as products without flash attention read it */
    struct ggml_tensor *x, *y, *q, *k, *a, *b, *scores[CACHES], *positions, *rows, *mask;
} model;

typedef enum graph_op {
    OP_NORM,
    OP_ADD_NORM,
    OP_HEADS,
    OP_SOFT_MAX,
    OP_SWIGLU,
    OP_QUANTIZE,
    OP_PRODUCTS,
    OP_LAYER,
    OP_COUNT
} graph_op;

typedef struct graph {
    struct ggml_context *c;
    struct ggml_cgraph *g;
    const model *m;
    int with_nrg;
    int q8; /* ggml's products take a second operand of q8_0 */
    int fallbacks;
    nrg_ggml nrg;
    const nrg_ggml_rope *rope;
    struct ggml_tensor *out[2]; /* what is compared */
    ggml_gallocr_t memory;
} graph;

/* Whether a product with q8_0 weights takes q8_0: asked of the backend. */
int graph_takes_q8(ggml_backend_t backend);

/* A graph of an op, `times` times, or of the layer. 0, or -1 where memory is short. */
int graph_build(graph *to, const model *m, ggml_backend_t backend, const nrg_ggml_rope *rope, graph_op op, int times,
                int with_nrg, int q8);
void graph_free(graph *g);

#endif
