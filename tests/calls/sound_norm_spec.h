/* A norm's spec with constants, for one variant of each family that takes one.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_NORM_SPEC_H
#define NRG_TESTS_CALLS_SOUND_NORM_SPEC_H

#include "sound.h"

/* With weights: they have an offset. */
static inline void sound_constants(nrg_norm_spec *spec)
{
    spec->c_mode = NRG_C_GIVEN;
    spec->eps_mode = NRG_EPS_NONE;
    spec->eps = 0;
    spec->weight_offset = 1;
}

#endif
