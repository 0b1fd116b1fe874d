/* Gated linear units, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "glu.h"

#define NRG_MAKE "table.h"
#include "glu_calls.def"
