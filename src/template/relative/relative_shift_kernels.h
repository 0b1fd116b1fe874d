/* The relative shift and the bias pair: one file's, since they share functions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_SHIFT_KERNELS_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_SHIFT_KERNELS_H

#include "head_bias.h"
#include "relative_shift.h"

#endif
