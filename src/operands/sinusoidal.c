/* Sinusoidal positions.
 *
 * SPDX-License-Identifier: MIT */
#include "sinusoidal.h"

#define NRG_MAKE "table.h"
#include "sinusoidal_calls.def"
