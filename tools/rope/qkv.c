/* nrg qkv: nrg_qkv_forward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"

static const char *const modes[] = {"normal", "neox", NULL};

typedef struct request {
    nrg_rope_spec rope;
    nrg_norm_spec norm;
    nrg_qkv_args args;
    int64_t *slots;
    long long first; /* position */
    int is_neox;
} request;

#define OPTIONS_DEF "rope/qkv.def"
#define COMMAND "qkv"
#define OPERAND IN_Q
#define REQUEST request
#define RUN command_qkv
#include "../options.h"

/* Checks which options need or exclude each other. */
static int check_options(const file_call *call)
{
    if (call->value[IN_SLOTS] && ((call->value[IN_K] && file_needs(call, IN_SLOTS, IN_K_CACHE) != CLI_DONE) ||
                                  (call->value[IN_V] && file_needs(call, IN_SLOTS, IN_V_CACHE) != CLI_DONE)))
        return 0;
    return 1;
}

static int ask(file_call *call)
{
    request *q = call->request;
    q->rope = nrg_rope_spec_init(0, NRG_ROPE_NORMAL, 10000);
    q->args = nrg_qkv_args_init(NRG_F32, 0, 0);
    if (!read_fields(call, q) || !check_options(call))
        return CLI_REFUSED;
    if (q->is_neox)
        q->rope.mode = NRG_ROPE_NEOX;
    q->args.first_position = (int32_t)q->first;
    return !call->value[OPT_NORM] || file_norm(call, OPT_NORM, OPT_EPS, &q->norm) ? CLI_DONE : CLI_REFUSED;
}

/* One of q, k and v: as many tokens and elements as the first of them, but for v, and one dtype. */
static int read_tensor(const file_call *call, request *q, int input, size_t *heads, size_t *dim)
{
    const npy_array *x = &call->in[input];
    char text[NPY_SHAPE_ROOM];
    const int first = call->in[IN_Q].data ? IN_Q : call->in[IN_K].data ? IN_K : IN_V;
    const npy_array *beside = &call->in[first];
    if (!x->data)
        return CLI_DONE;
    const size_t *dims = x->shape.dims;
    if (x->shape.ndim != 3 || !dims[2]) {
        file_wrong_shape(call, input, "(tokens, heads, dim)");
    } else if (x->dtype != beside->dtype || dims[0] != beside->shape.dims[0] ||
               (input != IN_V && dims[2] != beside->shape.dims[2])) {
        complain("%s: expected '%s' with %zu tokens and heads of %zu elements as in %s, got '%s' with shape %s",
                 file_in(call, input), npy_descr(beside->dtype), beside->shape.dims[0], beside->shape.dims[2],
                 file_in(call, first), npy_descr(x->dtype), npy_shape_text(text, &x->shape));
    } else {
        q->args.dtype = x->dtype;
        q->args.tokens = dims[0];
        *heads = dims[1];
        *dim = dims[2];
        return CLI_DONE;
    }
    return CLI_REFUSED;
}

static int check_tokens(const file_call *call, int input, size_t tokens)
{
    const npy_shape wanted = file_shape(1, &tokens);
    return call->in[input].data ? array_check_shape(&call->in[input], file_in(call, input), &wanted, "the tokens") : CLI_DONE;
}

static int check_w(const file_call *call, int input, size_t dim)
{
    const npy_shape wanted = file_shape(1, &dim);
    if (!call->in[input].data)
        return CLI_DONE;
    if (call->in[input].dtype != NRG_F32)
        return file_wrong_dtype(call, input, NRG_F32, NULL);
    return array_check_shape(&call->in[input], file_in(call, input), &wanted, "the head size");
}

/* Slots of 64 bits; both caches have as many of them. */
static int read_slots(const file_call *call, request *q)
{
    const npy_array *slots = &call->in[IN_SLOTS], *cache = &call->in[call->in[IN_K_CACHE].data ? IN_K_CACHE : IN_V_CACHE];
    if (!slots->data || !cache->data)
        return CLI_DONE;
    q->slots = malloc((slots->count + 1) * sizeof *q->slots);
    if (!q->slots)
        return arrays_no_memory(slots->count * sizeof *q->slots);
    for (size_t t = 0; t < slots->count; t++)
        q->slots[t] = ((const int32_t *)slots->data)[t];
    q->args.slots = q->slots;
    q->args.slot_count = cache->shape.ndim ? cache->shape.dims[0] : 0;
    return CLI_DONE;
}

