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

#define NRG_PATH avx512

enum {
    VN = 16,         /* floats in a vector */
    V_SUM1 = 4,      /* vectors a summing step works on at once */
    V_SUM2 = 4,      /* the same where two sums run side by side */
    V_SUM4 = 2,      /* and where four sums do */
    V_APPLY = 4,     /* vectors an element-wise step works on at once */
    V_FAST1 = 4,     /* vectors of the 64 lanes of the fast sums at once */
    V_FAST2 = 4,     /* the same where two sums run side by side */
    V_FAST_HALF = 4, /* of 16-bit elements that become outputs */
    V_FAST_ANY = 2,  /* and in the loops that know all options: fewer are less code */
    V_ACT = 4,       /* vectors in a step of an activation */
    V_ACT_SIDE = 2,  /* and side by side: sigmoid makes 4.4 elements/ns so, 4.1 by fours, 4.0 one after the other */
    V_SCALE_KEEPS_NAN = 1,
    V_ROPE = 8, /* vectors that a rotation takes at once, with as many of cosines and of sines */
};

typedef __m512 vf;

NRG_INLINE vf v_hold(vf a)
{
#ifndef NRG_TEST_EMULATED_IMMINTRIN_H /* whose vectors are in no register */
    __asm__("" : "+v"(a));
#endif
    return a;
}
NRG_INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
NRG_INLINE vf v_set1(float f) { return _mm512_set1_ps(f); }
NRG_INLINE vf v_constant(float f) { return v_set1(f); }
NRG_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
NRG_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
NRG_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
NRG_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
NRG_INLINE vf v_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }

/* ---- the first n lanes, n from 1 to VN; the others are 0 ---- */

NRG_INLINE __mmask16 v_mask(size_t n) { return (__mmask16)((1u << n) - 1u); }

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

/* From memory to p past the cache: 16 bytes to a multiple of 16, 4 to one of 4. */
NRG_INLINE void v_nt_16(void *p, const void *from) { _mm_stream_si128((__m128i *)p, _mm_loadu_si128((const __m128i *)from)); }
NRG_INLINE void v_nt_4(void *p, const void *from)
{
    int bits;
    memcpy(&bits, from, sizeof bits);
    _mm_stream_si32((int *)p, bits);
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
NRG_INLINE vf v_from_bf16(vh h)
{
    const __m512i up =
        _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, up, _mm512_castsi256_si512(h)));
}
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

/* bf16 by pairs: 2·VN elements as they are in memory, and as floats those with even numbers apart from those with odd ones; see
 * src/avx2/vec.h. */
typedef __m512i vp;

NRG_INLINE vp v_ld_pair(const uint16_t *p) { return _mm512_loadu_si512(p); }
NRG_INLINE void v_st_pair(uint16_t *p, vp h) { _mm512_storeu_si512(p, h); }
NRG_INLINE void v_nt_pair(uint16_t *p, vp h)
{
    if (((uintptr_t)p & 63) == 0) {
        _mm512_stream_si512((__m512i *)p, h);
        return;
    }
    _mm_stream_si128((__m128i *)p, _mm512_castsi512_si128(h));
    _mm_stream_si128((__m128i *)p + 1, _mm512_extracti32x4_epi32(h, 1));
    _mm_stream_si128((__m128i *)p + 2, _mm512_extracti32x4_epi32(h, 2));
    _mm_stream_si128((__m128i *)p + 3, _mm512_extracti32x4_epi32(h, 3));
}
NRG_INLINE vf v_even_from_bf16(vp h) { return _mm512_castsi512_ps(_mm512_slli_epi32(h, 16)); }
NRG_INLINE vf v_odd_from_bf16(vp h) { return _mm512_castsi512_ps(_mm512_and_si512(h, _mm512_set1_epi32((int)0xffff0000))); }
/* What must not be rounded is no NaN any more whose lower half matters. */
NRG_INLINE vf v_calm(vf a)
{
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), nan);
}
/* The halves change places in one VPSHUFB under a mask each, where a shift and a blend were two instructions. */
NRG_INLINE vp v_calm_to_bf16(vf even, vf odd)
{
    const __m512i down = _mm512_set4_epi32(0x0f0e0f0e, 0x0b0a0b0a, 0x07060706, 0x03020302);
    const __m512i up = _mm512_set4_epi32(0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100);
    __m512i e = _mm512_castps_si512(even), o = _mm512_castps_si512(odd);
    __m512i upper = _mm512_mask_shuffle_epi8(o, 0x3333333333333333, e, down);
    __m512i lower = _mm512_mask_shuffle_epi8(e, 0xcccccccccccccccc, o, up);
    /* upwards from (~upper & 1) | 0x8000 on: a comparison instead of the mean, which takes an instruction more */
    __m512i least = _mm512_ternarylogic_epi32(upper, _mm512_set1_epi16(1), _mm512_set1_epi16((short)0x8000), 0xae);
    return _mm512_mask_add_epi16(upper, _mm512_cmpge_epu16_mask(lower, least), upper, _mm512_set1_epi16(1));
}
NRG_INLINE vp v_pair_to_bf16(vf even, vf odd)
{
    if (__builtin_expect(_mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q), 0)) {
        even = v_calm(even);
        odd = v_calm(odd);
    }
    return v_calm_to_bf16(even, odd);
}

