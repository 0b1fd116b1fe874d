/* What the calls of nrg/sinusoidal.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SINUSOIDAL_H
#define NRG_OPERANDS_SINUSOIDAL_H

#include "../../include/nrg/sinusoidal.h"
#include "operand.h"

/* nrg_sinusoidal_frequencies */
typedef struct nrg_sinusoidal_frequencies_args {
    double *frequencies;
} nrg_sinusoidal_frequencies_args;
enum { NRG_SINUSOIDAL_SPEC, NRG_SINUSOIDAL_ARGS };
enum { NRG_SINUSOIDAL_FREQUENCIES_FREQUENCIES, NRG_SINUSOIDAL_FREQUENCIES_OPERANDS };
extern const nrg_call nrg_call_sinusoidal_frequencies;

/* nrg_sinusoidal_table */
enum {
    NRG_SINUSOIDAL_TABLE_POSITIONS,
    NRG_SINUSOIDAL_TABLE_FREQUENCIES,
    NRG_SINUSOIDAL_TABLE_TABLE,
    NRG_SINUSOIDAL_TABLE_OPERANDS
};
extern const nrg_call nrg_call_sinusoidal_table;

/* Of a row of dim elements. The last of an odd dim is a sine without a cosine. */
static inline size_t nrg_sinusoidal_pairs(size_t dim) { return dim / 2 + dim % 2; }

#endif
