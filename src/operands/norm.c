/* Row normalization, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

#include <float.h>
#include <math.h>

nrg_status nrg_norm_check_spec(const nrg_norm_spec *s)
{
    if (s->dim == 0 || s->groups == 0 || (s->groups > 1 && s->dim % s->groups != 0))
        return NRG_ERR_DIM;
    if (!nrg_is_beside(nrg_own_dtype(s->y_dtype, s->dtype), s->dtype) ||
        !nrg_is_beside(nrg_own_dtype(s->r_dtype, s->dtype), s->dtype) ||
        !nrg_is_beside(nrg_own_dtype(s->w_dtype, s->dtype), s->dtype))
        return NRG_ERR_DTYPE;
    if (!nrg_norm_is_eps(s->eps) && !(s->eps >= 0 && s->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    if (nrg_norm_has_numbers(s) && !(fabs(s->c) <= (double)FLT_MAX && fabsf(s->weight_offset) <= FLT_MAX))
        return NRG_ERR_CONSTANT;
    const int unused = (s->eps_mode == NRG_EPS_NONE && s->eps != 0) || (s->c_mode == NRG_C_SQRT_DIM && s->c != 0) ||
                       (s->format == NRG_QUANT_NONE && s->rounding);
    return unused ? NRG_ERR_COMBINATION : NRG_OK;
}
