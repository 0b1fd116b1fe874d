/* Activations, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "activation.h"

#define NRG_MAKE "table.h"
#include "activation_calls.def"