/* A result: the cache's memory, or a tensor like its input. */
static int take_output(file_call *call, const request *q, int which, int input, int cache, size_t heads, size_t dim)
{
    if (!file_out(call, which))
        return CLI_DONE;
    if (cache < 0 || !call->in[cache].data)
        return file_reserve(call, which, q->args.dtype, &call->in[input].shape);
    const size_t dims[3] = {q->args.slot_count, heads, dim};
    const npy_shape wanted = file_shape(3, dims);
    const int status = array_check_shape(&call->in[cache], file_in(call, cache), &wanted, "the slots and heads");
    if (status == CLI_DONE)
        file_reuse(call, which, cache);
    return status;
}

static int run(file_call *call, request *q)
{
    nrg_qkv_args *a = &q->args;
    size_t bytes = 0;
    if (a->q_heads)
        a->q = call->in[IN_Q].data, a->q_o = call->out[OUT_Q].data;
    if (a->k_heads)
        a->k = call->in[IN_K].data, a->k_o = call->out[OUT_K].data;
    if (a->v_heads)
        a->v = call->in[IN_V].data, a->v_o = call->out[OUT_V].data;
    a->k_o_dtype = a->k_o ? call->out[OUT_K].dtype : NRG_DTYPE_SAME;
    a->v_o_dtype = a->v_o ? call->out[OUT_V].dtype : NRG_DTYPE_SAME;
    a->q_w = a->q_heads ? call->in[IN_Q_W].data : NULL;
    a->k_w = a->k_heads ? call->in[IN_K_W].data : NULL;
    a->positions = call->in[IN_POSITIONS].data;
    const nrg_status answer = nrg_qkv_workspace(&q->rope, a, 1, &bytes);
    if (answer != NRG_OK)
        return file_answer(call, answer);
    const int status = file_workspace(call, answer, bytes, &a->workspace);
    a->workspace_size = bytes;
    return status == CLI_DONE ? file_answer(call, nrg_qkv_forward(q->norm.dim ? &q->norm : NULL, &q->rope, a, 0, 1)) : status;
}

static int compute_with(file_call *call, request *q)
{
    nrg_qkv_args *a = &q->args;
    size_t v_dim = 0;
    int status = read_tensor(call, q, IN_Q, &a->q_heads, &a->dim);
    if (status == CLI_DONE)
        status = read_tensor(call, q, IN_K, &a->k_heads, &a->dim);
    if (status == CLI_DONE)
        status = read_tensor(call, q, IN_V, &a->v_heads, &v_dim);
    if (status != CLI_DONE)
        return status;
    a->v_dim = v_dim;
    a->dim = a->dim ? a->dim : 2; /* of v alone */
    if (!q->rope.n_dims)
        q->rope.n_dims = a->dim;
    q->norm.dim = q->norm.dtype ? a->dim : 0;
    const int inputs[] = {IN_SLOTS, IN_POSITIONS};
    for (int i = 0; i < 2 && status == CLI_DONE; i++)
        status = check_tokens(call, inputs[i], a->tokens);
    for (int i = IN_Q_W; i <= IN_K_W && status == CLI_DONE; i++)
        status = check_w(call, i, a->dim);
    if (status == CLI_DONE)
        status = read_slots(call, q);
    if (status == CLI_DONE)
        status = take_output(call, q, OUT_Q, IN_Q, -1, a->q_heads, a->dim);
    if (status == CLI_DONE)
        status = take_output(call, q, OUT_K, IN_K, IN_K_CACHE, a->k_heads, a->dim);
    if (status == CLI_DONE)
        status = take_output(call, q, OUT_V, IN_V, IN_V_CACHE, a->v_heads, v_dim);
    return status == CLI_DONE ? run(call, q) : status;
}

static int compute(file_call *call)
{
    request *q = call->request;
    const int status = compute_with(call, q);
    free(q->slots);
    return status;
}
