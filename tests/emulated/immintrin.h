/* AVX-512 made of AVX2, for tests: found before the compiler's <immintrin.h> when meson is set up with -Demulate_avx512=true,
 * so that src/avx512/ runs on CPUs without it. A vector of 512 bits is a pair of halves.
 *
 * Only what src/avx512/vec.h and bench/limits/limit.cc use, with the meaning that Intel's Intrinsics Guide gives it. An
 * intrinsic that they begin to use fails to compile here, and is added. Masked loads and stores touch the elements of their
 * mask one by one, and no others: the tests' fences count on it. What an intrinsic leaves undefined is a NaN here, or not zero.
 *
 * Intrinsics of up to 256 bits are the compiler's own; their headers ask whether they were reached through <immintrin.h>.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEST_EMULATED_IMMINTRIN_H
#define NRG_TEST_EMULATED_IMMINTRIN_H

#define _IMMINTRIN_H_INCLUDED /* gcc */
#define __IMMINTRIN_H         /* clang */
/* clang-format off: each needs those before it */
#include <xmmintrin.h>
#include <emmintrin.h>
#include <pmmintrin.h>
#include <tmmintrin.h>
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
/* clang-format on */

#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#error "AVX-512 is emulated for the sake of CPUs without it: compile without -mavx512f"
#endif

typedef struct __m512 {
    __m256 half[2];
} __m512;
typedef struct __m512d {
    __m256d half[2];
} __m512d;
typedef struct __m512i {
    __m256i half[2];
} __m512i;
typedef unsigned char __mmask8;
typedef unsigned short __mmask16;
typedef unsigned __mmask32;
typedef unsigned long long __mmask64;

#define EMULATED static inline __attribute__((always_inline))

/* A function of each half. */
#define EMULATED_1(type, name, operation)                                                                                        \
    EMULATED type name(type a) { return (type){{operation(a.half[0]), operation(a.half[1])}}; }
#define EMULATED_2(type, name, operation)                                                                                        \
    EMULATED type name(type a, type b) { return (type){{operation(a.half[0], b.half[0]), operation(a.half[1], b.half[1])}}; }
#define EMULATED_3(type, name, operation)                                                                                        \
    EMULATED type name(type a, type b, type c)                                                                                   \
    {                                                                                                                            \
        return (type){{operation(a.half[0], b.half[0], c.half[0]), operation(a.half[1], b.half[1], c.half[1])}};                 \
    }
#define EMULATED_SHIFT(name, operation)                                                                                          \
    EMULATED __m512i name(__m512i a, unsigned count)                                                                             \
    {                                                                                                                            \
        return (__m512i){{operation(a.half[0], (int)count), operation(a.half[1], (int)count)}};                                  \
    }

/* ---- lanes as an array ---- */

typedef union emulated_lanes {
    float f32[16];
    double f64[8];
    uint8_t u8[64];
    uint16_t u16[32];
    uint32_t u32[16];
    uint64_t u64[8];
    __m512 ps;
    __m512d pd;
    __m512i si;
} emulated_lanes;

/* ---- constants ---- */

EMULATED __m512 _mm512_set1_ps(float f) { return (__m512){{_mm256_set1_ps(f), _mm256_set1_ps(f)}}; }
EMULATED __m512d _mm512_set1_pd(double d) { return (__m512d){{_mm256_set1_pd(d), _mm256_set1_pd(d)}}; }
EMULATED __m512 _mm512_setzero_ps(void) { return _mm512_set1_ps(0); }
EMULATED __m512d _mm512_setzero_pd(void) { return _mm512_set1_pd(0); }
EMULATED __m512i _mm512_set1_epi16(short i) { return (__m512i){{_mm256_set1_epi16(i), _mm256_set1_epi16(i)}}; }
EMULATED __m512i _mm512_set1_epi32(int i) { return (__m512i){{_mm256_set1_epi32(i), _mm256_set1_epi32(i)}}; }
EMULATED __m512i _mm512_set1_epi64(long long i) { return (__m512i){{_mm256_set1_epi64x(i), _mm256_set1_epi64x(i)}}; }

