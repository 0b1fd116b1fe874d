/* Softmax: whole rows, rows in parts, and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "softmax.h"

#define NRG_OF NRG_SOFTMAX
#define NRG_NAME softmax_forward
#include "table.h"

#define NRG_OF NRG_SOFTMAX_PART
#define NRG_NAME softmax_part
#include "table.h"

#define NRG_OF NRG_SOFTMAX_MERGE
#define NRG_NAME softmax_merge
#include "table.h"

#define NRG_OF NRG_SOFTMAX_BACKWARD
#define NRG_NAME softmax_backward
#include "table.h"
