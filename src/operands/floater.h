/* What the calls of nrg/floater.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_FLOATER_H
#define NRG_OPERANDS_FLOATER_H

#include "../../include/nrg/floater.h"
#include "operand.h"

enum { NRG_FLOATER_SPEC, NRG_FLOATER_ARGS };

/* The type of p0. */
enum { NRG_FLOATER_TYPE, NRG_FLOATER_TYPE_P0 };

enum {
    NRG_FLOATER_TIMES,
    NRG_FLOATER_P0,
    NRG_FLOATER_STATE0,
    NRG_FLOATER_P,
    NRG_FLOATER_STATES,
    NRG_FLOATER_WORKSPACE,
    NRG_FLOATER_OPERANDS
};
extern const nrg_call nrg_call_floater_forward;

enum {
    NRG_FLOATER_BACKWARD_TIMES,
    NRG_FLOATER_BACKWARD_P0,
    NRG_FLOATER_BACKWARD_STATE0,
    NRG_FLOATER_BACKWARD_STATES,
    NRG_FLOATER_BACKWARD_DP,
    NRG_FLOATER_BACKWARD_D_STATE_N,
    NRG_FLOATER_BACKWARD_D_P0,
    NRG_FLOATER_BACKWARD_D_STATE0,
    NRG_FLOATER_BACKWARD_WORKSPACE,
    NRG_FLOATER_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_floater_backward;

/* nrg_floater_workspace and nrg_floater_backward_workspace, which have no operands: how many doubles they are, is this number. */
enum { NRG_FLOATER_SPACE = 1 };
extern const nrg_call nrg_call_floater_workspace, nrg_call_floater_backward_workspace;

/* The slopes of a step. */
enum { NRG_FLOATER_STAGES = 4 };

#endif
