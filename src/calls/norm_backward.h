/* What a call that fuses a norm's gradient with something else needs of norm_backward.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_BACKWARD_H
#define NRG_CALLS_NORM_BACKWARD_H

#include "../job/norm.h"
#include "../operands/check.h"
#include "../operands/norm.h"

/* Pieces of rows that a fused call takes through its kernels one after the other: a block where there are sums (dw or db). */
static inline size_t nrg_norm_backward_each(int has_sums, size_t rows) { return has_sums ? nrg_norm_block_rows(rows) : 32; }

/* Share ith of nth of rows, of which so many stay together: a block's where there are sums. */
void nrg_norm_backward_share(size_t each, size_t rows, int ith, int nth, size_t *begin, size_t *end);

/* The job of share ith of nth, of arguments that are sound: as nrg_check lays their operands. */
void nrg_norm_backward_fill(nrg_norm_backward_job *job, nrg_planes *planes, const nrg_norm_spec *s,
                            const nrg_norm_backward_args *a, const nrg_laid *l, int ith, int nth);

/* Rows begin to end of a job, in the order of shares; whole blocks where there are sums. */
void nrg_norm_backward_piece(nrg_norm_backward_job *job, nrg_dtype dtype, size_t begin, size_t end);

/* What phase 1 does on one thread after its rows: phase 2, and a mark of it in the workspace (reduce.h); and phase 2 itself. */
void nrg_norm_backward_finish(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);
void nrg_norm_backward_sum(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth);

#endif
