/* What the calls of nrg/sinusoidal.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SINUSOIDAL_H
#define NRG_OPERANDS_SINUSOIDAL_H

#include "../../include/nrg/sinusoidal.h"
#include "rope.h"

/* What nrg_sinusoidal_frequencies takes beside a spec. */
typedef struct nrg_sinusoidal_frequencies_args {
    double *frequencies;
} nrg_sinusoidal_frequencies_args;

/* Of a row of dim elements. The last of an odd dim is a sine without a cosine. */
static inline size_t nrg_sinusoidal_pairs(size_t dim) { return dim / 2 + dim % 2; }

#define NRG_MAKE "names.h"
#include "sinusoidal_calls.def"

#endif
