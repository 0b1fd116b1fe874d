/* nrg_ggml.h: nrg in a graph of ggml, through ggml's public custom ops. Copy it to the code of your graph.
 *
 *     this call                       replaces
 *     nrg_ggml_rms_norm               ggml_rms_norm, ggml_mul
 *     nrg_ggml_add_rms_norm           ggml_add, ggml_rms_norm, ggml_mul
 *     nrg_ggml_qkv                    ggml_rms_norm, ggml_mul, ggml_rope_ext of q and of k, ggml_set_rows of k and of v
 *     nrg_ggml_glu                    ggml_reglu, ggml_geglu, ggml_swiglu and similar, _swapped and _split
 *     nrg_ggml_soft_max_inplace       ggml_soft_max_ext_inplace, ggml_soft_max_add_sinks
 *     nrg_ggml_quantize               the quantization of ggml_mul_mat's second operand, once for all products that read it
 *     nrg_ggml_cpy                    ggml_cpy of f32, f16, bf16 into a tensor of q8_0
 *
 * A call adds a node, or returns NULL if nrg does not support the tensors. Then use ggml's ops.
 *
 * Each call validates its arguments with nrg's `_check` when the graph is built. Tensors have no addresses then, so it passes
 * substitutes. The node validates positions, slots, ids and the alignment of buffers when it runs. The field `failed` of nrg_ggml
 * reports a node that returned an error. Such a node does not change its output.
 *
 * A node needs memory in addition to its tensor. The owner of the graph owns it: nrg_ggml. Threads are ggml's. A node runs on all
 * of them, and its results are bit-identical for any number of threads.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_GGML_H
#define NRG_GGML_H

#include <ggml.h>
#include <nrg/nrg.h>

#include <stdint.h>
#include <string.h>

/* Memory of the nodes of a graph. It must exist as long as the graph. Set `used` to 0 before you build the graph again. */
typedef struct nrg_ggml {
    char *memory; /* from malloc, or aligned to 16 bytes; about 300 bytes a node, and 4 a head with max_bias */
    size_t size, used;
    int failed; /* the last nrg_status of a node that was not NRG_OK; 0 if there is none */
} nrg_ggml;

/* Rotation, and the table that layers and graphs share: one for a model. */
typedef struct nrg_ggml_rope {
    nrg_rope_spec spec; /* from nrg_rope_spec_init, with the parameters of ggml_rope_ext; freq_factors, if any, in memory */
    int threads;        /* the most there will be */
    void *workspace;    /* nrg_ggml_rope_workspace bytes of zeros, 8-byte aligned */
    size_t workspace_size;
} nrg_ggml_rope;

typedef struct nrg_ggml_node {
    nrg_ggml *owner;
    const nrg_ggml_rope *rope;
    nrg_norm_spec norm;
    enum ggml_glu_op glu;
    int swapped;
    float scale, alpha, limit;
    const float *slopes;
    int asking; /* no thread runs it: tensors have no memory yet */
} nrg_ggml_node;

/* ---- what all nodes share ---- */

static inline void *nrg_ggml_take(nrg_ggml *g, size_t bytes)
{
    const size_t begin = (g->used + 15) & ~(size_t)15;
    if (begin > g->size || bytes > g->size - begin)
        return NULL;
    g->used = begin + bytes;
    return memset(g->memory + begin, 0, bytes);
}

static inline nrg_ggml_node *nrg_ggml_new(nrg_ggml *g)
{
    nrg_ggml_node *n = (nrg_ggml_node *)nrg_ggml_take(g, sizeof(nrg_ggml_node));
    if (n)
        n->owner = g, n->asking = 1;
    return n;
}

/* The byte `offset` of a tensor, which has no memory while asking. */
static inline void *nrg_ggml_at(const nrg_ggml_node *n, const struct ggml_tensor *t, size_t offset)
{
    return n->asking ? NRG_UNALLOCATED : (char *)t->data + offset;
}

static inline nrg_dtype nrg_ggml_dtype(const struct ggml_tensor *t)
{
    return t->type == GGML_TYPE_F32    ? NRG_F32
           : t->type == GGML_TYPE_F16  ? NRG_F16
           : t->type == GGML_TYPE_BF16 ? NRG_BF16
                                       : (nrg_dtype)-1; /* refused; NRG_DTYPE_SAME would be taken for another's */
}

