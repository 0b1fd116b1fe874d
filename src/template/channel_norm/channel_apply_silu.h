/* SiLU of normalized elements in one loop: from x to o without a stage, in the fast grade and without y, as diffusion models have
 * it. Of floats: with 16-bit elements AVX2 took 1.1 times as long as by the stage (bf16), AVX-512 as long.
 *
 * The activation is by far the most of it, and what goes with it, normalizing and the store's wait for the memory, is hidden
 * behind its divisions. By a stage of 512 elements group norm with SiLU took 1.5 times as long (1x320x64x64, AVX-512): two fifths
 * in the activation, and a quarter in the loop that stored the stage, waiting for the lines of o.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_SILU_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_SILU_H

#include "../activation/activation_functions.h"
#include "channel_elements.h"

enum { SILU_STEP = (int)V_ACT * VN };

/* The first n of a step's elements; the others are 0. Whole steps and parts share the arithmetic, which is most of the code. */
NRG_INLINE void silu_load(vf *x, const char *from, size_t n)
{
    if (!NRG_RARELY(n < SILU_STEP)) {
        load_step(x, V_ACT, from, 0, SILU_STEP, NRG_F32);
        return;
    }
    ACT_EACH x[j] = (size_t)j * VN < n ? load_part(from, (size_t)j * VN, lanes_at((size_t)j * VN, n), NRG_F32) : v_zero();
}

NRG_INLINE void silu_store(const vf *x, char *o, size_t n, int stream)
{
    vf v[V_ACT];
    act_apply(NRG_ACT_SILU, x, v, NULL);
    if (!NRG_RARELY(n < SILU_STEP)) {
        store_step(v, V_ACT, o, 0, SILU_STEP, NRG_F32, stream);
        return;
    }
    ACT_EACH
    {
        const size_t at = (size_t)j * VN;
        if (at + VN <= n)
            store_step(&v[j], 1, o, at, VN, NRG_F32, stream);
        else if (at < n)
            store_step(&v[j], 1, o, at, n - at, NRG_F32, stream);
    }
}

/* ---- elements that lie together ---- */

static __attribute__((noinline)) void apply_silu(const channel_run *at)
{
    const size_t n = at->n, bytes = n * sizeof(float);
    channel_run run = *at;
    const int stream = run.stream && (((uintptr_t)run.o | bytes) & 15) == 0;
    for (size_t plane = 0; plane < at->planes; plane++) {
        const vf factor = v_set1(run.f.hi[plane]), mean = v_set1(run.f.lo[plane]), shift = v_set1(run.f.shift[plane]);
        for (size_t i = 0, some; i < n; i += some) {
            const size_t left = n - i, from = i * sizeof(float);
            vf x[V_ACT];
            some = left < SILU_STEP ? left : SILU_STEP;
            if (run.ahead) {
                NRG_UNROLL
                for (size_t b = 0; b < SILU_STEP * sizeof(float); b += 64)
                    __builtin_prefetch((const void *)((uintptr_t)run.ahead + from + b));
            }
            silu_load(x, run.x + from, some);
            ACT_EACH x[j] = normalized_fast(x[j], mean, factor, shift);
            silu_store(x, run.o + from, some, stream);
        }
        run.x += bytes;
        run.o += bytes;
        run.ahead = run.ahead ? run.ahead + bytes : NULL;
    }
}

/* ---- columns ---- */

static __attribute__((noinline)) void apply_silu_columns(const channel_column_run *at, const channel_column_factors *factors)
{
    const channel_column_run run = *at;
    const channel_column_factors f = *factors;
    for (size_t row = 0; row < run.rows; row++)
        for (size_t k = 0, n; k < run.width; k += n) {
            const size_t left = run.width - k, from = k * sizeof(float);
            vf x[V_ACT], mean[V_ACT], factor[V_ACT], shift[V_ACT];
            n = left < SILU_STEP ? left : SILU_STEP;
            silu_load(x, run.x + row * run.x_stride + from, n);
            silu_load(mean, (const char *)(f.lo + k), n);
            silu_load(factor, (const char *)(f.hi + k), n);
            silu_load(shift, (const char *)(f.shift + k), n);
            ACT_EACH x[j] = normalized_fast(x[j], mean[j], factor[j], shift[j]);
            silu_store(x, run.o + row * run.o_stride + from, n, run.stream);
        }
}

#endif
