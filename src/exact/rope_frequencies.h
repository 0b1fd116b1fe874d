/* The frequencies of positional encodings, as turns from one position to the next.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_ROPE_FREQUENCIES_H
#define NRG_EXACT_ROPE_FREQUENCIES_H

#include "../../include/nrg/rope.h"
#include "../../include/nrg/sinusoidal.h"

/* Whether those of all pairs are there: not where a factor is none, or a pair turns too fast. */
int nrg_rope_turns_exist(const nrg_rope_spec *s, size_t pairs);

/* Those of all pairs, [2][pairs], and the magnitude. Returns 0, and writes nothing, where they are not there. */
int nrg_rope_turns(const nrg_rope_spec *s, size_t pairs, double *turns, double *magnitude);

/* The same of sinusoids. The last pair of an odd dim lacks its cosine. */
int nrg_sinusoidal_turns(const nrg_sinusoidal_spec *s, size_t pairs, double *turns);

#endif
