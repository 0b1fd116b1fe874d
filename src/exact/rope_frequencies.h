/* The frequencies of positional encodings, as turns from one position to the next.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_ROPE_FREQUENCIES_H
#define NRG_EXACT_ROPE_FREQUENCIES_H

#include "../../include/nrg/rope.h"

/* Those of all pairs, [2][pairs], and the magnitude. Returns 0, and writes nothing, where a pair turns too fast. */
int nrg_rope_turns(const nrg_rope_spec *s, size_t pairs, double *turns, double *magnitude);

/* The same of rows of dim elements, whose last one may lack its cosine. */
int nrg_sinusoidal_turns(size_t dim, size_t pairs, double base, double *turns);

#endif
