/* nrg sandwich: nrg_norm_sandwich_forward and nrg_norm_sandwich_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../quantize/formats.h"

typedef struct request {
    nrg_norm_spec first, second;
    union {
        nrg_norm_sandwich_args forward;
        nrg_norm_sandwich_backward_args backward;
    } args; /* which begin alike */
    int is_backward;
} request;

#define OPTIONS_DEF "norm/norm_sandwich.def"
#define COMMAND "sandwich"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_sandwich
#include "../options.h"

static int ask(file_call *call)
{
    const int has_w1 = file_in(call, IN_W1) != NULL, has_w2 = file_in(call, IN_W2) != NULL;
    request *q = call->request;
    if (!file_norm(call, OPT_NORM1, OPT_EPS1, &q->first) || !file_norm(call, OPT_NORM2, OPT_EPS2, &q->second) ||
        !read_fields(call, q) || formats_ask(call, &q->second.format, &q->second.rounding) != CLI_DONE)
        return CLI_REFUSED;
    q->second.weight_offset = has_w2 || !has_w1 ? q->first.weight_offset : 0;
    q->first.weight_offset = has_w1 || !has_w2 ? q->first.weight_offset : 0;
    q->first.dim = q->second.dim = 256; /* a block of any format */
    if (q->is_backward)
        q->args.backward = nrg_norm_sandwich_backward_args_init(0, NULL, NULL, NULL, NULL, NULL, NULL);
    else
        q->args.forward = nrg_norm_sandwich_args_init(0, NULL, NULL, NULL, NULL, NULL, NULL);
    call->function = q->is_backward ? FILE_BACKWARD(norm_sandwich_backward) : &invoke_norm_sandwich_forward;
    call->then = q->is_backward ? FILE_BACKWARD(norm_sandwich_backward_reduce) : NULL;
    call->part[0] = &q->first;
    call->part[1] = &q->second;
    call->part[2] = &q->args;
    return file_ask(call);
}

static int compute(file_call *call)
{
    const npy_array *x = &call->in[IN_X];
    request *q = call->request;
    int status = file_rows(call, IN_X, &q->args.forward.rows, &q->first.dim);
    q->second.dim = q->first.dim;
    q->first.dtype = q->second.dtype = x->dtype;
    if (status == CLI_DONE && q->second.format)
        status = formats_reserve(call, q->second.format, &x->shape, file_in(call, IN_X));
    return status == CLI_DONE ? file_run(call, IN_X) : status;
}
