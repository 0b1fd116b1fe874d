/* nrg dequantize: nrg_dequantize for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"
#include "formats.h"

#define OPTIONS_DEF "quantize/dequantize.def"
#define COMMAND "dequantize"
#define OPERAND IN_PACKED
#define REQUEST nrg_dequantize_args
#define RUN command_dequantize
#include "../options.h"

static int ask(file_call *call)
{
    static const char *const dtypes[] = {"f4", "f2", NULL};
    nrg_dequantize_args *args = call->request;
    *args = nrg_dequantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 0, NULL, NULL, NULL);
    const int dtype = call->value[OPT_DTYPE] ? cli_word("dtype", call->value[OPT_DTYPE], dtypes) : 0;
    if (dtype < 0 || !formats_read(call, OPT_FORMAT, IN_SCALES, &args->format))
        return CLI_REFUSED;
    args->dtype = dtype ? NRG_F16 : NRG_F32;
    return read_fields(call, args) ? CLI_DONE : CLI_REFUSED;
}

static int compute(file_call *call)
{
    nrg_dequantize_args *args = call->request;
    const nrg_quant_format format = args->format;
    const npy_array *q = &call->in[IN_PACKED], *scales = &call->in[IN_SCALES];
    const int has_scales = nrg_quant_has_scales(format);
    const size_t together = nrg_quant_rows(format), block = has_scales ? 1 : nrg_quant_block(format);
    npy_shape shape = q->shape;
    size_t *last = formats_last_axis(&shape, file_in(call, IN_PACKED), format, nrg_quant_bytes(format, block), 1);
    if (!last)
        return CLI_REFUSED;
    args->rows = q->count / *last * together;
    args->dim = *last / nrg_quant_bytes(format, block) * block;
    *last = args->dim;
    if (together > 1)
        last[-1] *= together;
    npy_shape wanted = shape;
    wanted.dims[wanted.ndim - 1] = nrg_quant_scales(format, args->dim);
    int status = file_check(call, IN_SCALES, &wanted, FILE_F32, IN_PACKED);
    if (status == CLI_DONE)
        status = file_reserve(call, OUT_O, args->dtype, &shape);
    if (status != CLI_DONE)
        return status;
    args->packed = q->data;
    args->scales = has_scales ? scales->data : NULL;
    args->o = call->out[OUT_O].data;
    return file_answer(call, nrg_dequantize(args, 0, 1));
}
