/* nrg qkv: nrg_qkv_forward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <nrg/nrg.h>

#include "../../src/operands/qkv.h"

static const char *const modes[] = {"normal", "neox", NULL};

typedef struct request {
    nrg_rope_spec rope;
    nrg_norm_spec norm; /* of dtype 0: there is none */
    nrg_qkv_args args;
    nrg_rope_shares shares;
    int is_neox;
} request;

#define OPTIONS_DEF "rope/qkv.def"
#define COMMAND "qkv"
#define OPERAND IN_Q
#define REQUEST request
#define RUN command_qkv
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    q->rope = nrg_rope_spec_init(0, NRG_ROPE_NORMAL, 10000);
    q->args = nrg_qkv_args_init(NRG_F32, 0, 0);
    q->shares.nth = 1;
    if (!read_fields(call, q))
        return CLI_REFUSED;
    if (q->is_neox)
        q->rope.mode = NRG_ROPE_NEOX;
    return !call->value[OPT_NORM] || file_norm(call, OPT_NORM, OPT_EPS, &q->norm) ? CLI_DONE : CLI_REFUSED;
}

/* Heads of one of q, k and v, and their elements, which k has as q. */
static int read_tensor(const file_call *call, int input, size_t *heads, size_t *dim)
{
    const npy_shape *shape = &call->in[input].shape;
    if (!call->value[input])
        return CLI_DONE;
    if (shape->ndim != 3 || !shape->dims[2])
        return file_wrong(call, input, "shape (tokens, heads, dim)");
    *heads = shape->dims[1];
    if (!*dim)
        *dim = shape->dims[2];
    return CLI_DONE;
}

/* Slots of 64 bits; both caches have as many of them. */
static int read_slots(file_call *call, nrg_qkv_args *a)
{
    npy_array *slots = &call->in[IN_SLOTS], *cache = &call->in[call->in[IN_K_CACHE].data ? IN_K_CACHE : IN_V_CACHE];
    if (!cache->data)
        call->operand[IN_SLOTS] = ""; /* no result has slots */
    if (!slots->data || !cache->data)
        return CLI_DONE;
    int64_t *wide = malloc((slots->count + 1) * sizeof *wide);
    if (!wide)
        return npy_no_memory(slots->count * sizeof *wide);
    for (size_t t = 0; t < slots->count; t++)
        wide[t] = ((const int32_t *)slots->data)[t];
    free(slots->data);
    slots->data = wide;
    a->slot_count = cache->shape.ndim ? cache->shape.dims[0] : 0;
    return CLI_DONE;
}

/* A cache, whose memory becomes a result's. */
static int take_cache(file_call *call, const nrg_qkv_args *a, int which, int cache, size_t heads, size_t dim, nrg_dtype *dtype)
{
    if (!call->in[cache].data)
        return CLI_DONE;
    const size_t dims[3] = {a->slot_count, heads, dim};
    const npy_shape wanted = file_shape(3, dims);
    *dtype = call->in[cache].dtype;
    file_reuse(call, which, cache);
    return npy_check_shape(&call->in[cache], file_in(call, cache), &wanted, "the slots and heads");
}

static int compute(file_call *call)
{
    request *q = call->request;
    nrg_qkv_args *a = &q->args;
    const int first = call->value[IN_Q] ? IN_Q : call->value[IN_K] ? IN_K : IN_V;
    size_t *const heads[] = {&a->q_heads, &a->k_heads, &a->v_heads}, *const dims[] = {&a->dim, &a->dim, &a->v_dim};
    int status = CLI_DONE;
    for (int i = IN_Q; i <= IN_V && status == CLI_DONE; i++)
        status = read_tensor(call, i, heads[i], dims[i]);
    a->tokens = call->in[first].shape.dims[0];
    a->dtype = call->in[first].dtype;
    a->dim = a->dim ? a->dim : 2; /* of v alone */
    if (!q->rope.n_dims)
        q->rope.n_dims = a->dim;
    q->norm.dim = a->dim;
    if (status == CLI_DONE)
        status = read_slots(call, a);
    if (status == CLI_DONE)
        status = take_cache(call, a, OUT_K_O, IN_K_CACHE, a->k_heads, a->dim, &a->k_o_dtype);
    if (status == CLI_DONE)
        status = take_cache(call, a, OUT_V_O, IN_V_CACHE, a->v_heads, a->v_dim, &a->v_o_dtype);
    if (status != CLI_DONE)
        return status;
    const npy_shape tokens = file_shape(1, &a->tokens);
    call->shape[IN_POSITIONS] = &tokens;
    call->function = q->norm.dtype ? &invoke_qkv_forward : &invoke_qkv_bare;
    call->part[NRG_QKV_ROPE] = &q->rope;
    call->part[NRG_QKV_ARGS] = a;
    call->part[NRG_QKV_SHARES] = &q->shares;
    call->part[NRG_QKV_NORM] = &q->norm;
    return file_run(call, first);
}
