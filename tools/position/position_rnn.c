/* nrg position rnn: chains of vectors, each made from the one before; and their gradients.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "position.h"

/* Both begin alike. */
typedef union request {
    nrg_recurrent_args forward;
    nrg_recurrent_backward_args backward;
} request;

#define OPTIONS_DEF "position/position_rnn.def"
#define COMMAND "position rnn"
#define OPERAND IN_P0
#define REQUEST request
#define RUN position_rnn
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    const int is_backward = call->value[OPT_BACKWARD] != NULL;
    if (is_backward)
        q->backward = nrg_recurrent_backward_args_init(NRG_F32, 0, 1, NULL, NULL, NULL, NULL);
    else
        q->forward = nrg_recurrent_args_init(NRG_F32, 0, 1, NULL, NULL, NULL);
    call->function = is_backward ? FILE_BACKWARD(recurrent_backward) : &invoke_recurrent_forward;
    call->part[0] = q;
    return read_fields(call, q) ? file_ask(call) : CLI_REFUSED;
}

static int compute(file_call *call)
{
    nrg_recurrent_args *a = &((request *)call->request)->forward;
    const npy_array *p0 = &call->in[IN_P0];
    const int ndim = p0->shape.ndim;
    if (ndim < 1 || ndim > 2 || !p0->shape.dims[ndim - 1])
        return file_wrong(call, IN_P0, "shape (dim,) or (chains, dim)");
    const size_t dim = p0->shape.dims[ndim - 1], square[2] = {dim, dim};
    if (call->value[OPT_BACKWARD]) /* as p has it, if its shape is right in all else */
        a->positions = call->in[IN_P].shape.ndim == ndim + 1 ? call->in[IN_P].shape.dims[ndim - 1] : 0;
    /* p0's shape with n before the last axis */
    npy_shape p = p0->shape, w = file_shape(2, square), b = file_shape(1, square);
    p.dims[p.ndim++] = dim;
    p.dims[ndim - 1] = a->positions;
    call->shape[IN_W] = &w;
    call->shape[IN_B] = &b;
    call->shape[IN_P] = call->shape[IN_DP] = call->shape[INPUTS + OUT_P] = &p;
    call->shape[IN_P0] = call->shape[INPUTS + OUT_D_P0] = &p0->shape;
    a->dtype = p0->dtype;
    a->dim = dim;
    a->chains = p0->count / dim;
    return file_run(call, IN_P0);
}
