/* What channel normalization's forward and backward pass make of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_CHANNEL_SPEC_H
#define NRG_CALLS_CHANNEL_SPEC_H

#include <float.h>

#include "checks.h"

enum { CHANNEL_SEGMENT = 4096 };

/* The size of the first version's struct: no caller can have a smaller one. */
enum { CHANNEL_SPEC_SIZE_MIN = offsetof(nrg_channel_norm_spec, reserved) + sizeof(uint32_t) };

static inline nrg_status check_channel_spec(const nrg_channel_norm_spec *spec)
{
    if (spec->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (spec->channels == 0)
        return NRG_ERR_DIM;
    if ((unsigned)spec->over > NRG_OVER_GROUP || (unsigned)spec->layout > NRG_NHWC ||
        (unsigned)spec->statistics > NRG_STATISTICS_FOLDED || (unsigned)spec->store > NRG_STORE_STREAM ||
        (unsigned)spec->activation > NRG_ACT_SOFTPLUS || !is_dtype(spec->dtype) ||
        (spec->w_dtype != NRG_DTYPE_SAME && !is_dtype(spec->w_dtype)))
        return NRG_ERR_ENUM;
    if (!is_beside(spec->w_dtype, spec->dtype))
        return NRG_ERR_DTYPE;
    if (spec->over == NRG_OVER_GROUP && spec->groups > 1 && spec->channels % spec->groups != 0)
        return NRG_ERR_DIM;
    if (!(spec->eps >= 0 && spec->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    if (!(spec->momentum >= 0 && spec->momentum <= 1))
        return NRG_ERR_CONSTANT;
    if ((spec->over == NRG_OVER_BATCH && spec->groups) || spec->segment > CHANNEL_SEGMENT)
        return NRG_ERR_COMBINATION;
    return NRG_OK;
}

/* What follows from a spec and the number of samples and positions. */
typedef struct channel_shape {
    size_t groups, group_channels; /* groups: 0 with NRG_OVER_BATCH */
    size_t sets, segment;
    size_t rows, row; /* of an operand: NCHW: samples of c·s elements; NHWC: positions of c */
    int nhwc;         /* also where s is 1 and there is no difference */
    double eps;
} channel_shape;

static inline nrg_status find_shape(channel_shape *shape, const nrg_channel_norm_spec *spec, size_t n, size_t s)
{
    if (s == 0)
        return NRG_ERR_DIM;
    const size_t c = spec->channels;
    shape->nhwc = spec->layout == NRG_NHWC || s == 1;
    shape->groups = spec->over == NRG_OVER_BATCH ? 0 : spec->groups ? spec->groups : 1;
    shape->group_channels = shape->groups ? c / shape->groups : 1;
    shape->segment = spec->segment ? spec->segment : CHANNEL_SEGMENT;
    shape->eps = spec->eps < 0x1p-600 ? 0 : spec->eps;
    size_t elements;
    if (!product(n, s, &shape->rows) || !product(c, s, &shape->row) || !product(shape->row, n ? n : 1, &elements) ||
        !product(n, shape->groups, &shape->sets))
        return NRG_ERR_OVERFLOW;
    if (!shape->groups)
        shape->sets = c;
    if (shape->nhwc)
        shape->row = c;
    else
        shape->rows = n;
    return NRG_OK;
}

#endif