static inline nrg_quant_format nrg_ggml_format(const struct ggml_tensor *t)
{
    return t->type == GGML_TYPE_Q8_0 ? NRG_QUANT_Q8_0 : t->type == GGML_TYPE_Q8_K ? NRG_QUANT_Q8_K : NRG_QUANT_NONE;
}

/* Elements of a row side by side, and of this type. */
static inline int nrg_ggml_rows(const struct ggml_tensor *t, enum ggml_type type)
{
    return t->type == type && t->nb[0] == ggml_type_size(type);
}

static inline int nrg_ggml_plain(const struct ggml_tensor *t)
{
    return nrg_ggml_dtype(t) != (nrg_dtype)-1 && nrg_ggml_rows(t, t->type);
}

/* Ends each call. Validates the node while its tensors have no memory, and returns NULL if nrg does not support it. Then the node
 * stays out of the graph, because nothing reads it. */
static inline struct ggml_tensor *nrg_ggml_ask(struct ggml_tensor *node, ggml_custom_op_t fun, nrg_ggml_node *n)
{
    const int before = n->owner->failed;
    n->owner->failed = NRG_OK;
    fun(node, 0, 1, n);
    node = n->owner->failed == NRG_OK ? node : NULL;
    n->owner->failed = before;
    n->asking = 0;
    return node;
}

#define NRG_GGML_NODE(c, n, fun, type, n0, n1, n2, n3, args, count)                                                              \
    nrg_ggml_ask(ggml_custom_4d(c, type, n0, n1, n2, n3, args, count, fun, GGML_N_TASKS_MAX, n), fun, n)

/* Runs a node: the call, or its _check while `asking`. All shares return the same status. */
#define NRG_GGML_RUN(n, ith, nth, call, ...)                                                                                     \
    do {                                                                                                                         \
        const nrg_status said_ = (n)->asking ? call##_check(__VA_ARGS__) : call(__VA_ARGS__, ith, nth);                          \
        if (said_ != NRG_OK && (ith) == 0)                                                                                       \
            (n)->owner->failed = (int)said_;                                                                                     \
    } while (0)

/* ---- [add,] rms_norm, mul ---- */

static inline void nrg_ggml_run_norm(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    nrg_ggml_node *n = (nrg_ggml_node *)userdata;
    const struct ggml_tensor *x = dst->src[0], *y = dst->src[1], *w = dst->src[2];
    nrg_norm_args a =
        nrg_norm_args_init((size_t)x->ne[1], nrg_ggml_at(n, x, 0), w ? nrg_ggml_at(n, w, 0) : NULL, nrg_ggml_at(n, dst, 0));
    a.rows2 = (size_t)x->ne[2], a.rows3 = (size_t)x->ne[3];
    memcpy(a.x_stride, x->nb + 1, sizeof a.x_stride);
    if (y) { /* two results, one after the other in dst: the sum, and its norm */
        a.y = nrg_ggml_at(n, y, 0);
        memcpy(a.y_stride, y->nb + 1, sizeof a.y_stride);
        a.r = a.o;
        a.o = nrg_ggml_at(n, dst, dst->nb[3] * (size_t)x->ne[3]);
    }
    NRG_GGML_RUN(n, ith, nth, nrg_norm_forward, &n->norm, &a);
}

static inline struct ggml_tensor *nrg_ggml_norm_node(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x,
                                                     struct ggml_tensor *y, struct ggml_tensor *w, float eps)
{
    struct ggml_tensor *args[3] = {x, y, w}; /* ggml passes over a source that is NULL, and the others keep their places */
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(x) || (y && (!nrg_ggml_rows(y, x->type) || !ggml_are_same_shape(x, y))))
        return NULL;
    if (w && (!nrg_ggml_plain(w) || w->ne[0] != x->ne[0] || ggml_nrows(w) != 1))
        return NULL;
    n->norm = nrg_norm_spec_rms(nrg_ggml_dtype(x), (size_t)x->ne[0], eps);
    n->norm.w_dtype = w ? nrg_ggml_dtype(w) : NRG_DTYPE_SAME;
    return NRG_GGML_NODE(c, n, nrg_ggml_run_norm, x->type, x->ne[0], x->ne[1], x->ne[2], (y ? 2 : 1) * x->ne[3], args, 3);
}

