/* Every Advanced SIMD intrinsic of this path: 4 floats a vector, ARMv8.0-A without extensions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NEON_VEC_H
#define NRG_NEON_VEC_H

#include <arm_neon.h>

#include "../template/vec.h"

enum {
    VN = 4,
    V_SUM1 = 16,
    V_SUM2 = 8, /* 32 registers: two sums of 16 accumulators would take them all */
    V_APPLY = 4,
};

typedef float32x4_t vf;

NRG_INLINE vf v_zero(void) { return vdupq_n_f32(0); }
NRG_INLINE vf v_set1(float f) { return vdupq_n_f32(f); }
NRG_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
NRG_INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
NRG_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
NRG_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
NRG_INLINE vf v_fms(vf a, vf b, vf c) { return vfmaq_f32(vnegq_f32(c), a, b); }

/* ---- the first n lanes, n from 1 to VN; the others are 0 ---- */

NRG_INLINE vf v_first(vf a, size_t n)
{
    static const uint32_t index[4] = {0, 1, 2, 3};
    uint32x4_t keep = vcltq_u32(vld1q_u32(index), vdupq_n_u32((uint32_t)n));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), keep));
}

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p) { return vld1q_f32(p); }
NRG_INLINE vf v_ldn_f32(const float *p, size_t n)
{
    if (n == VN)
        return vld1q_f32(p);
    float part[4] = {0};
    memcpy(part, p, n * sizeof *p);
    return vld1q_f32(part);
}
NRG_INLINE void v_st_f32(float *p, vf a) { vst1q_f32(p, a); }
NRG_INLINE void v_stn_f32(float *p, vf a, size_t n)
{
    if (n == VN) {
        vst1q_f32(p, a);
        return;
    }
    float part[4];
    vst1q_f32(part, a);
    memcpy(p, part, n * sizeof *p);
}

/* Arm cores see a streaming write by themselves and stop allocating lines for it; STNP is a hint that most of them ignore. */
NRG_INLINE void v_nt_f32(float *p, vf a) { v_st_f32(p, a); }

/* ---- 16-bit elements, as they are in memory ---- */

typedef uint16x4_t vh;

NRG_INLINE vh v_ld_half(const uint16_t *p) { return vld1_u16(p); }
NRG_INLINE void v_st_half(uint16_t *p, vh h) { vst1_u16(p, h); }
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

NRG_INLINE void v_nt_fence(void) {}

/* ---- reductions ---- */

/* Largest magnitude by bit pattern, lane by lane: a NaN is the largest of all. */
NRG_INLINE vf v_max_magnitude(vf a, vf b)
{
    uint32x4_t magnitude = vandq_u32(vreinterpretq_u32_f32(b), vdupq_n_u32(0x7fffffff));
    return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a), magnitude));
}
NRG_INLINE uint32_t v_max_lane(vf a) { return vmaxvq_u32(vreinterpretq_u32_f32(a)); }

typedef struct v16 {
    vf v[4];
} v16;

NRG_INLINE float64x2_t v_low_pd(vf a) { return vcvt_f64_f32(vget_low_f32(a)); }
NRG_INLINE float64x2_t v_high_pd(vf a) { return vcvt_high_f64_f32(a); }

/* Eight doubles (two a vector) folded by halves. */
NRG_INLINE double v_fold_pd(const float64x2_t eight[4])
{
    float64x2_t two = vaddq_f64(vaddq_f64(eight[0], eight[2]), vaddq_f64(eight[1], eight[3]));
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

/* Σ (s + c) over 16 lanes in double, folded by halves. */
NRG_INLINE double v_sum16(const v16 *s, const v16 *c)
{
    float64x2_t eight[4];
    NRG_UNROLL
    for (int i = 0; i < 2; i++) {
        eight[2 * i] =
            vaddq_f64(vaddq_f64(v_low_pd(s->v[i]), v_low_pd(c->v[i])), vaddq_f64(v_low_pd(s->v[i + 2]), v_low_pd(c->v[i + 2])));
        eight[2 * i + 1] = vaddq_f64(vaddq_f64(v_high_pd(s->v[i]), v_high_pd(c->v[i])),
                                     vaddq_f64(v_high_pd(s->v[i + 2]), v_high_pd(c->v[i + 2])));
    }
    return v_fold_pd(eight);
}

/* The same for eight rows of one block each (c = 0). */
NRG_INLINE void v_sum16_rows(const v16 s[8], double sums[8])
{
    for (int row = 0; row < 8; row++) {
        const vf *v = s[row].v;
        float64x2_t eight[4] = {vaddq_f64(v_low_pd(v[0]), v_low_pd(v[2])), vaddq_f64(v_high_pd(v[0]), v_high_pd(v[2])),
                                vaddq_f64(v_low_pd(v[1]), v_low_pd(v[3])), vaddq_f64(v_high_pd(v[1]), v_high_pd(v[3]))};
        sums[row] = v_fold_pd(eight);
    }
}

#endif
