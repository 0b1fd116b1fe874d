/* nrg/nrg.h: includes all headers of nrg (Normalize, Residual, Gate). nrg/base.h has the rules of the API.
 *
 * The library allocates no memory, prints nothing, starts no threads and does not change the floating-point environment. All
 * paths are bit-identical in the default environment: round to nearest, with subnormals.
 *
 * Memory. The caller owns all memory. No call keeps a pointer after it returns. State between calls lies in workspaces: between
 * the phases of a backward pass, and with `keep` in nrg/rope.h and nrg/qkv.h.
 *
 * Threads. Calls may run at the same time if no call writes memory that another one reads or writes. The library only reads
 * specs and args, so threads may share them. Its only state is the active path, which nrg_isa_set() changes for the process.
 * Calls that already run finish on their path.
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
#include "hadamard.h"
#include "recurrent.h"
#include "floater.h"
#include "embed.h"
#include "relative.h"
#include "relative_shift.h"
#include "score_bias.h"
#include "softmax.h"
#include "cross_entropy.h"

#endif
