/* What rows of softmax are made of: t from scores and what is added to them, e^t and its sum, and results.
 *
 * A row is done in chunks of floats on the stack, which one loop an option goes over; so there is a loop for a dtype and one for
 * an option, and none for their products. What lies between the loops is in L1.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_ROW_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_ROW_H

#include "../../exact/softmax_base.h"
#include "../../job/activation.h"
#include "../../job/softmax.h"
#include "../activation/activation_functions.h"
#include "../lane_sum.h"

enum {
    SOFTMAX_CHUNK = 2048, /* floats on the stack: 8 KB */
    SOFTMAX_STEP = 4,
    /* Vectors of powers side by side. Sixteen registers hold the constants and two of them (AVX2: a row of 2048 in 1258 cycles,
     * and by fours in 1452); where there are 32, four (AVX-512: 740 and 792). */
    SOFTMAX_SIDE = VN == 8 ? 2 : 4
};

#define SOFTMAX_EACH NRG_UNROLL for (int j = 0; j < SOFTMAX_SIDE; j++)

_Static_assert((int)NORM_SEGMENT % SOFTMAX_CHUNK == 0 && SOFTMAX_CHUNK % FAST_BLOCK == 0,
               "chunks are blocks, segments are chunks");

/* The largest of a vector's lanes; where there is a NaN, any. */
NRG_INLINE float softmax_largest(vf a)
{
    float lanes[VN];
    for (int half = VN / 2; half; half /= 2)
        a = v_max(v_even(a, a), v_odd(a, a));
    v_st_f32(lanes, a);
    return lanes[0];
}

/* ---- floats of a chunk ---- */

/* Floats begin to end, any number of them. */
static __attribute__((noinline)) void softmax_fill(float *u, size_t begin, size_t end, float filler)
{
    for (; begin < end; begin += lanes_at(begin, end))
        v_stn_f32(u + begin, v_set1(filler), lanes_at(begin, end));
}

/* The last, incomplete vector of a chunk, which has room for a whole one: lanes that do not exist are filled. */
NRG_INLINE vf softmax_rest(float *u, vf v, size_t lanes, float filler)
{
    v_st_f32(u, v);
    if (lanes == VN)
        return v;
    v_stn_f32(u + lanes, v_set1(filler), VN - lanes);
    return v_ld_f32(u);
}

/* u = x·scale, rounded; or fma(x, scale, bias). Returns the largest. */
NRG_INLINE vf softmax_read_of(float *u, const char *x, size_t n, float scale, const float *bias, nrg_dtype D)
{
    const vf factor = v_set1(scale);
    vf most[SOFTMAX_STEP];
    size_t i = 0;
    NRG_UNROLL
    for (int j = 0; j < SOFTMAX_STEP; j++)
        most[j] = v_set1(-INFINITY);
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf v[SOFTMAX_STEP];
        load_step(v, SOFTMAX_STEP, x, i, 0, D);
        if (bias) {
            NRG_UNROLL
            for (int j = 0; j < SOFTMAX_STEP; j++)
                v[j] = v_fma(v[j], factor, v_ld_f32(bias + i + (size_t)j * VN));
        } else {
            NRG_UNROLL
            for (int j = 0; j < SOFTMAX_STEP; j++)
                v[j] = v_mul(v[j], factor);
        }
        NRG_UNROLL
        for (int j = 0; j < SOFTMAX_STEP; j++) {
            most[j] = v_max(most[j], v[j]);
            v_st_f32(u + i + (size_t)j * VN, v[j]);
        }
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf v = load_part(x, i, lanes, D), t = bias ? v_fma(v, factor, v_ldn_f32(bias + i, lanes)) : v_mul(v, factor);
        most[0] = v_max(most[0], softmax_rest(u + i, t, lanes, -INFINITY));
    }
    return v_max(v_max(most[0], most[1]), v_max(most[2], most[3]));
}

/* u = fma(mask, slope, u). Returns the largest. */
NRG_INLINE vf softmax_add_of(float *u, const char *mask, size_t n, float slope, nrg_dtype D)
{
    const vf factor = v_set1(slope);
    vf most[SOFTMAX_STEP];
    size_t i = 0;
    NRG_UNROLL
    for (int j = 0; j < SOFTMAX_STEP; j++)
        most[j] = v_set1(-INFINITY);
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf v[SOFTMAX_STEP];
        load_step(v, SOFTMAX_STEP, mask, i, 0, D);
        NRG_UNROLL
        for (int j = 0; j < SOFTMAX_STEP; j++) {
            v[j] = v_fma(v[j], factor, v_ld_f32(u + i + (size_t)j * VN));
            most[j] = v_max(most[j], v[j]);
            v_st_f32(u + i + (size_t)j * VN, v[j]);
        }
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf t = v_fma(load_part(mask, i, lanes, D), factor, v_ld_f32(u + i));
        most[0] = v_max(most[0], softmax_rest(u + i, t, lanes, -INFINITY));
    }
    return v_max(v_max(most[0], most[1]), v_max(most[2], most[3]));
}

