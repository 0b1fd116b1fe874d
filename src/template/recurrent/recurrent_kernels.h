/* Recurrent encodings, forward and backward: one file's, since they share functions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RECURRENT_RECURRENT_KERNELS_H
#define NRG_TEMPLATE_RECURRENT_RECURRENT_KERNELS_H

#include "recurrent.h"
#ifndef NRG_NO_BACKWARD
#include "recurrent_backward.h"
#endif

#endif