/* rms_norm(x) · w; w may be NULL. x, and here each tensor of elements, may be a view: rows side by side, any strides. */
static inline struct ggml_tensor *nrg_ggml_rms_norm(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x,
                                                    struct ggml_tensor *w, float eps)
{
    return nrg_ggml_norm_node(g, c, x, NULL, w, eps);
}

/* *r = x + y, and rms_norm(x + y) · w is returned. */
static inline struct ggml_tensor *nrg_ggml_add_rms_norm(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x,
                                                        struct ggml_tensor *y, struct ggml_tensor *w, float eps,
                                                        struct ggml_tensor **r)
{
    struct ggml_tensor *both = y ? nrg_ggml_norm_node(g, c, x, y, w, eps) : NULL;
    if (!both)
        return NULL;
    const int64_t *ne = x->ne;
    *r = ggml_view_4d(c, both, ne[0], ne[1], ne[2], ne[3], both->nb[1], both->nb[2], both->nb[3], 0);
    return ggml_view_4d(c, both, ne[0], ne[1], ne[2], ne[3], both->nb[1], both->nb[2], both->nb[3], both->nb[3] * (size_t)ne[3]);
}

/* ---- heads of q, k and v: norm, rotation, cache ---- */

static inline nrg_qkv_args nrg_ggml_heads(nrg_dtype dtype, size_t dim, size_t q_heads, size_t k_heads, size_t tokens)
{
    nrg_qkv_args a = nrg_qkv_args_init(dtype, tokens, dim);
    a.q_heads = q_heads, a.k_heads = k_heads;
    a.keep = 1;
    return a;
}

/* Bytes of the workspace, 0 where the spec is refused: for heads of dim, and the most tokens. Layers whose numbers of heads
 * differ need an nrg_ggml_rope each, and so do graphs that run at the same time. */
static inline size_t nrg_ggml_rope_workspace(const nrg_ggml_rope *rope, size_t dim, size_t q_heads, size_t k_heads, size_t tokens)
{
    const nrg_qkv_args a = nrg_ggml_heads(NRG_F32, dim, q_heads, k_heads, tokens);
    size_t bytes = 0;
    return nrg_qkv_workspace(&rope->spec, &a, rope->threads, &bytes) == NRG_OK ? bytes : 0;
}

static inline void nrg_ggml_run_qkv(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    nrg_ggml_node *n = (nrg_ggml_node *)userdata;
    const struct ggml_tensor *q = dst->src[0], *positions = dst->src[1], *slots = dst->src[2], *q_w = dst->src[3];
    const struct ggml_tensor *k = dst->src[4], *k_w = dst->src[5], *k_o = dst->src[6], *v = dst->src[7], *v_o = dst->src[8];
    nrg_qkv_args a =
        nrg_ggml_heads(nrg_ggml_dtype(q), (size_t)q->ne[0], (size_t)q->ne[1], k ? (size_t)k->ne[1] : 0, (size_t)q->ne[2]);
    a.workspace = n->rope->workspace, a.workspace_size = n->rope->workspace_size;
    a.q_o_dtype = nrg_ggml_dtype(dst);
    a.q = nrg_ggml_at(n, q, 0), a.q_o = nrg_ggml_at(n, dst, 0);
    a.q_strides.head = q->nb[1], a.q_strides.row = q->nb[2];
    a.q_w = q_w ? (const float *)nrg_ggml_at(n, q_w, 0) : NULL;
    a.k_w = k_w ? (const float *)nrg_ggml_at(n, k_w, 0) : NULL;
    a.positions = (const int32_t *)nrg_ggml_at(n, positions, 0);
    a.slots = k ? (const int64_t *)nrg_ggml_at(n, slots, 0) : NULL;
    a.slot_count = k ? (size_t)k_o->ne[1] : 0;
    if (k) {
        a.k = nrg_ggml_at(n, k, 0), a.k_o = nrg_ggml_at(n, k_o, 0);
        a.k_strides.head = k->nb[1], a.k_strides.row = k->nb[2], a.k_o_strides.row = k_o->nb[1];
        a.k_o_format = nrg_ggml_format(k_o), a.k_o_dtype = a.k_o_format ? NRG_DTYPE_SAME : nrg_ggml_dtype(k_o);
    }
    if (v) {
        a.v = nrg_ggml_at(n, v, 0), a.v_o = nrg_ggml_at(n, v_o, 0);
        a.v_heads = (size_t)v->ne[1], a.v_dim = (size_t)v->ne[0];
        a.v_strides.head = v->nb[1], a.v_strides.row = v->nb[2], a.v_o_strides.row = v_o->nb[1];
        a.v_o_format = nrg_ggml_format(v_o), a.v_o_dtype = a.v_o_format ? NRG_DTYPE_SAME : nrg_ggml_dtype(v_o);
    }
    const nrg_norm_spec *const norm = n->norm.dim ? &n->norm : NULL;
    const nrg_status said =
        n->asking ? nrg_qkv_forward_check(norm, &n->rope->spec, &a, nth) : nrg_qkv_forward(norm, &n->rope->spec, &a, ith, nth);
    if (said != NRG_OK && ith == 0)
        n->owner->failed = (int)said;
}

