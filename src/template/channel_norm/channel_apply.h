/* The loops of channel_elements.h over vectors; docs/ops/channel_norm.md, "Elements".
 *
 * A loop is of one grade: with a look at it in every step, the fast one took as long as the exact one, and that 4 % longer. For
 * the same reason the fast one does not ask whether it is folded, where the mean is 0: of f32 that is the other's, which has one
 * operation for it. Of 16-bit elements there is the fast one alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_H

#include "channel_apply_silu.h"

NRG_INLINE void finish_channel_step(vf *v, int G, const char *y, char *o, size_t i, size_t n, channel_finish finish, int stream,
                                    nrg_dtype D)
{
    if (y) {
        vf more[V_APPLY];
        load_step(more, G, y, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_add(v[j], more[j]);
    }
    if (finish == CHANNEL_TO_STAGE) {
        store_f32_step(v, G, (float *)o + i, n, 0);
        return;
    }
    if (finish == CHANNEL_STORE_RELU) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_relu(v[j]);
    }
    if (is_part(G, n)) /* apart: `stream && !is_part(G, n)` as an argument takes 1.5 times as long in planes of 49 (gcc 12) */
        store_step(v, G, o, i, n, D, 0);
    else
        store_step(v, G, o, i, n, D, stream);
}

/* o1 of one vector. */
NRG_INLINE vf normalized(vf x, vf hi, vf lo, vf shift, vf shift_lo) { return v_add(v_fma(x, hi, shift), v_fma(x, lo, shift_lo)); }

/* The same in double. */
NRG_INLINE vf normalized_in_double(vf x, const channel_vd *f)
{
    return v_from_vd(vd_fma(vd_sub(vd_sub(vd_low(x), f->mean_l), f->low_l), f->a_l, f->b_l),
                     vd_fma(vd_sub(vd_sub(vd_high(x), f->mean_h), f->low_h), f->a_h, f->b_h));
}

/* ---- elements that lie together ---- */

