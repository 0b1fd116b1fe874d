/* What the calls of nrg/relative.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RELATIVE_H
#define NRG_OPERANDS_RELATIVE_H

#include "../../include/nrg/relative.h"
#include "operand.h"

enum { NRG_RELATIVE_ARGS };

enum { NRG_RELATIVE_SCORES_Q, NRG_RELATIVE_SCORES_TABLE, NRG_RELATIVE_SCORES_SCORES, NRG_RELATIVE_SCORES_OPERANDS };
extern const nrg_call nrg_call_relative_scores;

enum {
    NRG_RELATIVE_VALUES_A,
    NRG_RELATIVE_VALUES_TABLE,
    NRG_RELATIVE_VALUES_O,
    NRG_RELATIVE_VALUES_ENDS,
    NRG_RELATIVE_VALUES_OPERANDS
};
extern const nrg_call nrg_call_relative_values;

enum {
    NRG_RELATIVE_BACKWARD_Q,
    NRG_RELATIVE_BACKWARD_A,
    NRG_RELATIVE_BACKWARD_ENDS,
    NRG_RELATIVE_BACKWARD_D_TABLE,
    NRG_RELATIVE_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_relative_backward;

/* Numbers: the table's rows; the tables, of one head each or of all. */
enum { NRG_RELATIVE_CLASSES = 1, NRG_RELATIVE_TABLES };

/* The type of the table. */
enum { NRG_RELATIVE_TYPE, NRG_RELATIVE_TYPE_TABLE };

/* Positions and distances are added up in 64 bits. */
#define NRG_RELATIVE_FARTHEST ((int64_t)1 << 60)
static inline int nrg_relative_is_position(int64_t p) { return p >= -NRG_RELATIVE_FARTHEST && p <= NRG_RELATIVE_FARTHEST; }

#endif
