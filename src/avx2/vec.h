/* Every AVX2 intrinsic of this path: 8 floats a vector. Needs AVX2, FMA, F16C.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_AVX2_VEC_H
#define NRG_AVX2_VEC_H

#include <immintrin.h>

#include "../template/vec.h"

#define NRG_PATH avx2

enum {
    VN = 8,
    V_SUM1 = 4,
    V_SUM2 = 2, /* 16 registers: 32 lanes of two sums would take them all */
    V_SUM4 = 1, /* and where four sums do */
    V_APPLY = 4,
    V_FAST1 = 8, /* vectors of the 64 lanes of the fast sums at once; where there are two sums, half of them are all registers */
    V_FAST2 = 4,
    V_FAST_HALF = 8, /* of 16-bit elements that become outputs */
    V_FAST_ANY = 4,  /* in the loops that know all options: fewer are less code */
    V_ACT = 4,
    V_ACT_SIDE = V_ACT,
    V_SCALE_KEEPS_NAN = 0,
    V_ROPE = 4, /* vectors that a rotation takes at once, with as many of cosines and of sines */
};

typedef __m256 vf;

NRG_INLINE vf v_hold(vf a)
{
    __asm__("" : "+x"(a));
    return a;
}
NRG_INLINE vf v_zero(void) { return _mm256_setzero_ps(); }
NRG_INLINE vf v_set1(float f) { return _mm256_set1_ps(f); }
/* gcc 12 reads a constant from memory for each of its uses, and the loops of activations are then bound by their loads. */
NRG_INLINE vf v_constant(float f)
{
    vf v = v_set1(f);
#if defined(__GNUC__) || defined(__clang__)
    __asm__ volatile("" : "+x"(v));
#endif
    return v;
}
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

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p) { return _mm256_loadu_ps(p); }
NRG_INLINE vf v_ldn_f32(const float *p, size_t n) { return _mm256_maskload_ps(p, v_mask(n)); }
NRG_INLINE void v_st_f32(float *p, vf a) { _mm256_storeu_ps(p, a); }
/* Half a vector without a mask: f32 batch norm of 8x256x14x14 in 0.95 of the time (Zen 4, gcc 12). */
NRG_INLINE void v_stn_f32(float *p, vf a, size_t n)
{
    if (n == VN / 2)
        _mm_storeu_ps(p, _mm256_castps256_ps128(a));
    else
        _mm256_maskstore_ps(p, v_mask(n), a);
}

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

/* From memory to p past the cache: 16 bytes to a multiple of 16, 4 to one of 4. */
NRG_INLINE void v_nt_16(void *p, const void *from) { _mm_stream_si128((__m128i *)p, _mm_loadu_si128((const __m128i *)from)); }
NRG_INLINE void v_nt_4(void *p, const void *from)
{
    int bits;
    memcpy(&bits, from, sizeof bits);
    _mm_stream_si32((int *)p, bits);
}

/* ---- 16-bit elements, as they are in memory. There are no masked loads and stores of them, and a copy of n elements through
 * memory takes 170 bytes of code and a load that waits for its stores ---- */

typedef __m128i vh;

NRG_INLINE vh v_ld_half(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
NRG_INLINE void v_st_half(uint16_t *p, vh h) { _mm_storeu_si128((__m128i *)p, h); }
NRG_INLINE vh v_ldn_half(const uint16_t *p, size_t n)
{
    if (n == VN)
        return v_ld_half(p);
    if (n >= 4) { /* the first four, and of the last four those that are left */
        const __m128i last = _mm_loadl_epi64((const __m128i *)(p + n - 4)), bits = _mm_cvtsi32_si128(16 * (8 - (int)n));
        return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)p), _mm_srl_epi64(last, bits));
    }
    vh h = _mm_cvtsi32_si128(p[0]);
    if (n > 1)
        h = _mm_insert_epi16(h, p[1], 1);
    if (n > 2)
        h = _mm_insert_epi16(h, p[2], 2);
    return h;
}
NRG_INLINE void v_stn_half(uint16_t *p, vh h, size_t n)
{
    if (n == VN) {
        v_st_half(p, h);
        return;
    }
    if (n & 4) {
        _mm_storel_epi64((__m128i *)p, h);
        h = _mm_unpackhi_epi64(h, h);
        p += 4;
    }
    if (n & 2) {
        const int two = _mm_cvtsi128_si32(h);
        memcpy(p, &two, sizeof two);
        h = _mm_srli_epi64(h, 32);
        p += 2;
    }
    if (n & 1)
        *p = (uint16_t)_mm_cvtsi128_si32(h);
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

/* bf16 by pairs: 2·VN elements as they are in memory, and as floats those with even numbers apart from those with odd ones. No
 * shuffle on either side, and the rounding is done for all of them at once in 16-bit lanes: a third of the instructions of
 * v_to_bf16. The carry out of the lower halves is the upper bit of a rounded mean. NaN, which must not be rounded, is rare enough
 * for a branch. */
typedef __m256i vp;

NRG_INLINE vp v_ld_pair(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
NRG_INLINE void v_st_pair(uint16_t *p, vp h) { _mm256_storeu_si256((__m256i *)p, h); }
NRG_INLINE void v_nt_pair(uint16_t *p, vp h)
{
    if (((uintptr_t)p & 31) == 0) {
        _mm256_stream_si256((__m256i *)p, h);
        return;
    }
    _mm_stream_si128((__m128i *)p, _mm256_castsi256_si128(h));
    _mm_stream_si128((__m128i *)p + 1, _mm256_extracti128_si256(h, 1));
}
NRG_INLINE vf v_even_from_bf16(vp h) { return _mm256_castsi256_ps(_mm256_slli_epi32(h, 16)); }
NRG_INLINE vf v_odd_from_bf16(vp h) { return _mm256_castsi256_ps(_mm256_and_si256(h, _mm256_set1_epi32((int)0xffff0000))); }
NRG_INLINE vf v_calm(vf a)
{
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(a, nan, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
NRG_INLINE vp v_calm_to_bf16(vf even, vf odd)
{
    __m256i e = _mm256_castps_si256(even), o = _mm256_castps_si256(odd);
    __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(e, 16), o, 0xaa);
    __m256i lower = _mm256_blend_epi16(e, _mm256_slli_epi32(o, 16), 0xaa);
    __m256i half = _mm256_or_si256(_mm256_and_si256(upper, _mm256_set1_epi16(1)), _mm256_set1_epi16(0x7ffe));
    return _mm256_add_epi16(upper, _mm256_srli_epi16(_mm256_avg_epu16(lower, half), 15));
}
NRG_INLINE vp v_pair_to_bf16(vf even, vf odd)
{
    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(even, odd, _CMP_UNORD_Q)), 0)) {
        even = v_calm(even);
        odd = v_calm(odd);
    }
    return v_calm_to_bf16(even, odd);
}

