/* All families of sound calls.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_FAMILIES_H
#define NRG_TESTS_CALLS_SOUND_FAMILIES_H

#include "sound.h"

static const sound_family *const families[] = {&sound_activation, &sound_score_bias,    &sound_channel_norm, &sound_embed,
                                               &sound_norm,       &sound_norm_sandwich, &sound_quantize,     &sound_recurrent,
                                               &sound_relative,   &sound_rope,          &sound_softmax};
enum { FAMILIES = sizeof families / sizeof families[0] };

#endif
