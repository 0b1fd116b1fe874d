/* SiLU of normalized elements in one loop: from x to o without a stage, in the fast grade and without y, as diffusion models have
 * it.
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

/* The first n of a step's elements; the others are 0. Whole steps and parts share the arithmetic, which is most of the code.
 * Parts are of floats: of 16-bit elements there are whole steps alone. */
NRG_INLINE void silu_load(vf *x, const char *from, size_t n, nrg_dtype D)
{
    if (D != NRG_F32 || !NRG_RARELY(n < SILU_STEP)) {
        load_step(x, V_ACT, from, 0, SILU_STEP, D);
        return;
    }
    ACT_EACH x[j] = (size_t)j * VN < n ? load_part(from, (size_t)j * VN, lanes_at((size_t)j * VN, n), D) : v_zero();
}

NRG_INLINE void silu_store(const vf *x, char *o, size_t n, int stream, nrg_dtype D)
{
    vf v[V_ACT];
    act_apply(NRG_ACT_SILU, x, v, NULL);
    if (D != NRG_F32 || !NRG_RARELY(n < SILU_STEP)) {
        store_step(v, V_ACT, o, 0, SILU_STEP, D, stream);
        return;
    }
    ACT_EACH
    {
        const size_t at = (size_t)j * VN;
        if (at + VN <= n)
            store_step(&v[j], 1, o, at, VN, D, stream);
        else if (at < n)
            store_step(&v[j], 1, o, at, n - at, D, 0);
    }
}

/* ---- elements that lie together ---- */

NRG_INLINE void apply_silu_of(const channel_run *at, nrg_dtype D)
{
    const size_t n = at->n, bytes = bytes_of(n, D, 0);
    channel_run run = *at;
    const int stream = run.stream && (((uintptr_t)run.o | bytes) & 15) == 0;
    for (size_t plane = 0; plane < at->planes; plane++) {
        const vf factor = v_set1(run.f.hi[plane]), mean = v_set1(run.f.lo[plane]), shift = v_set1(run.f.shift[plane]);
        for (size_t i = 0, some; i < n; i += some) {
            const size_t left = n - i, from = bytes_of(i, D, 0);
            vf x[V_ACT];
            some = left < SILU_STEP ? left : SILU_STEP;
            if (run.ahead) {
                NRG_UNROLL
                for (size_t b = 0; b < bytes_of(SILU_STEP, D, 0); b += 64)
                    __builtin_prefetch((const void *)((uintptr_t)run.ahead + from + b));
            }
            silu_load(x, run.x + from, some, D);
            ACT_EACH x[j] = normalized_fast(x[j], mean, factor, shift);
            silu_store(x, run.o + from, some, stream, D);
        }
        run.x += bytes;
        run.o += bytes;
        run.ahead = run.ahead ? run.ahead + bytes : NULL;
    }
}

static __attribute__((noinline)) void apply_silu_f32(const channel_run *run) { apply_silu_of(run, NRG_F32); }
static __attribute__((noinline)) void apply_silu_f16(const channel_run *run) { apply_silu_of(run, NRG_F16); }
static __attribute__((noinline)) void apply_silu_bf16(const channel_run *run) { apply_silu_of(run, NRG_BF16); }

/* Of 16-bit elements planes of whole steps. */
static inline void apply_silu(const channel_run *run, nrg_dtype D)
{
    if (D == NRG_F32)
        apply_silu_f32(run);
    else if (D == NRG_F16)
        apply_silu_f16(run);
    else
        apply_silu_bf16(run);
}

/* ---- columns ---- */

/* Of floats. 0 beyond the columns: what lies there may be subnormal, which takes a hundred times as long. */
static __attribute__((noinline)) void apply_silu_columns(const channel_column_run *at, const channel_column_factors *factors)
{
    const channel_column_run run = *at;
    const channel_column_factors f = *factors;
    for (size_t row = 0; row < run.rows; row++)
        for (size_t k = 0, n; k < run.width; k += n) {
            const size_t left = run.width - k, from = k * sizeof(float);
            vf x[V_ACT], mean[V_ACT], factor[V_ACT], shift[V_ACT];
            n = left < SILU_STEP ? left : SILU_STEP;
            silu_load(x, run.x + row * run.x_stride + from, n, NRG_F32);
            silu_load(mean, (const char *)(f.lo + k), n, NRG_F32);
            silu_load(factor, (const char *)(f.hi + k), n, NRG_F32);
            silu_load(shift, (const char *)(f.shift + k), n, NRG_F32);
            ACT_EACH x[j] = normalized_fast(x[j], mean[j], factor[j], shift[j]);
            silu_store(x, run.o + row * run.o_stride + from, n, run.stream, NRG_F32);
        }
}

#endif