/* exact: where the plane is done in double; else NULL. */
NRG_INLINE void run_step(const channel_run *run, const channel_vf *f, const channel_vd *exact, int fast, int G, size_t i,
                         size_t n, nrg_dtype D)
{
    vf v[V_APPLY];
    load_step(v, G, run->x, i, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = exact         ? normalized_in_double(v[j], exact)
               : fast        ? normalized_fast(v[j], f->lo, f->hi, f->shift)
               : run->folded ? v_fma(v[j], f->hi, f->shift)
                             : normalized(v[j], f->hi, f->lo, f->shift, f->shift_lo);
    finish_channel_step(v, G, run->y, run->o, i, n, run->finish, run->stream, D);
}

/* room: elements from the plane's first on that may be written, since what lies behind the plane is made afterwards. The plane's
 * last vector then needs no mask: groups of 10 channels of 4 positions went from 6.3 to 10 GB/s. */
NRG_INLINE void apply_plane_of(const channel_run *run, const channel_vf *f, const channel_vd *exact, int fast, int G, size_t room,
                               nrg_dtype D)
{
    const size_t step = (size_t)G * VN, n = run->n;
    size_t i = 0;
    if (run->stream)
        for (const size_t first = before_line(run->o, n, D); i < first;) {
            const size_t lanes = lanes_at(i, first);
            run_step(run, f, exact, fast, 1, i, lanes, D);
            i += lanes;
        }
    for (; i + step <= n; i += step)
        run_step(run, f, exact, fast, G, i, step, D);
    if (run->stream && bytes_of(2 * VN, D, 0) % 64 == 0 && i + 2 * VN <= n) { /* of AVX2 a line */
        run_step(run, f, exact, fast, 2, i, 2 * VN, D);
        i += 2 * VN;
    }
    for (; i < n && (i + VN <= room || vector_is_whole(i, n, run->stream, D)); i += VN)
        run_step(run, f, exact, fast, 1, i, VN, D);
    for (; i < n; i += VN)
        run_step(run, f, exact, fast, 1, i, lanes_at(i, n), D);
}

/* The factors of a plane of a run. */
NRG_INLINE channel_vf plane_factors(const channel_run *run, size_t plane, int fast)
{
    return (channel_vf){v_set1(run->f.hi[plane]), v_set1(run->f.lo[plane]), v_set1(run->f.shift[plane]),
                        fast ? v_zero() : v_set1(run->f.shift_lo[plane])};
}

/* To the next plane. */
NRG_INLINE void advance_run(channel_run *run, nrg_dtype D)
{
    const size_t bytes = bytes_of(run->n, D, 0);
    run->x += bytes;
    run->y = run->y ? run->y + bytes : NULL;
    run->o += run->finish == CHANNEL_TO_STAGE ? run->n * sizeof(float) : bytes;
}

/* CHANNEL_TURNS planes by steps in turn: whole steps, streamed to where lines begin. */
NRG_INLINE void apply_planes_in_turn(channel_run *run, size_t plane, int fast, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, n = run->n;
    channel_run some[CHANNEL_TURNS];
    channel_vf f[CHANNEL_TURNS];
    NRG_UNROLL
    for (int p = 0; p < CHANNEL_TURNS; p++) {
        some[p] = *run;
        f[p] = plane_factors(run, plane + (size_t)p, fast);
        advance_run(run, D);
    }
    for (size_t i = 0; i < n; i += step) {
        NRG_UNROLL
        for (int p = 0; p < CHANNEL_TURNS; p++)
            run_step(&some[p], &f[p], NULL, fast, V_APPLY, i, step, D);
    }
}

NRG_INLINE void apply_run_of(const channel_run *at, int fast, nrg_dtype D)
{
    const size_t n = at->n;
    channel_run run = *at;
    const int beyond = fast && D == NRG_F32 && !run.stream && run.o != run.x && run.o != run.y;
    size_t plane = 0;
    if (!V_SMALL && run.in_turn)
        for (; plane + CHANNEL_TURNS <= at->planes; plane += CHANNEL_TURNS)
            apply_planes_in_turn(&run, plane, fast, D);
    if (beyond && n <= VN)
        for (; (at->planes - plane) * n >= VN; plane++) {
            const channel_vf f = plane_factors(&run, plane, fast);
            run_step(&run, &f, NULL, fast, 1, 0, VN, D);
            advance_run(&run, D);
        }
    for (; plane < at->planes; plane++) {
        const channel_vf f = plane_factors(&run, plane, fast);
        apply_plane_of(&run, &f, NULL, fast, V_APPLY, beyond ? (at->planes - plane) * n : 0, D);
        advance_run(&run, D);
    }
}

static __attribute__((noinline)) void apply_run_f32(const channel_run *run) { apply_run_of(run, 1, NRG_F32); }
static __attribute__((noinline)) void apply_run_f16(const channel_run *run) { apply_run_of(run, 1, NRG_F16); }
static __attribute__((noinline)) void apply_run_bf16(const channel_run *run) { apply_run_of(run, 1, NRG_BF16); }
static __attribute__((noinline)) void apply_run_exact(const channel_run *run) { apply_run_of(run, 0, NRG_F32); }

void apply_run(const channel_run *run, nrg_dtype D)
{
    if (!V_SMALL && run->finish == CHANNEL_STORE_SILU)
        apply_silu(run);
    else if (V_SMALL)
        apply_run_of(run, D != NRG_F32 || (run->fast && !run->folded), D);
    else if (D == NRG_F32 && run->fast && !run->folded)
        apply_run_f32(run);
    else if (D == NRG_F32)
        apply_run_exact(run);
    else if (D == NRG_F16)
        apply_run_f16(run);
    else
        apply_run_bf16(run);
}

/* Rare: the dtype is looked up at run time. */
void apply_run_fallback(const channel_run *at, const channel_factors *f, nrg_dtype D)
{
    const channel_run run = *at;
    const vd mean = vd_set1(f->mean), low = vd_set1(f->mean_low), a = vd_set1(f->a), b = vd_set1(f->b);
    const channel_vd exact = {mean, mean, low, low, a, a, b, b};
    apply_plane_of(&run, NULL, &exact, 0, 2, 0, D);
}

/* ---- columns ---- */

NRG_INLINE void column_step(const channel_column_run *run, const channel_column_factors *f, size_t row, size_t k, int fast, int G,
                            size_t n, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    vf v[V_APPLY];
    load_step(v, G, run->x + row * run->x_stride + k * size, 0, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const vf hi = v_ld_f32(f->hi + k + j * VN), shift = v_ld_f32(f->shift + k + j * VN);
        v[j] = fast          ? normalized_fast(v[j], v_ld_f32(f->lo + k + j * VN), hi, shift)
               : run->folded ? v_fma(v[j], hi, shift)
                             : normalized(v[j], hi, v_ld_f32(f->lo + k + j * VN), shift, v_ld_f32(f->shift_lo + k + j * VN));
    }
    const size_t o_size = run->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    finish_channel_step(v, G, run->y ? run->y + row * run->y_stride + k * size : NULL, run->o + row * run->o_stride + k * o_size,
                        0, n, run->finish, run->stream, D);
}

NRG_INLINE void apply_row(const channel_column_run *run, const channel_column_factors *f, size_t row, int fast, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    size_t k = 0;
    for (; k + step <= run->width; k += step)
        column_step(run, f, row, k, fast, V_APPLY, step, D);
    if (k + 2 * VN <= run->width) {
        column_step(run, f, row, k, fast, 2, 2 * VN, D);
        k += 2 * VN;
    }
    for (; vector_is_whole(k, run->width, run->stream, D); k += VN)
        column_step(run, f, row, k, fast, 1, VN, D);
    for (; k < run->width; k += VN)
        column_step(run, f, row, k, fast, 1, lanes_at(k, run->width), D);
}

NRG_INLINE void apply_columns_of(const channel_column_run *at, const channel_column_factors *factors, int fast, nrg_dtype D)
{
    const channel_column_run run = *at;
    const channel_column_factors f = *factors;
    const size_t turns = channel_turns(run.stream, run.rows), each = run.rows / turns;
    for (size_t i = 0; i < each; i++)
        for (size_t turn = 0; turn < turns; turn++)
            apply_row(&run, &f, turn * each + i, fast, D);
    for (size_t row = turns * each; row < run.rows; row++)
        apply_row(&run, &f, row, fast, D);
}

static __attribute__((noinline)) void apply_columns_f32(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, 1, NRG_F32);
}

static __attribute__((noinline)) void apply_columns_f16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, 1, NRG_F16);
}

static __attribute__((noinline)) void apply_columns_bf16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, 1, NRG_BF16);
}

static __attribute__((noinline)) void apply_columns_exact(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, 0, NRG_F32);
}

void apply_columns(const channel_column_run *run, const channel_column_factors *f, nrg_dtype D)
{
    float *const factors[] = {f->hi, f->lo, f->shift, f->shift_lo};
    vf kept[] = {v_zero(), v_zero(), v_zero(), v_zero()};
    swap_behind_columns(factors, run->width, kept);
    if (!V_SMALL && run->finish == CHANNEL_STORE_SILU)
        apply_silu_columns(run, f);
    else if (V_SMALL)
        apply_columns_of(run, f, D != NRG_F32 || (run->fast && !run->folded), D);
    else if (D == NRG_F32 && run->fast && !run->folded)
        apply_columns_f32(run, f);
    else if (D == NRG_F32)
        apply_columns_exact(run, f);
    else if (D == NRG_F16)
        apply_columns_f16(run, f);
    else
        apply_columns_bf16(run, f);
    swap_behind_columns(factors, run->width, kept);
}

#endif