/* setr takes lane 0 first, set takes it last */
#define _mm512_setr_epi32(...) (((emulated_lanes){.u32 = {__VA_ARGS__}}).si)
#define _mm512_setr_epi64(...) (((emulated_lanes){.u64 = {__VA_ARGS__}}).si)
#define _mm512_set_epi16(...) emulated_reverse_16((emulated_lanes){.u16 = {__VA_ARGS__}})
EMULATED __m512i emulated_reverse_16(emulated_lanes last_first)
{
    emulated_lanes r;
    for (int i = 0; i < 32; i++)
        r.u16[i] = last_first.u16[31 - i];
    return r.si;
}

EMULATED __m512i _mm512_set4_epi32(int d, int c, int b, int a)
{
    const __m256i half = _mm256_setr_epi32(a, b, c, d, a, b, c, d);
    return (__m512i){{half, half}};
}

/* ---- the same bits as another type; parts ---- */

EMULATED __m512i _mm512_castps_si512(__m512 a)
{
    return (__m512i){{_mm256_castps_si256(a.half[0]), _mm256_castps_si256(a.half[1])}};
}
EMULATED __m512 _mm512_castsi512_ps(__m512i a)
{
    return (__m512){{_mm256_castsi256_ps(a.half[0]), _mm256_castsi256_ps(a.half[1])}};
}
EMULATED __m512i _mm512_castpd_si512(__m512d a)
{
    return (__m512i){{_mm256_castpd_si256(a.half[0]), _mm256_castpd_si256(a.half[1])}};
}
EMULATED __m512d _mm512_castsi512_pd(__m512i a)
{
    return (__m512d){{_mm256_castsi256_pd(a.half[0]), _mm256_castsi256_pd(a.half[1])}};
}
EMULATED __m512d _mm512_castps_pd(__m512 a) { return (__m512d){{_mm256_castps_pd(a.half[0]), _mm256_castps_pd(a.half[1])}}; }
EMULATED __m512 _mm512_castpd_ps(__m512d a) { return (__m512){{_mm256_castpd_ps(a.half[0]), _mm256_castpd_ps(a.half[1])}}; }
EMULATED __m256 _mm512_castps512_ps256(__m512 a) { return a.half[0]; }
EMULATED __m128 _mm512_castps512_ps128(__m512 a) { return _mm256_castps256_ps128(a.half[0]); }
EMULATED __m256d _mm512_castpd512_pd256(__m512d a) { return a.half[0]; }
EMULATED __m256i _mm512_castsi512_si256(__m512i a) { return a.half[0]; }
EMULATED __m128i _mm512_castsi512_si128(__m512i a) { return _mm256_castsi256_si128(a.half[0]); }
EMULATED __m512 _mm512_castps256_ps512(__m256 a) { return (__m512){{a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))}}; }

EMULATED __m512i _mm512_castsi256_si512(__m256i a) { return (__m512i){{a, _mm256_set1_epi32(-1)}}; }

EMULATED __m256i _mm512_extracti32x8_epi32(__m512i a, int part) { return a.half[part & 1]; }
EMULATED __m256 _mm512_extractf32x8_ps(__m512 a, int part) { return a.half[part & 1]; }
EMULATED __m256d _mm512_extractf64x4_pd(__m512d a, int part) { return a.half[part & 1]; }
EMULATED __m128i _mm512_extracti32x4_epi32(__m512i a, int part)
{
    __m256i half = a.half[part >> 1 & 1];
    return part & 1 ? _mm256_extracti128_si256(half, 1) : _mm256_castsi256_si128(half);
}
EMULATED __m128 _mm512_extractf32x4_ps(__m512 a, int part)
{
    return _mm_castsi128_ps(_mm512_extracti32x4_epi32(_mm512_castps_si512(a), part));
}
EMULATED __m512 _mm512_insertf32x8(__m512 a, __m256 b, int part)
{
    a.half[part & 1] = b;
    return a;
}
EMULATED __m512 _mm512_broadcast_f32x8(__m256 a) { return (__m512){{a, a}}; }

/* ---- arithmetic ---- */

