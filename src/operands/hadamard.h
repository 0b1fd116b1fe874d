/* What the calls of nrg/hadamard.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_HADAMARD_H
#define NRG_OPERANDS_HADAMARD_H

#include "../../include/nrg/hadamard.h"
#include "describe.h"

static inline int nrg_hadamard_has(size_t dim) { return dim >= 64 && dim <= 512 && (dim & (dim - 1)) == 0; }

#define NRG_CALL NRG_HADAMARD, hadamard
#include "names.h"

#endif
