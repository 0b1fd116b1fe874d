/* nrg quantize: nrg_quantize for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"
#include "formats.h"

#define OPTIONS_DEF "quantize/quantize.def"
#define COMMAND "quantize"
#define OPERAND IN_X
#define REQUEST nrg_quantize_args
#define RUN command_quantize
#include "../options.h"

static int ask(file_call *call)
{
    nrg_quantize_args *args = call->request;
    *args = nrg_quantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 0, NULL, NULL, NULL);
    if (!formats_read(call, OPT_FORMAT, INPUTS + OUT_SCALES, &args->format))
        return CLI_REFUSED;
    args->rounding = call->value[OPT_AWAY] ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    return read_fields(call, args) ? CLI_DONE : CLI_REFUSED;
}

static int compute(file_call *call)
{
    nrg_quantize_args *args = call->request;
    const npy_array *x = &call->in[IN_X];
    const int status = formats_reserve(call, OUT_PACKED, OUT_SCALES, args->format, &x->shape, file_in(call, IN_X));
    if (status != CLI_DONE)
        return status;
    args->dim = x->shape.dims[x->shape.ndim - 1];
    args->rows = x->count / args->dim;
    args->dtype = x->dtype;
    args->x = x->data;
    args->packed = call->out[OUT_PACKED].data;
    args->scales = call->out[OUT_SCALES].data;
    return file_answer(call, nrg_quantize(args, 0, 1));
}