/* A cache has a token's heads in a row, as ggml_set_rows wants them: [dim · heads, slots]. */
static inline int nrg_ggml_is_cache(const struct ggml_tensor *q, const struct ggml_tensor *x, const struct ggml_tensor *cache)
{
    return nrg_ggml_rows(x, q->type) && x->ne[2] == q->ne[2] && x->ne[3] == 1 && nrg_ggml_rows(cache, cache->type) &&
           cache->ne[0] == x->ne[0] * x->ne[1] && cache->ne[2] == 1 && cache->ne[3] == 1;
}

/* q, k, v: [dim, heads, tokens], views of one tensor or not. positions: i32 [tokens], and more of them with a mode that has
 * sections; rows: i64 [tokens], slots of the caches. eps < 0: no norm. q_w, k_w: f32, or NULL. k, v: may be NULL, with their
 * caches. ggml must write a transposed v.
 *
 * Returns the rotated q, of q_type: f32, or the type to which the product with a cache of k converts it (f16 for f16). The same
 * node writes the caches, but the graph has no edge for that. Expand the graph by the returned node (ggml_build_forward_expand)
 * before you make nodes that read the caches, as after ggml_set_rows. */
static inline struct ggml_tensor *nrg_ggml_qkv(nrg_ggml *g, struct ggml_context *c, const nrg_ggml_rope *rope,
                                               struct ggml_tensor *positions, struct ggml_tensor *q, enum ggml_type q_type,
                                               struct ggml_tensor *q_w, struct ggml_tensor *k, struct ggml_tensor *k_w,
                                               struct ggml_tensor *v, float eps, struct ggml_tensor *k_cache,
                                               struct ggml_tensor *v_cache, struct ggml_tensor *rows)
{
    struct ggml_tensor *args[9] = {q, positions,         k ? rows : NULL, q_w, k, k ? k_w : NULL, k ? k_cache : NULL,
                                   v, v ? v_cache : NULL};
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(q) || q->ne[3] != 1 || !nrg_ggml_rows(positions, GGML_TYPE_I32) || positions->ne[0] < q->ne[2] ||
        (q_w && !nrg_ggml_rows(q_w, GGML_TYPE_F32)) || (k_w && !nrg_ggml_rows(k_w, GGML_TYPE_F32)))
        return NULL;
    if (k && (!nrg_ggml_is_cache(q, k, k_cache) || !nrg_ggml_rows(rows, GGML_TYPE_I64) || rows->ne[0] != q->ne[2]))
        return NULL;
    if (v && (!k || !nrg_ggml_is_cache(q, v, v_cache) || v_cache->ne[1] != k_cache->ne[1]))
        return NULL;
    n->rope = rope;
    if (eps >= 0)
        n->norm = nrg_norm_spec_rms(NRG_F32, (size_t)q->ne[0], eps);
    return NRG_GGML_NODE(c, n, nrg_ggml_run_qkv, q_type, q->ne[0], q->ne[1], q->ne[2], 1, args, 9);
}

/* ---- glu ---- */

