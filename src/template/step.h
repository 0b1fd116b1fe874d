/* Steps of several vectors, of any dtype: how every template loads and stores.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_STEP_H
#define NRG_TEMPLATE_STEP_H

#include "../internal.h"

/* Vectors in the largest step of a norm, and of all. */
enum {
    FAST_LANES = 64, /* of the fast sums */
    FAST_VECTORS = FAST_LANES / VN,
    NORM_STEP = FAST_VECTORS, /* no other is larger */
    LARGEST_STEP = NORM_STEP > (int)V_ROPE ? NORM_STEP : (int)V_ROPE
};

/* Bytes of n elements that are of dtype D, or f32. */
NRG_INLINE size_t bytes_of(size_t n, nrg_dtype D, int is_f32) { return n * (D == NRG_F32 || is_f32 ? 4 : 2); }

/* ---- vectors of any dtype; D is a constant where it matters ---- */

NRG_INLINE vf from_half(vh h, nrg_dtype D) { return D == NRG_F16 ? v_from_f16(h) : v_from_bf16(h); }
NRG_INLINE vh to_half(vf a, nrg_dtype D) { return D == NRG_F16 ? v_to_f16(a) : v_to_bf16(a); }

NRG_INLINE size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

NRG_INLINE void prefetch_step_ahead(const char *p, int G, size_t size, size_t ahead)
{
    NRG_UNROLL
    for (size_t b = 0; b < (size_t)G * VN * size; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + b + ahead));
}

/* Whether stores go past the cache. */
NRG_INLINE int streams(int stream) { return !V_SMALL && stream; }

/* How rows go past the cache: from their first byte to their last; or the lines alone that one row fills, and what is before and
 * after these with ordinary stores, which may begin anywhere. */
enum { STREAM_ROWS = 1, STREAM_LINES = 2 };

/* Bytes from which on rows go past the cache that leave a line or two in part. Each of these costs 25 to 95 ns: of 16 MB with 16
 * bytes behind a row, rows of 64 floats take 2.6 times as long as with ordinary stores, of 128 1.0 to 1.4 times, and of 64 MB
 * rows of 128 floats 0.55 times (Emerald Rapids). */
enum { STREAM_PART = 512 };

/* How rows of some bytes, `stride` apart, go past the cache; 0: not at all. As rows those that begin at lines, or leave no gap,
 * so that the next row finishes a line, and others that are long. lines: whether the loop has STREAM_LINES, which is better for
 * rows that begin within lines and are not short. */
NRG_INLINE int rows_stream(const char *p, size_t stride, size_t bytes, int lines)
{
    const size_t places = (uintptr_t)p | stride;
    if (V_SMALL || (bytes < STREAM_PART && stride != bytes && (places | bytes) % 64 != 0))
        return 0;
    if (VN >= 8 && lines && bytes >= STREAM_PART && places % 64 != 0)
        return STREAM_LINES;
    return places % 16 == 0 && bytes % 4 == 0 ? STREAM_ROWS : 0;
}

/* Elements before the first that starts a line of o: streaming wants whole ones. */
NRG_INLINE size_t before_line(const char *o, size_t n, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), away = (64 - ((uintptr_t)o & 63)) % 64 / size;
    return away < n ? away : n;
}

NRG_INLINE vf load_whole(const char *p, size_t i, nrg_dtype D)
{
    return D == NRG_F32 ? v_ld_f32((const float *)p + i) : from_half(v_ld_half((const uint16_t *)p + i), D);
}

NRG_INLINE void store_whole(char *p, size_t i, vf v, nrg_dtype D, int stream)
{
    if (D == NRG_F32)
        (streams(stream) ? v_nt_f32 : v_st_f32)((float *)p + i, v);
    else
        (streams(stream) ? v_nt_half : v_st_half)((uint16_t *)p + i, to_half(v, D));
}

/* A vector of elements from i on as doubles: the lower half, and the upper. */
NRG_INLINE void load_doubles(vd v[2], const char *p, size_t i, nrg_dtype D)
{
    if (D == NRG_F32) {
        v[0] = vd_ld_f32((const float *)p + i);
        v[1] = vd_ld_f32((const float *)p + i + VN / 2);
    } else {
        const vf whole = load_whole(p, i, D);
        v[0] = vd_low(whole);
        v[1] = vd_high(whole);
    }
}