EMULATED_2(__m512, _mm512_add_ps, _mm256_add_ps)
EMULATED_2(__m512, _mm512_sub_ps, _mm256_sub_ps)
EMULATED_2(__m512, _mm512_mul_ps, _mm256_mul_ps)
EMULATED_2(__m512, _mm512_div_ps, _mm256_div_ps)
/* a little too small: nothing may come to depend on an estimate's bits */
static inline __m256 emulated_estimate(__m256 a) { return _mm256_div_ps(_mm256_set1_ps(0x1.fffap-1f), a); }
EMULATED_1(__m512, _mm512_rcp14_ps, emulated_estimate)
EMULATED_2(__m512, _mm512_max_ps, _mm256_max_ps)
EMULATED_2(__m512, _mm512_min_ps, _mm256_min_ps)
EMULATED_2(__m512, _mm512_or_ps, _mm256_or_ps)
EMULATED_3(__m512, _mm512_fmadd_ps, _mm256_fmadd_ps)
EMULATED_3(__m512, _mm512_fmsub_ps, _mm256_fmsub_ps)
EMULATED_3(__m512, _mm512_fnmadd_ps, _mm256_fnmadd_ps)
EMULATED_2(__m512d, _mm512_add_pd, _mm256_add_pd)
EMULATED_2(__m512d, _mm512_sub_pd, _mm256_sub_pd)
EMULATED_2(__m512d, _mm512_mul_pd, _mm256_mul_pd)
EMULATED_2(__m512d, _mm512_div_pd, _mm256_div_pd)
EMULATED_2(__m512d, _mm512_or_pd, _mm256_or_pd)
EMULATED_2(__m512d, _mm512_max_pd, _mm256_max_pd)
EMULATED_1(__m512d, _mm512_sqrt_pd, _mm256_sqrt_pd)
EMULATED_3(__m512d, _mm512_fmadd_pd, _mm256_fmadd_pd)
EMULATED_2(__m512i, _mm512_add_epi16, _mm256_add_epi16)
EMULATED_2(__m512i, _mm512_add_epi32, _mm256_add_epi32)
EMULATED_2(__m512i, _mm512_add_epi64, _mm256_add_epi64)
EMULATED_2(__m512i, _mm512_avg_epu16, _mm256_avg_epu16)
EMULATED_2(__m512i, _mm512_max_epi32, _mm256_max_epi32)
EMULATED_2(__m512i, _mm512_packs_epi16, _mm256_packs_epi16)
EMULATED_2(__m512i, _mm512_packs_epi32, _mm256_packs_epi32)
EMULATED_2(__m512i, _mm512_and_si512, _mm256_and_si256)
EMULATED_2(__m512i, _mm512_xor_si512, _mm256_xor_si256)
EMULATED_SHIFT(_mm512_slli_epi32, _mm256_slli_epi32)
EMULATED_SHIFT(_mm512_slli_epi64, _mm256_slli_epi64)
EMULATED_SHIFT(_mm512_srli_epi16, _mm256_srli_epi16)
EMULATED_SHIFT(_mm512_srli_epi32, _mm256_srli_epi32)

EMULATED __m256 emulated_abs(__m256 a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
EMULATED_1(__m512, _mm512_abs_ps, emulated_abs)

/* Bit 4a + 2b + c of the table, for each bit of the three. */
EMULATED __m512i _mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, int table)
{
    emulated_lanes x = {.si = a}, y = {.si = b}, z = {.si = c}, r;
    for (int i = 0; i < 8; i++) {
        r.u64[i] = 0;
        for (int entry = 0; entry < 8; entry++)
            if (table >> entry & 1)
                r.u64[i] |=
                    (entry & 4 ? x.u64[i] : ~x.u64[i]) & (entry & 2 ? y.u64[i] : ~y.u64[i]) & (entry & 1 ? z.u64[i] : ~z.u64[i]);
    }
    return r.si;
}

/* ---- masks: bit i stands for lane i ---- */

/* All bits of the lanes whose bits are set. */
EMULATED __m256i emulated_spread_16(unsigned mask)
{
    const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, INT16_MIN);
    return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16((short)mask), bit), bit);
}
EMULATED __m256i emulated_spread_32(unsigned mask)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bit), bit);
}
EMULATED __m256i emulated_spread_64(unsigned mask)
{
    const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)mask), bit), bit);
}
/* And back: the lanes' upper bits. */
EMULATED __mmask16 emulated_gather_32(__m256 low, __m256 high)
{
    return (__mmask16)(_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8);
}

