/* What the calls of nrg/relative_shift.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RELATIVE_SHIFT_H
#define NRG_OPERANDS_RELATIVE_SHIFT_H

#include "../../include/nrg/relative_shift.h"
#include "operand.h"

enum { NRG_RELATIVE_SHIFT_ARGS };

/* nrg_relative_shift_forward and, the other way round, nrg_relative_shift_backward: x and scores, or d_scores and dx. */
enum { NRG_RELATIVE_SHIFT_IN, NRG_RELATIVE_SHIFT_OUT, NRG_RELATIVE_SHIFT_OPERANDS };
extern const nrg_call nrg_call_relative_shift_forward, nrg_call_relative_shift_backward;

enum { NRG_HEAD_BIAS_ARGS };

enum { NRG_HEAD_BIAS_Q, NRG_HEAD_BIAS_U, NRG_HEAD_BIAS_V, NRG_HEAD_BIAS_O_U, NRG_HEAD_BIAS_O_V, NRG_HEAD_BIAS_OPERANDS };
extern const nrg_call nrg_call_head_bias_forward;

enum {
    NRG_HEAD_BIAS_BACKWARD_D_O_U,
    NRG_HEAD_BIAS_BACKWARD_D_O_V,
    NRG_HEAD_BIAS_BACKWARD_DQ,
    NRG_HEAD_BIAS_BACKWARD_DU,
    NRG_HEAD_BIAS_BACKWARD_DV,
    NRG_HEAD_BIAS_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_head_bias_backward;

/* The type of u and v. */
enum { NRG_HEAD_BIAS_TYPE, NRG_HEAD_BIAS_TYPE_BIAS };

#endif
