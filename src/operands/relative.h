/* What the calls of nrg/relative.h and nrg/relative_shift.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RELATIVE_H
#define NRG_OPERANDS_RELATIVE_H

#include "../../include/nrg/relative.h"
#include "../../include/nrg/relative_shift.h"
#include "heads.h"

/* Positions and distances are added up in 64 bits. */
#define NRG_RELATIVE_FARTHEST ((int64_t)1 << 60)
static inline int nrg_relative_is_position(int64_t p) { return p >= -NRG_RELATIVE_FARTHEST && p <= NRG_RELATIVE_FARTHEST; }
static inline int nrg_relative_is_number(uint64_t n) { return n <= (uint64_t)NRG_RELATIVE_FARTHEST; }

static inline int nrg_relative_has_rows(const nrg_relative_args *a) { return a->batch && a->heads && a->queries; }

/* u or v, for which there is an output; without rows, outputs may be NULL as well. */
static inline enum nrg_there nrg_head_bias_there(const nrg_head_bias_args *a, const void *o)
{
    return o ? NRG_NEED : a->batch && a->rows ? NRG_NOT : NRG_SKIP;
}

#include "relative_calls.def"
#include "relative_shift_calls.def"

#endif
