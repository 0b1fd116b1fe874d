/* A norm, a residual, and a norm of the sum, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_sandwich.h"

#define NRG_OF NRG_SANDWICH
#define NRG_NAME norm_sandwich_forward
#include "table.h"

#define NRG_OF NRG_SANDWICH_BACKWARD
#define NRG_NAME norm_sandwich_backward
#include "table.h"

#define NRG_OF NRG_SANDWICH_BACKWARD_WORKSPACE
#define NRG_NAME norm_sandwich_backward_workspace
#include "table.h"
