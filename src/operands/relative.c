/* Relative positions: scores, values, and the gradient of their tables.
 *
 * SPDX-License-Identifier: MIT */
#include "relative.h"

#define NRG_OF NRG_RELATIVE_SCORES
#define NRG_NAME relative_scores
#include "table.h"

#define NRG_OF NRG_RELATIVE_VALUES
#define NRG_NAME relative_values
#include "table.h"

#define NRG_OF NRG_RELATIVE_BACKWARD
#define NRG_NAME relative_backward
#include "table.h"
