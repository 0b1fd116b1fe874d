/* What sound calls have in operands, and what else of them depends on more than their description; sound.txt names it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_CONTENTS_H
#define NRG_TESTS_CALLS_CONTENTS_H

#include <float.h>
#include <math.h>

#include "../../src/operands/activation.h"
#include "../../src/operands/channel_norm_backward.h"
#include "../../src/operands/embed.h"
#include "../../src/operands/floater.h"
#include "../../src/operands/norm_rope.h"
#include "../../src/operands/norm_sandwich.h"
#include "../../src/operands/qkv.h"
#include "../../src/operands/relative_shift.h"
#include "../../src/operands/score_bias.h"
#include "../../src/operands/sinusoidal.h"
#include "sound.h"

/* A norm's spec with constants, for one variant of each call that takes one. With weights: they have an offset. */
static inline void sound_constants(nrg_norm_spec *spec)
{
    spec->c_mode = NRG_C_GIVEN;
    spec->eps_mode = NRG_EPS_NONE;
    spec->eps = 0;
    spec->weight_offset = 1;
}

void sound_fill_statistics(void *const *part);
void sound_fill_sums(void *const *part);
nrg_status sound_spoil_sums(void *const *part, int n);
void sound_fill_channel_backward(void *const *part);
nrg_status sound_spoil_channel_backward(void *const *part, int n);
uint32_t sound_spares_channel_reduce(void *const *part);

nrg_status sound_bind_tables(void *const *part);
nrg_status sound_bind_gradients(void *const *part);
void sound_fill_order(void *const *part);
nrg_status sound_spoil_order(void *const *part, int n);

uint32_t sound_spares_norm_reduce(void *const *part);
uint32_t sound_spares_sandwich_reduce(void *const *part);
uint32_t sound_spares_rope_rows(void *const *part);
uint32_t sound_spares_rope_reduce(void *const *part);
uint32_t sound_spares_ignored(void *const *part);

/* The caller's functions, which a refused call does not call, and how often they were called. */
extern int sound_calls_made;
void sound_decay(void *user, double t, size_t dim, const float *p, float *dp_dt);
void sound_decay_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp);
void sound_after_quiet(nrg_status status);
nrg_status sound_spoil_times(void *const *part, int n);

extern const invoke_function invoke_rope_pairs;
void sound_fill_factors(void *const *part);
nrg_status sound_spoil_factors(void *const *part, int n);
void sound_fill_qkv(void *const *part);
nrg_status sound_spoil_qkv(void *const *part, int n);
void sound_settle_qkv(void *const *part);
nrg_status sound_bind_has_norm(void *const *part);

#endif
