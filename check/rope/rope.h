/* check/rope/rope.h: a case of rope: a rotation alone, or one fused with a norm.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_ROPE_ROPE_H
#define NRG_CHECK_ROPE_ROPE_H

#include "../../src/operands/norm_rope.h"
#include "../sweep.h"

typedef struct rope_case {
    nrg_rope_spec spec;
    enum { ROPE_ALONE, ROPE_NORM, ROPE_NORM_BACKWARD } kind;
    nrg_norm_spec norm;
    size_t dim, rotate_from, tokens, heads[2], table_rows;
    size_t batch; /* in so many batches, at least 1, lie the tokens */
    int has_positions, backward, accumulate;
    int by_head[2], o_by_head[2], in_place[2]; /* of q and k */
    int has_w[2], has_b[2], has_statistics[2];
} rope_case;

/* The rotation's arguments, without operands; and the bits of q, k, q_o and k_o, and of those that lie by head, of a call whose
 * q_o has that number. */
nrg_rope_args sweep_rope_args(const sweep_case *c, const rope_case *r);
uint32_t sweep_rope_tensors(int q_o);
uint32_t sweep_rope_transposed(const rope_case *r, int q_o);

/* The operands of the norm, and the calls that fuse the two; the reference calls them one after the other. */
void sweep_norm_rope_add(sweep_case *c, const rope_case *r);
nrg_status sweep_norm_rope_run(const sweep_case *c, const rope_case *r, unsigned char *memory);

#endif
