/* Softmax: whole rows, rows in parts, and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "softmax.h"

#define NRG_MAKE "table.h"
#include "softmax_calls.def"
