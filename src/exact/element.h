/* Elements of any dtype, one at a time, as numbers: for the reference kernels, and for calls that need no kernel.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_ELEMENT_H
#define NRG_EXACT_ELEMENT_H

#include "../../include/nrg/base.h"
#include "convert.h"

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

#endif
