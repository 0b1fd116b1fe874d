/* Runs of elements that are added to each other, or moved. Stores stay within lines of the cache: one across two lines takes
 * twice as long. The ends of a run are whole vectors that overlap what is between them; only runs that are shorter than a vector,
 * and lines that are streamed, know parts of vectors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RUNS_H
#define NRG_TEMPLATE_RUNS_H

#include "step.h"

enum { RUN_STEP = 4 }; /* vectors at once */

/* Elements of `size` bytes from p to the next multiple of `line` bytes. */
NRG_INLINE size_t run_head(const char *p, size_t size, size_t line) { return (line - (uintptr_t)p % line) % line / size; }

/* ---- out = a + b, out may be a ---- */

typedef struct add_run {
    char *out;
    const char *a, *b;
    size_t n;
    int b_f32, stream;
    int out_far;                   /* lines of out are not in L1, and asked for before they are written with ordinary stores */
    size_t a_prefetch, b_prefetch; /* bytes to what is wanted next, which is prefetched; 0: nothing */
} add_run;

/* Stores of 64 bytes wait for lines that are not in L1: asked for so many bytes ahead, both biases of 64 rows of 1024 floats take
 * 10.8 us instead of 12.4. With AVX2 a row of 4096 takes 929 ns instead of 870. */
enum { RUN_OUT_PREFETCH = 1024 };

/* A step of p, in lines of the cache. */
NRG_INLINE void prefetch_lines(const char *p, size_t prefetch, size_t size)
{
    NRG_UNROLL
    for (size_t line = 0; line < (RUN_STEP * VN * size + 63) / 64; line++)
        __builtin_prefetch((const void *)((uintptr_t)p + prefetch + 64 * line));
}

NRG_INLINE vf add_vector(const add_run *r, size_t i, nrg_dtype D)
{
    return v_add(load_whole(r->a, i, D), r->b_f32 ? load_whole(r->b, i, NRG_F32) : load_whole(r->b, i, D));
}

/* RUN_STEP vectors. Those of bf16 go in pairs: no NaN of bf16 elements has a lower half that would have to be looked at. */
NRG_INLINE void add_step(const add_run *r, size_t i, int stream, nrg_dtype D)
{
    vf sum[RUN_STEP];
    if (D != NRG_BF16) {
        NRG_UNROLL
        for (size_t j = 0; j < RUN_STEP; j++)
            sum[j] = add_vector(r, i + j * VN, D);
        store_step(sum, RUN_STEP, r->out, i, 0, D, stream);
        return;
    }
    vf b[RUN_STEP];
    vp out[RUN_STEP / 2];
    load_pairs(sum, RUN_STEP, r->a, i);
    if (r->b_f32) {
        load_step(b, RUN_STEP, r->b, i, 0, NRG_F32);
        order_to_pairs(b, RUN_STEP);
    } else {
        load_pairs(b, RUN_STEP, r->b, i);
    }
    NRG_UNROLL
    for (int j = 0; j < RUN_STEP; j += 2)
        out[j / 2] = v_calm_to_bf16(v_add(sum[j], r->b_f32 ? v_calm(b[j]) : b[j]),
                                    v_add(sum[j + 1], r->b_f32 ? v_calm(b[j + 1]) : b[j + 1]));
    store_pair_step(out, RUN_STEP, (uint16_t *)r->out + i, stream);
}

/* Few loops, and in every one of them one place that rounds: a copy of the code for each way to begin and to end a run would be
 * most of it. */
NRG_INLINE void run_add_of(const add_run *r, nrg_dtype D)
{
    const size_t n = r->n, size = bytes_of(1, D, 0);
    const int stream = r->stream && n >= (size_t)(2 * RUN_STEP) * VN, overlap = !stream && n >= VN;
    const size_t head = stream ? run_head(r->out, size, 64) : overlap ? run_head(r->out, size, size * VN) : 0;
    const size_t ends_at[2] = {0, n - VN};
    vf ends[2], sum[1];
    size_t i = head;
    for (int end = 0; overlap && end < 2; end++) /* before anything is written over them */
        ends[end] = add_vector(r, ends_at[end], D);
    for (; i + RUN_STEP * VN <= n; i += RUN_STEP * VN) {
        if (r->a_prefetch) {
            prefetch_lines(r->a + i * size, r->a_prefetch, size);
            prefetch_lines(r->b + i * size, r->b_prefetch, size);
        }
        if (VN == 16 && r->out_far)
            prefetch_lines(r->out + i * size, RUN_OUT_PREFETCH, size);
        add_step(r, i, stream, D);
    }
    for (; overlap && i + VN <= n; i += VN)
        store_whole(r->out, i, add_vector(r, i, D), D, 0);
    for (int end = 0; overlap && end < 2; end++)
        store_whole(r->out, ends_at[end], ends[end], D, 0);
    /* what is before the first whole line, and after the last step */
    for (size_t part = overlap ? n : head ? 0 : i, lanes; part < n; part = part + lanes == head ? i : part + lanes) {
        lanes = lanes_at(part, part < head ? head : n);
        sum[0] = v_add(load_part(r->a, part, lanes, D), load_part(r->b, part, lanes, r->b_f32 ? NRG_F32 : D));
        store_step(sum, 1, r->out, part, lanes, D, 0);
    }
}

