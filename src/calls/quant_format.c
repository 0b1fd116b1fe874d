/* Formats of bytes with scales: names and sizes.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/quantize.h"

static int is_format(nrg_quant_format format) { return (unsigned)format - NRG_QUANT_Q8_0 <= NRG_QUANT_INT8_128 - NRG_QUANT_Q8_0; }

const char *nrg_quant_format_name(nrg_quant_format format)
{
    static const char *const names[] = {"none",     "q8_0", "q8_0_4x4", "q8_0_4x8", "q8_0_8x4",
                                        "q8_0_8x8", "q8_K", "q8_K_4x4", "q8_K_4x8", "q8_K_8x4",
                                        "q8_K_8x8", "int8", "int8_32",  "int8_64",  "int8_128"};
    _Static_assert(NRG_COUNT(names) == NRG_QUANT_INT8_128 + 1, "a name for each");
    return (unsigned)format < NRG_COUNT(names) ? names[format] : NULL;
}

int nrg_quant_has_scales(nrg_quant_format format) { return is_format(format) && nrg_format_has_scales(format); }

size_t nrg_quant_rows(nrg_quant_format format) { return is_format(format) ? nrg_format_rows(format) : 0; }

size_t nrg_quant_block(nrg_quant_format format) { return is_format(format) ? nrg_format_block(format) : 0; }

size_t nrg_quant_bytes(nrg_quant_format format, size_t dim) { return is_format(format) ? nrg_format_bytes(format, dim) : 0; }

size_t nrg_quant_scales(nrg_quant_format format, size_t dim) { return is_format(format) ? nrg_format_scales(format, dim) : 0; }

size_t nrg_quant_size(nrg_quant_format format, size_t rows, size_t dim)
{
    size_t bytes = 0;
    const int is_sound = is_format(format) && nrg_check_quant(format, dim, rows) == NRG_OK;
    return is_sound && nrg_product(nrg_format_bytes(format, dim), rows / nrg_format_rows(format), &bytes) ? bytes : 0;
}
