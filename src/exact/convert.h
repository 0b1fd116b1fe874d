/* f16 and bf16 to f32 and back, in integer arithmetic: the definition of the conversions on every path. The reference kernels and
 * the calls that need no kernel are written with it; vectors have conversions of their own, in each path's vec.h.
 * To 16 bits: to nearest, ties to even; overflow to infinity; subnormals kept; a NaN stays a NaN and becomes quiet.
 *
 * Formats: IEEE 754-2019 binary16; bfloat16 as in the Intel white paper 338302-001US.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_CONVERT_H
#define NRG_EXACT_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t nrg_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float nrg_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float nrg_bf16_to_f32(uint16_t h) { return nrg_f32_from_bits((uint32_t)h << 16); }

static inline uint16_t nrg_f32_to_bf16(float f)
{
    uint32_t u = nrg_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float nrg_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
    if (exponent == 31)
        return nrg_f32_from_bits(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent == 0) {
        /* fraction · 2^-24: exact in f32, and the sign survives a zero */
        float magnitude = (float)fraction * 0x1p-24f;
        return nrg_f32_from_bits(sign | nrg_f32_bits(magnitude));
    }
    return nrg_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t nrg_f32_to_f16(float f)
{
    uint32_t u = nrg_f32_bits(f), magnitude = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return sign | 0x7c00u;
    if (magnitude < 0x38800000u) {
        /* below 2^-14: a multiple of 2^-24. Adding 0.5 puts that unit at the last place of an f32, and so rounds to it. */
        float shifted = nrg_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (nrg_f32_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
}

#endif
