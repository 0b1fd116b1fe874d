/* What the calls of nrg/relative.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RELATIVE_H
#define NRG_OPERANDS_RELATIVE_H

#include "../../include/nrg/relative.h"
#include "heads.h"

/* Positions and distances are added up in 64 bits. */
#define NRG_RELATIVE_FARTHEST ((int64_t)1 << 60)
static inline int nrg_relative_is_position(int64_t p) { return p >= -NRG_RELATIVE_FARTHEST && p <= NRG_RELATIVE_FARTHEST; }
static inline int nrg_relative_is_number(uint64_t n) { return n <= (uint64_t)NRG_RELATIVE_FARTHEST; }

static inline int nrg_relative_has_rows(const nrg_relative_args *a) { return a->batch && a->heads && a->queries; }

#define NRG_MAKE "names.h"
#include "relative_calls.def"

#endif