NRG_BY_DTYPE(run_add, (r), const add_run *r)

/* ---- out = in, bit by bit ---- */

NRG_INLINE void move_lanes(char *out, const char *in, size_t n, size_t size)
{
    if (size == 4)
        v_stn_f32((float *)out, v_ldn_f32((const float *)in, n), n);
    else
        v_stn_half((uint16_t *)out, v_ldn_half((const uint16_t *)in, n), n);
}

NRG_INLINE void move_vector(char *out, const char *in, size_t size)
{
    if (size == 4)
        v_st_f32((float *)out, v_ld_f32((const float *)in));
    else
        v_st_half((uint16_t *)out, v_ld_half((const uint16_t *)in));
}

NRG_INLINE void move_run(char *out, const char *in, size_t n, size_t size, size_t prefetch)
{
    if (n < VN) {
        if (n)
            move_lanes(out, in, n, size);
        return;
    }
    size_t i = run_head(out, size, size * VN);
    move_vector(out, in, size);
    for (; i + RUN_STEP * VN <= n; i += RUN_STEP * VN) {
        if (prefetch)
            prefetch_lines(in + i * size, prefetch, size);
        NRG_UNROLL
        for (size_t j = 0; j < RUN_STEP; j++)
            move_vector(out + (i + j * VN) * size, in + (i + j * VN) * size, size);
    }
    for (; i + VN <= n; i += VN)
        move_vector(out + i * size, in + i * size, size);
    move_vector(out + (n - VN) * size, in + (n - VN) * size, size);
}

static __attribute__((noinline)) void move_run_f32(char *out, const char *in, size_t n, size_t prefetch)
{
    move_run(out, in, n, 4, prefetch);
}

static __attribute__((noinline)) void move_run_half(char *out, const char *in, size_t n, size_t prefetch)
{
    move_run(out, in, n, 2, prefetch);
}

/* prefetch: as in add_run. */
NRG_INLINE void run_move(char *out, const char *in, size_t n, nrg_dtype D, size_t prefetch)
{
    if (D == NRG_F32)
        move_run_f32(out, in, n, prefetch);
    else
        move_run_half(out, in, n, prefetch);
}

/* ---- whole lines of out, past the cache ---- */

NRG_INLINE void stream_line(char *out, const char *in, size_t size)
{
    NRG_UNROLL
    for (size_t j = 0; j < 64; j += VN * size) {
        if (size == 4)
            v_nt_f32(__builtin_assume_aligned(out + j, 4 * VN), v_ld_f32((const float *)(in + j)));
        else
            v_nt_half(__builtin_assume_aligned(out + j, 2 * VN), v_ld_half((const uint16_t *)(in + j)));
    }
}

NRG_INLINE void stream_lines(char *out, const char *in, size_t bytes, size_t size, size_t prefetch)
{
    for (size_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch((const void *)((uintptr_t)in + i + prefetch));
        stream_line(out + i, in + i, size);
    }
}

static __attribute__((noinline)) void run_stream_f32(char *out, const char *in, size_t bytes, size_t prefetch)
{
    stream_lines(out, in, bytes, 4, prefetch);
}

static __attribute__((noinline)) void run_stream_half(char *out, const char *in, size_t bytes, size_t prefetch)
{
    stream_lines(out, in, bytes, 2, prefetch);
}

static __attribute__((noinline)) void run_stream_zeros(char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) {
        NRG_UNROLL
        for (size_t j = 0; j < 64; j += VN * 4)
            v_nt_f32(__builtin_assume_aligned(out + i + j, 4 * VN), v_zero());
    }
}

#endif
