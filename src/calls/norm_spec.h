/* What a norm's forward and backward pass make of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_SPEC_H
#define NRG_CALLS_NORM_SPEC_H

#include <float.h>
#include <math.h>

#include "checks.h"

/* The size of the first version's struct: no caller can have a smaller one. */
enum { SPEC_SIZE_MIN = offsetof(nrg_norm_spec, reserved) + sizeof(uint32_t) };

/* What is wrong with a spec that failed the test below. */
static inline nrg_status name_spec_error(const nrg_norm_spec *s)
{
    if (s->dim == 0 || (s->groups > 1 && s->dim % s->groups != 0))
        return NRG_ERR_DIM;
    const nrg_dtype others[] = {s->y_dtype, s->r_dtype, s->w_dtype};
    for (size_t i = 0; i < 3; i++)
        if (others[i] != NRG_DTYPE_SAME && !is_dtype(others[i]))
            return NRG_ERR_ENUM;
    if (!is_dtype(s->dtype) || (unsigned)s->eps_mode > NRG_EPS_NONE || (unsigned)s->residual_mode > NRG_RESIDUAL_AFTER ||
        (unsigned)s->store > NRG_STORE_STREAM || (unsigned)s->gate > NRG_GATE_POST || (unsigned)s->activation > NRG_ACT_SOFTPLUS)
        return NRG_ERR_ENUM;
    if (!is_beside(s->y_dtype, s->dtype) || !is_beside(s->r_dtype, s->dtype) || !is_beside(s->w_dtype, s->dtype))
        return NRG_ERR_DTYPE;
    if (!(s->eps >= 0 && s->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    return s->reserved ? NRG_ERR_STRUCT_SIZE : NRG_ERR_CONSTANT;
}

/* One test without branches, since all of it holds in nearly every call. */
static inline int spec_is_sound(const nrg_norm_spec *s)
{
    return (s->dim != 0) & is_dtype(s->dtype) & is_beside(s->y_dtype, s->dtype) & is_beside(s->r_dtype, s->dtype) &
           is_beside(s->w_dtype, s->dtype) & ((unsigned)s->eps_mode <= NRG_EPS_NONE) &
           ((unsigned)s->residual_mode <= NRG_RESIDUAL_AFTER) & ((unsigned)s->store <= NRG_STORE_STREAM) & (s->eps >= 0) &
           (s->eps <= DBL_MAX) & (fabs(s->c) <= (double)FLT_MAX) & (fabsf(s->weight_offset) <= FLT_MAX) & (s->reserved == 0) &
           ((unsigned)s->gate <= NRG_GATE_POST) & ((unsigned)s->activation <= NRG_ACT_SOFTPLUS) &
           (s->groups <= 1 || s->dim % s->groups == 0);
}

/* The divisor's three forms: a sum's eps is a mean's of eps/d, a length's of eps/√d. d is a group's. */
static inline void set_formula(nrg_norm_formula *f, const nrg_norm_spec *s, size_t group_dim)
{
    double dim = (double)group_dim;
    f->centred = s->centred != 0;
    f->w_offset = s->weight_offset;
    f->divisor = NRG_DIV_ROOT;
    f->eps = s->eps;
    switch (s->eps_mode) {
    case NRG_EPS_MEAN:
        break;
    case NRG_EPS_SUM:
        f->eps = s->eps / dim;
        break;
    case NRG_EPS_NONE:
        f->eps = 0;
        break;
    case NRG_EPS_SIGMA:
        f->divisor = NRG_DIV_SIGMA;
        break;
    case NRG_EPS_MAX:
        f->divisor = NRG_DIV_MAX;
        f->eps = s->eps / sqrt(dim);
        break;
    }
    if (f->eps < 0x1p-600) /* beside floats it is 0, and 1/s would overflow where σ is 0 */
        f->eps = 0;
    f->d = dim;
    f->inv_dim = 1 / dim;
    f->k = s->c != 0 ? s->c / sqrt(dim) : 1;
}

#endif
