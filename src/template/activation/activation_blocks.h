/* 16-bit elements that become floats on the stack, a block of them at a time, and results that become 16-bit elements again.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_BLOCKS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_BLOCKS_H

#include "../step.h"

enum {
    ACT_STEP = (int)V_ACT * VN,
    ACT_BLOCK = 512 /* 16-bit elements that are floats on the stack at once */
};

_Static_assert(ACT_BLOCK % ACT_STEP == 0, "a block is made of whole steps");

NRG_INLINE vf act_from_half(vh h, nrg_dtype dtype) { return dtype == NRG_F16 ? v_from_f16(h) : v_from_bf16(h); }
NRG_INLINE vh act_to_half(vf a, nrg_dtype dtype) { return dtype == NRG_F16 ? v_to_f16(a) : v_to_bf16(a); }

/* bf16 is read and written by pairs of vectors, the elements with even numbers of each pair before those with odd ones: who
 * computes element by element need not care, as long as all it reads and writes is of the same n. A product of bf16 with SiLU of
 * another takes NOTE times as long vector by vector. */
NRG_INLINE int act_has_pairs(nrg_dtype dtype) { return dtype == NRG_BF16 && !V_SMALL; }

NRG_INLINE void act_widen(float *block, const uint16_t *p, size_t n, nrg_dtype dtype)
{
    size_t i = 0;
    for (; act_has_pairs(dtype) && i + 2 * VN <= n; i += 2 * VN) {
        const vp h = v_ld_pair(p + i);
        v_st_f32(block + i, v_even_from_bf16(h));
        v_st_f32(block + i + VN, v_odd_from_bf16(h));
    }
    for (; i + VN <= n; i += VN)
        v_st_f32(block + i, act_from_half(v_ld_half(p + i), dtype));
    if (i < n)
        v_st_f32(block + i, act_from_half(v_ldn_half(p + i, n - i), dtype));
}

NRG_INLINE void act_narrow(uint16_t *p, const float *block, size_t n, nrg_dtype dtype, int stream)
{
    size_t i = 0;
    for (; act_has_pairs(dtype) && i + 2 * VN <= n; i += 2 * VN) {
        const vp h = v_pair_to_bf16(v_ld_f32(block + i), v_ld_f32(block + i + VN));
        if (stream)
            v_nt_pair(p + i, h);
        else
            v_st_pair(p + i, h);
    }
    for (; i + VN <= n; i += VN) {
        vh h = act_to_half(v_ld_f32(block + i), dtype);
        if (stream)
            v_nt_half(p + i, h);
        else
            v_st_half(p + i, h);
    }
    if (i < n) {
        const vh h = act_to_half(v_ld_f32(block + i), dtype);
        if (stream)
            stream_half_lanes(p + i, h, n - i);
        else
            v_stn_half(p + i, h, n - i);
    }
}

/* Fills n elements of a block, the last of which lie in a whole vector, up to whole steps: the loops of the activations then need
 * no copy of the end. Returns how many elements there are. */
NRG_INLINE size_t act_fill(float *block, size_t n)
{
    const size_t end = (n + ACT_STEP - 1) / ACT_STEP * ACT_STEP;
    for (size_t i = (n + VN - 1) / VN * VN; i < end; i += VN)
        v_st_f32(block + i, v_zero());
    return end;
}

/* The number of elements that a block starting at out takes: a streamed one ends where a line of out ends. */
NRG_INLINE size_t act_block(const uint16_t *out, size_t n, int stream)
{
    size_t past = (uintptr_t)out / sizeof *out % 32, block = stream && past ? 32 - past : ACT_BLOCK;
    return block < n ? block : n;
}

#endif
