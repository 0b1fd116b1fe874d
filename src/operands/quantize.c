/* Rows to blocks of bytes, and back.
 *
 * SPDX-License-Identifier: MIT */
#include "quantize.h"

#define NRG_OF NRG_QUANTIZE
#define NRG_NAME quantize
#include "table.h"

#define NRG_OF NRG_DEQUANTIZE
#define NRG_NAME dequantize
#include "table.h"
