/* The first n elements of a vector by way of memory, n from 1 to VN, for paths without masked loads and stores. A path's vec.h
 * includes this after the loads and stores of whole vectors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_VEC_TAILS_H
#define NRG_TEMPLATE_VEC_TAILS_H

NRG_INLINE vf v_ldn_f32(const float *p, size_t n)
{
    if (n == VN)
        return v_ld_f32(p);
    float part[VN] = {0};
    memcpy(part, p, n * sizeof *p);
    return v_ld_f32(part);
}
NRG_INLINE void v_stn_f32(float *p, vf a, size_t n)
{
    if (n == VN) {
        v_st_f32(p, a);
        return;
    }
    float part[VN];
    v_st_f32(part, a);
    memcpy(p, part, n * sizeof *p);
}
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

#endif
