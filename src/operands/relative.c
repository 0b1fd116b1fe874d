/* Relative positions: scores, values, and the gradient of their tables.
 *
 * SPDX-License-Identifier: MIT */
#include "relative.h"

#define NRG_MAKE "table.h"
#include "relative_calls.def"
