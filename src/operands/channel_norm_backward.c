/* Channel normalization: backward, both of its phases, and sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm_backward.h"

#define NRG_MAKE "table.h"
#include "channel_norm_backward_calls.def"
