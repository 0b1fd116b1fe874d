/* A norm of every head of q and k, and their rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_rope.h"

#include "check.h"

_Static_assert(sizeof(nrg_norm_spec) + sizeof(nrg_rope_spec) + sizeof(nrg_rope_args) + 2 * sizeof(nrg_norm_backward_args) <=
                   NRG_COPIES,
               "copies of all structs fit");
/* rope_make_jobs reads the rotation's numbers and operands */
_Static_assert((int)NRG_NORM_ROPE_N_TABLE_ROWS == (int)NRG_ROPE_N_TABLE_ROWS && (int)NRG_NORM_ROPE_K == (int)NRG_ROPE_K &&
                   (int)NRG_NORM_ROPE_BACKWARD_N_TABLE_ROWS == (int)NRG_ROPE_N_TABLE_ROWS,
               "they are the same");

#define NRG_MAKE "table.h"
#include "norm_rope_calls.def"
