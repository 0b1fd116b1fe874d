/* Recurrent encodings, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "recurrent.h"

#define NRG_OF NRG_RECURRENT
#define NRG_NAME recurrent_forward
#include "table.h"

#define NRG_OF NRG_RECURRENT_BACKWARD
#define NRG_NAME recurrent_backward
#include "table.h"

#define NRG_OF NRG_RECURRENT_BACKWARD_WORKSPACE
#define NRG_NAME recurrent_backward_workspace
#include "table.h"
