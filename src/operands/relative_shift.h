/* What the calls of nrg/relative_shift.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_RELATIVE_SHIFT_H
#define NRG_OPERANDS_RELATIVE_SHIFT_H

#include "../../include/nrg/relative_shift.h"
#include "relative.h"

/* u or v, for which there is an output; without rows, outputs may be NULL as well. */
static inline enum nrg_there nrg_head_bias_there(const nrg_head_bias_args *a, const void *o)
{
    return o ? NRG_NEED : a->batch && a->rows ? NRG_NOT : NRG_SKIP;
}

#define NRG_MAKE "names.h"
#include "relative_shift_calls.def"

#endif