/* Two predicates, without a signal for quiet NaNs. */
EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int predicate)
{
    if (predicate == _CMP_LT_OQ)
        return emulated_gather_32(_mm256_cmp_ps(a.half[0], b.half[0], _CMP_LT_OQ),
                                  _mm256_cmp_ps(a.half[1], b.half[1], _CMP_LT_OQ));
    if (predicate == _CMP_NLT_UQ)
        return (__mmask16)~_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
    if (predicate != _CMP_UNORD_Q)
        __builtin_trap(); /* not written yet */
    return emulated_gather_32(_mm256_cmp_ps(a.half[0], b.half[0], _CMP_UNORD_Q),
                              _mm256_cmp_ps(a.half[1], b.half[1], _CMP_UNORD_Q));
}
EMULATED __mmask8 _mm512_cmp_pd_mask(__m512d a, __m512d b, int predicate)
{
    if (predicate != _CMP_NLE_UQ)
        __builtin_trap(); /* not written yet */
    return (__mmask8)(_mm256_movemask_pd(_mm256_cmp_pd(a.half[0], b.half[0], _CMP_NLE_UQ)) |
                      _mm256_movemask_pd(_mm256_cmp_pd(a.half[1], b.half[1], _CMP_NLE_UQ)) << 4);
}
EMULATED __mmask16 _mm512_movepi32_mask(__m512i a)
{
    return emulated_gather_32(_mm256_castsi256_ps(a.half[0]), _mm256_castsi256_ps(a.half[1]));
}
EMULATED __mmask16 _mm512_test_epi32_mask(__m512i a, __m512i b)
{
    __m512i both = _mm512_and_si512(a, b);
    __m256i zero = _mm256_setzero_si256();
    return (__mmask16)~emulated_gather_32(_mm256_castsi256_ps(_mm256_cmpeq_epi32(both.half[0], zero)),
                                          _mm256_castsi256_ps(_mm256_cmpeq_epi32(both.half[1], zero)));
}
EMULATED __mmask16 _mm512_testn_epi32_mask(__m512i a, __m512i b) { return (__mmask16)~_mm512_test_epi32_mask(a, b); }
EMULATED __mmask32 _mm512_cmpge_epu16_mask(__m512i a, __m512i b)
{
    __mmask32 mask = 0;
    emulated_lanes x = {.si = a}, y = {.si = b};
    for (int i = 0; i < 32; i++)
        mask |= (__mmask32)(x.u16[i] >= y.u16[i]) << i;
    return mask;
}
EMULATED __mmask8 _mm512_test_epi64_mask(__m512i a, __m512i b)
{
    __m512i both = _mm512_and_si512(a, b);
    __m256i zero = _mm256_setzero_si256();
    return (__mmask8) ~(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(both.half[0], zero))) |
                        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(both.half[1], zero))) << 4);
}

