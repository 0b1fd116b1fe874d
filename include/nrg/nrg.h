/* nrg/nrg.h: all of nrg (Normalize, Residual, Gate).
 *
 * The library allocates nothing, prints nothing, starts no thread and leaves the floating-point environment alone. The
 * promise of equal bits on every path holds in the default environment: round to nearest, subnormals kept.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NRG_H
#define NRG_NRG_H

#include "base.h"
#include "isa.h"
#include "activation.h"
#include "glu.h"
#include "norm.h"
#include "norm_backward.h"
#include "norm_parts.h"
#include "norm_sandwich.h"
#include "channel_norm.h"
#include "channel_norm_backward.h"
#include "rope.h"
#include "norm_rope.h"
#include "qkv.h"
#include "sinusoidal.h"
#include "quantize.h"
#include "recurrent.h"
#include "floater.h"
#include "embed.h"
#include "relative.h"
#include "relative_shift.h"
#include "score_bias.h"
#include "softmax.h"
#include "cross_entropy.h"

#endif
