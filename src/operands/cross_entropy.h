/* What the calls of nrg/cross_entropy.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CROSS_ENTROPY_H
#define NRG_OPERANDS_CROSS_ENTROPY_H

#include "../../include/nrg/cross_entropy.h"
#include "operand.h"

/* nrg_cross_entropy_forward */
enum {
    NRG_CROSS_ENTROPY_X,
    NRG_CROSS_ENTROPY_IDS,
    NRG_CROSS_ENTROPY_LOSS,
    NRG_CROSS_ENTROPY_M,
    NRG_CROSS_ENTROPY_OTHERS,
    NRG_CROSS_ENTROPY_OPERANDS
};
extern const nrg_call nrg_call_cross_entropy_forward;

/* nrg_cross_entropy_backward */
enum {
    NRG_CROSS_ENTROPY_BACKWARD_X,
    NRG_CROSS_ENTROPY_BACKWARD_IDS,
    NRG_CROSS_ENTROPY_BACKWARD_M_IN,
    NRG_CROSS_ENTROPY_BACKWARD_OTHERS_IN,
    NRG_CROSS_ENTROPY_BACKWARD_D_LOSS,
    NRG_CROSS_ENTROPY_BACKWARD_DX,
    NRG_CROSS_ENTROPY_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_cross_entropy_backward;

#endif
