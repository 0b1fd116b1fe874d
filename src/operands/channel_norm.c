/* Channel normalization: forward, statistics in parts, folding.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm.h"

#include <float.h>

nrg_status nrg_channel_check_spec(const nrg_channel_norm_spec *spec)
{
    if (spec->channels == 0 || spec->groups == 0 ||
        (spec->over == NRG_CHANNEL_OVER_GROUP && spec->groups > 1 && spec->channels % spec->groups != 0))
        return NRG_ERR_DIM;
    if (!nrg_is_beside(nrg_own_dtype(spec->w_dtype, spec->dtype), spec->dtype))
        return NRG_ERR_DTYPE;
    if (!(spec->eps >= 0 && spec->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    if (!(spec->momentum >= 0 && spec->momentum <= 1) || spec->segment - 1 > NRG_CHANNEL_SEGMENT - 1)
        return NRG_ERR_CONSTANT;
    return nrg_channel_is_batch(spec) && spec->groups > 1 ? NRG_ERR_COMBINATION : NRG_OK;
}