/* Through memory, since a function of its own returns no vector on every path. */
NRG_INLINE void softmax_read_to_of(vf *most, float *u, const char *x, size_t n, float scale, const float *bias, nrg_dtype D)
{
    *most = softmax_read_of(u, x, n, scale, bias, D);
}

NRG_INLINE void softmax_add_to_of(vf *most, float *u, const char *mask, size_t n, float slope, nrg_dtype D)
{
    *most = softmax_add_of(u, mask, n, slope, D);
}

NRG_BY_DTYPE(softmax_read_to, (most, u, x, n, scale, bias), vf *most, float *u, const char *x, size_t n, float scale,
             const float *bias)
NRG_BY_DTYPE(softmax_add_to, (most, u, mask, n, slope), vf *most, float *u, const char *mask, size_t n, float slope)

/* Whether all rows of o begin at lines. Others are not streamed: a line that two rows share is finished a row later, or with an
 * ordinary store. 1024x1000 takes 465 us with ordinary stores, and 1009 with others (Emerald Rapids, AVX-512). */
NRG_INLINE int softmax_lines(const char *o, const nrg_score_strides *s)
{
    return ((uintptr_t)o | s->query | s->head | s->batch) % 64 == 0;
}

/* Results: e·(high + low), or (u - high) - low where is_log. */
typedef struct softmax_end {
    float high, low;
    int is_log;
} softmax_end;

NRG_INLINE vf softmax_result(vf v, vf high, vf low, int is_log)
{
    return is_log ? v_sub(v_sub(v, high), low) : v_fma(v, high, v_mul(v, low));
}

NRG_INLINE void softmax_write_of(char *o, const float *u, size_t n, const softmax_end *end, int stream, nrg_dtype D)
{
    const int is_log = end->is_log;
    const vf high = v_set1(end->high), low = v_set1(end->low);
    size_t i = 0;
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf v[SOFTMAX_STEP];
        load_step(v, SOFTMAX_STEP, (const char *)u, i, 0, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < SOFTMAX_STEP; j++)
            v[j] = softmax_result(v[j], high, low, is_log);
        store_step(v, SOFTMAX_STEP, o, i, 0, D, stream);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n); /* u may be o, behind which there is nothing */
        const vf v = softmax_result(load_lanes(u + i, lanes), high, low, is_log);
        store_step(&v, 1, o, i, lanes, D, 0);
    }
}

NRG_BY_DTYPE(softmax_write, (o, u, n, end, stream), char *o, const float *u, size_t n, const softmax_end *end, int stream)

/* Keys that are not seen, begin to end. */
NRG_INLINE void softmax_blank_of(char *o, size_t begin, size_t end, float filler, int stream, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), line = 64 / size;
    const vf v = v_set1(filler);
    if (streams(stream) && (uintptr_t)o % 64 == 0 && end - begin >= 2 * line) {
        const size_t first = (begin + line - 1) / line * line, last = end / line * line;
        for (; begin < first; begin += lanes_at(begin, first))
            store_step(&v, 1, o, begin, lanes_at(begin, first), D, 0);
        for (; begin < last; begin += VN)
            store_step(&v, 1, o, begin, VN, D, 1);
    }
    for (; begin + VN <= end; begin += VN)
        store_step(&v, 1, o, begin, VN, D, 0);
    if (begin < end)
        store_step(&v, 1, o, begin, end - begin, D, 0);
}

NRG_BY_DTYPE(softmax_blank, (o, begin, end, filler, stream), char *o, size_t begin, size_t end, float filler, int stream)

/* ---- e^u, and sums ---- */

/* NRG_SOFTMAX_UNIT·e^(u - n·ln 2), n the base's: v_scale2 takes z as it is. */
NRG_INLINE void softmax_power(int count, vf *e, const vf *u, vf lowest, vf offset)
{
    const int apart = !V_SCALE_KEEPS_NAN;
    vf t[SOFTMAX_STEP], z[SOFTMAX_STEP], n[SOFTMAX_STEP], r[SOFTMAX_STEP];
    ACT_SIDE t[j] = v_max(lowest, u[j]);
    ACT_SIDE z[j] = v_fma(t[j], v_set1(NRG_LOG2_E), offset);
    ACT_SIDE n[j] = v_sub(z[j], offset);
    ACT_SIDE r[j] = v_fms(n[j], v_set1(NRG_LN2_HI), t[j]);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_LO), r[j]);
    act_polynomial(count, e, nrg_exp_c, 6, apart ? 1 : NRG_SOFTMAX_UNIT, r);
    if (apart)
        ACT_SIDE e[j] = v_mul(e[j], v_scale2(v_set1(NRG_SOFTMAX_UNIT), z[j]));
    else
        ACT_SIDE e[j] = v_scale2(e[j], z[j]);
}

