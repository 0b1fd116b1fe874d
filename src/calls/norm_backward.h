/* What a call that fuses a norm's gradient with something else needs of norm_backward.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_BACKWARD_H
#define NRG_CALLS_NORM_BACKWARD_H

#include "../operands/norm.h"

/* Pieces of rows that a fused call takes through its kernels one after the other: a block where there are sums (dw or db). */
static inline size_t nrg_norm_backward_each(int has_sums, size_t rows) { return has_sums ? nrg_norm_block_rows(rows) : 32; }

/* Share ith of nth of rows, of which so many stay together: a block's where there are sums. */
void nrg_norm_backward_share(size_t each, size_t rows, int ith, int nth, size_t *begin, size_t *end);

/* Rows begin to end of args, in the order of shares; whole blocks where there are sums. */
nrg_status nrg_norm_backward_piece(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t begin, size_t end);

/* What phase 1 does on one thread after its rows: phase 2, and a mark of it in the workspace (reduce.h). */
void nrg_norm_backward_finish(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

#endif
