/* Formats of bytes with scales: their options and their files.
 *
 * SPDX-License-Identifier: MIT */
#include "formats.h"

#include "../library.h"
#include "../npy/arrays.h"

int formats_read(const file_call *call, int option, int scales, int is_output, nrg_quant_format *format)
{
    if (!call->value[option]) {
        complain("--format: needed");
        return 0;
    }
    const char *formats[NRG_QUANT_INT8_128 + 1] = {NULL};
    for (int i = 0; i < NRG_QUANT_INT8_128; i++)
        formats[i] = nrg_quant_format_name((nrg_quant_format)(NRG_QUANT_Q8_0 + i));
    const int word = file_word(call, option, formats);
    if (word < 0)
        return 0;
    *format = (nrg_quant_format)(NRG_QUANT_Q8_0 + word);
    if (nrg_quant_has_scales(*format) == (call->value[scales] != NULL))
        return 1;
    complain("--scales: %s with --format %s, which has %s scales in its blocks",
             nrg_quant_has_scales(*format) ? "needed"
             : is_output                   ? "not written"
                                           : "not taken",
             formats[word], nrg_quant_has_scales(*format) ? "no" : "its");
    return 0;
}

int formats_ask(const file_call *call, const format_options *options, nrg_quant_format *format, nrg_quant_rounding *rounding)
{
    const cli_option *const all = call->command->options;
    const int outputs = call->command->inputs, q = outputs + options->q, scales = outputs + options->scales;
    const int of_format[] = {q, scales, options->away};
    for (size_t i = 0; i < sizeof of_format / sizeof of_format[0] && !call->value[options->format]; i++)
        if (file_needs(call, of_format[i], options->format) != CLI_DONE)
            return CLI_REFUSED;
    if (!call->value[options->format])
        return CLI_DONE;
    if (!library_holds("--format", "quantize") || file_excludes(call, options->format, options->backward) != CLI_DONE ||
        file_excludes(call, options->format, outputs + options->o) != CLI_DONE ||
        !formats_read(call, options->format, scales, 1, format))
        return CLI_REFUSED;
    *rounding = call->value[options->away] ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    if (call->value[q])
        return CLI_DONE;
    complain("--%s: needed with --format", all[q].name);
    return CLI_REFUSED;
}

size_t *formats_last_axis(npy_shape *shape, const char *name, nrg_quant_format format, size_t step, size_t together)
{
    char text[NPY_SHAPE_ROOM];
    size_t *last = shape->ndim ? &shape->dims[shape->ndim - 1] : NULL;
    if (last && *last && *last % step == 0 && (nrg_quant_rows(format) == 1 || (shape->ndim > 1 && last[-1] % together == 0)))
        return last;
    complain("%s: shape %s; its last axis has to be a multiple of %zu, and not 0%s", name, npy_shape_text(text, shape), step,
             together > 1 ? ", and the one before it of the rows that lie together" : "");
    return NULL;
}

int formats_reserve(file_call *call, int q, int scales, nrg_quant_format format, const npy_shape *rows, const char *name)
{
    const int has_scales = nrg_quant_has_scales(format);
    const size_t together = nrg_quant_rows(format);
    npy_shape bytes = *rows, each = *rows;
    size_t *last = formats_last_axis(&bytes, name, format, has_scales ? 1 : nrg_quant_block(format), together);
    if (!last)
        return CLI_REFUSED;
    each.dims[each.ndim - 1] = nrg_quant_scales(format, *last);
    *last = nrg_quant_bytes(format, *last);
    if (together > 1)
        last[-1] /= together;
    const int status = file_reserve(call, q, (nrg_dtype)(has_scales ? NPY_I1 : NPY_U1), &bytes);
    return status == CLI_DONE && has_scales ? file_reserve(call, scales, NRG_F32, &each) : status;
}
