/* What the calls of nrg/activation.h and nrg/glu.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_ACTIVATION_H
#define NRG_OPERANDS_ACTIVATION_H

#include "../../include/nrg/glu.h"
#include "../job/activation.h"
#include "describe.h"
#include "quantize.h"

/* Whether a function may have this α, and whether one may be given to it. Beyond these ends x·σ(α·x) would need numbers that are
 * none. */
static inline int nrg_is_alpha(nrg_activation g, float alpha)
{
    return alpha >= (g == NRG_ACT_GELU_QUICK ? 0x1p-24f : -0x1p24f) && alpha <= 0x1p24f;
}
static inline int nrg_takes_alpha(nrg_activation g, float alpha) { return alpha == 0 || nrg_default_alpha(g) != 0; }

/* nrg_activation_forward and nrg_activation_backward: elements without gaps. */
typedef struct nrg_activation_flat {
    nrg_dtype dtype;
    nrg_activation g;
    size_t count;
    const void *x, *d_o;
    void *out; /* o or dx */
    float alpha;
} nrg_activation_flat;

#include "activation_calls.def"
#include "glu_calls.def"

#endif
