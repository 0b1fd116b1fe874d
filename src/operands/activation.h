/* What the calls of nrg/activation.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_ACTIVATION_H
#define NRG_OPERANDS_ACTIVATION_H

#include "../job/activation.h"
#include "operand.h"

/* Whether g may have this α. Beyond these ends x·σ(α·x) would need numbers that are none. */
static inline nrg_status nrg_check_alpha(nrg_activation g, float alpha)
{
    if (!(alpha >= (g == NRG_ACT_GELU_QUICK ? 0x1p-24f : -0x1p24f) && alpha <= 0x1p24f))
        return NRG_ERR_CONSTANT;
    return alpha == 0 || nrg_default_alpha(g) != 0 ? NRG_OK : NRG_ERR_COMBINATION;
}

/* nrg_activation_forward and nrg_activation_backward: elements without gaps. */
typedef struct nrg_activation_flat {
    nrg_dtype dtype;
    nrg_activation activation;
    size_t count;
    const void *x, *d_o;
    void *out; /* o or dx */
    float alpha;
} nrg_activation_flat;

/* nrg_activation_forward */
enum { NRG_ACTIVATION_X, NRG_ACTIVATION_O, NRG_ACTIVATION_OPERANDS };
extern const nrg_call nrg_call_activation_forward;

/* nrg_activation_backward */
enum { NRG_ACTIVATION_BACKWARD_X, NRG_ACTIVATION_BACKWARD_D_O, NRG_ACTIVATION_BACKWARD_DX, NRG_ACTIVATION_BACKWARD_OPERANDS };
extern const nrg_call nrg_call_activation_backward;

/* nrg_activation_rows_forward and nrg_activation_rows_backward, with the operands of those */
extern const nrg_call nrg_call_activation_rows_forward, nrg_call_activation_rows_backward;

#endif
