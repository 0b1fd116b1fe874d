/* Gated linear units, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "glu.h"

#define NRG_OF NRG_GLU
#define NRG_NAME glu_forward
#include "table.h"

#define NRG_OF NRG_GLU_BACKWARD
#define NRG_NAME glu_backward
#include "table.h"
