/* tools/quantize/formats.h: formats of bytes with scales, for the commands that write or read them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_QUANTIZE_FORMATS_H
#define NRG_TOOLS_QUANTIZE_FORMATS_H

#include <nrg/nrg.h>

#include "../file_command.h"

#define FORMATS_HELP                                                                                                             \
    "  --format F             q8_0, q8_0_4x4, q8_0_4x8, q8_0_8x4, q8_0_8x8, q8_K, q8_K_4x4, q8_K_4x8,\n"                         \
    "                         q8_K_8x4, q8_K_8x8 (4 or 8 rows interleaved, in chunks of 4 or 8), int8 (one\n"                    \
    "                         scale a row), int8_32, int8_64 or int8_128 (one scale for 32, 64 or 128)\n"

/* Reads --format and checks that --scales is given if the format needs it. 0 after a complaint. */
int formats_read(const file_call *call, nrg_quant_format *format);

/* The same where it may be absent, as then are --packed, --scales and --away, and otherwise --o and --backward. CLI_DONE, or
 * CLI_REFUSED after a complaint. */
int formats_ask(const file_call *call, nrg_quant_format *format, nrg_quant_rounding *rounding);

/* The last axis, a multiple of step, and the one before it of together where rows lie together; NULL after a complaint. */
size_t *formats_last_axis(npy_shape *shape, const char *name, nrg_quant_format format, size_t step, size_t together);

/* Memory for the bytes of rows of this shape, and their scales; name: of the file that has it. */
int formats_reserve(file_call *call, nrg_quant_format format, const npy_shape *rows, const char *name);

#endif
