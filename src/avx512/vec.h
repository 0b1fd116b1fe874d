/* Every AVX-512 intrinsic of this path: 16 floats a vector. Needs F, BW, DQ, VL.
 *
 * Latencies and ports are Ice Lake to Granite Rapids server cores': 512-bit arithmetic issues on p0 and p5, two a cycle;
 * two 64-byte loads and one 64-byte store a cycle.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_AVX512_VEC_H
#define NRG_AVX512_VEC_H

#include <immintrin.h>

#include "../template/vec.h"

enum {
    VN = 16,     /* floats in a vector */
    V_SUM1 = 4,  /* vectors of accumulators a sum has room for */
    V_SUM2 = 4,  /* the same where two sums run side by side */
    V_APPLY = 4, /* vectors an element-wise step works on at once */
};

typedef __m512 vf;

NRG_INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
NRG_INLINE vf v_set1(float f) { return _mm512_set1_ps(f); }
NRG_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
NRG_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
NRG_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
NRG_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
NRG_INLINE vf v_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }

/* ---- the first n lanes, n from 1 to VN; the others are 0 ---- */

NRG_INLINE __mmask16 v_mask(size_t n) { return (__mmask16)((1u << n) - 1u); }
NRG_INLINE vf v_first(vf a, size_t n) { return _mm512_maskz_mov_ps(v_mask(n), a); }

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p) { return _mm512_loadu_ps(p); }
NRG_INLINE vf v_ldn_f32(const float *p, size_t n) { return _mm512_maskz_loadu_ps(v_mask(n), p); }
NRG_INLINE void v_st_f32(float *p, vf a) { _mm512_storeu_ps(p, a); }
NRG_INLINE void v_stn_f32(float *p, vf a, size_t n) { _mm512_mask_storeu_ps(p, v_mask(n), a); }

/* Past the cache, p a multiple of 16. A line whose four quarters are written in a row leaves the core as one write all the same,
 * so buffers from malloc, which start at 16 modulo 64, stream as well as aligned ones. */
NRG_INLINE void v_nt_f32(float *p, vf a)
{
    if (((uintptr_t)p & 63) == 0) {
        _mm512_stream_ps(p, a);
        return;
    }
    _mm_stream_ps(p, _mm512_castps512_ps128(a));
    _mm_stream_ps(p + 4, _mm512_extractf32x4_ps(a, 1));
    _mm_stream_ps(p + 8, _mm512_extractf32x4_ps(a, 2));
    _mm_stream_ps(p + 12, _mm512_extractf32x4_ps(a, 3));
}

/* ---- 16-bit elements, as they are in memory ---- */

typedef __m256i vh;

NRG_INLINE vh v_ld_half(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
NRG_INLINE vh v_ldn_half(const uint16_t *p, size_t n) { return _mm256_maskz_loadu_epi16(v_mask(n), p); }
NRG_INLINE void v_st_half(uint16_t *p, vh h) { _mm256_storeu_si256((__m256i *)p, h); }
NRG_INLINE void v_stn_half(uint16_t *p, vh h, size_t n) { _mm256_mask_storeu_epi16(p, v_mask(n), h); }

/* Past the cache, p a multiple of 16. */
NRG_INLINE void v_nt_half(uint16_t *p, vh h)
{
    if (((uintptr_t)p & 31) == 0) {
        _mm256_stream_si256((__m256i *)p, h);
        return;
    }
    _mm_stream_si128((__m128i *)p, _mm256_castsi256_si128(h));
    _mm_stream_si128((__m128i *)p + 1, _mm256_extracti128_si256(h, 1));
}

/* f16: VCVTPH2PS and VCVTPS2PH keep subnormals whatever MXCSR says. */
NRG_INLINE vf v_from_f16(vh h) { return _mm512_cvtph_ps(h); }
NRG_INLINE vh v_to_f16(vf a) { return _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* bf16: integer arithmetic, since VCVTNEPS2BF16 takes subnormals for zero. The tie to even as a masked addition and the upper
 * halves gathered by one VPERMW: 6 instructions where shifts, VPAND and VPMOVDW take 11, and 1.2 × for a whole bf16 norm out of
 * cache. */
NRG_INLINE vf v_from_bf16(vh h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
NRG_INLINE vh v_to_bf16(vf a)
{
    const __m512i upper = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 29, 27, 25, 23, 21, 19, 17, 15, 13,
                                           11, 9, 7, 5, 3, 1);
    __m512i u = _mm512_castps_si512(a);
    __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    __m512i rounded = _mm512_mask_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd, u, _mm512_set1_epi32(0x8000));
    rounded = _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, rounded));
}

/* Before a thread says that its rows are done: streamed lines may still be on their way. */
NRG_INLINE void v_nt_fence(void) { _mm_sfence(); }

/* ---- reductions ---- */

/* Largest magnitude by bit pattern, lane by lane: a NaN is the largest of all. */
NRG_INLINE vf v_max_magnitude(vf a, vf b)
{
    __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(b), _mm512_set1_epi32(0x7fffffff));
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), magnitude));
}
NRG_INLINE uint32_t v_max_lane(vf a) { return _mm512_reduce_max_epu32(_mm512_castps_si512(a)); }

/* 16 lanes of a folded block. */
typedef struct v16 {
    vf v[1];
} v16;

/* Lanes l and l+8 of s + c, in double. */
NRG_INLINE __m512d v_fold_8(__m512 s)
{
    return _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(s)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(s, 1)));
}

/* Σ (s + c) over 16 lanes in double, folded by halves. */
NRG_INLINE double v_sum16(const v16 *s, const v16 *c)
{
    __m512d low =
        _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(s->v[0])), _mm512_cvtps_pd(_mm512_castps512_ps256(c->v[0])));
    __m512d high =
        _mm512_add_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(s->v[0], 1)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(c->v[0], 1)));
    __m512d eight = _mm512_add_pd(low, high);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The same for eight rows of one block each (c = 0): 7 additions and 14 shuffles in all instead of 8 × 3 of each. */
NRG_INLINE void v_sum16_rows(const v16 s[8], double sums[8])
{
    __m512d d[8], e[4];
    NRG_UNROLL
    for (int i = 0; i < 8; i++)
        d[i] = v_fold_8(s[i].v[0]);
    NRG_UNROLL
    for (int i = 0; i < 4; i++)
        e[i] =
            _mm512_add_pd(_mm512_shuffle_f64x2(d[2 * i], d[2 * i + 1], 0x44), _mm512_shuffle_f64x2(d[2 * i], d[2 * i + 1], 0xee));
    __m512d low = _mm512_add_pd(_mm512_shuffle_f64x2(e[0], e[1], 0x88), _mm512_shuffle_f64x2(e[0], e[1], 0xdd));
    __m512d high = _mm512_add_pd(_mm512_shuffle_f64x2(e[2], e[3], 0x88), _mm512_shuffle_f64x2(e[2], e[3], 0xdd));
    __m512d mixed = _mm512_add_pd(_mm512_unpacklo_pd(low, high), _mm512_unpackhi_pd(low, high)); /* rows 0 4 1 5 2 6 3 7 */
    _mm512_storeu_pd(sums, _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), mixed));
}

#endif
