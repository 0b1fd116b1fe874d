/* Apply: from x to o1 + y, and what an activation makes of that.
 *
 * A loop has one grade: with a test in each step, the fast grade took as long as the exact one, 4 % more. For the same reason the
 * fast grade does not test whether the factors are folded, where the mean is 0: f32 has the exact grade's loop for that, which
 * needs one operation. 16-bit elements have the fast grade only. What else there is to choose is tested once a step.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_APPLY_H
#define NRG_TEMPLATE_CHANNEL_APPLY_H

#include "../activation/activation_functions.h"
#include "source.h"

/* o1 of a vector. */
NRG_INLINE vf normalized(vf x, vf hi, vf lo, vf shift, vf shift_lo) { return v_add(v_fma(x, hi, shift), v_fma(x, lo, shift_lo)); }

/* y: of the step, or NULL. */
NRG_INLINE void finish_o1(vf *v, int G, const channel_run *run, const char *y, char *o, size_t n, nrg_dtype D)
{
    if (y) {
        vf more[V_APPLY];
        load_step(more, G, y, 0, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_add(v[j], more[j]);
    }
    if (run->finish == CHANNEL_TO_STAGE) {
        store_f32_step(v, G, (float *)o, n, 0);
        return;
    }
    if (run->finish == CHANNEL_STORE_RELU) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_relu(v[j]);
    }
    if (is_part(G, n)) /* apart: `stream && !is_part(G, n)` as an argument takes 1.5 times as long in planes of 49 (gcc 12) */
        store_step(v, G, o, 0, n, D, 0);
    else
        store_step(v, G, o, 0, n, D, run->stream);
}

/* What a loop is compiled for. */
typedef struct apply_policy {
    nrg_dtype dtype;
    int fast, planes;
} apply_policy;

/* A row, and if it is a plane its factors. */
typedef struct channel_row {
    const char *x, *y;
    char *o;
    vf hi, lo, shift, shift_lo;
} channel_row;

NRG_INLINE void load_plane_factors(channel_row *at, const channel_column_factors *f, size_t row, apply_policy P)
{
    at->hi = v_set1(f->hi[row]);
    at->lo = v_set1(f->lo[row]);
    at->shift = v_set1(f->shift[row]);
    at->shift_lo = P.fast ? v_zero() : v_set1(f->shift_lo[row]);
}

NRG_INLINE channel_row row_of(const channel_run *run, size_t row, apply_policy P)
{
    channel_row at = {.x = run->x + row * run->x_stride, .o = run->o + row * run->o_stride};
    at.y = run->y ? run->y + row * run->y_stride : NULL;
    if (P.planes)
        load_plane_factors(&at, &run->f, row, P);
    return at;
}

/* x becomes o1. */
NRG_INLINE void normalize_step(vf *v, int G, const channel_run *run, const channel_row *row, size_t k, size_t n, apply_policy P)
{
    const channel_column_factors *f = &run->f;
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const size_t at = k + (size_t)j * VN;
        const vf hi = P.planes ? row->hi : load_factors(f->hi + at, G, n),
                 shift = P.planes ? row->shift : load_factors(f->shift + at, G, n);
        if (P.fast)
            v[j] = normalized_fast(v[j], P.planes ? row->lo : load_factors(f->lo + at, G, n), hi, shift);
        else if (run->folded)
            v[j] = v_fma(v[j], hi, shift);
        else
            v[j] = normalized(v[j], hi, P.planes ? row->lo : load_factors(f->lo + at, G, n), shift,
                              P.planes ? row->shift_lo : load_factors(f->shift_lo + at, G, n));
    }
}

/* G vectors from column k of a row on, or the first n elements of one. */
NRG_INLINE void apply_step(const channel_run *run, const channel_row *row, size_t k, int G, size_t n, apply_policy P)
{
    const size_t size = bytes_of(1, P.dtype, 0), o_size = run->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    vf v[V_APPLY];
    load_step(v, G, row->x, k, n, P.dtype);
    normalize_step(v, G, run, row, k, n, P);
    finish_o1(v, G, run, row->y ? row->y + k * size : NULL, row->o + k * o_size, n, P.dtype);
}

/* room: columns that may be written, since the rows that follow are written later. The last vector of a plane then needs no mask:
 * groups of 10 channels of 4 positions went from 6.3 to 10 GB/s. */