NRG_INLINE void v_nt_fence(void) { _mm_sfence(); }

/* ---- what the activations need ---- */

NRG_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
NRG_INLINE vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
NRG_INLINE vf v_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
NRG_INLINE vf v_copysign(vf a, vf sign)
{
    const __m256 mask = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(mask, a), _mm256_and_ps(mask, sign));
}
NRG_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
NRG_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
NRG_INLINE vf v_relu(vf a) { return v_max(v_zero(), a); }

typedef __m256 vm;

NRG_INLINE vm v_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
NRG_INLINE vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
/* Lanes with a sign: VBLENDVPS looks at nothing else. */
NRG_INLINE vm v_negative(vf a) { return a; }
NRG_INLINE vf v_mul_unless_positive(vf a, vf b) { return v_select(v_lt(v_zero(), a), a, v_mul(a, b)); }
NRG_INLINE vf v_mirror(vf a, vf x) { return v_select(v_negative(x), a, v_sub(v_set1(1), a)); }
NRG_INLINE vf v_part_of(vf t, vf d) { return v_div(t, d); }

NRG_INLINE vf v_least_magnitude(vf c, vf x) { return v_min(c, v_abs(x)); }

/* n from the lower bits of z = 1.5·2^23 + n, into the exponent of s. */
NRG_INLINE vf v_scale2(vf s, vf z)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(s), _mm256_slli_epi32(_mm256_castps_si256(z), 23)));
}

/* ---- doubles: half as many a vector ---- */

typedef __m256d vd;

NRG_INLINE vd vd_zero(void) { return _mm256_setzero_pd(); }
NRG_INLINE vd vd_set1(double d) { return _mm256_set1_pd(d); }
NRG_INLINE vd vd_ld(const double *p) { return _mm256_loadu_pd(p); }
NRG_INLINE void vd_st(double *p, vd a) { _mm256_storeu_pd(p, a); }
NRG_INLINE vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
NRG_INLINE vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
NRG_INLINE vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
NRG_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }

NRG_INLINE vd vd_div(vd a, vd b) { return _mm256_div_pd(a, b); }
NRG_INLINE vd vd_sqrt(vd a) { return _mm256_sqrt_pd(a); }
NRG_INLINE vd vd_or(vd a, vd b) { return _mm256_or_pd(a, b); }
/* a, or 0 where it is not above 0. */
NRG_INLINE vd vd_above_0(vd a) { return _mm256_max_pd(a, _mm256_setzero_pd()); }

/* 0 where a <= b; elsewhere, and where one is a NaN, a NaN. */
NRG_INLINE vd vd_unless_le(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_NLE_UQ); }

/* Of such: whether one is not 0. */
NRG_INLINE int vd_any(vd a) { return _mm256_movemask_pd(a) != 0; }

/* Straight from memory; see src/avx512/vec.h. */
NRG_INLINE vd vd_ld_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }

/* The lower and the upper half of a vector of floats, and back, rounded. */
NRG_INLINE vd vd_low(vf a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
NRG_INLINE vd vd_high(vf a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }
/* By way of memory: VCVTPS2PD takes the shuffle port for what is in a register, and VEXTRACTF128 once more. */
NRG_INLINE void vd_both(vf a, vd *low, vd *high)
{
    float some[VN];
    v_st_f32(some, a);
    __asm__("" : "+m"(some));
    *low = vd_ld_f32(some);
    *high = vd_ld_f32(some + VN / 2);
}
NRG_INLINE vf v_from_vd(vd low, vd high) { return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)); }

