/* nrg quantize and nrg dequantize: nrg_quantize and nrg_dequantize for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../commands.h"
#include "../file_command.h"
#include "../library.h"
#include "../npy/arrays.h"
#include "formats.h"

static const char quantize_help[] =
    "usage: nrg quantize --format F X.npy --packed P.npy [OPTION]...\n"
    "       nrg quantize --format int8 X.npy --packed P.npy --scales S.npy [OPTION]...\n"
    "\n"
    "Converts rows to bytes with scales, in the formats of ggml's integer matrix products (nrg/quantize.h).\n"
    "\n"
    "example: blocks of 32 elements with one scale each\n"
    "  nrg quantize --format q8_0 x.npy --packed p.npy\n"
    "\n"
    "files, in C order\n"
    "  X.npy, -x, --x FILE    x, '<f4' or '<f2'; the last axis is a row\n"
    "  -p, --packed FILE      blocks, '|u1': the last axis has the bytes of a row, or of 4 or 8 rows that\n"
    "                         the format interleaves; int8 formats: '|i1', with the shape of X\n"
    "  --scales FILE          for int8 formats: '<f4'; the last axis has the scales of a row\n"
    "options\n" FORMATS_HELP "  --away                 round ties away from zero; default: to even\n"
    "  --isa NAME             scalar, avx2, avx512, neon or generic; default: see nrg info\n";

static const char dequantize_help[] = "usage: nrg dequantize --format F P.npy --o O.npy [OPTION]...\n"
                                      "       nrg dequantize --format int8 P.npy --scales S.npy --o O.npy [OPTION]...\n"
                                      "\n"
                                      "Converts the bytes of nrg quantize back to numbers.\n"
                                      "\n"
                                      "example:\n"
                                      "  nrg dequantize --format q8_0 p.npy --o o.npy\n"
                                      "\n"
                                      "files, in C order\n"
                                      "  P.npy, -p, --packed F  bytes that nrg quantize has written\n"
                                      "  --scales FILE          their scales, for int8 formats\n"
                                      "  -o, --o FILE           the result; the last axis is a row\n"
                                      "options\n" FORMATS_HELP "  --dtype D              dtype of O: f4 (default) or f2\n"
                                      "  --isa NAME             scalar, avx2, avx512, neon or generic; default: see nrg info\n";

static int check_needed(const file_call *call, const int *needed, int count)
{
    for (int i = 0; i < count; i++)
        if (!call->value[needed[i]])
            return file_missing(call, needed[i], "");
    return CLI_DONE;
}

/* ---- quantize ---- */

enum { IN_X, INPUTS };
enum { OUT_PACKED, OUT_SCALES, OUTPUTS };
enum { OPT_FORMAT = INPUTS + OUTPUTS, OPT_AWAY, OPT_ISA, OPT_HELP, OPTIONS };

static const cli_option options[OPTIONS + 1] = {
    [IN_X] = {"x", 'x', 1},
    [INPUTS + OUT_PACKED] = {"packed", 'p', 1},
    [INPUTS + OUT_SCALES] = {"scales", 0, 1},
    [OPT_FORMAT] = {"format", 0, 1},
    [OPT_AWAY] = {"away", 0, 0},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

static int ask(file_call *call)
{
    static const int needed[] = {IN_X, INPUTS + OUT_PACKED};
    nrg_quantize_args *args = call->request;
    *args = nrg_quantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 0, NULL, NULL, NULL);
    if (!formats_read(call, OPT_FORMAT, INPUTS + OUT_SCALES, &args->format))
        return CLI_REFUSED;
    args->rounding = call->value[OPT_AWAY] ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    return check_needed(call, needed, 2);
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

int command_quantize(char **arguments)
{
    static const file_command command = {.name = "quantize",
                                         .help = quantize_help,
                                         .options = options,
                                         .inputs = INPUTS,
                                         .outputs = OUTPUTS,
                                         .count = OPTIONS,
                                         .operand = IN_X,
                                         .ask = ask,
                                         .compute = compute};
    nrg_quantize_args args;
    return file_command_run(&command, &args, arguments);
}

/* ---- dequantize ---- */

enum { IN_PACKED, IN_SCALES, BACK_INPUTS };
enum { OUT_O, BACK_OUTPUTS };
enum { BACK_FORMAT = BACK_INPUTS + BACK_OUTPUTS, BACK_DTYPE, BACK_ISA, BACK_HELP, BACK_OPTIONS };

static const cli_option back_options[BACK_OPTIONS + 1] = {
    [IN_PACKED] = {"packed", 'p', 1}, [IN_SCALES] = {"scales", 0, 1}, [BACK_INPUTS + OUT_O] = {"o", 'o', 1},
    [BACK_FORMAT] = {"format", 0, 1}, [BACK_DTYPE] = {"dtype", 0, 1}, [BACK_ISA] = {"isa", 0, 1},
    [BACK_HELP] = {"help", 'h', 0},   [BACK_OPTIONS] = {NULL, 0, 0},
};

static int ask_back(file_call *call)
{
    static const int needed[] = {IN_PACKED, BACK_INPUTS + OUT_O};
    static const char *const dtypes[] = {"f4", "f2", NULL};
    nrg_dequantize_args *args = call->request;
    *args = nrg_dequantize_args_init(NRG_QUANT_NONE, NRG_F32, 0, 0, NULL, NULL, NULL);
    const int dtype = file_word(call, BACK_DTYPE, dtypes);
    if (dtype < 0 || !formats_read(call, BACK_FORMAT, IN_SCALES, &args->format))
        return CLI_REFUSED;
    args->dtype = dtype ? NRG_F16 : NRG_F32;
    return check_needed(call, needed, 2);
}

static int compute_back(file_call *call)
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
    int status = has_scales ? array_check_shape(scales, file_in(call, IN_SCALES), &wanted, file_in(call, IN_PACKED)) : CLI_DONE;
    if (status == CLI_DONE && has_scales && scales->dtype != NRG_F32)
        status = file_wrong_dtype(call, IN_SCALES, NRG_F32, NULL);
    if (status == CLI_DONE)
        status = file_reserve(call, OUT_O, args->dtype, &shape);
    if (status != CLI_DONE)
        return status;
    args->packed = q->data;
    args->scales = has_scales ? scales->data : NULL;
    args->o = call->out[OUT_O].data;
    return file_answer(call, nrg_dequantize(args, 0, 1));
}

int command_dequantize(char **arguments)
{
    static const file_command command = {.name = "dequantize",
                                         .help = dequantize_help,
                                         .options = back_options,
                                         .inputs = BACK_INPUTS,
                                         .outputs = BACK_OUTPUTS,
                                         .count = BACK_OPTIONS,
                                         .operand = IN_PACKED,
                                         .integers = FILE_BYTES(IN_PACKED),
                                         .ask = ask_back,
                                         .compute = compute_back};
    nrg_dequantize_args args;
    return file_command_run(&command, &args, arguments);
}
