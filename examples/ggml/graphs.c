/* See graphs.h. Each step has two versions, ggml's and nrg's. If nrg returns NULL, the graph takes ggml's version and counts it.
 *
 * SPDX-License-Identifier: MIT */
#include "graphs.h"

#include <math.h>
#include <stdlib.h>

static const float eps = 1e-6f;

static struct ggml_tensor *served(graph *b, struct ggml_tensor *node)
{
    b->fallbacks += !node;
    return node;
}

/* ---- steps ---- */

static struct ggml_tensor *norm(graph *b, struct ggml_tensor *x, struct ggml_tensor *w)
{
    struct ggml_tensor *o = b->with_nrg ? served(b, nrg_ggml_rms_norm(&b->nrg, b->c, x, w, eps)) : NULL;
    return o ? o : ggml_mul(b->c, ggml_rms_norm(b->c, x, eps), w);
}

static struct ggml_tensor *add_norm(graph *b, struct ggml_tensor *x, struct ggml_tensor *y, struct ggml_tensor *w,
                                    struct ggml_tensor **r)
{
    struct ggml_tensor *o = b->with_nrg ? served(b, nrg_ggml_add_rms_norm(&b->nrg, b->c, x, y, w, eps, r)) : NULL;
    if (o)
        return o;
    *r = ggml_add(b->c, x, y);
    return ggml_mul(b->c, ggml_rms_norm(b->c, *r, eps), w);
}

static struct ggml_tensor *rope(const graph *b, struct ggml_tensor *x)
{
    const shape *s = b->m->s;
    return ggml_rope_ext(b->c, x, b->m->positions, NULL, s->head, s->rope_mode, 0, s->freq_base, 1, 0, 1, 32, 1);
}

/* q and k: norm of heads if the model has it, rotation, k into its cache. Returns q. */
static struct ggml_tensor *heads(graph *b, struct ggml_tensor *q, struct ggml_tensor *k)
{
    const model *m = b->m;
    struct ggml_tensor *cache = m->k_cache[b->with_nrg], *w_q = m->s->qk_norm ? m->q_norm : NULL,
                       *w_k = m->s->qk_norm ? m->k_norm : NULL, *o = NULL;
    if (b->with_nrg)
        o = served(b, nrg_ggml_qkv(&b->nrg, b->c, b->rope, m->positions, q, GGML_TYPE_F32, w_q, k, w_k, NULL, w_q ? eps : -1,
                                   cache, NULL, m->rows));
    if (!o) {
        if (w_q) {
            q = ggml_mul(b->c, ggml_rms_norm(b->c, q, eps), w_q);
            k = ggml_mul(b->c, ggml_rms_norm(b->c, k, eps), w_k);
        }
        o = rope(b, q);
        k = ggml_reshape_2d(b->c, rope(b, k), cache->ne[0], m->tokens);
        ggml_build_forward_expand(b->g, ggml_set_rows(b->c, cache, k, m->rows));
    }
    ggml_build_forward_expand(b->g, o); /* the cache is read by nodes that come later */
    return o;
}

static struct ggml_tensor *soft_max(graph *b, struct ggml_tensor *x)
{
    const float scale = 1 / sqrtf((float)b->m->s->head);
    struct ggml_tensor *o =
        b->with_nrg ? served(b, nrg_ggml_soft_max_inplace(&b->nrg, b->c, x, b->m->mask, NULL, scale, 0)) : NULL;
    return o ? o : ggml_soft_max_ext_inplace(b->c, x, b->m->mask, scale, 0);
}

static struct ggml_tensor *swiglu(graph *b, struct ggml_tensor *x, struct ggml_tensor *y)
{
    struct ggml_tensor *o = b->with_nrg ? served(b, nrg_ggml_glu(&b->nrg, b->c, x, y, GGML_GLU_OP_SWIGLU, 0, 0, 0)) : NULL;
    return o ? o : ggml_swiglu_split(b->c, x, y);
}

/* Quantizes the operand of several products once, if they accept the type. */
static struct ggml_tensor *operand(graph *b, struct ggml_tensor *x)
{
    struct ggml_tensor *o = b->with_nrg && b->q8 ? served(b, nrg_ggml_quantize(&b->nrg, b->c, x, GGML_TYPE_Q8_0)) : NULL;
    return o ? o : x;
}

/* ---- the layer ---- */

