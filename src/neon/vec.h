/* Every Advanced SIMD intrinsic of this path: 4 floats a vector, ARMv8.0-A without extensions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NEON_VEC_H
#define NRG_NEON_VEC_H

#include <arm_neon.h>

#define V_BYTES_WRAP 1

#include "../template/vec.h"

#define NRG_PATH neon

enum {
    VN = 4,
    V_SUM1 = 4, /* 8 would fill the lanes at once, and spill seven of them where elements are 16-bit */
    V_SUM2 = 4, /* 32 registers: 32 lanes of two sums would take them all */
    V_SUM4 = 2, /* and where four sums do */
    V_APPLY = 4,
    V_FAST1 = 16, /* vectors of the 64 lanes of the fast sums at once; where there are two sums, half of them are all registers */
    V_FAST2 = 8,
    V_FAST_HALF = 8, /* of 16-bit elements that become outputs: 16 of bf16 and what rounds them do not fit the registers */
    V_FAST_ANY = 4,  /* in the loops that know all options: fewer are less code */
    V_ACT = 4,
    V_ACT_SIDE = V_ACT,
    V_SCALE_KEEPS_NAN = 0,
    V_ROPE = 8, /* vectors that a rotation takes at once, with as many of cosines and of sines */
};

typedef float32x4_t vf;

NRG_INLINE vf v_hold(vf a)
{
    __asm__("" : "+w"(a));
    return a;
}
NRG_INLINE vf v_zero(void) { return vdupq_n_f32(0); }
NRG_INLINE vf v_set1(float f) { return vdupq_n_f32(f); }
NRG_INLINE vf v_constant(float f) { return v_set1(f); }
NRG_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
NRG_INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
NRG_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
NRG_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
NRG_INLINE vf v_fms(vf a, vf b, vf c) { return vfmaq_f32(vnegq_f32(c), a, b); }

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p) { return vld1q_f32(p); }
NRG_INLINE void v_st_f32(float *p, vf a) { vst1q_f32(p, a); }

/* Arm cores see a streaming write by themselves and stop allocating lines for it; STNP is a hint that most of them ignore. */
NRG_INLINE void v_nt_f32(float *p, vf a) { v_st_f32(p, a); }
NRG_INLINE void v_nt_16(void *p, const void *from) { memcpy(p, from, 16); }
NRG_INLINE void v_nt_4(void *p, const void *from) { memcpy(p, from, 4); }

/* ---- 16-bit elements, as they are in memory ---- */

typedef uint16x4_t vh;

NRG_INLINE vh v_ld_half(const uint16_t *p) { return vld1_u16(p); }
NRG_INLINE void v_st_half(uint16_t *p, vh h) { vst1_u16(p, h); }
#include "../template/vec_tails.h"
NRG_INLINE void v_nt_half(uint16_t *p, vh h) { v_st_half(p, h); }

/* f16: FCVTL and FCVTN are part of ARMv8.0-A. */
NRG_INLINE vf v_from_f16(vh h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
NRG_INLINE vh v_to_f16(vf a) { return vreinterpret_u16_f16(vcvt_f16_f32(a)); }

/* bf16 */
NRG_INLINE vf v_from_bf16(vh h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
NRG_INLINE vh v_to_bf16(vf a)
{
    uint32x4_t u = vreinterpretq_u32_f32(a);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    rounded = vbslq_u32(vceqq_f32(a, a), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
    return vshrn_n_u32(rounded, 16);
}

/* bf16 by pairs: see src/avx2/vec.h. Shifts that insert put upper and lower halves together, and URHADD is the rounded mean. */
typedef uint16x8_t vp;

NRG_INLINE vp v_ld_pair(const uint16_t *p) { return vld1q_u16(p); }
NRG_INLINE void v_st_pair(uint16_t *p, vp h) { vst1q_u16(p, h); }
NRG_INLINE void v_nt_pair(uint16_t *p, vp h) { v_st_pair(p, h); }
NRG_INLINE vf v_even_from_bf16(vp h) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u16(h), 16)); }
NRG_INLINE vf v_odd_from_bf16(vp h)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u16(h), vdupq_n_u32(0xffff0000u)));
}
NRG_INLINE vf v_calm(vf a) { return vbslq_f32(vceqq_f32(a, a), a, vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000))); }
NRG_INLINE vp v_calm_to_bf16(vf even, vf odd)
{
    uint32x4_t e = vreinterpretq_u32_f32(even), o = vreinterpretq_u32_f32(odd);
    uint16x8_t upper = vreinterpretq_u16_u32(vsriq_n_u32(o, e, 16)), lower = vreinterpretq_u16_u32(vsliq_n_u32(e, o, 16));
    uint16x8_t half = vorrq_u16(vandq_u16(upper, vdupq_n_u16(1)), vdupq_n_u16(0x7ffe));
    return vsraq_n_u16(upper, vrhaddq_u16(lower, half), 15);
}
NRG_INLINE vp v_pair_to_bf16(vf even, vf odd) { return v_calm_to_bf16(v_calm(even), v_calm(odd)); }

