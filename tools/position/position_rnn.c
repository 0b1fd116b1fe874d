/* nrg position rnn: chains of vectors, each made from the one before; and their gradients.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

typedef struct request {
    size_t positions, chains, dim;
} request;

#define OPTIONS_DEF "position/position_rnn.def"
#define COMMAND "position rnn"
#define OPERAND IN_P0
#define REQUEST request
#define RUN position_rnn
#include "../options.h"

static int ask(file_call *call) { return read_fields(call, call->request) ? CLI_DONE : CLI_REFUSED; }

/* p0's shape with n before the last axis. */
static npy_shape shape_of_p(const file_call *call, const request *q)
{
    npy_shape shape = call->in[IN_P0].shape;
    shape.dims[shape.ndim] = q->dim;
    shape.dims[shape.ndim - 1] = q->positions;
    shape.ndim++;
    return shape;
}

static int check_inputs(file_call *call, request *q)
{
    const npy_array *p0 = &call->in[IN_P0];
    if (p0->shape.ndim < 1 || p0->shape.ndim > 2 || !p0->shape.dims[p0->shape.ndim - 1])
        return file_wrong_shape(call, IN_P0, "(dim,) or (chains, dim)");
    q->dim = p0->shape.dims[p0->shape.ndim - 1];
    q->chains = p0->count / q->dim;
    if (call->value[OPT_BACKWARD]) /* as p has it, if its shape is right in all else */
        q->positions = call->in[IN_P].shape.ndim == p0->shape.ndim + 1 ? call->in[IN_P].shape.dims[p0->shape.ndim - 1] : 0;
    const size_t square[2] = {q->dim, q->dim};
    const npy_shape w = file_shape(2, square), b = file_shape(1, square), p = shape_of_p(call, q);
    const npy_shape *const wanted[INPUTS] = {&p0->shape, &w, &b, &p, &p};
    int status = CLI_DONE;
    for (int i = 0; i < INPUTS && status == CLI_DONE; i++)
        status = file_check(call, i, wanted[i], i == IN_W || i == IN_B ? FILE_SAME_OR_F32 : FILE_SAME, IN_P0);
    return status == CLI_DONE ? arrays_match_weights(&call->in[IN_W], &call->in[IN_B]) : status;
}

static int forward(file_call *call, const request *q)
{
    npy_shape shape = shape_of_p(call, q);
    int status = file_reserve(call, OUT_O, call->in[IN_P0].dtype, &shape);
    if (status != CLI_DONE)
        return status;
    nrg_recurrent_args args = nrg_recurrent_args_init(call->in[IN_P0].dtype, q->positions, q->dim, call->in[IN_W].data,
                                                      call->in[IN_P0].data, call->out[OUT_O].data);
    args.b = call->in[IN_B].data;
    args.chains = q->chains;
    args.w_dtype = call->in[IN_W].dtype;
    return file_answer(call, nrg_recurrent_forward(&args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const request *q)
{
    const size_t square[2] = {q->dim, q->dim};
    const npy_shape w = file_shape(2, square), b = file_shape(1, square);
    const npy_shape *const shapes[OUTPUTS] = {NULL, &w, &b, &call->in[IN_P0].shape};
    for (int i = OUT_DW; i < OUTPUTS; i++) {
        int status = file_out(call, i) ? file_reserve(call, i, NRG_F32, shapes[i]) : CLI_DONE;
        if (status != CLI_DONE)
            return status;
    }
    nrg_recurrent_backward_args args =
        nrg_recurrent_backward_args_init(call->in[IN_P0].dtype, q->positions, q->dim, call->in[IN_W].data, call->in[IN_P0].data,
                                         call->in[IN_P].data, call->in[IN_DP].data);
    args.chains = q->chains;
    args.w_dtype = call->in[IN_W].dtype;
    args.dw = call->out[OUT_DW].data;
    args.db = call->out[OUT_DB].data;
    args.d_p0 = call->out[OUT_DP0].data;
    nrg_status status = nrg_recurrent_backward_workspace(&args, &args.workspace_size);
    int taken = file_workspace(call, status, args.workspace_size, &args.workspace);
    if (taken != CLI_DONE)
        return taken;
    return file_answer(call, nrg_recurrent_backward(&args, 0, 1));
}
#endif

static int compute(file_call *call)
{
    request *q = call->request;
    int status = check_inputs(call, q);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (call->value[OPT_BACKWARD])
        return backward(call, q);
#endif
    return forward(call, q);
}
