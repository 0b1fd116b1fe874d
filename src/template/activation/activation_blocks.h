/* Blocks of a tensor as floats on the stack: 16-bit elements, and elements in pairs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_BLOCKS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_BLOCKS_H

#include "../step.h"

enum { ACT_BLOCK = 512 }; /* elements that are floats on the stack at once */

/* bf16 is read and written in pairs of vectors (step.h): the elements with even numbers of each pair of vectors precede those
 * with odd ones. The order does not matter to element-wise functions if all tensors have it; in_order excludes it. */
NRG_INLINE int act_has_pairs(nrg_dtype D) { return D == NRG_BF16 && !V_SMALL; }

NRG_INLINE void act_store_pair(uint16_t *p, vp h, int stream)
{
    if (stream)
        v_nt_pair(p, h);
    else
        v_st_pair(p, h);
}

/* n elements to a block. What follows them in a whole vector is 0. A step of f16 is a line: of two, the hardware prefetches fewer
 * (AVX-512, EPYC Zen 4: 1.15 times as long out of cache). */
NRG_INLINE void act_read_of(float *block, const char *p, size_t n, int in_order, nrg_dtype D)
{
    enum { G = VN < 16 ? 4 : 2, STEP = G * VN };
    size_t i = 0;
    vf v[G];
    for (; act_has_pairs(D) && !in_order && i + 2 * VN <= n; i += 2 * VN) {
        load_pairs(v, 2, p, i);
        store_f32_step(v, 2, block + i, 2 * VN, 0);
    }
    for (; act_has_pairs(D) && i + 2 * VN <= n; i += 2 * VN) {
        load_pairs(v, 2, p, i);
        pairs_to_order(v, 2);
        store_f32_step(v, 2, block + i, 2 * VN, 0);
    }
    for (; !act_has_pairs(D) && i + STEP <= n; i += STEP) {
        load_step(v, G, p, i, STEP, D);
        store_f32_step(v, G, block + i, STEP, 0);
    }
    for (; i < n; i += VN)
        v_st_f32(block + i, load_part(p, i, lanes_at(i, n), D));
}
NRG_BY_DTYPE(act_read, (block, p, n, in_order), float *block, const char *p, size_t n, int in_order)

NRG_INLINE void act_write_of(char *p, const float *block, size_t n, int in_order, int stream, nrg_dtype D)
{
    enum { G = 4, STEP = G * VN };
    size_t i = 0;
    vf v[G];
    for (; act_has_pairs(D) && in_order && i + 2 * VN <= n; i += 2 * VN) {
        load_step(v, 2, (const char *)block, i, 2 * VN, NRG_F32);
        order_to_pairs(v, 2);
        act_store_pair((uint16_t *)p + i, v_pair_to_bf16(v[0], v[1]), stream);
    }
    for (; act_has_pairs(D) && stream && i + 2 * VN <= n; i += 2 * VN)
        v_nt_pair((uint16_t *)p + i, v_pair_to_bf16(v_ld_f32(block + i), v_ld_f32(block + i + VN)));
    for (; act_has_pairs(D) && i + 2 * VN <= n; i += 2 * VN)
        v_st_pair((uint16_t *)p + i, v_pair_to_bf16(v_ld_f32(block + i), v_ld_f32(block + i + VN)));
    for (; !act_has_pairs(D) && i + STEP <= n; i += STEP) {
        load_step(v, G, (const char *)block, i, STEP, NRG_F32);
        store_step(v, G, p, i, STEP, D, stream);
    }
    if (i < n)
        NRG_NOBODYS_LANES(block, n);
    for (; i < n; i += VN) {
        v[0] = v_ld_f32(block + i);
        store_step(v, 1, p, i, lanes_at(i, n), D, stream);
    }
}
NRG_BY_DTYPE(act_write, (p, block, n, in_order, stream), char *p, const float *block, size_t n, int in_order, int stream)

/* n pairs to two blocks. */
NRG_INLINE void act_read_pairs_of(float *a, float *b, const char *p, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN) {
        vf v[2];
        if (act_has_pairs(D)) {
            load_pairs(v, 2, p, 2 * i);
        } else {
            load_step(v, 2, p, 2 * i, 2 * VN, D);
            order_to_pairs(v, 2);
        }
        v_st_f32(a + i, v[0]);
        v_st_f32(b + i, v[1]);
    }
    if (i < n) {
        const size_t left = 2 * (n - i);
        vf v[2] = {load_part(p, 2 * i, left < VN ? left : VN, D), v_zero()};
        if (left > VN)
            v[1] = load_part(p, 2 * i + VN, left - VN, D);
        order_to_pairs(v, 2);
        v_st_f32(a + i, v[0]);
        v_st_f32(b + i, v[1]);
    }
}
NRG_BY_DTYPE(act_read_pairs, (a, b, p, n), float *a, float *b, const char *p, size_t n)

NRG_INLINE void act_write_pairs_of(char *p, const float *a, const float *b, size_t n, int stream, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN) {
        vf v[2] = {v_ld_f32(a + i), v_ld_f32(b + i)};
        if (act_has_pairs(D)) {
            act_store_pair((uint16_t *)p + 2 * i, v_pair_to_bf16(v[0], v[1]), stream);
        } else {
            pairs_to_order(v, 2);
            store_step(v, 2, p, 2 * i, 2 * VN, D, stream);
        }
    }
    if (i < n) {
        const size_t left = 2 * (n - i);
        NRG_NOBODYS_LANES(a, n);
        NRG_NOBODYS_LANES(b, n);
        vf v[2] = {v_ld_f32(a + i), v_ld_f32(b + i)};
        pairs_to_order(v, 2);
        store_step(v, 1, p, 2 * i, left < VN ? left : VN, D, stream);
        if (left > VN)
            store_step(v + 1, 1, p, 2 * i + VN, left - VN, D, stream);
    }
}
NRG_BY_DTYPE(act_write_pairs, (p, a, b, n, stream), char *p, const float *a, const float *b, size_t n, int stream)

#endif