/* Returns an unknown activation for any other op, so that the check rejects the node. */
static inline nrg_activation nrg_ggml_activation(enum ggml_glu_op op)
{
    return op == GGML_GLU_OP_REGLU                                         ? NRG_ACT_RELU
           : op == GGML_GLU_OP_GEGLU                                       ? NRG_ACT_GELU_TANH
           : op == GGML_GLU_OP_SWIGLU                                      ? NRG_ACT_SILU
           : op == GGML_GLU_OP_GEGLU_ERF                                   ? NRG_ACT_GELU
           : op == GGML_GLU_OP_GEGLU_QUICK || op == GGML_GLU_OP_SWIGLU_OAI ? NRG_ACT_GELU_QUICK
                                                                           : (nrg_activation)-1;
}

static inline void nrg_ggml_run_glu(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    nrg_ggml_node *n = (nrg_ggml_node *)userdata;
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1] ? dst->src[1] : a;
    const int halves = !dst->src[1];
    nrg_glu_args args = nrg_glu_args_init(nrg_ggml_activation(n->glu), nrg_ggml_dtype(a), (size_t)dst->ne[1], (size_t)dst->ne[0],
                                          nrg_ggml_at(n, a, 0), nrg_ggml_at(n, b, 0), nrg_ggml_at(n, dst, 0));
    args.rows2 = (size_t)dst->ne[2], args.rows3 = (size_t)dst->ne[3];
    memcpy(args.a_stride, a->nb + 1, sizeof args.a_stride);
    memcpy(args.b_stride, b->nb + 1, sizeof args.b_stride);
    if (halves) {
        args.a = nrg_ggml_at(n, a, n->swapped ? dst->nb[1] : 0);
        args.b = nrg_ggml_at(n, a, n->swapped ? 0 : dst->nb[1]);
    }
    if (n->glu == GGML_GLU_OP_SWIGLU_OAI)
        args.alpha = n->alpha, args.limit = n->limit, args.b_offset = 1;
    NRG_GGML_RUN(n, ith, nth, nrg_glu_forward, &args);
}

/* g(a) · b; without b, of the halves of a's rows. alpha and limit are of GGML_GLU_OP_SWIGLU_OAI, and 0 otherwise. */
static inline struct ggml_tensor *nrg_ggml_glu(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *a, struct ggml_tensor *b,
                                               enum ggml_glu_op op, int swapped, float alpha, float limit)
{
    struct ggml_tensor *args[2] = {a, b};
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(a) || (b && (!nrg_ggml_rows(b, a->type) || !ggml_are_same_shape(a, b))) || (!b && a->ne[0] % 2))
        return NULL;
    n->glu = op, n->swapped = swapped, n->alpha = alpha, n->limit = limit;
    return NRG_GGML_NODE(c, n, nrg_ggml_run_glu, a->type, a->ne[0] / (b ? 1 : 2), a->ne[1], a->ne[2], a->ne[3], args, 2);
}

/* ---- soft_max ---- */

static inline void nrg_ggml_run_soft_max(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    nrg_ggml_node *n = (nrg_ggml_node *)userdata;
    const struct ggml_tensor *x = dst->src[0], *mask = dst->src[1], *sinks = dst->src[2];
    void *place = nrg_ggml_at(n, x, 0);
    nrg_softmax_args a = nrg_softmax_args_init(nrg_ggml_dtype(x), (size_t)x->ne[3], (size_t)x->ne[2], (size_t)x->ne[1],
                                               (size_t)x->ne[0], place, place);
    a.scale = n->scale;
    a.x_strides.row = x->nb[1], a.x_strides.head = x->nb[2], a.x_strides.batch = x->nb[3];
    a.o_strides = a.x_strides;
    if (mask) {
        a.mask = nrg_ggml_at(n, mask, 0);
        a.mask_dtype = nrg_ggml_dtype(mask);
        a.mask_strides.row = mask->nb[1], a.mask_strides.head = mask->nb[2], a.mask_strides.batch = mask->nb[3];
        a.mask_repeat = (mask->ne[2] == 1 ? NRG_REPEAT_ROWS2 : 0) | (mask->ne[3] == 1 ? NRG_REPEAT_ROWS3 : 0);
        a.slopes = n->slopes;
    }
    a.sinks = sinks ? (const float *)nrg_ggml_at(n, sinks, 0) : NULL;
    NRG_GGML_RUN(n, ith, nth, nrg_softmax_forward, &a);
}

