/* Biases of attention scores, forward and backward: one file's, since they share functions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_BIAS_SCORE_BIAS_KERNELS_H
#define NRG_TEMPLATE_BIAS_SCORE_BIAS_KERNELS_H

#include "score_bias.h"
#ifndef NRG_NO_BACKWARD
#include "score_bias_backward.h"
#endif

#endif
