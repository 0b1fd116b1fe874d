/* The way past the checker for the specs of norms.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QUICK_NORM_H
#define NRG_CALLS_QUICK_NORM_H

#include <float.h>
#include <math.h>

#include "../operands/norm.h"

/* Checks c, for a c_mode that exists, and the weight offset, which needs a w. */
static inline int quick_norm_numbers_fit(const nrg_norm_spec *s, const void *w)
{
    if (!nrg_norm_has_numbers(s))
        return 1;
    return fabs(s->c) <= (double)FLT_MAX && (s->c == 0 || s->c_mode == NRG_C_GIVEN) &&
           (s->weight_offset == 0 || (w && fabsf(s->weight_offset) <= FLT_MAX));
}

/* Accepts the spec of a norm without residual mode, gate, activation, groups and format. Does not check dim, and the
 * dtypes of y, r and w. w: what a weight offset is added to. */
static inline int quick_norm_is_plain(const nrg_norm_spec *s, const void *w)
{
    if (s->size != sizeof *s)
        return 0;
    return ((unsigned)s->dtype - NRG_F32 <= NRG_BF16 - NRG_F32) & nrg_norm_is_eps(s->eps) &
           ((unsigned)s->eps_mode <= NRG_EPS_MAX) & ((unsigned)s->c_mode <= NRG_C_GIVEN) &
           ((unsigned)s->weights <= NRG_WEIGHTS_GROUP) & ((unsigned)s->accuracy <= NRG_ACCURACY_EXACT) &
           quick_norm_numbers_fit(s, w) & (s->groups == 1) &
           !((unsigned)s->residual_mode | (unsigned)s->gate | (unsigned)s->activation | (unsigned)s->format |
             (unsigned)s->rounding | s->reserved);
}

/* Whether an operand beside the spec's dtype is of it. */
static inline int quick_is_same(nrg_dtype asked, nrg_dtype dtype) { return (asked == NRG_DTYPE_SAME) | (asked == dtype); }

#endif
