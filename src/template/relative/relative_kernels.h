/* The three operations of relative position representations: one file's, since they share functions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_KERNELS_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_KERNELS_H

#include "relative_backward.h"
#include "relative_scores.h"
#include "relative_values.h"

#endif
