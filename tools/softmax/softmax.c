/* nrg softmax: nrg_softmax_forward and nrg_softmax_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

typedef struct request {
    nrg_softmax_args forward;
    nrg_softmax_backward_args backward;
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
    b->first_position = a->first_position;
    b->log = a->log;
    b->scale = a->scale;
    b->causal = a->causal;
    b->window = a->window;
    call->function = call->value[OPT_BACKWARD] ? FILE_BACKWARD(softmax_backward) : &invoke_softmax_forward;
    call->part[0] = call->value[OPT_BACKWARD] ? (void *)b : a;
    call->operand[IN_X] = call->value[OPT_BACKWARD] ? "O" : "X";
    return file_ask(call);
}

static int compute(file_call *call)
{
    request *q = call->request;
    nrg_softmax_args *a = &q->forward;
    nrg_softmax_backward_args *b = &q->backward;
    const npy_array *x = &call->in[IN_X];
    const file_axes s = file_last_axes(&x->shape, 3);
    a->keys = b->keys = s.columns;
    a->queries = b->queries = s.rows;
    a->heads = b->heads = s.heads;
    a->batch = b->batch = s.batch;
    if (!call->value[OPT_FIRST_POSITION])
        a->first_position = b->first_position = (int64_t)a->keys - (int64_t)a->queries;
    a->dtype = b->dtype = x->dtype;
    a->mask_dtype = call->in[IN_MASK].dtype;
    return file_run(call, IN_X);
}
