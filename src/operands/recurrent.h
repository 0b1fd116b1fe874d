/* What the calls of nrg/recurrent.h and nrg/floater.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RECURRENT_H
#define NRG_OPERANDS_RECURRENT_H

#include "../../include/nrg/floater.h"
#include "../../include/nrg/recurrent.h"
#include "describe.h"

/* Floats of the workspace, of which so many are the mark behind g_k (src/calls/reduce.h). SIZE_MAX: its bytes do not fit. */
enum { NRG_RECURRENT_MARK = 2 };
static inline size_t nrg_recurrent_space(const nrg_recurrent_backward_args *a)
{
    size_t floats, bytes;
    if (!nrg_product(a->chains, a->positions, &floats) || !nrg_product(floats, a->dim, &floats) ||
        floats > SIZE_MAX - NRG_RECURRENT_MARK)
        return SIZE_MAX;
    floats += floats ? NRG_RECURRENT_MARK : 0;
    return nrg_product(floats, sizeof(float), &bytes) ? floats : SIZE_MAX;
}

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

#include "recurrent_calls.def"
#include "floater_calls.def"

#endif
