/* What the calls of nrg/norm_rope.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_ROPE_H
#define NRG_OPERANDS_NORM_ROPE_H

#include "../../include/nrg/norm_rope.h"
#include "norm.h"
#include "rope.h"

enum { NRG_NORM_ROPE_NORM, NRG_NORM_ROPE_SPEC, NRG_NORM_ROPE_ARGS, NRG_NORM_ROPE_Q_ARGS, NRG_NORM_ROPE_K_ARGS };

/* nrg_norm_rope_forward. Its first four operands are those of nrg_rope_forward. What is k's comes after what is q's. */
enum {
    NRG_NORM_ROPE_Q_W = NRG_ROPE_K + 1,
    NRG_NORM_ROPE_K_W,
    NRG_NORM_ROPE_Q_B,
    NRG_NORM_ROPE_K_B,
    NRG_NORM_ROPE_Q_O,
    NRG_NORM_ROPE_K_O,
    NRG_NORM_ROPE_Q_MEAN,
    NRG_NORM_ROPE_K_MEAN,
    NRG_NORM_ROPE_Q_RSTD,
    NRG_NORM_ROPE_K_RSTD,
    NRG_NORM_ROPE_OPERANDS
};
extern const nrg_call nrg_call_norm_rope_forward;

/* nrg_norm_rope_backward and nrg_norm_rope_backward_reduce. Here q and k are the gradients that arrive. */
enum {
    NRG_NORM_ROPE_BACKWARD_Q_X = NRG_ROPE_K + 1,
    NRG_NORM_ROPE_BACKWARD_K_X,
    NRG_NORM_ROPE_BACKWARD_Q_W,
    NRG_NORM_ROPE_BACKWARD_K_W,
    NRG_NORM_ROPE_BACKWARD_Q_B,
    NRG_NORM_ROPE_BACKWARD_K_B,
    NRG_NORM_ROPE_BACKWARD_Q_MEAN,
    NRG_NORM_ROPE_BACKWARD_K_MEAN,
    NRG_NORM_ROPE_BACKWARD_Q_O,
    NRG_NORM_ROPE_BACKWARD_K_O,
    NRG_NORM_ROPE_BACKWARD_Q_DW,
    NRG_NORM_ROPE_BACKWARD_K_DW,
    NRG_NORM_ROPE_BACKWARD_Q_DB,
    NRG_NORM_ROPE_BACKWARD_K_DB,
    NRG_NORM_ROPE_BACKWARD_Q_WORKSPACE,
    NRG_NORM_ROPE_BACKWARD_K_WORKSPACE,
    NRG_NORM_ROPE_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_norm_rope_backward;

/* The numbers that hold the rows of q and of k. */
enum { NRG_NORM_ROPE_Q_ROWS = NRG_ROPE_NUMBERS, NRG_NORM_ROPE_K_ROWS };

#endif
