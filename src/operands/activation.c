/* Activations, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "activation.h"

#define NRG_OF NRG_ACTIVATION
#define NRG_NAME activation_forward
#include "table.h"

#define NRG_OF NRG_ACTIVATION_BACKWARD
#define NRG_NAME activation_backward
#include "table.h"

#define NRG_OF NRG_ACTIVATION_ROWS
#define NRG_NAME activation_rows_forward
#include "table.h"

#define NRG_OF NRG_ACTIVATION_ROWS_BACKWARD
#define NRG_NAME activation_rows_backward
#include "table.h"