/* Before a thread says that its rows are done: streamed lines may still be on their way. */
NRG_INLINE void v_nt_fence(void) { _mm_sfence(); }

/* ---- what the activations need ---- */

NRG_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
NRG_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
NRG_INLINE vf v_abs(vf a) { return _mm512_abs_ps(a); }
NRG_INLINE vf v_copysign(vf a, vf sign)
{
    /* bit by bit: the mask's bit chooses a or sign */
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(mask, _mm512_castps_si512(a), _mm512_castps_si512(sign), 0xca));
}
NRG_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
NRG_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
NRG_INLINE vf v_relu(vf a) { return v_max(v_zero(), a); }

typedef __mmask16 vm;

NRG_INLINE vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
NRG_INLINE vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
/* Lanes with a sign. */
NRG_INLINE vm v_negative(vf a) { return _mm512_movepi32_mask(_mm512_castps_si512(a)); }

/* min(|x|, c) in one instruction, which takes c where x is NaN. */
NRG_INLINE vf v_least_magnitude(vf c, vf x) { return _mm512_range_ps(x, c, 0xa); }

NRG_INLINE vf v_mul_unless_positive(vf a, vf b)
{
    return _mm512_mask_mul_ps(a, _mm512_cmp_ps_mask(v_zero(), a, _CMP_NLT_UQ), a, b);
}
/* Under a mask: 0.92 × the time of a slope of SiLU with VPMOVD2M and a blend. */
NRG_INLINE vf v_mirror(vf a, vf x)
{
    return _mm512_mask_sub_ps(a, _mm512_testn_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)), v_set1(1), a);
}
/* The quotient that v_div has, whatever CPU the estimate is of: with all r that an estimate within 2^-14 can lead to, for all t.
 */
NRG_INLINE vf v_part_of(vf t, vf d)
{
    vf r = _mm512_rcp14_ps(d);
    r = v_fma(v_fnma(d, r, v_set1(1)), r, r);
    const vf q = v_mul(t, r);
    return v_fma(v_fnma(d, q, t), r, q);
}

/* 2^n·s for z = 1.5·2^23 + n, where activations have n at hand. With a shift and an addition to the exponent, and VANDPS and
 * VMINPS for the magnitude, SiLU takes 1.14 times as long: shifts have one port. */
NRG_INLINE vf v_scale2(vf s, vf z) { return _mm512_scalef_ps(s, _mm512_sub_ps(z, _mm512_set1_ps(0x1.8p23f))); }

/* ---- doubles: half as many a vector ---- */

typedef __m512d vd;

