/* What can be wrong with a norm's spec, for the families that take one: at the edges of its ranges, too.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_NORM_SPEC_H
#define NRG_TESTS_CALLS_SOUND_NORM_SPEC_H

#include <float.h>
#include <math.h>

#include "sound.h"

#define NORM_U32(part, field, value, status) WRONG_U32(part, nrg_norm_spec, field, value, status)
#define NORM_U64(part, field, value, status) WRONG_U64(part, nrg_norm_spec, field, value, status)
#define NORM_F32(part, field, value, status) WRONG_F32(part, nrg_norm_spec, field, value, status)
#define NORM_F64(part, field, value, status) WRONG_F64(part, nrg_norm_spec, field, value, status)

#define WRONG_NORM_SPEC(part) WRONG_NORM_FORMULA(part), NORM_U32(part, activation, NRG_ACTIVATION_COUNT - 1, NRG_OK)

/* Of norms that take no activation. */
#define WRONG_NORM_FORMULA(part)                                                                                                 \
    NORM_U64(part, dim, 0, NRG_ERR_DIM), NORM_U64(part, groups, 5, NRG_ERR_DIM), NORM_U64(part, groups, SIZE_MAX, NRG_ERR_DIM),  \
        NORM_U64(part, groups, 0, NRG_ERR_DIM), NORM_U64(part, groups, 2, NRG_OK), WITH_F64(part, nrg_norm_spec, eps, 0),        \
        NORM_U32(part, eps_mode, NRG_EPS_NONE, NRG_OK), NORM_U32(part, c_mode, NRG_C_GIVEN, NRG_OK),                             \
        NORM_U32(part, weights, NRG_WEIGHTS_GROUP, NRG_OK), NORM_U32(part, accuracy, NRG_ACCURACY_EXACT, NRG_OK),                \
        NORM_F64(part, eps, -1e-6, NRG_ERR_EPS), NORM_F64(part, eps, -5e-324, NRG_ERR_EPS),                                      \
        NORM_F64(part, eps, INFINITY, NRG_ERR_EPS), NORM_F64(part, eps, -INFINITY, NRG_ERR_EPS),                                 \
        NORM_F64(part, eps, NAN, NRG_ERR_EPS), NORM_F64(part, eps, 0, NRG_OK), NORM_F64(part, eps, DBL_MAX, NRG_OK),             \
        NORM_F64(part, c, NAN, NRG_ERR_CONSTANT), NORM_F64(part, c, INFINITY, NRG_ERR_CONSTANT),                                 \
        NORM_F64(part, c, -INFINITY, NRG_ERR_CONSTANT), NORM_F64(part, c, 0x1.fffffe0000001p127, NRG_ERR_CONSTANT),              \
        NORM_F64(part, c, -0x1.fffffe0000001p127, NRG_ERR_CONSTANT), NORM_F64(part, c, (double)FLT_MAX, NRG_ERR_COMBINATION),    \
        WITH_U32(part, nrg_norm_spec, c_mode, NRG_C_GIVEN), NORM_F64(part, c, (double)FLT_MAX, NRG_OK),                          \
        WITH_U32(part, nrg_norm_spec, c_mode, NRG_C_GIVEN), NORM_F64(part, c, -(double)FLT_MAX, NRG_OK),                         \
        NORM_F32(part, weight_offset, INFINITY, NRG_ERR_CONSTANT), NORM_F32(part, weight_offset, -INFINITY, NRG_ERR_CONSTANT),   \
        NORM_F32(part, weight_offset, NAN, NRG_ERR_CONSTANT), NORM_F32(part, weight_offset, FLT_MAX, NRG_OK),                    \
        NORM_F32(part, weight_offset, -FLT_MAX, NRG_OK)

#endif