/* A sum of powers so far: of a segment in eight lanes of double, and of segments. */
typedef struct softmax_sum {
    vd8 lanes;
    norm_total total;
} softmax_sum;

NRG_INLINE vd8 softmax_no_lanes(void)
{
    vd8 none;
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        none.v[j] = vd_zero();
    return none;
}

NRG_INLINE void softmax_clear(softmax_sum *s)
{
    s->lanes = softmax_no_lanes();
    s->total = (norm_total){0, 0};
}

NRG_INLINE void softmax_end_segment(softmax_sum *s)
{
    add_compensated(&s->total, vd8_sum(&s->lanes));
    s->lanes = softmax_no_lanes();
}

/* Adds n powers, a multiple of 64: each 64 of them fold to eight, which go to the lanes. The loop is separate from the one that
 * computes powers: at the end of their long chain of operations the same conversions and additions take more time. Speedup of a
 * softmax of 32×1×4096: 1.10 with AVX-512, 1.09 with AVX2 (Xeon, Emerald Rapids class, gcc 12). */
static __attribute__((noinline)) void softmax_add(softmax_sum *s, const float *e, size_t n)
{
    vd8 lanes = s->lanes;
    for (size_t i = 0; i < n; i += FAST_LANES) {
        vd v[FAST_LANES / 8 * FAST_FOLDED];
        NRG_UNROLL
        for (int half = FAST_LANES / 8 * FAST_FOLDED / 2, j = 0; j < half; j++)
            v[j] = vd_add(vd_ld_f32(e + i + j * (VN / 2)), vd_ld_f32(e + i + (j + half) * (VN / 2)));
        NRG_UNROLL
        for (int half = FAST_LANES / 8 * FAST_FOLDED / 4, j = 0; j < half; j++)
            v[j] = vd_add(v[j], v[j + half]);
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++)
            lanes.v[j] = vd_add(lanes.v[j], vd_add(v[j], v[j + FAST_FOLDED]));
    }
    s->lanes = lanes;
}

/* What is fetched while there are powers to be made: bytes `at` and on of what is read next, if there is any. */
NRG_INLINE void softmax_fetch(const char *ahead, size_t at, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)ahead + at + b));
}

/* The powers of n floats, a multiple of 64; e: where they go, which may be u; ahead: what is read next. */
static __attribute__((noinline)) void softmax_powers_and(float *e, const float *u, size_t n, nrg_softmax_base base,
                                                         const char *ahead)
{
    const vf lowest = v_set1(base.low), offset = v_set1(NRG_EXP_MAGIC - base.n);
    for (size_t i = 0; i < n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE];
        softmax_fetch(ahead, i * sizeof *u, SOFTMAX_SIDE * VN * sizeof *u);
        SOFTMAX_EACH v[j] = v_ld_f32(u + i + (size_t)j * VN);
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH v_st_f32(e + i + (size_t)j * VN, v[j]);
    }
}

NRG_INLINE void softmax_powers(float *u, size_t n, nrg_softmax_base base) { softmax_powers_and(u, u, n, base, (const char *)u); }

/* Their sum, where they are not kept. */
static __attribute__((noinline)) void softmax_add_powers(softmax_sum *s, const float *u, size_t n, nrg_softmax_base base,
                                                         const char *ahead)
{
    float e[FAST_BLOCK];
    for (size_t i = 0; i < n; i += FAST_BLOCK) {
        const size_t block = n - i < FAST_BLOCK ? n - i : FAST_BLOCK;
        softmax_powers_and(e, u + i, block, base, (const char *)((uintptr_t)ahead + i * sizeof *u));
        softmax_add(s, e, block);
    }
}

/* ---- places ---- */

NRG_INLINE size_t softmax_row_at(nrg_score_strides stride, size_t b, size_t h, size_t i)
{
    return b * stride.batch + h * stride.head + i * stride.query;
}

/* The keys that query i sees: begin to end, and where the first block of them begins; where there is none, three times the same.
 */
typedef struct softmax_keys {
    size_t first, begin, end;
} softmax_keys;

NRG_INLINE softmax_keys softmax_seen(nrg_softmax_sight sight, size_t i, size_t keys)
{
    const int64_t first = sight.first + (int64_t)i, last = sight.last + (int64_t)i;
    const size_t end = last <= 0 ? 0 : (uint64_t)last < keys ? (size_t)last : keys;
    const size_t begin = first <= 0 ? 0 : (uint64_t)first < end ? (size_t)first : end;
    return (softmax_keys){begin < end ? begin - begin % FAST_BLOCK : begin, begin, end};
}

/* Where the chunk from i on ends. Chunks begin at multiples of their size, but for a row's first. */
NRG_INLINE size_t softmax_chunk_end(size_t i, size_t end)
{
    const size_t next = i - i % SOFTMAX_CHUNK + SOFTMAX_CHUNK;
    return next < end ? next : end;
}

#endif
