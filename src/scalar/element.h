/* Elements of any dtype, one at a time, for the reference kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_ELEMENT_H
#define NRG_SCALAR_ELEMENT_H

#include "../exact/element.h"
#include "kernels.h"

/* f as it would be read back from a tensor of the dtype. */
static inline float rounded_to(float f, nrg_dtype dtype)
{
    if (dtype == NRG_F16)
        return nrg_f16_to_f32(nrg_f32_to_f16(f));
    return dtype == NRG_BF16 ? nrg_bf16_to_f32(nrg_f32_to_bf16(f)) : f;
}

/* Element 0 of group n mod groups of row n / groups. */
static inline const char *group_at(const char *tensor, size_t stride, nrg_dtype dtype, size_t n, size_t groups, size_t dim)
{
    return tensor ? tensor + n / groups * stride + n % groups * dim * element_size(dtype) : NULL;
}

static inline char *group_into(char *tensor, size_t stride, nrg_dtype dtype, size_t n, size_t groups, size_t dim)
{
    return tensor ? tensor + n / groups * stride + n % groups * dim * element_size(dtype) : NULL;
}

#endif
