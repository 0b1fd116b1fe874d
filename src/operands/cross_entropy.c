/* Cross-entropy, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "cross_entropy.h"

#define NRG_OF NRG_CROSS_ENTROPY
#define NRG_NAME cross_entropy_forward
#include "table.h"

#define NRG_OF NRG_CROSS_ENTROPY_BACKWARD
#define NRG_NAME cross_entropy_backward
#include "table.h"
