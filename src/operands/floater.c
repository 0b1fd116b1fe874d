/* The path of a dynamical system, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "floater.h"

static size_t doubles_of(size_t dim, size_t vectors)
{
    size_t doubles, bytes;
    return nrg_product(dim, vectors, &doubles) && nrg_product(doubles, sizeof(double), &bytes) ? doubles : SIZE_MAX;
}

size_t nrg_floater_space(const nrg_floater_spec *spec)
{
    return doubles_of(spec->dim, 3); /* state, sum; slope, input: as much as a double */
}

size_t nrg_floater_backward_space(const nrg_floater_spec *spec, int has_states)
{
    /* gradient, state, sum; slope, v; inputs; states */
    enum { FIXED = 4, INPUTS = NRG_FLOATER_STAGES / 2 };
    const size_t states = has_states ? 0 : spec->positions;
    size_t inputs;
    if (!nrg_product(spec->substeps, INPUTS, &inputs) || inputs > SIZE_MAX - FIXED || states > SIZE_MAX - FIXED - inputs)
        return SIZE_MAX;
    return doubles_of(spec->dim, FIXED + inputs + states);
}
