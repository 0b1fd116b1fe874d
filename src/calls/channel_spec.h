/* What channel normalization's forward and backward pass make of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_CHANNEL_SPEC_H
#define NRG_CALLS_CHANNEL_SPEC_H

#include "../operands/channel_norm.h"

static inline size_t group_channels_of(const nrg_channel_norm_spec *s)
{
    return nrg_channel_is_batch(s) ? 1 : s->channels / s->groups;
}

static inline double eps_of(const nrg_channel_norm_spec *s) { return s->eps < 0x1p-600 ? 0 : s->eps; }

/* Whether a spec asks for the fast grade, which 16-bit types always get. */
static inline int is_fast(const nrg_channel_norm_spec *s) { return s->dtype != NRG_F32 || s->accuracy == NRG_ACCURACY_FAST; }

#endif
