/* nrg softmax: nrg_softmax_forward and nrg_softmax_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

typedef struct request {
    nrg_softmax_args forward;
    nrg_softmax_backward_args backward;
    long long first; /* position */
} request;

static const long long far = 1LL << 60;

#define OPTIONS_DEF "softmax/softmax.def"
#define COMMAND "softmax"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_softmax
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    nrg_softmax_args *a = &q->forward;
    nrg_softmax_backward_args *b = &q->backward;
    *a = nrg_softmax_args_init(NRG_F32, 0, 0, 0, 0, NULL, NULL);
    *b = nrg_softmax_backward_args_init(NRG_F32, 0, 0, 0, 0, NULL, NULL, NULL);
    if (!read_fields(call, q))
        return CLI_REFUSED;
    a->mask_repeat = NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3;
    a->first_position = b->first_position = q->first;
    b->log = a->log;
    b->scale = a->scale;
    b->causal = a->causal;
    b->window = a->window;
    call->function = call->value[OPT_BACKWARD] ? FILE_BACKWARD(softmax_backward) : &invoke_softmax_forward;
    call->part[0] = call->value[OPT_BACKWARD] ? (void *)b : a;
    call->operand[IN_X] = call->value[OPT_BACKWARD] ? "O" : "X";
    return file_ask(call);
}

/* Axes of x from the last to the first; those that there are not are 1. */
static int compute(file_call *call)
{
    request *q = call->request;
    nrg_softmax_args *a = &q->forward;
    nrg_softmax_backward_args *b = &q->backward;
    const npy_array *x = &call->in[IN_X];
    size_t sizes[4] = {1, 1, 1, 1};
    for (int i = 0; i < x->shape.ndim; i++)
        sizes[i < 3 ? i : 3] *= x->shape.dims[x->shape.ndim - 1 - i];
    a->keys = b->keys = sizes[0];
    a->queries = b->queries = sizes[1];
    a->heads = b->heads = sizes[2];
    a->batch = b->batch = sizes[3];
    if (!call->value[OPT_FIRST_POSITION])
        a->first_position = b->first_position = (int64_t)a->keys - (int64_t)a->queries;
    a->dtype = b->dtype = x->dtype;
    a->mask_dtype = call->in[IN_MASK].dtype;
    return file_run(call, IN_X);
}