NRG_INLINE vd vd_zero(void) { return _mm512_setzero_pd(); }
NRG_INLINE vd vd_set1(double d) { return _mm512_set1_pd(d); }
NRG_INLINE vd vd_ld(const double *p) { return _mm512_loadu_pd(p); }
NRG_INLINE void vd_st(double *p, vd a) { _mm512_storeu_pd(p, a); }
NRG_INLINE vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
NRG_INLINE vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
NRG_INLINE vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
NRG_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }

NRG_INLINE vd vd_div(vd a, vd b) { return _mm512_div_pd(a, b); }
NRG_INLINE vd vd_sqrt(vd a) { return _mm512_sqrt_pd(a); }
NRG_INLINE vd vd_or(vd a, vd b) { return _mm512_or_pd(a, b); }
/* a, or 0 where it is not above 0. */
NRG_INLINE vd vd_above_0(vd a) { return _mm512_max_pd(a, _mm512_setzero_pd()); }

/* 0 where a <= b; elsewhere, and where one is a NaN, a NaN. */
NRG_INLINE vd vd_unless_le(vd a, vd b)
{
    return _mm512_castsi512_pd(_mm512_maskz_set1_epi64(_mm512_cmp_pd_mask(a, b, _CMP_NLE_UQ), -1));
}

/* Of such: whether one is not 0. */
NRG_INLINE int vd_any(vd a) { return _mm512_test_epi64_mask(_mm512_castpd_si512(a), _mm512_castpd_si512(a)) != 0; }

/* Straight from memory: the upper half costs no shuffle. 1.08 × for a whole rms at 1×4096, 1.16 × with AVX2. */
NRG_INLINE vd vd_ld_f32(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }

/* The lower and the upper half of a vector of floats, and back, rounded. */
NRG_INLINE vd vd_low(vf a) { return _mm512_cvtps_pd(_mm512_castps512_ps256(a)); }
NRG_INLINE vd vd_high(vf a) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)); }
NRG_INLINE void vd_both(vf a, vd *low, vd *high)
{
    *low = vd_low(a);
    *high = vd_high(a);
}
NRG_INLINE vf v_from_vd(vd low, vd high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

/* ---- reductions: eight lanes of double, folded by halves ---- */

typedef struct vd8 {
    vd v[1];
} vd8;

NRG_INLINE double vd8_sum(const vd8 *s)
{
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(s->v[0]), _mm512_extractf64x4_pd(s->v[0], 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The same for eight rows: 7 additions and 15 shuffles in all instead of 8 times 3 of each. */
NRG_INLINE void vd8_sum_rows(const vd8 s[8], double sums[8])
{
    __m512d e[4];
    NRG_UNROLL
    for (int i = 0; i < 4; i++) {
        __m512d a = s[2 * i].v[0], b = s[2 * i + 1].v[0];
        e[i] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
    }
    __m512d low = _mm512_add_pd(_mm512_shuffle_f64x2(e[0], e[1], 0x88), _mm512_shuffle_f64x2(e[0], e[1], 0xdd));
    __m512d high = _mm512_add_pd(_mm512_shuffle_f64x2(e[2], e[3], 0x88), _mm512_shuffle_f64x2(e[2], e[3], 0xdd));
    __m512d mixed = _mm512_add_pd(_mm512_unpacklo_pd(low, high), _mm512_unpackhi_pd(low, high)); /* rows 0 4 1 5 2 6 3 7 */
    _mm512_storeu_pd(sums, _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), mixed));
}

/* The lanes of a vector of floats, folded by halves. */
NRG_INLINE float v_fold(vf a)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The same for sixteen rows: 15 additions and 31 shuffles in all. */
#define V_FOLD_ROWS(name, OP)                                                                                                    \
    NRG_INLINE vf name(const vf rows[VN])                                                                                        \
    {                                                                                                                            \
        __m512 eight[8], four[4], two[2];                                                                                        \
        NRG_UNROLL                                                                                                               \
        for (int i = 0; i < 8; i++) {                                                                                            \
            __m512 a = rows[2 * i], b = rows[2 * i + 1];                                                                         \
            eight[i] = OP(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));                                   \
        }                                                                                                                        \
        NRG_UNROLL                                                                                                               \
        for (int i = 0; i < 4; i++) {                                                                                            \
            __m512 a = eight[2 * i], b = eight[2 * i + 1];                                                                       \
            four[i] = OP(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));                                    \
        }                                                                                                                        \
        NRG_UNROLL                                                                                                               \
        for (int i = 0; i < 2; i++) { /* quarter q: two lanes of row 8·i + q, then two of row 8·i + q + 4 */                   \
            __m512d a = _mm512_castps_pd(four[2 * i]), b = _mm512_castps_pd(four[2 * i + 1]);                                    \
            two[i] = OP(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));                 \
        }                                                                                                                        \
        __m512 mixed = OP(_mm512_shuffle_ps(two[0], two[1], 0x88), _mm512_shuffle_ps(two[0], two[1], 0xdd));                     \
        return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), mixed);            \
    }
