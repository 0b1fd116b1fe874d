/* Channel normalization: backward, both of its phases, and sums in parts.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm_backward.h"

#define NRG_OF NRG_CHANNEL_BACKWARD
#define NRG_NAME channel_norm_backward
#include "table.h"

#define NRG_OF NRG_CHANNEL_BACKWARD_REDUCE
#define NRG_NAME channel_norm_backward_reduce
#include "table.h"

#define NRG_OF NRG_CHANNEL_BACKWARD_SUMS
#define NRG_NAME channel_norm_backward_sums
#include "table.h"

#define NRG_OF NRG_CHANNEL_BACKWARD_WORKSPACE
#define NRG_NAME channel_norm_backward_workspace
#include "table.h"
