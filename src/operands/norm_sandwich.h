/* What the calls of nrg/norm_sandwich.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_SANDWICH_H
#define NRG_OPERANDS_NORM_SANDWICH_H

#include "../../include/nrg/norm_sandwich.h"
#include "norm.h"

/* Whether a norm is one that a sandwich can have. */
static inline int nrg_sandwich_is_plain(const nrg_norm_spec *s)
{
    return !s->gate && !s->activation && !s->residual_mode && nrg_norm_alike(s) == 1;
}

#define NRG_MAKE "names.h"
#include "norm_sandwich_calls.def"

#endif
