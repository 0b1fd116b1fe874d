/* What the calls of nrg/softmax.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SOFTMAX_H
#define NRG_OPERANDS_SOFTMAX_H

#include "../../include/nrg/softmax.h"
#include "operand.h"

enum { NRG_SOFTMAX_ARGS, NRG_SOFTMAX_STATE }; /* parts */

/* nrg_softmax_forward, and the first operands of nrg_softmax_part */
enum {
    NRG_SOFTMAX_X,
    NRG_SOFTMAX_MASK,
    NRG_SOFTMAX_DIAGONALS,
    NRG_SOFTMAX_SLOPES,
    NRG_SOFTMAX_SINKS,
    NRG_SOFTMAX_O,
    NRG_SOFTMAX_OPERANDS
};
extern const nrg_call nrg_call_softmax_forward;

/* nrg_softmax_part */
enum {
    NRG_SOFTMAX_PART_M_IN = NRG_SOFTMAX_OPERANDS,
    NRG_SOFTMAX_PART_SUM_IN,
    NRG_SOFTMAX_PART_M,
    NRG_SOFTMAX_PART_SUM,
    NRG_SOFTMAX_PART_FACTOR,
    NRG_SOFTMAX_PART_OPERANDS
};
extern const nrg_call nrg_call_softmax_part;

/* nrg_softmax_merge */
enum {
    NRG_SOFTMAX_MERGE_M_IN,
    NRG_SOFTMAX_MERGE_SUM_IN,
    NRG_SOFTMAX_MERGE_M,
    NRG_SOFTMAX_MERGE_SUM,
    NRG_SOFTMAX_MERGE_FACTOR,
    NRG_SOFTMAX_MERGE_INVERSE,
    NRG_SOFTMAX_MERGE_LSE,
    NRG_SOFTMAX_MERGE_OPERANDS
};
extern const nrg_call nrg_call_softmax_merge;

/* nrg_softmax_backward */
enum {
    NRG_SOFTMAX_BACKWARD_O,
    NRG_SOFTMAX_BACKWARD_D_O,
    NRG_SOFTMAX_BACKWARD_X,
    NRG_SOFTMAX_BACKWARD_DX,
    NRG_SOFTMAX_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_softmax_backward;

#endif
