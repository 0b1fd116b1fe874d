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
    nrg_activation act; /* that the loop itself computes, of f32; otherwise the identity, and `finish` tells what becomes of o1 */
    int slope;          /* o is do1 */
} apply_policy;

/* A row, and if it is a plane its factors. */
typedef struct channel_row {
    const char *x, *y;
    char *o;
    vf hi, lo, shift, shift_lo;
    const char *d; /* do1 */
    size_t d_stride;
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
        load_plane_factors(&at, &run->f, P.slope ? 0 : row, P);
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

/* CHANNEL_TURNS planes of f32 side by side, a line of each in turn, all streamed. Not unrolled, the hardware does not find the
 * four planes. */
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
    const apply_policy P = {.dtype = D, .fast = fast, .planes = 1};
    const int beyond = fast && D == NRG_F32 && !run.stream && run.o != run.x && run.o != run.y;
    size_t i = 0;
    for (; !V_SMALL && D == NRG_F32 && run.turns > 1 && i < run.rows; i += CHANNEL_TURNS)
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
    const apply_policy P = {.dtype = D, .fast = fast};
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

/* ---- activations in the loop: f32, the fast grade ----
 *
 * SiLU goes from x to o without a staging buffer and without y, as diffusion models have it. With 16-bit elements AVX2 had a
 * speedup of 0.9 over the staging buffer (bf16), AVX-512 of 1.0. Most of the time is the activation's. The rest, normalizing and
 * the wait of stores for memory, is hidden behind its divisions. Staged, group norm with SiLU took 1.5 times as long
 * (1x320x64x64, AVX-512).
 *
 * do1 goes from x, y and d to where it is kept or staged. In chunks of 192 elements, with a call each for o1, for the slopes and
 * for the product, a backward pass took 1.3 to 2 times as long. */

/* Whether parts of a step are full steps with masks. Otherwise they go vector by vector: masks take
 * two thirds of the code with AVX2. AVX-512 masks are short, and a second loop has constants to load: for do1 of planes, each of
 * which is a call, masks are 1.08 times as fast (group norm with SiLU, 8x512x7x7). */
NRG_INLINE int parts_are_masked(apply_policy P) { return VN == 16 && P.slope && P.planes; }

/* The first n floats of a step of G vectors; others are 0. */
NRG_INLINE void act_load(vf *v, int G, const char *p, size_t k, size_t n, int masked)
{
    if (!masked)
        load_step(v, G, p, k, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G && masked; j++) {
        const size_t at = (size_t)j * VN;
        v[j] = v_ldn_f32((const float *)p + k + at, at < n ? lanes_at(at, n) : 0);
    }
}

/* G vectors from column k of a row on, or the first n elements of them. */
NRG_INLINE void activated_step(const channel_run *run, const channel_row *row, size_t k, int G, size_t n, apply_policy P)
{
    const int masked = parts_are_masked(P), whole = n == (size_t)G * VN;
    const act_want want = {!P.slope, P.slope, 0};
    const char *x = row->x + k * sizeof(float);
    float *o = (float *)row->o + k;
    vf v[V_ACT], more[V_ACT], slope[V_ACT], value[V_ACT];
    if (P.slope && run->stream) {
        prefetch_step_ahead(x, G, sizeof *o, CHANNEL_GRADIENT_ROWS * run->x_stride);
        prefetch_step_ahead(row->d + k * sizeof *o, G, sizeof *o, CHANNEL_GRADIENT_ROWS * row->d_stride);
    } else if (!P.slope && P.planes && run->ahead)
        prefetch_step_ahead(run->ahead + (x - run->x), G, sizeof *o, 0);
    act_load(v, G, x, 0, n, masked);
    normalize_step(v, G, run, row, k, n, P);
    if (P.slope && row->y) {
        act_load(more, G, row->y, k, n, masked);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_add(v[j], more[j]);
    }
    NRG_UNROLL
    for (int j = 0; j < G; j += V_ACT_SIDE)
        act_apply_side(G < V_ACT_SIDE ? G : V_ACT_SIDE, P.act, want, v + j, value + j, slope + j);
    if (P.slope) {
        act_load(more, G, row->d, k, n, masked);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            value[j] = v_mul(more[j], slope[j]);
    }
    if (!P.slope && run->stream && whole)
        stream_f32_step(value, G, o);
    else if (!masked || whole)
        store_f32_step(value, G, o, n, !P.slope && run->stream);
    else
        ACT_EACH if (j < G && (size_t)j * VN < n) store_lanes(o + j * VN, value[j], lanes_at((size_t)j * VN, n));
}

/* d, d_stride: of do1. */
NRG_INLINE void apply_activated(const channel_run *at, const char *d, size_t d_stride, apply_policy P)
{
    const int masked = parts_are_masked(P), G = masked ? (int)V_ACT_SIDE : (int)V_ACT;
    P.dtype = NRG_F32;
    P.fast = 1;
    const size_t step = (size_t)G * VN;
    channel_run run = *at;
    if (!P.slope)
        run.stream &= (((uintptr_t)run.o | run.o_stride) & 15) == 0;
    for (size_t i = 0; i < run.rows; i++) {
        channel_row row = row_of(&run, i, P);
        size_t k = 0;
        row.d = P.slope ? d + i * d_stride : NULL;
        row.d_stride = d_stride;
        for (; masked && k < run.width; k += step)
            activated_step(&run, &row, k, G, lesser(run.width - k, step), P);
        for (; !masked && k + step <= run.width; k += step)
            activated_step(&run, &row, k, G, step, P);
        for (; !masked && k < run.width; k += VN)
            activated_step(&run, &row, k, 1, lanes_at(k, run.width), P);
    }
}

static __attribute__((noinline)) void apply_silu_planes(const channel_run *run)
{
    apply_activated(run, NULL, 0, (apply_policy){.planes = 1, .act = NRG_ACT_SILU});
}

static __attribute__((noinline)) void apply_silu_columns(const channel_run *run)
{
    apply_activated(run, NULL, 0, (apply_policy){.act = NRG_ACT_SILU});
}

static __attribute__((noinline)) void do1_relu_planes(const channel_run *run, const char *d, size_t d_stride)
{
    apply_activated(run, d, d_stride, (apply_policy){.planes = 1, .act = NRG_ACT_RELU, .slope = 1});
}

static __attribute__((noinline)) void do1_relu_columns(const channel_run *run, const char *d, size_t d_stride)
{
    apply_activated(run, d, d_stride, (apply_policy){.act = NRG_ACT_RELU, .slope = 1});
}

static __attribute__((noinline)) void do1_silu_planes(const channel_run *run, const char *d, size_t d_stride)
{
    apply_activated(run, d, d_stride, (apply_policy){.planes = 1, .act = NRG_ACT_SILU, .slope = 1});
}

static __attribute__((noinline)) void do1_silu_columns(const channel_run *run, const char *d, size_t d_stride)
{
    apply_activated(run, d, d_stride, (apply_policy){.act = NRG_ACT_SILU, .slope = 1});
}

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

void do1_run(const channel_run *run, const char *d, size_t d_stride, nrg_activation g)
{
    if (V_SMALL) /* nothing comes here there */
        return;
    if (g == NRG_ACT_RELU && run->planes)
        do1_relu_planes(run, d, d_stride);
    else if (g == NRG_ACT_RELU)
        do1_relu_columns(run, d, d_stride);
    else if (run->planes)
        do1_silu_planes(run, d, d_stride);
    else
        do1_silu_columns(run, d, d_stride);
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
