/* What a call that fuses a norm's gradient with something else needs of norm_backward.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_BACKWARD_H
#define NRG_CALLS_NORM_BACKWARD_H

#include "../../include/nrg/norm_backward.h"

/* How many shares cut args->rows, without planes, into blocks, or (without dw and db) into pieces of `rows`; and the rows of
 * share ith of nth of them. */
size_t nrg_norm_backward_pieces(const nrg_norm_backward_args *args, size_t rows);
void nrg_norm_backward_rows(const nrg_norm_backward_args *args, int ith, int nth, size_t *begin, size_t *end);

/* Rows begin to end of args, in the order of shares; whole blocks where there are sums. */
nrg_status nrg_norm_backward_piece(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t begin, size_t end);

/* What phase 1 does on one thread after its rows: phase 2, and a mark of it in the workspace (reduce.h). */
void nrg_norm_backward_finish(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

#endif
