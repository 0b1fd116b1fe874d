/* What the calls of nrg/recurrent.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RECURRENT_H
#define NRG_OPERANDS_RECURRENT_H

#include "../../include/nrg/recurrent.h"
#include "operand.h"

enum { NRG_RECURRENT_ARGS };

/* The types of w and b, and of p0. */
enum { NRG_RECURRENT_TYPE, NRG_RECURRENT_TYPE_W, NRG_RECURRENT_TYPE_P0 };

enum { NRG_RECURRENT_W, NRG_RECURRENT_B, NRG_RECURRENT_P0, NRG_RECURRENT_P, NRG_RECURRENT_OPERANDS };
extern const nrg_call nrg_call_recurrent_forward;

/* nrg_recurrent_backward and nrg_recurrent_backward_reduce */
enum {
    NRG_RECURRENT_BACKWARD_W,
    NRG_RECURRENT_BACKWARD_P0,
    NRG_RECURRENT_BACKWARD_P,
    NRG_RECURRENT_BACKWARD_DP,
    NRG_RECURRENT_BACKWARD_D_P0,
    NRG_RECURRENT_BACKWARD_DW,
    NRG_RECURRENT_BACKWARD_DB,
    NRG_RECURRENT_BACKWARD_WORKSPACE,
    NRG_RECURRENT_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_recurrent_backward;

/* nrg_recurrent_backward_workspace, which has no operands. NRG_RECURRENT_SPACE is the number of floats, NRG_RECURRENT_MARK how
 * many of them are the mark behind g_k (src/calls/reduce.h). */
enum { NRG_RECURRENT_SPACE = 1, NRG_RECURRENT_MARK = 2 };
extern const nrg_call nrg_call_recurrent_backward_workspace;

#endif
