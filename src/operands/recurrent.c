/* Recurrent encodings, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "recurrent.h"

#define NRG_MAKE "table.h"
#include "recurrent_calls.def"
