/* What the calls of nrg/norm_sandwich.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_SANDWICH_H
#define NRG_OPERANDS_NORM_SANDWICH_H

#include "../../include/nrg/norm_sandwich.h"
#include "norm.h"

enum { NRG_SANDWICH_FIRST, NRG_SANDWICH_SECOND, NRG_SANDWICH_ARGS };

/* The dtype of w2 and b2; the others are the first norm's. */
enum { NRG_SANDWICH_TYPE_W2 = NRG_NORM_TYPE_W + 1 };

/* nrg_norm_sandwich_forward */
enum {
    NRG_SANDWICH_X,
    NRG_SANDWICH_Y,
    NRG_SANDWICH_W1,
    NRG_SANDWICH_B1,
    NRG_SANDWICH_W2,
    NRG_SANDWICH_B2,
    NRG_SANDWICH_R,
    NRG_SANDWICH_O,
    NRG_SANDWICH_MEAN1,
    NRG_SANDWICH_RSTD1,
    NRG_SANDWICH_MEAN2,
    NRG_SANDWICH_RSTD2,
    NRG_SANDWICH_PACKED,
    NRG_SANDWICH_SCALES,
    NRG_SANDWICH_OPERANDS
};
extern const nrg_call nrg_call_norm_sandwich_forward;

/* nrg_norm_sandwich_backward and nrg_norm_sandwich_backward_reduce */
enum {
    NRG_SANDWICH_BACKWARD_X,
    NRG_SANDWICH_BACKWARD_R,
    NRG_SANDWICH_BACKWARD_D_O,
    NRG_SANDWICH_BACKWARD_DR_IN,
    NRG_SANDWICH_BACKWARD_W1,
    NRG_SANDWICH_BACKWARD_W2,
    NRG_SANDWICH_BACKWARD_MEAN1,
    NRG_SANDWICH_BACKWARD_MEAN2,
    NRG_SANDWICH_BACKWARD_DX,
    NRG_SANDWICH_BACKWARD_DY,
    NRG_SANDWICH_BACKWARD_DW1,
    NRG_SANDWICH_BACKWARD_DB1,
    NRG_SANDWICH_BACKWARD_DW2,
    NRG_SANDWICH_BACKWARD_DB2,
    NRG_SANDWICH_BACKWARD_WORKSPACE,
    NRG_SANDWICH_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_norm_sandwich_backward;

/* nrg_norm_sandwich_backward_workspace: options only. The numbers are the answer: doubles of the first norm, and of both. */
extern const nrg_call nrg_call_norm_sandwich_backward_workspace;
enum { NRG_SANDWICH_SPACE_FIRST = 10, NRG_SANDWICH_SPACE };

#endif