/* b where the mask says so, else a */
EMULATED __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b)
{
    return (__m512){{_mm256_blendv_ps(a.half[0], b.half[0], _mm256_castsi256_ps(emulated_spread_32(mask))),
                     _mm256_blendv_ps(a.half[1], b.half[1], _mm256_castsi256_ps(emulated_spread_32(mask >> 8)))}};
}
EMULATED __m512d _mm512_mask_blend_pd(__mmask8 mask, __m512d a, __m512d b)
{
    return (__m512d){{_mm256_blendv_pd(a.half[0], b.half[0], _mm256_castsi256_pd(emulated_spread_64(mask))),
                      _mm256_blendv_pd(a.half[1], b.half[1], _mm256_castsi256_pd(emulated_spread_64(mask >> 4)))}};
}
EMULATED __m512i _mm512_mask_blend_epi16(__mmask32 mask, __m512i a, __m512i b)
{
    return (__m512i){{_mm256_blendv_epi8(a.half[0], b.half[0], emulated_spread_16(mask)),
                      _mm256_blendv_epi8(a.half[1], b.half[1], emulated_spread_16(mask >> 16))}};
}
EMULATED __m512 _mm512_mask_mov_ps(__m512 rest, __mmask16 mask, __m512 a) { return _mm512_mask_blend_ps(mask, rest, a); }
EMULATED __m512 _mm512_mask_mul_ps(__m512 rest, __mmask16 mask, __m512 a, __m512 b)
{
    return _mm512_mask_blend_ps(mask, rest, _mm512_mul_ps(a, b));
}
EMULATED __m512 _mm512_mask_sub_ps(__m512 rest, __mmask16 mask, __m512 a, __m512 b)
{
    return _mm512_mask_blend_ps(mask, rest, _mm512_sub_ps(a, b));
}
EMULATED __m512i _mm512_mask_mov_epi16(__m512i rest, __mmask32 mask, __m512i a) { return _mm512_mask_blend_epi16(mask, rest, a); }
EMULATED __m512i _mm512_mask_add_epi32(__m512i rest, __mmask16 mask, __m512i a, __m512i b)
{
    __m512 sum = _mm512_castsi512_ps(_mm512_add_epi32(a, b));
    return _mm512_castps_si512(_mm512_mask_blend_ps(mask, _mm512_castsi512_ps(rest), sum));
}
EMULATED __m512i _mm512_mask_add_epi16(__m512i rest, __mmask32 mask, __m512i a, __m512i b)
{
    return _mm512_mask_blend_epi16(mask, rest, _mm512_add_epi16(a, b));
}
EMULATED __m512i _mm512_mask_or_epi32(__m512i rest, __mmask16 mask, __m512i a, __m512i b)
{
    __m512 any = _mm512_or_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b));
    return _mm512_castps_si512(_mm512_mask_blend_ps(mask, _mm512_castsi512_ps(rest), any));
}

/* ---- memory ---- */

EMULATED __m512 _mm512_loadu_ps(const void *p)
{
    return (__m512){{_mm256_loadu_ps((const float *)p), _mm256_loadu_ps((const float *)p + 8)}};
}
EMULATED __m512d _mm512_loadu_pd(const void *p)
{
    return (__m512d){{_mm256_loadu_pd((const double *)p), _mm256_loadu_pd((const double *)p + 4)}};
}
EMULATED __m512i _mm512_loadu_si512(const void *p)
{
    return (__m512i){{_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)p + 1)}};
}
EMULATED void _mm512_storeu_ps(void *p, __m512 a)
{
    _mm256_storeu_ps((float *)p, a.half[0]);
    _mm256_storeu_ps((float *)p + 8, a.half[1]);
}
EMULATED void _mm512_storeu_pd(void *p, __m512d a)
{
    _mm256_storeu_pd((double *)p, a.half[0]);
    _mm256_storeu_pd((double *)p + 4, a.half[1]);
}
EMULATED void _mm512_storeu_si512(void *p, __m512i a)
{
    _mm256_storeu_si256((__m256i *)p, a.half[0]);
    _mm256_storeu_si256((__m256i *)p + 1, a.half[1]);
}

/* A stream to anything but a multiple of 64 is a fault of the CPU's. */
EMULATED void _mm512_stream_si512(void *p, __m512i a)
{
    if ((uintptr_t)p & 63)
        __builtin_trap();
    _mm256_stream_si256((__m256i *)p, a.half[0]);
    _mm256_stream_si256((__m256i *)p + 1, a.half[1]);
}
EMULATED void _mm512_stream_ps(void *p, __m512 a) { _mm512_stream_si512(p, _mm512_castps_si512(a)); }

EMULATED __m512i _mm512_maskz_set1_epi64(__mmask8 mask, long long a)
{
    long long lanes[8];
    for (int i = 0; i < 8; i++)
        lanes[i] = mask >> i & 1 ? a : 0;
    __m512i result;
    memcpy(&result, lanes, sizeof result);
    return result;
}
EMULATED __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void *p)
{
    emulated_lanes r = {.u32 = {0}};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy(&r.u32[i], (const char *)p + 4 * i, 4);
    return r.ps;
}
EMULATED void _mm512_mask_storeu_ps(void *p, __mmask16 mask, __m512 a)
{
    emulated_lanes x = {.ps = a};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy((char *)p + 4 * i, &x.u32[i], 4);
}
EMULATED __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void *p)
{
    emulated_lanes r = {.u16 = {0}};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy(&r.u16[i], (const char *)p + 2 * i, 2);
    return r.si.half[0];
}
EMULATED void _mm256_mask_storeu_epi16(void *p, __mmask16 mask, __m256i a)
{
    emulated_lanes x = {.si = {{a, a}}};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy((char *)p + 2 * i, &x.u16[i], 2);
}

