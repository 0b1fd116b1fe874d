/* Formats of bytes with scales: their options and their files.
 *
 * SPDX-License-Identifier: MIT */
#include "formats.h"

int formats_read(const file_call *call, nrg_quant_format *format)
{
    const char *given = call->value[file_option(call, "format")], *formats[NRG_QUANT_INT8_128 + 1] = {NULL};
    if (!given)
        return complain("--format: expected a format such as q8_0, got none; see nrg %s --help", call->command->name);
    for (int i = 0; i < NRG_QUANT_INT8_128; i++)
        formats[i] = nrg_quant_format_name((nrg_quant_format)(NRG_QUANT_Q8_0 + i));
    const int word = cli_word("format", given, formats);
    if (word < 0)
        return 0;
    *format = (nrg_quant_format)(NRG_QUANT_Q8_0 + word);
    if (nrg_quant_has_scales(*format) == (call->value[file_option(call, "scales")] != NULL))
        return 1;
    if (nrg_quant_has_scales(*format))
        return complain("--scales: expected a file with --format %s, got none", formats[word]);
    return complain("--scales cannot be used with --format %s: its blocks contain the scales", formats[word]);
}

int formats_ask(const file_call *call, nrg_quant_format *format, nrg_quant_rounding *rounding)
{
    static const char *const of_format[] = {"packed", "scales", "away"};
    const int option = file_option(call, "format");
    for (size_t i = 0; i < sizeof of_format / sizeof of_format[0] && !call->value[option]; i++)
        if (file_needs(call, file_option(call, of_format[i]), option) != CLI_DONE)
            return CLI_REFUSED;
    if (!call->value[option])
        return CLI_DONE;
    if (!cli_build_has("--format", "quantize") || file_excludes(call, option, file_option(call, "backward")) != CLI_DONE ||
        file_excludes(call, option, file_option(call, "o")) != CLI_DONE || !formats_read(call, format))
        return CLI_REFUSED;
    *rounding = call->value[file_option(call, "away")] ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    return CLI_DONE;
}

size_t *formats_last_axis(npy_shape *shape, const char *name, nrg_quant_format format, size_t step, size_t together)
{
    char text[NPY_SHAPE_ROOM];
    size_t *last = shape->ndim ? &shape->dims[shape->ndim - 1] : NULL;
    if (last && *last && *last % step == 0 && (nrg_quant_rows(format) == 1 || (shape->ndim > 1 && last[-1] % together == 0)))
        return last;
    if (nrg_quant_rows(format) == 1)
        complain("%s: expected a last axis with a multiple of %zu elements, got shape %s", name, step,
                 npy_shape_text(text, shape));
    else
        complain("%s: expected shape (..., rows, elements) with multiples of %zu and %zu, got %s", name, together, step,
                 npy_shape_text(text, shape));
    return NULL;
}

int formats_reserve(file_call *call, nrg_quant_format format, const npy_shape *rows, const char *name)
{
    const int inputs = call->command->inputs, packed = file_option(call, "packed") - inputs,
              scales = file_option(call, "scales") - inputs;
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
    const int status = file_reserve(call, packed, (nrg_dtype)(has_scales ? NPY_I1 : NPY_U1), &bytes);
    return status == CLI_DONE && has_scales ? file_reserve(call, scales, NRG_F32, &each) : status;
}
