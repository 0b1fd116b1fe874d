/* What the calls of nrg/floater.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_FLOATER_H
#define NRG_OPERANDS_FLOATER_H

#include "../../include/nrg/floater.h"
#include "describe.h"

/* The slopes of a step. */
enum { NRG_FLOATER_STAGES = 4 };

/* Doubles of the workspaces. SIZE_MAX: their bytes do not fit. */
static inline size_t nrg_floater_doubles(size_t dim, size_t vectors)
{
    size_t doubles, bytes;
    return nrg_product(dim, vectors, &doubles) && nrg_product(doubles, sizeof(double), &bytes) ? doubles : SIZE_MAX;
}

static inline size_t nrg_floater_space(const nrg_floater_spec *spec)
{
    return nrg_floater_doubles(spec->dim, 3); /* state, sum; slope, input: as much as a double */
}

static inline size_t nrg_floater_backward_space(const nrg_floater_spec *spec, int has_states)
{
    /* gradient, state, sum; slope, v; inputs; states */
    enum { FIXED = 4, INPUTS = NRG_FLOATER_STAGES / 2 };
    const size_t states = has_states ? 0 : spec->positions;
    size_t inputs;
    if (!nrg_product(spec->substeps, INPUTS, &inputs) || inputs > SIZE_MAX - FIXED || states > SIZE_MAX - FIXED - inputs)
        return SIZE_MAX;
    return nrg_floater_doubles(spec->dim, FIXED + inputs + states);
}

#define NRG_MAKE "names.h"
#include "floater_calls.def"

#endif