/* ---- conversions ---- */

EMULATED __m512 _mm512_cvtepi32_ps(__m512i a) { return (__m512){{_mm256_cvtepi32_ps(a.half[0]), _mm256_cvtepi32_ps(a.half[1])}}; }
EMULATED __m512i _mm512_cvtps_epi32(__m512 a)
{
    return (__m512i){{_mm256_cvtps_epi32(a.half[0]), _mm256_cvtps_epi32(a.half[1])}};
}
EMULATED __m512i _mm512_cvtepi8_epi32(__m128i a)
{
    return (__m512i){{_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(a, a))}};
}
EMULATED __m512i _mm512_cvtepu16_epi32(__m256i a)
{
    return (__m512i){{_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))}};
}
EMULATED __m512 _mm512_cvtph_ps(__m256i a)
{
    return (__m512){{_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))}};
}
EMULATED __m256i _mm512_cvtps_ph(__m512 a, int rounding)
{
    if (rounding != (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
        __builtin_trap(); /* not written yet */
    return _mm256_set_m128i(_mm256_cvtps_ph(a.half[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            _mm256_cvtps_ph(a.half[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
EMULATED __m512d _mm512_cvtps_pd(__m256 a)
{
    return (__m512d){{_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))}};
}
EMULATED __m256 _mm512_cvtpd_ps(__m512d a) { return _mm256_set_m128(_mm256_cvtpd_ps(a.half[1]), _mm256_cvtpd_ps(a.half[0])); }

/* ---- lanes moved ---- */

/* a's and b's lanes alternating, of each 128 bits the lower or the upper ones */
EMULATED_2(__m512d, _mm512_unpacklo_pd, _mm256_unpacklo_pd)
EMULATED_2(__m512d, _mm512_unpackhi_pd, _mm256_unpackhi_pd)

/* Within each 128 bits; two bits of the order a lane. */
EMULATED __m512 _mm512_permute_ps(__m512 a, int order)
{
    emulated_lanes x = {.ps = a}, r;
    for (int i = 0; i < 16; i++)
        r.u32[i] = x.u32[(i & ~3) | (order >> 2 * (i & 3) & 3)];
    return r.ps;
}

/* Parts of 128 bits: the lower two of a, the upper two of b; two bits of the order a part. */
EMULATED __m512d _mm512_shuffle_f64x2(__m512d a, __m512d b, int order)
{
    emulated_lanes x = {.pd = a}, y = {.pd = b}, r;
    for (int i = 0; i < 8; i++) {
        int from = 2 * (order >> (i & ~1) & 3) + (i & 1);
        r.u64[i] = i < 4 ? x.u64[from] : y.u64[from];
    }
    return r.pd;
}

EMULATED __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int order)
{
    return _mm512_castpd_ps(_mm512_shuffle_f64x2(_mm512_castps_pd(a), _mm512_castps_pd(b), order));
}

/* Within each part of 128 bits: the lower two lanes of a, the upper two of b. */
EMULATED __m512 _mm512_shuffle_ps(__m512 a, __m512 b, int order)
{
    emulated_lanes x = {.ps = a}, y = {.ps = b}, r;
    for (int i = 0; i < 16; i++) {
        int from = (i & ~3) + (order >> 2 * (i & 3) & 3);
        r.u32[i] = i & 2 ? y.u32[from] : x.u32[from];
    }
    return r.ps;
}

/* Bytes within each part of 128 bits; 0 where the index has its upper bit; those of the source where the mask has none. */
EMULATED __m512i _mm512_mask_shuffle_epi8(__m512i source, __mmask64 mask, __m512i a, __m512i index)
{
    emulated_lanes x = {.si = source}, r;
    r.si = (__m512i){{_mm256_shuffle_epi8(a.half[0], index.half[0]), _mm256_shuffle_epi8(a.half[1], index.half[1])}};
    for (int i = 0; i < 64; i++)
        r.u8[i] = mask >> i & 1 ? r.u8[i] : x.u8[i];
    return r.si;
}

/* Lane i is that of a, or of a and b one after the other, with the number in lane i of the index, of which the upper bits do not
 * count. */
EMULATED __m512i _mm512_permutexvar_epi16(__m512i index, __m512i a)
{
    emulated_lanes k = {.si = index}, x = {.si = a}, r;
    for (int i = 0; i < 32; i++)
        r.u16[i] = x.u16[k.u16[i] & 31];
    return r.si;
}
EMULATED __m512i _mm512_maskz_permutexvar_epi16(__mmask32 mask, __m512i index, __m512i a)
{
    emulated_lanes r = {.si = _mm512_permutexvar_epi16(index, a)};
    for (int i = 0; i < 32; i++)
        r.u16[i] = mask >> i & 1 ? r.u16[i] : 0;
    return r.si;
}
EMULATED __m512i _mm512_permutexvar_epi32(__m512i index, __m512i a)
{
    emulated_lanes k = {.si = index}, x = {.si = a}, r;
    for (int i = 0; i < 16; i++)
        r.u32[i] = x.u32[k.u32[i] & 15];
    return r.si;
}
EMULATED __m512d _mm512_permutexvar_pd(__m512i index, __m512d a)
{
    emulated_lanes k = {.si = index}, x = {.pd = a}, r;
    for (int i = 0; i < 8; i++)
        r.u64[i] = x.u64[k.u64[i] & 7];
    return r.pd;
}
EMULATED __m512 _mm512_permutexvar_ps(__m512i index, __m512 a)
{
    return _mm512_castsi512_ps(_mm512_permutexvar_epi32(index, _mm512_castps_si512(a)));
}
EMULATED __m512 _mm512_permutex2var_ps(__m512 a, __m512i index, __m512 b)
{
    emulated_lanes k = {.si = index}, x = {.ps = a}, y = {.ps = b}, r;
    for (int i = 0; i < 16; i++)
        r.u32[i] = k.u32[i] & 16 ? y.u32[k.u32[i] & 15] : x.u32[k.u32[i] & 15];
    return r.ps;
}

/* ---- arithmetic that AVX2 has nothing like ---- */

/* The lesser magnitude, without a sign: 0xa. A number beside a quiet NaN; of a signaling one, it as a quiet one. */
EMULATED __m512 _mm512_range_ps(__m512 a, __m512 b, int what)
{
    emulated_lanes x = {.ps = a}, y = {.ps = b}, r;
    if (what != 0xa)
        __builtin_trap();
    for (int i = 0; i < 16; i++) {
        const uint32_t infinity = 0x7f800000, quiet = 0x400000, p = x.u32[i] & 0x7fffffff, q = y.u32[i] & 0x7fffffff;
        if (p > infinity && !(p & quiet))
            r.u32[i] = p | quiet;
        else if (q > infinity && !(q & quiet))
            r.u32[i] = q | quiet;
        else
            r.u32[i] = p < q ? p : q; /* a NaN is above all numbers */
    }
    return r.ps;
}

/* a * 2^floor(b), rounded once: beyond 2^±400 nothing else comes of any float. */
EMULATED float emulated_scalef(float a, float b)
{
    const float infinity = __builtin_inff();
    if (b != b || a != a)
        return a + b;
    if ((b == infinity && a == 0) || (b == -infinity && (a == infinity || a == -infinity)))
        return __builtin_nanf("");
    const float near = b > 400 ? 400 : b < -400 ? -400 : b;
    int n = (int)near;
    n -= (float)n > near;
    const uint64_t bits = (uint64_t)(1023 + n) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return (float)((double)a * power);
}
EMULATED __m512 _mm512_scalef_ps(__m512 a, __m512 b)
{
    emulated_lanes x = {.ps = a}, y = {.ps = b}, r;
    for (int i = 0; i < 16; i++)
        r.f32[i] = emulated_scalef(x.f32[i], y.f32[i]);
    return r.ps;
}

#endif
