/* Every AVX2 intrinsic of this path: 8 floats a vector. Needs AVX2, FMA, F16C.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_AVX2_VEC_H
#define NRG_AVX2_VEC_H

#include <immintrin.h>

#include "../template/vec.h"

enum {
    VN = 8,
    V_SUM1 = 8,
    V_SUM2 = 4, /* 16 registers: two sums of 8 accumulators would leave none to work with */
    V_APPLY = 4,
};

typedef __m256 vf;

NRG_INLINE vf v_zero(void) { return _mm256_setzero_ps(); }
NRG_INLINE vf v_set1(float f) { return _mm256_set1_ps(f); }
NRG_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
NRG_INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
NRG_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
NRG_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
NRG_INLINE vf v_fms(vf a, vf b, vf c) { return _mm256_fmsub_ps(a, b, c); }

/* ---- the first n lanes, n from 1 to VN; the others are 0 ---- */

NRG_INLINE __m256i v_mask(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
NRG_INLINE vf v_first(vf a, size_t n) { return _mm256_and_ps(a, _mm256_castsi256_ps(v_mask(n))); }

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p) { return _mm256_loadu_ps(p); }
NRG_INLINE vf v_ldn_f32(const float *p, size_t n) { return _mm256_maskload_ps(p, v_mask(n)); }
NRG_INLINE void v_st_f32(float *p, vf a) { _mm256_storeu_ps(p, a); }
NRG_INLINE void v_stn_f32(float *p, vf a, size_t n) { _mm256_maskstore_ps(p, v_mask(n), a); }

/* Past the cache, p a multiple of 16; see src/avx512/vec.h. */
NRG_INLINE void v_nt_f32(float *p, vf a)
{
    if (((uintptr_t)p & 31) == 0) {
        _mm256_stream_ps(p, a);
        return;
    }
    _mm_stream_ps(p, _mm256_castps256_ps128(a));
    _mm_stream_ps(p + 4, _mm256_extractf128_ps(a, 1));
}

/* ---- 16-bit elements, as they are in memory: no masked loads, so a part is copied element by element ---- */

typedef __m128i vh;

NRG_INLINE vh v_ld_half(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
NRG_INLINE void v_st_half(uint16_t *p, vh h) { _mm_storeu_si128((__m128i *)p, h); }
NRG_INLINE vh v_ldn_half(const uint16_t *p, size_t n)
{
    if (n == VN)
        return v_ld_half(p);
    uint16_t part[VN] = {0};
    memcpy(part, p, n * sizeof *p);
    return v_ld_half(part);
}
NRG_INLINE void v_stn_half(uint16_t *p, vh h, size_t n)
{
    if (n == VN) {
        v_st_half(p, h);
        return;
    }
    uint16_t part[VN];
    v_st_half(part, h);
    memcpy(p, part, n * sizeof *p);
}

/* Past the cache, p a multiple of 16. */
NRG_INLINE void v_nt_half(uint16_t *p, vh h) { _mm_stream_si128((__m128i *)p, h); }

/* f16: VCVTPH2PS and VCVTPS2PH keep subnormals whatever MXCSR says. */
NRG_INLINE vf v_from_f16(vh h) { return _mm256_cvtph_ps(h); }
NRG_INLINE vh v_to_f16(vf a) { return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* bf16. A NaN is patched with an OR, where a blend would take three instructions of these ports: its payload changes, which is
 * free. */
NRG_INLINE vf v_from_bf16(vh h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
NRG_INLINE vh v_to_bf16(vf a)
{
    __m256i u = _mm256_castps_si256(a);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i h = _mm256_srli_epi32(_mm256_or_si256(rounded, _mm256_and_si256(nan, _mm256_set1_epi32(0x7fc00000))), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

NRG_INLINE void v_nt_fence(void) { _mm_sfence(); }

/* ---- reductions ---- */

/* Largest magnitude by bit pattern, lane by lane: a NaN is the largest of all. */
NRG_INLINE vf v_max_magnitude(vf a, vf b)
{
    __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(b), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a), magnitude));
}
NRG_INLINE uint32_t v_max_lane(vf a)
{
    uint32_t lanes[8], largest = 0;
    _mm256_storeu_ps((float *)lanes, a);
    for (int l = 0; l < 8; l++)
        largest = lanes[l] > largest ? lanes[l] : largest;
    return largest;
}

typedef struct v16 {
    vf v[2];
} v16;

NRG_INLINE __m256d v_low_pd(vf a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
NRG_INLINE __m256d v_high_pd(vf a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }

/* Σ (s + c) over 16 lanes in double, folded by halves. */
NRG_INLINE double v_sum16(const v16 *s, const v16 *c)
{
    __m256d d0 = _mm256_add_pd(v_low_pd(s->v[0]), v_low_pd(c->v[0])), d1 = _mm256_add_pd(v_high_pd(s->v[0]), v_high_pd(c->v[0]));
    __m256d d2 = _mm256_add_pd(v_low_pd(s->v[1]), v_low_pd(c->v[1])), d3 = _mm256_add_pd(v_high_pd(s->v[1]), v_high_pd(c->v[1]));
    __m256d four = _mm256_add_pd(_mm256_add_pd(d0, d2), _mm256_add_pd(d1, d3));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The same for eight rows of one block each (c = 0). */
NRG_INLINE void v_sum16_rows(const v16 s[8], double sums[8])
{
    NRG_UNROLL
    for (int i = 0; i < 8; i += 4) {
        __m256d d[4];
        NRG_UNROLL
        for (int j = 0; j < 4; j++) {
            const vf *v = s[i + j].v;
            d[j] = _mm256_add_pd(_mm256_add_pd(v_low_pd(v[0]), v_low_pd(v[1])), _mm256_add_pd(v_high_pd(v[0]), v_high_pd(v[1])));
        }
        __m256d a = _mm256_add_pd(_mm256_permute2f128_pd(d[0], d[2], 0x20), _mm256_permute2f128_pd(d[0], d[2], 0x31));
        __m256d b = _mm256_add_pd(_mm256_permute2f128_pd(d[1], d[3], 0x20), _mm256_permute2f128_pd(d[1], d[3], 0x31));
        _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)));
    }
}

#endif