NRG_INLINE vf load_part(const char *p, size_t i, size_t n, nrg_dtype D)
{
    return D == NRG_F32 ? v_ldn_f32((const float *)p + i, n) : from_half(v_ldn_half((const uint16_t *)p + i, n), D);
}

/* ---- steps of G vectors, whole; or with G = 1 of the first n lanes of one, n from 1 to VN: one copy of the code for all that
 * does not fill a step. Where n is the constant VN, that one is whole ---- */

NRG_INLINE int is_part(int G, size_t n) { return G == 1 && !(__builtin_constant_p(n == VN) && n == VN); }

/* How many of the VN lanes from element i on exist. */
NRG_INLINE size_t lanes_at(size_t i, size_t end) { return end - i < VN ? end - i : VN; }

/* The first n floats of a vector. A whole one must not go through a mask: what a masked store has written, a load that follows
 * soon waits for until it is in the cache (a gated backward pass, AVX-512: three times as long). */
NRG_INLINE vf load_lanes(const float *p, size_t n) { return n == VN ? v_ld_f32(p) : v_ldn_f32(p, n); }

NRG_INLINE void store_lanes(float *p, vf v, size_t n)
{
    if (n == VN)
        v_st_f32(p, v);
    else
        v_stn_f32(p, v, n);
}

