/* Rows to blocks of bytes, and back.
 *
 * SPDX-License-Identifier: MIT */
#include "quantize.h"

#define NRG_MAKE "table.h"
#include "quantize_calls.def"
