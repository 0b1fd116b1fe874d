/* Elements of any dtype, one at a time, for the reference kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_ELEMENT_H
#define NRG_SCALAR_ELEMENT_H

#include "convert.h"
#include "kernels.h"

static inline size_t element_size(nrg_dtype dtype) { return dtype == NRG_F32 ? 4 : 2; }

static inline float load(const char *p, size_t i, nrg_dtype dtype)
{
    if (dtype == NRG_F32)
        return ((const float *)p)[i];
    uint16_t h = ((const uint16_t *)p)[i];
    return dtype == NRG_F16 ? nrg_f16_to_f32(h) : nrg_bf16_to_f32(h);
}

static inline void store(char *p, size_t i, nrg_dtype dtype, float f)
{
    if (dtype == NRG_F32)
        ((float *)p)[i] = f;
    else
        ((uint16_t *)p)[i] = dtype == NRG_F16 ? nrg_f32_to_f16(f) : nrg_f32_to_bf16(f);
}

/* f as it would be read back from a tensor of the dtype. */
static inline float rounded_to(float f, nrg_dtype dtype)
{
    if (dtype == NRG_F16)
        return nrg_f16_to_f32(nrg_f32_to_f16(f));
    return dtype == NRG_BF16 ? nrg_bf16_to_f32(nrg_f32_to_bf16(f)) : f;
}

/* g of one value, and its slope. */
static inline float activate(nrg_activation g, float x)
{
    float out;
    nrg_scalar_activate(g, &x, &out, 1);
    return out;
}

static inline float slope_of(nrg_activation g, float x)
{
    float out, slope;
    nrg_scalar_activate_both(g, &x, &out, &slope, 1);
    return slope;
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
