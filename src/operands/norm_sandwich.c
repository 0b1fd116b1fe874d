/* A norm, a residual, and a norm of the sum, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_sandwich.h"

#define NRG_MAKE "table.h"
#include "norm_sandwich_calls.def"