/* softmax(x · scale + slope · mask), over x, which nothing else may read. mask: f32, f16 or bf16, or NULL; sinks: f32 [heads], or
 * NULL. It does not support a mask for every second head or the like. */
static inline struct ggml_tensor *nrg_ggml_soft_max_inplace(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x,
                                                            struct ggml_tensor *mask, struct ggml_tensor *sinks, float scale,
                                                            float max_bias)
{
    struct ggml_tensor *args[2] = {mask, sinks};
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(x) || (sinks && (!nrg_ggml_rows(sinks, GGML_TYPE_F32) || sinks->ne[0] != x->ne[2])))
        return NULL;
    if (mask && (!nrg_ggml_plain(mask) || mask->ne[0] != x->ne[0] || mask->ne[1] < x->ne[1] ||
                 (mask->ne[2] != 1 && mask->ne[2] != x->ne[2]) || (mask->ne[3] != 1 && mask->ne[3] != x->ne[3])))
        return NULL;
    n->scale = scale;
    if (mask && max_bias > 0) {
        float *slopes = (float *)nrg_ggml_take(g, (size_t)x->ne[2] * sizeof(float));
        if (!slopes || nrg_alibi_slopes((size_t)x->ne[2], max_bias, slopes) != NRG_OK)
            return NULL;
        n->slopes = slopes;
    }
    return nrg_ggml_ask(ggml_custom_inplace(c, x, args, 2, nrg_ggml_run_soft_max, GGML_N_TASKS_MAX, n), nrg_ggml_run_soft_max, n);
}

/* ---- quantized ---- */

static inline void nrg_ggml_run_quantize(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    nrg_ggml_node *n = (nrg_ggml_node *)userdata;
    const struct ggml_tensor *x = dst->src[dst->src[1] ? 1 : 0];
    nrg_quantize_args a = nrg_quantize_args_init(nrg_ggml_format(dst), nrg_ggml_dtype(x), (size_t)x->ne[1], (size_t)x->ne[0],
                                                 nrg_ggml_at(n, x, 0), nrg_ggml_at(n, dst, 0), NULL);
    a.rows2 = (size_t)x->ne[2], a.rows3 = (size_t)x->ne[3];
    memcpy(a.x_stride, x->nb + 1, sizeof a.x_stride);
    memcpy(a.packed_stride, dst->nb + 1, sizeof a.packed_stride);
    NRG_GGML_RUN(n, ith, nth, nrg_quantize, &a);
}

/* x as q8_0 or q8_K: what ggml makes of it, but for about one element in a million that is next to a tie (nrg multiplies by
 * 1 / (amax / 127) as ggml's reference does, ggml's AVX code by 127 / amax). ggml_mul_mat takes it as its second operand where
 * the first is in an ordinary buffer of the CPU backend and of a type whose products read that format (q4_0 and q8_0: q8_0; q4_K:
 * q8_K): ask ggml_backend_supports_op of the product, which says no for AMX's and repacked buffers. */
static inline struct ggml_tensor *nrg_ggml_quantize(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x,
                                                    enum ggml_type type)
{
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(x) || x->ne[0] % ggml_blck_size(type))
        return NULL;
    return NRG_GGML_NODE(c, n, nrg_ggml_run_quantize, type, x->ne[0], x->ne[1], x->ne[2], x->ne[3], &x, 1);
}

/* x into `to`, of q8_0 and of its shape, such as a view of a cache. */
static inline struct ggml_tensor *nrg_ggml_cpy(nrg_ggml *g, struct ggml_context *c, struct ggml_tensor *x, struct ggml_tensor *to)
{
    nrg_ggml_node *n = nrg_ggml_new(g);
    if (!n || !nrg_ggml_plain(x) || !nrg_ggml_rows(to, GGML_TYPE_Q8_0) || !ggml_are_same_shape(x, to))
        return NULL;
    return nrg_ggml_ask(ggml_custom_inplace(c, to, &x, 1, nrg_ggml_run_quantize, GGML_N_TASKS_MAX, n), nrg_ggml_run_quantize, n);
}

#endif
