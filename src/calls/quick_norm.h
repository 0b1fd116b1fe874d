/* The way past the checker for the specs of norms.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QUICK_NORM_H
#define NRG_CALLS_QUICK_NORM_H

#include <float.h>
#include <math.h>

#include "../../include/nrg/norm.h"

/* Whether a spec is plainly that of a norm without residual mode, gate, activation and groups, whose options and numbers are
 * sound. Of its dim and of the dtypes beside its own nothing is said. */
static inline int quick_norm_is_plain(const nrg_norm_spec *s)
{
    if (s->size != sizeof *s)
        return 0;
    return ((unsigned)s->dtype - NRG_F32 <= NRG_BF16 - NRG_F32) & (s->eps >= 0) & (s->eps <= DBL_MAX) &
           ((unsigned)s->eps_mode <= NRG_EPS_NONE) & ((unsigned)s->store <= NRG_STORE_STREAM) &
           ((unsigned)s->weights <= NRG_WEIGHTS_GROUP) & ((unsigned)s->accuracy <= NRG_ACCURACY_EXACT) &
           (fabs(s->c) <= (double)FLT_MAX) & (fabsf(s->weight_offset) <= FLT_MAX) & (s->groups <= 1) &
           !((unsigned)s->residual_mode | (unsigned)s->gate | (unsigned)s->activation | s->reserved);
}

/* Whether an operand beside the spec's dtype is of it. */
static inline int quick_is_same(nrg_dtype asked, nrg_dtype dtype) { return (asked == NRG_DTYPE_SAME) | (asked == dtype); }

#endif
