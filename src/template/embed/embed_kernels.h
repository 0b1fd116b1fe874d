/* The embedding layer, forward and backward: one file's, since they share functions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_EMBED_EMBED_KERNELS_H
#define NRG_TEMPLATE_EMBED_EMBED_KERNELS_H

#include "embed.h"
#ifndef NRG_NO_BACKWARD
#include "embed_backward.h"
#endif

#endif
