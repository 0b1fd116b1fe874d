/* The relative attention of Transformer-XL and XLNet: the shift of scores, and the query's two biases.
 *
 * SPDX-License-Identifier: MIT */
#include "relative_shift.h"

#define NRG_OF NRG_RELATIVE_SHIFT
#define NRG_NAME relative_shift_forward
#include "table.h"

#define NRG_OF NRG_RELATIVE_SHIFT_BACKWARD
#define NRG_NAME relative_shift_backward
#include "table.h"

#define NRG_OF NRG_HEAD_BIAS
#define NRG_NAME head_bias_forward
#include "table.h"

#define NRG_OF NRG_HEAD_BIAS_BACKWARD
#define NRG_NAME head_bias_backward
#include "table.h"
