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
size_t nrg_floater_space(const nrg_floater_spec *spec);
size_t nrg_floater_backward_space(const nrg_floater_spec *spec, int has_states);

#define NRG_MAKE "names.h"
#include "floater_calls.def"

#endif
