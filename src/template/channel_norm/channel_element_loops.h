/* What channel_elements.h declares: one file's, which the forward and the backward pass share.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_ELEMENT_LOOPS_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_ELEMENT_LOOPS_H

#include "channel_apply_fallback.h"
#include "channel_factors.h"

#endif
