/* The relative attention of Transformer-XL and XLNet: the shift of scores, and the query's two biases.
 *
 * SPDX-License-Identifier: MIT */
#include "relative_shift.h"

#define NRG_MAKE "table.h"
#include "relative_shift_calls.def"
