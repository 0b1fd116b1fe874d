/* Sinusoidal positions.
 *
 * SPDX-License-Identifier: MIT */
#include "sinusoidal.h"

#define NRG_OF NRG_SINUSOIDAL_FREQUENCIES
#define NRG_NAME sinusoidal_frequencies
#include "table.h"

#define NRG_OF NRG_SINUSOIDAL_TABLE
#define NRG_NAME sinusoidal_table
#include "table.h"
