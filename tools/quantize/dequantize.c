/* nrg dequantize: nrg_dequantize for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "formats.h"

#define OPTIONS_DEF "quantize/dequantize.def"
#define COMMAND "dequantize"
#define OPERAND IN_PACKED
#define REQUEST nrg_dequantize_args
#define RUN command_dequantize
#include "../options.h"

static const char *const dtypes[] = {"f4", "f2", NULL};

static int ask(file_call *call)
{
    nrg_dequantize_args *args = call->request;
    *args = nrg_dequantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 256, NULL, NULL, NULL); /* 256: a block of any format */
    const int dtype = call->value[OPT_DTYPE] ? cli_word("dtype", call->value[OPT_DTYPE], dtypes) : 0;
    if (dtype < 0 || !formats_read(call, &args->format))
        return CLI_REFUSED;
    args->dtype = dtype ? NRG_F16 : NRG_F32;
    call->function = &invoke_dequantize;
    call->part[0] = args;
    return read_fields(call, args) ? file_ask(call) : CLI_REFUSED;
}

static int compute(file_call *call)
{
    nrg_dequantize_args *args = call->request;
    const nrg_quant_format format = args->format;
    const npy_array *q = &call->in[IN_PACKED];
    const size_t together = nrg_quant_rows(format), block = nrg_quant_has_scales(format) ? 1 : nrg_quant_block(format);
    npy_shape shape = q->shape, scales;
    size_t *last = formats_last_axis(&shape, file_in(call, IN_PACKED), format, nrg_quant_bytes(format, block), 1);
    if (!last)
        return CLI_REFUSED;
    args->rows = q->count / *last * together;
    *last = args->dim = *last / nrg_quant_bytes(format, block) * block;
    if (together > 1)
        last[-1] *= together;
    scales = shape;
    scales.dims[scales.ndim - 1] = nrg_quant_scales(format, args->dim);
    call->shape[IN_PACKED] = &q->shape;
    call->shape[IN_SCALES] = &scales;
    call->shape[INPUTS + OUT_O] = &shape;
    return file_run(call, IN_PACKED);
}
