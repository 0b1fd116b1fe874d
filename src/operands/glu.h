/* What the calls of nrg/glu.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_GLU_H
#define NRG_OPERANDS_GLU_H

#include "../../include/nrg/glu.h"
#include "operand.h"

/* nrg_glu_forward */
enum { NRG_GLU_A, NRG_GLU_B, NRG_GLU_X, NRG_GLU_O, NRG_GLU_PACKED, NRG_GLU_SCALES, NRG_GLU_OPERANDS };
extern const nrg_call nrg_call_glu_forward;

/* nrg_glu_backward */
enum {
    NRG_GLU_BACKWARD_A,
    NRG_GLU_BACKWARD_B,
    NRG_GLU_BACKWARD_X,
    NRG_GLU_BACKWARD_D_O,
    NRG_GLU_BACKWARD_DA,
    NRG_GLU_BACKWARD_DB,
    NRG_GLU_BACKWARD_DX,
    NRG_GLU_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_glu_backward;

#endif
