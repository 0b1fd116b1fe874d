/* Cross-entropy, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "cross_entropy.h"

#define NRG_MAKE "table.h"
#include "cross_entropy_calls.def"