/* ---- reductions: eight lanes of double, folded by halves ---- */

typedef struct vd8 {
    vd v[2];
} vd8;

NRG_INLINE double vd8_sum(const vd8 *s)
{
    __m256d four = _mm256_add_pd(s->v[0], s->v[1]);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The same for eight rows, four side by side. */
NRG_INLINE void vd8_sum_rows(const vd8 s[8], double sums[8])
{
    NRG_UNROLL
    for (int i = 0; i < 8; i += 4) {
        __m256d d[4];
        NRG_UNROLL
        for (int j = 0; j < 4; j++)
            d[j] = _mm256_add_pd(s[i + j].v[0], s[i + j].v[1]);
        __m256d a = _mm256_add_pd(_mm256_permute2f128_pd(d[0], d[2], 0x20), _mm256_permute2f128_pd(d[0], d[2], 0x31));
        __m256d b = _mm256_add_pd(_mm256_permute2f128_pd(d[1], d[3], 0x20), _mm256_permute2f128_pd(d[1], d[3], 0x31));
        _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)));
    }
}

/* The lanes of a vector of floats, folded by halves. */
NRG_INLINE float v_fold(vf a)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The same for eight rows. */
#define V_FOLD_ROWS(name, OP)                                                                                                    \
    NRG_INLINE vf name(const vf rows[VN])                                                                                        \
    {                                                                                                                            \
        __m256 four[4], two[2];                                                                                                  \
        NRG_UNROLL                                                                                                               \
        for (int i = 0; i < 4; i++) { /* rows i and i + 4, a half each */                                                        \
            __m256 a = rows[i], b = rows[i + 4];                                                                                 \
            four[i] = OP(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));                                \
        }                                                                                                                        \
        NRG_UNROLL                                                                                                               \
        for (int i = 0; i < 2; i++) {                                                                                            \
            __m256d a = _mm256_castps_pd(four[2 * i]), b = _mm256_castps_pd(four[2 * i + 1]);                                    \
            two[i] = OP(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));                 \
        }                                                                                                                        \
        return OP(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xdd));                             \
    }
V_FOLD_ROWS(v_fold_rows, v_add)

/* ---- pairs of lanes, and quarter turns ---- */

NRG_INLINE vf v_swap_pairs(vf a) { return _mm256_permute_ps(a, 0xb1); }
NRG_INLINE vf v_twice_low(vf a) { return _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)); }
NRG_INLINE vf v_twice_high(vf a) { return _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7)); }

/* VBLENDVPD and the xor look at the sign alone, where the shifts bring the bits of n. */
NRG_INLINE void vd_quarter_turns(vd *cosine, vd *sine, vd z)
{
    const __m256i n = _mm256_castpd_si256(z);
    const __m256d sign = _mm256_set1_pd(-0.0), odd = _mm256_castsi256_pd(_mm256_slli_epi64(n, 63));
    vd c = _mm256_blendv_pd(*cosine, *sine, odd), s = _mm256_blendv_pd(*sine, *cosine, odd);
    __m256i next = _mm256_add_epi64(n, _mm256_set1_epi64x(1));
    *cosine = _mm256_xor_pd(c, _mm256_and_pd(_mm256_castsi256_pd(_mm256_slli_epi64(next, 62)), sign));
    *sine = _mm256_xor_pd(s, _mm256_and_pd(_mm256_castsi256_pd(_mm256_slli_epi64(n, 62)), sign));
}

NRG_INLINE vf v_even(vf a, vf b)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}
NRG_INLINE vf v_odd(vf a, vf b)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}
NRG_INLINE vf v_zip_low(vf even, vf odd)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(even, odd), _mm256_unpackhi_ps(even, odd), 0x20);
}
NRG_INLINE vf v_zip_high(vf even, vf odd)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(even, odd), _mm256_unpackhi_ps(even, odd), 0x31);
}

/* ---- to bytes and back: 32 elements, V_BYTES vectors ---- */

enum { V_BYTES = 32 / VN };

/* The larger of m and |a|, where m has no sign; a NaN is larger than any number. */
NRG_INLINE vf v_max_abs(vf m, vf a)
{
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(m), _mm256_castps_si256(v_abs(a))));
}
/* The largest lanes of VN such, side by side. */
V_FOLD_ROWS(v_fold_max_rows, v_max_abs)
/* The largest lane of such. */
NRG_INLINE float v_fold_max(vf m)
{
    __m256i a = _mm256_castps_si256(m);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1))));
}
/* Rounded to nearest, ties to even. */
NRG_INLINE void v_st_bytes(int8_t *p, const vf v[V_BYTES])
{
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    __m256i bytes = _mm256_packs_epi16(low, high); /* by fours, those of the lower halves first */
    _mm256_storeu_si256((__m256i *)p, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}
NRG_INLINE void v_ld_bytes(vf v[V_BYTES], const int8_t *p)
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i++)
        v[i] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + i * VN))));
}

#endif