NRG_INLINE void load_step(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (is_part(G, n)) {
        v[0] = load_part(p, i, n, D);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = load_whole(p, i + (size_t)j * VN, D);
}

NRG_INLINE void load_step_or_f32(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D, int is_f32)
{
    if (D == NRG_F32 || is_f32)
        load_step(v, G, p, i, n, NRG_F32);
    else
        load_step(v, G, p, i, n, D);
}

/* The first lanes of a vector past the cache; p is a multiple of 16. An ordinary store into a line that non-temporal stores fill
 * waits for memory: 220 to 250 ns a row (Emerald Rapids). */
static __attribute__((noinline, cold, unused)) void stream_lanes(char *p, const char *lanes, size_t bytes)
{
    size_t i = 0;
    for (; i + 16 <= bytes; i += 16)
        v_nt_16(p + i, lanes + i);
    for (; i + 4 <= bytes; i += 4)
        v_nt_4(p + i, lanes + i);
    if (i < bytes)
        memcpy(p + i, lanes + i, 2);
}

NRG_INLINE void stream_f32_lanes(float *p, vf v, size_t n)
{
    float lanes[VN];
    v_st_f32(lanes, v);
    stream_lanes((char *)p, (const char *)lanes, n * sizeof *p);
}

NRG_INLINE void stream_half_lanes(uint16_t *p, vh h, size_t n)
{
    uint16_t lanes[VN];
    v_st_half(lanes, h);
    stream_lanes((char *)p, (const char *)lanes, n * sizeof *p);
}

/* Past the cache, p a multiple of 16. All vectors are aligned where the first one is: the compiler is told, so that v_nt_f32 need
 * not look. */
NRG_INLINE void stream_f32_step(const vf *v, int G, float *p)
{
    const int aligned = (uintptr_t)p % (VN * sizeof *p) == 0;
    if (!NRG_RARELY(!aligned)) {
        float *at = __builtin_assume_aligned(p, VN * sizeof *p);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v_nt_f32(at + j * VN, v[j]);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        float *at = p + j * VN;
        if ((uintptr_t)at % (VN * sizeof *p) == 0)
            __builtin_unreachable();
        v_nt_f32(at, v[j]);
    }
}

NRG_INLINE void store_f32_step(const vf *v, int G, float *p, size_t n, int stream)
{
    if (is_part(G, n)) {
        if (NRG_RARELY(streams(stream)))
            stream_f32_lanes(p, v[0], n);
        else
            store_lanes(p, v[0], n);
        return;
    }
    if (streams(stream)) {
        stream_f32_step(v, G, p);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v_st_f32(p + j * VN, v[j]);
}

/* As stream_f32_step. Where a vector has 16 bytes, all are aligned. */
NRG_INLINE void stream_half_step(const vh *h, int G, uint16_t *p)
{
    const int aligned = VN * sizeof *p == 16 || (uintptr_t)p % (VN * sizeof *p) == 0;
    if (!NRG_RARELY(!aligned)) {
        uint16_t *at = __builtin_assume_aligned(p, VN * sizeof *p);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v_nt_half(at + j * VN, h[j]);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        uint16_t *at = p + j * VN;
        if ((uintptr_t)at % (VN * sizeof *p) == 0)
            __builtin_unreachable();
        v_nt_half(at, h[j]);
    }
}

NRG_INLINE void store_half_step(const vh *h, int G, uint16_t *p, size_t n, int stream)
{
    if (is_part(G, n)) {
        if (NRG_RARELY(streams(stream)))
            stream_half_lanes(p, h[0], n);
        else
            v_stn_half(p, h[0], n);
        return;
    }
    if (stream) {
        stream_half_step(h, G, p);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v_st_half(p + j * VN, h[j]);
}

NRG_INLINE void store_step(const vf *v, int G, char *p, size_t i, size_t n, nrg_dtype D, int stream)
{
    if (D == NRG_F32) {
        store_f32_step(v, G, (float *)p + i, n, stream);
        return;
    }
    vh h[LARGEST_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        h[j] = to_half(v[j], D);
    store_half_step(h, G, (uint16_t *)p + i, n, stream);
}

/* ---- steps of bf16 in pairs of vectors: v[j] has the even elements of 2·VN, v[j + 1] the odd ones. Neither loads nor stores
 * need a shuffle, and two vectors are rounded at once. G is even ---- */

NRG_INLINE void widen_pairs(vf *v, const vp *h, int G)
{
    NRG_UNROLL
    for (int j = 0; j < G; j += 2) {
        v[j] = v_even_from_bf16(h[j / 2]);
        v[j + 1] = v_odd_from_bf16(h[j / 2]);
    }
}

NRG_INLINE void load_pairs(vf *v, int G, const char *p, size_t i)
{
    vp h[LARGEST_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j += 2)
        h[j / 2] = v_ld_pair((const uint16_t *)p + i + j * VN);
    widen_pairs(v, h, G);
}

/* From the order of elements, and back. */
NRG_INLINE void order_to_pairs(vf *v, int G)
{
    NRG_UNROLL
    for (int j = 0; j < G; j += 2) {
        const vf a = v[j], b = v[j + 1];
        v[j] = v_even(a, b);
        v[j + 1] = v_odd(a, b);
    }
}

NRG_INLINE void pairs_to_order(vf *v, int G)
{
    NRG_UNROLL
    for (int j = 0; j < G; j += 2) {
        const vf even = v[j], odd = v[j + 1];
        v[j] = v_zip_low(even, odd);
        v[j + 1] = v_zip_high(even, odd);
    }
}

NRG_INLINE void store_pair_step(const vp *h, int G, uint16_t *p, int stream)
{
    const int aligned = (uintptr_t)p % (2 * VN * sizeof *p) == 0;
    if (!streams(stream)) {
        NRG_UNROLL
        for (int j = 0; j < G / 2; j++)
            v_st_pair(p + j * (2 * VN), h[j]);
    } else if (!NRG_RARELY(!aligned)) {
        uint16_t *at = __builtin_assume_aligned(p, 2 * VN * sizeof *p);
        NRG_UNROLL
        for (int j = 0; j < G / 2; j++)
            v_nt_pair(at + j * (2 * VN), h[j]);
    } else {
        NRG_UNROLL
        for (int j = 0; j < G / 2; j++) {
            uint16_t *at = p + j * (2 * VN);
            if ((uintptr_t)at % (2 * VN * sizeof *p) == 0)
                __builtin_unreachable();
            v_nt_pair(at, h[j]);
        }
    }
}

/* calm, a constant: every NaN comes of bf16, or of none, and is rounded like a number. */
NRG_INLINE void round_pairs(vp *h, const vf *v, int G, int calm)
{
    NRG_UNROLL
    for (int j = 0; j < G; j += 2)
        h[j / 2] = (calm ? v_calm_to_bf16 : v_pair_to_bf16)(v[j], v[j + 1]);
}

#endif