NRG_INLINE void apply_row(const channel_run *run, const channel_row *row, size_t room, apply_policy P)
{
    const size_t step = (size_t)V_APPLY * VN, width = run->width;
    size_t k = 0;
    if (P.planes && run->stream)
        for (const size_t line = before_line(row->o, width, P.dtype); k < line;) {
            const size_t n = lanes_at(k, line);
            apply_step(run, row, k, 1, n, P);
            k += n;
        }
    for (; k + step <= width; k += step)
        apply_step(run, row, k, V_APPLY, step, P);
    if (k + 2 * VN <= width && (!P.planes || (run->stream && bytes_of(2 * VN, P.dtype, 0) % 64 == 0))) { /* AVX2: a line */
        apply_step(run, row, k, 2, 2 * VN, P);
        k += 2 * VN;
    }
    for (; k < width && (k + VN <= room || vector_is_whole(k, width, run->stream, P.dtype)); k += VN)
        apply_step(run, row, k, 1, VN, P);
    for (; k < width; k += VN)
        apply_step(run, row, k, 1, lanes_at(k, width), P);
}

/* CHANNEL_TURNS planes side by side, a line of each in turn, all streamed. Not unrolled, the hardware does not find the four
 * planes. */
NRG_INLINE void apply_side_by_side(const channel_run *at, size_t first, apply_policy P)
{
    enum { LINE = 64 / VN }; /* bytes of an element in a vector that is a line */
    const int G = (int)lesser(V_APPLY, LINE / bytes_of(1, P.dtype, 0));
    const size_t step = (size_t)G * VN;
    channel_run run = *at;
    channel_row rows[CHANNEL_TURNS];
    run.stream = 1;
    if (run.finish == CHANNEL_TO_STAGE)
        __builtin_unreachable();
    NRG_UNROLL
    for (size_t i = 0; i < CHANNEL_TURNS; i++) {
        rows[i] = row_of(&run, first + i, P);
        rows[i].o = __builtin_assume_aligned(rows[i].o, 64);
    }
    for (size_t k = 0; k < run.width; k += step) {
        NRG_UNROLL
        for (size_t i = 0; i < CHANNEL_TURNS; i++)
            apply_step(&run, &rows[i], k, G, step, P);
    }
}

NRG_INLINE void apply_planes_of(const channel_run *at, int fast, nrg_dtype D)
{
    const channel_run run = *at;
    const apply_policy P = {D, fast, 1};
    const int beyond = fast && D == NRG_F32 && !run.stream && run.o != run.x && run.o != run.y;
    size_t i = 0;
    for (; !V_SMALL && run.turns > 1 && i < run.rows; i += CHANNEL_TURNS)
        apply_side_by_side(&run, i, P);
    channel_row row = {.x = run.x, .y = run.y, .o = run.o}; /* adjacent planes, if there are several */
    for (; i < run.rows; i++) {
        const size_t bytes = bytes_of(run.width, D, 0);
        load_plane_factors(&row, &run.f, i, P);
        apply_row(&run, &row, beyond ? (run.rows - i) * run.width : 0, P);
        row.x += bytes;
        row.y = row.y ? row.y + bytes : NULL;
        row.o += run.finish == CHANNEL_TO_STAGE ? run.width * sizeof(float) : bytes;
    }
}

/* Rows from CHANNEL_TURNS places in turn, and then the others; or all rows one after the other. */
NRG_INLINE void apply_columns_of(const channel_run *at, int fast, nrg_dtype D)
{
    const channel_run run = *at;
    const apply_policy P = {D, fast, 0};
    const size_t apart = run.turns > 1 ? run.rows / CHANNEL_TURNS : 0;
    for (size_t i = 0; i < run.rows; i++) {
        const channel_row row = row_of(&run, i < CHANNEL_TURNS * apart ? i % CHANNEL_TURNS * apart + i / CHANNEL_TURNS : i, P);
        apply_row(&run, &row, 0, P);
    }
}

/* The exact grade is f32 only. */
static __attribute__((noinline)) void apply_planes_exact(const channel_run *run) { apply_planes_of(run, 0, NRG_F32); }
static __attribute__((noinline)) void apply_columns_exact(const channel_run *run) { apply_columns_of(run, 0, NRG_F32); }

