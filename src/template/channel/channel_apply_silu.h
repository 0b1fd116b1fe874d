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

enum { SILU_STEP = (int)V_ACT * VN };

/* x: normalized, and there are n elements of it, all of a step or fewer. */
NRG_INLINE void silu_store(const vf *x, char *o, size_t n, int stream, nrg_dtype D)
{
    vf v[V_ACT];
    act_apply(NRG_ACT_SILU, x, v, NULL);
    if (__builtin_constant_p(n == SILU_STEP) && n == SILU_STEP) {
        store_step(v, V_ACT, o, 0, SILU_STEP, D, stream);
        return;
    }
    ACT_EACH if ((size_t)j * VN < n) store_step(&v[j], 1, o, (size_t)j * VN, lanes_at((size_t)j * VN, n), D, 0);
}

/* The first n of a step's elements, all of them where n is the constant. */
NRG_INLINE void silu_load(vf *x, const char *from, size_t n, nrg_dtype D)
{
    if (__builtin_constant_p(n == SILU_STEP) && n == SILU_STEP) {
        load_step(x, V_ACT, from, 0, SILU_STEP, D);
        return;
    }
    ACT_EACH x[j] = (size_t)j * VN < n ? load_part(from, (size_t)j * VN, lanes_at((size_t)j * VN, n), D) : v_zero();
}

/* ---- elements that lie together ---- */

NRG_INLINE void silu_run_step(const channel_run *run, const channel_vf *f, size_t i, size_t n, int stream, nrg_dtype D)
{
    vf x[V_ACT];
    silu_load(x, run->x + bytes_of(i, D, 0), n, D);
    ACT_EACH x[j] = normalized_fast(x[j], f->lo, f->hi, f->shift);
    silu_store(x, run->o + bytes_of(i, D, 0), n, stream, D);
}

/* Fewer than a step. */
NRG_INLINE void silu_run_part(const channel_run *run, size_t plane, size_t i, size_t n, nrg_dtype D)
{
    const channel_vf f = {v_set1(run->f.hi[plane]), v_set1(run->f.lo[plane]), v_set1(run->f.shift[plane]), v_zero()};
    silu_run_step(run, &f, i, n, 0, D);
}

static __attribute__((noinline)) void silu_run_part_f32(const channel_run *run, size_t plane, size_t i, size_t n)
{
    silu_run_part(run, plane, i, n, NRG_F32);
}

static __attribute__((noinline)) void silu_run_part_half(const channel_run *run, size_t plane, size_t i, size_t n, nrg_dtype D)
{
    silu_run_part(run, plane, i, n, D);
}

NRG_INLINE void silu_part(const channel_run *run, size_t plane, size_t i, size_t n, nrg_dtype D)
{
    if (D == NRG_F32)
        silu_run_part_f32(run, plane, i, n);
    else
        silu_run_part_half(run, plane, i, n, D);
}

NRG_INLINE void apply_silu_of(const channel_run *at, nrg_dtype D)
{
    const size_t n = at->n, bytes = bytes_of(n, D, 0);
    channel_run run = *at;
    for (size_t plane = 0; plane < at->planes; plane++) {
        const channel_vf f = {v_set1(run.f.hi[plane]), v_set1(run.f.lo[plane]), v_set1(run.f.shift[plane]), v_zero()};
        const size_t head = run.stream ? before_line(run.o, n, D) : 0;
        size_t i = head;
        for (size_t part = 0, some; part < head; part += some) {
            some = head - part < SILU_STEP ? head - part : SILU_STEP;
            silu_part(&run, plane, part, some, D);
        }
        for (; i + SILU_STEP <= n; i += SILU_STEP) {
            if (run.ahead) {
                NRG_UNROLL
                for (size_t b = 0; b < bytes_of(SILU_STEP, D, 0); b += 64)
                    __builtin_prefetch((const void *)((uintptr_t)run.ahead + bytes_of(i, D, 0) + b));
            }
            silu_run_step(&run, &f, i, SILU_STEP, run.stream, D);
        }
        if (i < n)
            silu_part(&run, plane, i, n - i, D);
        run.x += bytes;
        run.o += bytes;
        run.ahead = run.ahead ? run.ahead + bytes : NULL;
    }
}

static __attribute__((noinline)) void apply_silu_f32(const channel_run *run) { apply_silu_of(run, NRG_F32); }
static __attribute__((noinline)) void apply_silu_f16(const channel_run *run) { apply_silu_of(run, NRG_F16); }
static __attribute__((noinline)) void apply_silu_bf16(const channel_run *run) { apply_silu_of(run, NRG_BF16); }

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

NRG_INLINE void silu_column_step(const channel_column_run *run, const channel_column_factors *f, size_t row, size_t k, size_t n,
                                 nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    vf x[V_ACT];
    silu_load(x, run->x + row * run->x_stride + k * size, n, D);
    /* 0 beyond the columns: what lies there may be subnormal, which takes a hundred times as long */
    ACT_EACH if ((size_t)j * VN < n)
    {
        const size_t at = k + (size_t)j * VN, lanes = n == SILU_STEP ? (size_t)VN : lanes_at((size_t)j * VN, n);
        x[j] =
            normalized_fast(x[j], load_lanes(f->lo + at, lanes), load_lanes(f->hi + at, lanes), load_lanes(f->shift + at, lanes));
    }
    silu_store(x, run->o + row * run->o_stride + k * size, n, run->stream, D);
}

static __attribute__((noinline)) void silu_column_part(const channel_column_run *run, const channel_column_factors *f, size_t row,
                                                       size_t k, size_t n, nrg_dtype D)
{
    silu_column_step(run, f, row, k, n, D);
}

NRG_INLINE void apply_silu_columns_of(const channel_column_run *at, const channel_column_factors *factors, nrg_dtype D)
{
    const channel_column_run run = *at;
    const channel_column_factors f = *factors;
    for (size_t row = 0; row < run.rows; row++) {
        size_t k = 0;
        for (; k + SILU_STEP <= run.width; k += SILU_STEP)
            silu_column_step(&run, &f, row, k, SILU_STEP, D);
        if (k < run.width)
            silu_column_part(&run, &f, row, k, run.width - k, D);
    }
}

static __attribute__((noinline)) void apply_silu_columns_f32(const channel_column_run *run, const channel_column_factors *f)
{
    apply_silu_columns_of(run, f, NRG_F32);
}

static __attribute__((noinline)) void apply_silu_columns_f16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_silu_columns_of(run, f, NRG_F16);
}

static __attribute__((noinline)) void apply_silu_columns_bf16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_silu_columns_of(run, f, NRG_BF16);
}

static inline void apply_silu_columns(const channel_column_run *run, const channel_column_factors *f, nrg_dtype D)
{
    if (D == NRG_F32)
        apply_silu_columns_f32(run, f);
    else if (D == NRG_F16)
        apply_silu_columns_f16(run, f);
    else
        apply_silu_columns_bf16(run, f);
}

#endif