NRG_INLINE void v_nt_fence(void) {}

/* ---- what the activations need ---- */

NRG_INLINE vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
NRG_INLINE vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
NRG_INLINE vf v_abs(vf a) { return vabsq_f32(a); }
NRG_INLINE vf v_copysign(vf a, vf sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, a); }

/* FMAX and FMIN order the zeros, and give NaN for a NaN on either side. */
NRG_INLINE vf v_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
NRG_INLINE vf v_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
NRG_INLINE vf v_least_magnitude(vf c, vf x) { return v_min(c, v_abs(x)); }

/* The mask is hidden from clang, which makes FMAX of a comparison with 0. That is 0 for -0. */
NRG_INLINE vf v_relu(vf a)
{
    const vf below = v_hold(vreinterpretq_f32_u32(vcltzq_f32(a)));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(below)));
}

typedef uint32x4_t vm;

NRG_INLINE vm v_lt(vf a, vf b) { return vcltq_f32(a, b); }
NRG_INLINE vf v_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
/* Lanes with a sign. */
NRG_INLINE vm v_negative(vf a) { return vcltzq_s32(vreinterpretq_s32_f32(a)); }
NRG_INLINE vf v_mul_unless_positive(vf a, vf b) { return v_select(v_lt(v_zero(), a), a, v_mul(a, b)); }
NRG_INLINE vf v_mirror(vf a, vf x) { return v_select(v_negative(x), a, v_sub(v_set1(1), a)); }
NRG_INLINE vf v_part_of(vf t, vf d) { return v_div(t, d); }

/* n from the lower bits of z = 1.5·2^23 + n, into the exponent of s. */
NRG_INLINE vf v_scale2(vf s, vf z)
{
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(s), vshlq_n_u32(vreinterpretq_u32_f32(z), 23)));
}

/* ---- doubles: half as many a vector ---- */

typedef float64x2_t vd;

NRG_INLINE vd vd_zero(void) { return vdupq_n_f64(0); }
NRG_INLINE vd vd_set1(double d) { return vdupq_n_f64(d); }
NRG_INLINE vd vd_ld(const double *p) { return vld1q_f64(p); }
NRG_INLINE void vd_st(double *p, vd a) { vst1q_f64(p, a); }
NRG_INLINE vd vd_add(vd a, vd b) { return vaddq_f64(a, b); }
NRG_INLINE vd vd_sub(vd a, vd b) { return vsubq_f64(a, b); }
NRG_INLINE vd vd_mul(vd a, vd b) { return vmulq_f64(a, b); }
NRG_INLINE vd vd_fma(vd a, vd b, vd c) { return vfmaq_f64(c, a, b); }

NRG_INLINE vd vd_div(vd a, vd b) { return vdivq_f64(a, b); }
NRG_INLINE vd vd_sqrt(vd a) { return vsqrtq_f64(a); }
NRG_INLINE vd vd_or(vd a, vd b) { return vreinterpretq_f64_u64(vorrq_u64(vreinterpretq_u64_f64(a), vreinterpretq_u64_f64(b))); }
/* a, or 0 where it is not above 0. */
NRG_INLINE vd vd_above_0(vd a)
{
    return vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(a), vcgtq_f64(a, vdupq_n_f64(0))));
}

/* 0 where a <= b; elsewhere, and where one is a NaN, a NaN. */
NRG_INLINE vd vd_unless_le(vd a, vd b) { return vreinterpretq_f64_u32(vmvnq_u32(vreinterpretq_u32_u64(vcleq_f64(a, b)))); }

/* Of such: whether one is not 0. */
NRG_INLINE int vd_any(vd a)
{
    const uint64x2_t bits = vreinterpretq_u64_f64(a);
    return (vgetq_lane_u64(bits, 0) | vgetq_lane_u64(bits, 1)) != 0;
}

NRG_INLINE vd vd_ld_f32(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }

/* The lower and the upper half of a vector of floats, and back, rounded. */
NRG_INLINE vd vd_low(vf a) { return vcvt_f64_f32(vget_low_f32(a)); }
NRG_INLINE vd vd_high(vf a) { return vcvt_high_f64_f32(a); }
NRG_INLINE void vd_both(vf a, vd *low, vd *high)
{
    *low = vd_low(a);
    *high = vd_high(a);
}
NRG_INLINE vf v_from_vd(vd low, vd high) { return vcvt_high_f32_f64(vcvt_f32_f64(low), high); }