NRG_INLINE void apply_planes_fast_of(const channel_run *run, nrg_dtype D) { apply_planes_of(run, 1, D); }
NRG_INLINE void apply_columns_fast_of(const channel_run *run, nrg_dtype D) { apply_columns_of(run, 1, D); }
NRG_BY_DTYPE(apply_planes_fast, (run), const channel_run *run)
NRG_BY_DTYPE(apply_columns_fast, (run), const channel_run *run)

/* ---- SiLU ----
 *
 * From x to o without a staging buffer, in the fast grade and without y, as diffusion models have it. f32 only: with 16-bit
 * elements AVX2 had a speedup of 0.9 over the staging buffer (bf16), AVX-512 of 1.0.
 *
 * Most of the time is the activation's. The rest, normalizing and the wait of stores for memory, is hidden behind its divisions.
 * Staged, group norm with SiLU took 1.5 times as long (1x320x64x64, AVX-512). */

NRG_INLINE void silu_store(const vf *x, char *o, size_t n, int stream)
{
    vf v[V_ACT];
    act_apply(NRG_ACT_SILU, x, v, NULL);
    if (!NRG_RARELY(n < ACT_STEP)) {
        store_step(v, V_ACT, o, 0, ACT_STEP, NRG_F32, stream);
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

NRG_INLINE void apply_silu_of(const channel_run *at, int planes)
{
    const channel_run run = *at;
    const int stream = run.stream && (((uintptr_t)run.o | run.o_stride) & 15) == 0;
    for (size_t row = 0; row < run.rows; row++) {
        const plane_factors plane = factors_of_plane(&run.f, planes ? row : 0);
        for (size_t k = 0, n; k < run.width; k += n) {
            const size_t from = k * sizeof(float);
            vf x[V_ACT];
            n = lesser(run.width - k, ACT_STEP);
            if (planes && run.ahead)
                prefetch_step_ahead(run.ahead + row * run.x_stride + from, V_ACT, sizeof(float), 0);
            act_load(x, (const float *)(run.x + row * run.x_stride + from), n);
            normalize_act_step(x, planes ? &plane : NULL, &run.f, k, n);
            silu_store(x, run.o + row * run.o_stride + from, n, stream);
        }
    }
}

static __attribute__((noinline)) void apply_silu_planes(const channel_run *run) { apply_silu_of(run, 1); }
static __attribute__((noinline)) void apply_silu_columns(const channel_run *run) { apply_silu_of(run, 0); }

/* Direct calls: a pointer hides what is on the stack from scripts/stack_use.py. */
void apply_run(const channel_run *run, nrg_dtype D)
{
    const int silu = !V_SMALL && run->finish == CHANNEL_STORE_SILU, exact = D == NRG_F32 && (!run->fast || run->folded);
    if (silu && run->planes)
        apply_silu_planes(run);
    else if (silu)
        apply_silu_columns(run);
    else if (exact && run->planes)
        apply_planes_exact(run);
    else if (exact)
        apply_columns_exact(run);
    else if (run->planes)
        apply_planes_fast(run, D);
    else
        apply_columns_fast(run, D);
}

/* ---- floats to elements ---- */

NRG_INLINE void store_staged_of(const float *stage, char *o, size_t n, int stream, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    vf v[V_APPLY];
    size_t i = 0;
    if (stream)
        for (const size_t line = before_line(o, n, D); i < line;) {
            const size_t lanes = lanes_at(i, line);
            load_step(v, 1, (const char *)stage, i, lanes, NRG_F32);
            store_step(v, 1, o, i, lanes, D, 0);
            i += lanes;
        }
    for (; i + step <= n; i += step) {
        load_step(v, V_APPLY, (const char *)stage, i, step, NRG_F32);
        store_step(v, V_APPLY, o, i, step, D, stream);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        load_step(v, 1, (const char *)stage, i, lanes, NRG_F32);
        store_step(v, 1, o, i, lanes, D, 0);
    }
}

NRG_BY_DTYPE(store_staged, (stage, o, n, stream), const float *stage, char *o, size_t n, int stream)

void store_stage(const float *stage, char *o, size_t n, int stream, nrg_dtype D) { store_staged(stage, o, n, stream, D); }

#endif