V_FOLD_ROWS(v_fold_rows, v_add)

/* ---- pairs of lanes, and quarter turns ---- */

NRG_INLINE vf v_swap_pairs(vf a) { return _mm512_permute_ps(a, 0xb1); }
NRG_INLINE vf v_twice_low(vf a)
{
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), a);
}
NRG_INLINE vf v_twice_high(vf a)
{
    return _mm512_permutexvar_ps(_mm512_setr_epi32(8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15), a);
}

NRG_INLINE void vd_quarter_turns(vd *cosine, vd *sine, vd z)
{
    const __m512i n = _mm512_castpd_si512(z), sign = _mm512_set1_epi64(INT64_MIN);
    const __mmask8 odd = _mm512_test_epi64_mask(n, _mm512_set1_epi64(1));
    vd c = _mm512_mask_blend_pd(odd, *cosine, *sine), s = _mm512_mask_blend_pd(odd, *sine, *cosine);
    __m512i c_sign = _mm512_and_si512(_mm512_slli_epi64(_mm512_add_epi64(n, _mm512_set1_epi64(1)), 62), sign);
    __m512i s_sign = _mm512_and_si512(_mm512_slli_epi64(n, 62), sign);
    *cosine = _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(c), c_sign));
    *sine = _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(s), s_sign));
}

NRG_INLINE vf v_even(vf a, vf b)
{
    return _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b);
}
NRG_INLINE vf v_odd(vf a, vf b)
{
    return _mm512_permutex2var_ps(a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b);
}
NRG_INLINE vf v_zip_low(vf even, vf odd)
{
    return _mm512_permutex2var_ps(even, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), odd);
}
NRG_INLINE vf v_zip_high(vf even, vf odd)
{
    return _mm512_permutex2var_ps(even, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), odd);
}

/* ---- to bytes and back: 32 elements, V_BYTES vectors ---- */

enum { V_BYTES = 32 / VN };

/* The larger of m and |a|, where m has no sign; a NaN is larger than any number. */
NRG_INLINE vf v_max_abs(vf m, vf a)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(m), _mm512_castps_si512(_mm512_abs_ps(a))));
}
/* The largest lanes of VN such, side by side. */
V_FOLD_ROWS(v_fold_max_rows, v_max_abs)
/* The largest lane of such. */
NRG_INLINE float v_fold_max(vf m)
{
    __m512i a = _mm512_castps_si512(m);
    __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(a), _mm512_extracti32x8_epi32(a, 1));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1))));
}
/* Rounded to nearest, ties to even. Three shuffles and one store: by VPMOVDB, which is two of them each, a row of 4096 took 788
 * ns and not 696 (Granite Rapids). */
NRG_INLINE void v_st_bytes(int8_t *p, const vf v[V_BYTES])
{
    const __m512i words = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
    const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(_mm512_permutexvar_epi32(fours, _mm512_packs_epi16(words, words))));
}
NRG_INLINE void v_ld_bytes(vf v[V_BYTES], const int8_t *p)
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i++)
        v[i] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p + i)));
}

#endif
