/* nrg quantize: nrg_quantize for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

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
    *args = nrg_quantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 256, NULL, NULL, NULL); /* 256: a block of any format */
    if (!formats_read(call, &args->format))
        return CLI_REFUSED;
    args->rounding = call->value[OPT_AWAY] ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    call->function = &invoke_quantize;
    call->part[0] = args;
    return read_fields(call, args) ? file_ask(call) : CLI_REFUSED;
}

static int compute(file_call *call)
{
    nrg_quantize_args *args = call->request;
    const npy_array *x = &call->in[IN_X];
    int status = formats_reserve(call, args->format, &x->shape, file_in(call, IN_X));
    args->dtype = x->dtype;
    if (status == CLI_DONE)
        status = file_rows(call, IN_X, &args->rows, &args->dim);
    return status == CLI_DONE ? file_run(call, IN_X) : status;
}