/* ---- reductions: eight lanes of double, folded by halves ---- */

typedef struct vd8 {
    vd v[4];
} vd8;

NRG_INLINE double vd8_sum(const vd8 *s)
{
    vd two = vaddq_f64(vaddq_f64(s->v[0], s->v[2]), vaddq_f64(s->v[1], s->v[3]));
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

NRG_INLINE void vd8_sum_rows(const vd8 s[8], double sums[8])
{
    for (int row = 0; row < 8; row++)
        sums[row] = vd8_sum(&s[row]);
}

/* The lanes of a vector of floats, folded by halves. */
NRG_INLINE float v_fold(vf a)
{
    float32x2_t two = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* The same for four rows. */
NRG_INLINE vf v_fold_rows(const vf rows[VN])
{
    vf two[2];
    NRG_UNROLL
    for (int i = 0; i < 2; i++) {
        const vf a = rows[2 * i], b = rows[2 * i + 1];
        two[i] = vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
    }
    return vpaddq_f32(two[0], two[1]);
}

/* ---- pairs of lanes, and quarter turns ---- */

NRG_INLINE vf v_swap_pairs(vf a) { return vrev64q_f32(a); }
NRG_INLINE vf v_twice_low(vf a) { return vzip1q_f32(a, a); }
NRG_INLINE vf v_twice_high(vf a) { return vzip2q_f32(a, a); }

NRG_INLINE void vd_quarter_turns(vd *cosine, vd *sine, vd z)
{
    const uint64x2_t n = vreinterpretq_u64_f64(z), one = vdupq_n_u64(1), sign = vshlq_n_u64(one, 63), odd = vtstq_u64(n, one);
    vd c = vbslq_f64(odd, *sine, *cosine), s = vbslq_f64(odd, *cosine, *sine);
    uint64x2_t c_sign = vandq_u64(vshlq_n_u64(vaddq_u64(n, one), 62), sign), s_sign = vandq_u64(vshlq_n_u64(n, 62), sign);
    *cosine = vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(c), c_sign));
    *sine = vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(s), s_sign));
}

NRG_INLINE vf v_even(vf a, vf b) { return vuzp1q_f32(a, b); }
NRG_INLINE vf v_odd(vf a, vf b) { return vuzp2q_f32(a, b); }
NRG_INLINE vf v_zip_low(vf even, vf odd) { return vzip1q_f32(even, odd); }
NRG_INLINE vf v_zip_high(vf even, vf odd) { return vzip2q_f32(even, odd); }

/* ---- to bytes and back: 32 elements, V_BYTES vectors ---- */

enum { V_BYTES = 32 / VN };

/* The larger of m and |a|, where m has no sign; a NaN is larger than any number. */
NRG_INLINE vf v_max_abs(vf m, vf a)
{
    return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(m), vreinterpretq_u32_f32(vabsq_f32(a))));
}
/* The largest lanes of VN such, side by side. */
NRG_INLINE vf v_fold_max_rows(const vf rows[VN])
{
    const uint32x4_t low = vpmaxq_u32(vreinterpretq_u32_f32(rows[0]), vreinterpretq_u32_f32(rows[1]));
    const uint32x4_t high = vpmaxq_u32(vreinterpretq_u32_f32(rows[2]), vreinterpretq_u32_f32(rows[3]));
    return vreinterpretq_f32_u32(vpmaxq_u32(low, high));
}
/* The largest lane of such. */
NRG_INLINE float v_fold_max(vf m)
{
    return vget_lane_f32(vreinterpret_f32_u32(vdup_n_u32(vmaxvq_u32(vreinterpretq_u32_f32(m)))), 0);
}
/* Rounded to nearest, ties to even. */
NRG_INLINE void v_st_bytes(int8_t *p, const vf v[V_BYTES])
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i += 4) {
        int16x8_t low = vmovn_high_s32(vmovn_s32(vcvtnq_s32_f32(v[i])), vcvtnq_s32_f32(v[i + 1]));
        int16x8_t high = vmovn_high_s32(vmovn_s32(vcvtnq_s32_f32(v[i + 2])), vcvtnq_s32_f32(v[i + 3]));
        vst1q_s8(p + i * VN, vmovn_high_s16(vmovn_s16(low), high));
    }
}
NRG_INLINE void v_ld_bytes(vf v[V_BYTES], const int8_t *p)
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i += 2) {
        int16x8_t both = vmovl_s8(vld1_s8(p + i * VN));
        v[i] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(both)));
        v[i + 1] = vcvtq_f32_s32(vmovl_high_s16(both));
    }
}

#endif