static struct ggml_tensor *attention(graph *b, struct ggml_tensor *x)
{
    const model *m = b->m;
    const shape *s = m->s;
    struct ggml_context *c = b->c;
    struct ggml_tensor *k_cache = m->k_cache[b->with_nrg], *v_cache = m->v_cache[b->with_nrg];
    const size_t head = (size_t)s->head, keys = (size_t)(m->first + m->tokens);
    x = operand(b, x);
    struct ggml_tensor *q = ggml_reshape_3d(c, ggml_mul_mat(c, m->wq, x), s->head, s->heads, m->tokens);
    struct ggml_tensor *k = ggml_reshape_3d(c, ggml_mul_mat(c, m->wk, x), s->head, s->kv_heads, m->tokens);
    struct ggml_tensor *v = ggml_mul_mat(c, m->wv, x);
    struct ggml_tensor *to =
        ggml_view_2d(c, v_cache, m->tokens, v->ne[0], v_cache->nb[1], (size_t)m->first * ggml_type_size(v_cache->type));
    ggml_build_forward_expand(b->g, ggml_cpy(c, ggml_transpose(c, v), to));
    q = ggml_permute(c, heads(b, q, k), 0, 2, 1, 3);
    k = ggml_view_3d(c, k_cache, s->head, (int64_t)keys, s->kv_heads, k_cache->nb[1], ggml_row_size(k_cache->type, s->head), 0);
    v = ggml_view_3d(c, v_cache, (int64_t)keys, s->head, s->kv_heads, v_cache->nb[1], v_cache->nb[1] * head, 0);
    struct ggml_tensor *o = ggml_mul_mat(c, v, soft_max(b, ggml_mul_mat(c, k, q)));
    o = ggml_cont_2d(c, ggml_permute(c, o, 0, 2, 1, 3), s->head * s->heads, m->tokens);
    return ggml_mul_mat(c, m->wo, o);
}

/* x is the residual stream and y what the layer before adds to it, which is how a chain of layers has one fused add a norm. */
static void layer(graph *b)
{
    const model *m = b->m;
    struct ggml_tensor *r, *n = add_norm(b, m->x, m->y, m->norm1, &r);
    n = operand(b, add_norm(b, r, attention(b, n), m->norm2, &r));
    n = swiglu(b, ggml_mul_mat(b->c, m->gate, n), ggml_mul_mat(b->c, m->up, n));
    b->out[0] = r;
    b->out[1] = ggml_mul_mat(b->c, m->down, n);
}

/* ---- ops alone ---- */

static void one(graph *b, graph_op op)
{
    const model *m = b->m;
    struct ggml_tensor *x;
    b->out[1] = NULL;
    switch (op) {
    case OP_NORM:
        b->out[0] = norm(b, m->x, m->norm1);
        break;
    case OP_ADD_NORM:
        b->out[0] = add_norm(b, m->x, m->y, m->norm1, &b->out[1]);
        break;
    case OP_HEADS:
        b->out[0] = heads(b, m->q, m->k);
        break;
    case OP_SOFT_MAX:
        b->out[0] = soft_max(b, m->scores[b->with_nrg]);
        break;
    case OP_SWIGLU:
        b->out[0] = swiglu(b, m->a, m->b);
        break;
    case OP_QUANTIZE:
        x = ggml_new_tensor(b->c, GGML_TYPE_Q8_0, 2, m->x->ne);
        b->out[0] = b->with_nrg ? served(b, nrg_ggml_cpy(&b->nrg, b->c, m->x, x)) : NULL;
        if (!b->out[0])
            b->out[0] = ggml_cpy(b->c, m->x, x);
        break;
    case OP_PRODUCTS:
        x = operand(b, m->x);
        b->out[0] = ggml_mul_mat(b->c, m->wq, x);
        b->out[1] = ggml_mul_mat(b->c, m->wk, x);
        ggml_build_forward_expand(b->g, b->out[0]);
        ggml_build_forward_expand(b->g, b->out[1]);
        ggml_build_forward_expand(b->g, ggml_mul_mat(b->c, m->wv, x));
        break;
    default:
        layer(b);
        break;
    }
    for (int i = 0; i < 2; i++)
        if (b->out[i]) {
            ggml_set_output(b->out[i]->view_src ? b->out[i]->view_src : b->out[i]);
            ggml_build_forward_expand(b->g, b->out[i]);
        }
}

int graph_build(graph *to, const model *m, ggml_backend_t backend, const nrg_ggml_rope *rope, graph_op op, int times,
                int with_nrg, int q8)
{
    enum { NODES = 1024, NRG_BYTES = 1 << 16 };
    const struct ggml_init_params params = {NODES * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    memset(to, 0, sizeof *to);
    to->c = ggml_init(params);
    to->nrg.memory = malloc(NRG_BYTES);
    to->nrg.size = NRG_BYTES;
    if (!to->c || !to->nrg.memory)
        return -1;
    to->g = ggml_new_graph(to->c);
    to->m = m;
    to->rope = rope;
    to->with_nrg = with_nrg;
    to->q8 = q8;
    for (int i = 0; i < times; i++)
        one(to, op);
    to->memory = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend));
    return to->memory && ggml_gallocr_alloc_graph(to->memory, to->g) ? 0 : -1;
}

void graph_free(graph *g)
{
    ggml_gallocr_free(g->memory);
    ggml_free(g->c);
    free(g->nrg.memory);
}

int graph_takes_q8(ggml_backend_t backend)
{
    const struct ggml_init_params params = {16 * ggml_tensor_overhead(), NULL, true};
    struct ggml_context *c = ggml_init(params);
    struct ggml_tensor *w = ggml_new_tensor_2d(c, GGML_TYPE_Q8_0, 32, 32), *x = ggml_new_tensor_2d(c, GGML_TYPE_Q8_0, 32, 1);
    const int takes = ggml_backend_supports_op(backend, ggml_mul_mat(c, w, x));
    ggml_free(c);
    return takes;
}
