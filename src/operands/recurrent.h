/* What the calls of nrg/recurrent.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RECURRENT_H
#define NRG_OPERANDS_RECURRENT_H

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

#define NRG_MAKE "names.h"
#include "recurrent_calls.def"

#endif
