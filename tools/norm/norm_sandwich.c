/* nrg sandwich: nrg_norm_sandwich_forward and nrg_norm_sandwich_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"
#include "../quantize/formats.h"

typedef struct request {
    nrg_norm_spec first, second;
    size_t rows;
} request;

#define OPTIONS_DEF "norm/norm_sandwich.def"
#define COMMAND "sandwich"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_sandwich
#include "../options.h"

static int ask(file_call *call)
{
    static const format_options quantized = {OUT_PACKED, OUT_SCALES, OUT_O, OPT_FORMAT, OPT_AWAY, OPT_BACKWARD};
    static const float any;
    const int has_w1 = file_in(call, IN_W1) != NULL, has_w2 = file_in(call, IN_W2) != NULL;
    request *q = call->request;
    if (!file_norm(call, OPT_NORM1, OPT_EPS1, &q->first) || !file_norm(call, OPT_NORM2, OPT_EPS2, &q->second) ||
        !read_fields(call, q) || formats_ask(call, &quantized, &q->second.format, &q->second.rounding) != CLI_DONE)
        return CLI_REFUSED;
    q->second.weight_offset = has_w2 || !has_w1 ? q->first.weight_offset : 0;
    q->first.weight_offset = has_w1 || !has_w2 ? q->first.weight_offset : 0;
    if (q->second.format)
        q->first.dim = q->second.dim = 256; /* a block of any format */
    /* the library validates the numbers before files are read; it reads no pointer, since there are no rows */
    const nrg_norm_sandwich_args args =
        nrg_norm_sandwich_args_init(0, NULL, NULL, has_w1 ? &any : NULL, has_w2 ? &any : NULL, NULL, NULL);
    const nrg_status status = nrg_norm_sandwich_forward(&q->first, &q->second, &args, 0, 1);
    if (status != NRG_OK)
        return file_answer(call, status);
    if (q->second.format)
        return file_out(call, OUT_R) ? CLI_DONE : file_missing(call, INPUTS + OUT_R, " with --format");
    return call->value[OPT_BACKWARD] || file_out(call, OUT_O) ? CLI_DONE : file_missing(call, INPUTS + OUT_O, "");
}

static nrg_dtype weight_dtype(const file_call *call, int w, int b)
{
    return call->in[w].data ? call->in[w].dtype : call->in[b].data ? call->in[b].dtype : NRG_DTYPE_SAME;
}

static int read_specs(file_call *call, request *q)
{
    static const int tensors[] = {IN_Y, IN_D_O, IN_DR_IN, IN_R};
    const npy_array *x = &call->in[IN_X];
    char text[NPY_SHAPE_ROOM];
    if (!x->shape.ndim || !x->shape.dims[x->shape.ndim - 1]) {
        complain("%s: expected a last axis with at least one element, got shape %s", file_in(call, IN_X),
                 npy_shape_text(text, &x->shape));
        return CLI_REFUSED;
    }
    q->first.dim = q->second.dim = x->shape.dims[x->shape.ndim - 1];
    q->first.dtype = q->second.dtype = x->dtype;
    q->rows = x->count / q->first.dim;
    int status = CLI_DONE;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0] && status == CLI_DONE; i++)
        status = file_check(call, tensors[i], &x->shape, tensors[i] == IN_Y ? FILE_SAME_OR_F32 : FILE_SAME, IN_X);
    if (status == CLI_DONE)
        status = file_check_weights(call, IN_W1, IN_B1, q->first.dim, IN_X);
    if (status == CLI_DONE)
        status = file_check_weights(call, IN_W2, IN_B2, q->first.dim, IN_X);
    q->first.w_dtype = weight_dtype(call, IN_W1, IN_B1);
    q->second.w_dtype = weight_dtype(call, IN_W2, IN_B2);
    if (call->in[IN_Y].data)
        q->first.y_dtype = call->in[IN_Y].dtype;
    return status;
}

static int forward(const file_call *call, const request *q)
{
    nrg_norm_sandwich_args args =
        nrg_norm_sandwich_args_init(q->rows, call->in[IN_X].data, call->in[IN_Y].data, call->in[IN_W1].data, call->in[IN_W2].data,
                                    call->out[OUT_R].data, call->out[OUT_O].data);
    args.b1 = call->in[IN_B1].data;
    args.b2 = call->in[IN_B2].data;
    args.packed = call->out[OUT_PACKED].data;
    args.scales = call->out[OUT_SCALES].data;
    return file_answer(call, nrg_norm_sandwich_forward(&q->first, &q->second, &args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const request *q)
{
    nrg_norm_sandwich_backward_args args =
        nrg_norm_sandwich_backward_args_init(q->rows, call->in[IN_X].data, call->in[IN_W1].data, call->in[IN_W2].data,
                                             call->in[IN_R].data, call->in[IN_D_O].data, call->out[OUT_DX].data);
    args.dr_in = call->in[IN_DR_IN].data;
    args.dy = call->out[OUT_DY].data;
    args.dw1 = call->out[OUT_DW1].data;
    args.db1 = call->out[OUT_DB1].data;
    args.dw2 = call->out[OUT_DW2].data;
    args.db2 = call->out[OUT_DB2].data;
    nrg_status status = nrg_norm_sandwich_backward_workspace(&q->first, &q->second, &args, &args.workspace_size);
    const int taken = file_workspace(call, status, args.workspace_size, &args.workspace);
    if (taken != CLI_DONE)
        return taken;
    status = nrg_norm_sandwich_backward(&q->first, &q->second, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_sandwich_backward_reduce(&q->first, &q->second, &args, 0, 1);
    return file_answer(call, status);
}
#endif

static int compute(file_call *call)
{
    request *q = call->request;
    int status = read_specs(call, q);
    const npy_shape line = file_shape(1, &q->first.dim);
    for (int i = 0; i < OUTPUTS && status == CLI_DONE; i++)
        if (file_out(call, i) && i != OUT_PACKED && i != OUT_SCALES)
            status = file_reserve(call, i, i >= OUT_DW1 ? NRG_F32 : q->first.dtype, i >= OUT_DW1 ? &line : &call->in[IN_X].shape);
    if (status == CLI_DONE && q->second.format)
        status = formats_reserve(call, OUT_PACKED, OUT_SCALES, q->second.format, &call->in[IN_X].shape, file_in(call, IN_X));
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (call->value[OPT_BACKWARD])
        return backward(call, q);
#endif
    return forward(call, q);
}
