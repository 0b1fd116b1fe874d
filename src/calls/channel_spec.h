/* What channel normalization's forward and backward pass make of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_CHANNEL_SPEC_H
#define NRG_CALLS_CHANNEL_SPEC_H

#include "../operands/channel_norm.h"

/* What follows from a spec and the number of positions. */
typedef struct channel_shape {
    size_t groups, group_channels, segment; /* groups: 0 with NRG_CHANNEL_OVER_BATCH */
    int nhwc;
    double eps;
} channel_shape;

static inline channel_shape shape_of(const nrg_channel_norm_spec *spec, size_t positions)
{
    const size_t groups = nrg_channel_groups(spec);
    return (channel_shape){
        .groups = groups,
        .group_channels = groups ? spec->channels / groups : 1,
        .segment = spec->segment,
        .nhwc = nrg_channel_is_nhwc(spec, positions),
        .eps = spec->eps < 0x1p-600 ? 0 : spec->eps,
    };
}

/* Whether a spec asks for the fast grade, which 16-bit types always get. */
static inline int is_fast(const nrg_channel_norm_spec *spec)
{
    return spec->dtype != NRG_F32 || spec->accuracy == NRG_ACCURACY_FAST;
}

#endif
