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
    SOFTMAX_SIDE = VN == 8 ? 2 : (int)V_ACT
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

/* Results: e·inverse, or (u - high) - low where is_log. */
typedef struct softmax_end {
    float inverse, high, low;
    int is_log;
} softmax_end;

NRG_INLINE vf softmax_result(vf v, vf factor, vf low, int is_log)
{
    return is_log ? v_sub(v_sub(v, factor), low) : v_mul(v, factor);
}

NRG_INLINE void softmax_write_of(char *o, const float *u, size_t n, const softmax_end *end, int stream, nrg_dtype D)
{
    const int is_log = end->is_log;
    const vf factor = v_set1(is_log ? end->high : end->inverse), low = v_set1(end->low);
    size_t i = 0;
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf v[SOFTMAX_STEP];
        load_step(v, SOFTMAX_STEP, (const char *)u, i, 0, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < SOFTMAX_STEP; j++)
            v[j] = softmax_result(v[j], factor, low, is_log);
        store_step(v, SOFTMAX_STEP, o, i, 0, D, stream);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n); /* u may be o, behind which there is nothing */
        const vf v = softmax_result(load_lanes(u + i, lanes), factor, low, is_log);
        store_step(&v, 1, o, i, lanes, D, 0);
    }
}

NRG_BY_DTYPE(softmax_write, (o, u, n, end, stream), char *o, const float *u, size_t n, const softmax_end *end, int stream)

/* Keys that are not seen, begin to end. */
NRG_INLINE void softmax_blank_of(char *o, size_t begin, size_t end, float filler, int stream, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), line = VN * size;
    const vf v = v_set1(filler);
    if (streams(stream) && end - begin >= 2 * VN && (uintptr_t)o % size == 0) {
        const size_t before = (line - ((uintptr_t)o + begin * size) % line) % line / size;
        if (before)
            store_step(&v, 1, o, begin, before, D, 0);
        for (begin += before; begin + VN <= end; begin += VN)
            store_step(&v, 1, o, begin, VN, D, 1);
    }
    for (; begin + VN <= end; begin += VN)
        store_step(&v, 1, o, begin, VN, D, 0);
    if (begin < end)
        store_step(&v, 1, o, begin, end - begin, D, 0);
}

NRG_BY_DTYPE(softmax_blank, (o, begin, end, filler, stream), char *o, size_t begin, size_t end, float filler, int stream)

/* ---- e^u, and sums ---- */

/* 2^64·e^(u - n·ln 2), n the base's: v_scale2 takes z as it is. */
NRG_INLINE void softmax_power(int count, vf *e, const vf *u, vf lowest, vf offset)
{
    const int apart = !V_SCALE_KEEPS_NAN;
    vf t[V_ACT], z[V_ACT], n[V_ACT], r[V_ACT];
    ACT_SIDE t[j] = v_max(lowest, u[j]);
    ACT_SIDE z[j] = v_fma(t[j], v_set1(NRG_LOG2_E), offset);
    ACT_SIDE n[j] = v_sub(z[j], offset);
    ACT_SIDE r[j] = v_fms(n[j], v_set1(NRG_LN2_HI), t[j]);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_LO), r[j]);
    act_polynomial(count, e, nrg_exp_c, 6, apart ? 1 : 0x1p64f, r);
    if (apart)
        ACT_SIDE e[j] = v_mul(e[j], v_scale2(v_set1(0x1p64f), z[j]));
    else
        ACT_SIDE e[j] = v_scale2(e[j], z[j]);
}

/* A sum so far: of the blocks of a segment, and of segments. */
typedef struct softmax_sum {
    vf sum[FAST_FOLDED], lost[FAST_FOLDED];
    norm_total total;
} softmax_sum;

NRG_INLINE void softmax_clear(softmax_sum *s)
{
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        s->sum[j] = s->lost[j] = v_zero();
    s->total = (norm_total){0, 0};
}

NRG_INLINE void softmax_end_segment(softmax_sum *s)
{
    const vd8 eight = fast_widen(s->sum, s->lost);
    add_compensated(&s->total, vd8_sum(&eight));
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        s->sum[j] = s->lost[j] = v_zero();
}

/* A block's lanes, which are taken apart by this. */
NRG_INLINE void softmax_join(softmax_sum *s, vf *lanes)
{
    fast_fold(lanes, 0);
    fast_join(s->sum, s->lost, lanes);
}

/* What is fetched while there are powers to be made: bytes `at` and on of what is read next, if there is any. */
NRG_INLINE void softmax_fetch(const char *ahead, size_t at, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)ahead + at + b));
}

/* The powers of n floats, a multiple of 64, and their sum; e: where they go, or NULL; ahead: what is read next. */
NRG_INLINE void softmax_powers_of(float *e, const float *u, size_t n, nrg_softmax_base base, softmax_sum *s, int keep,
                                  const char *ahead)
{
    const vf lowest = v_set1(base.low), offset = v_set1(NRG_EXP_MAGIC - base.n);
    for (size_t block = 0; block < n; block += FAST_BLOCK) {
        const size_t end = n - block < FAST_BLOCK ? n : block + FAST_BLOCK;
        vf lanes[FAST_VECTORS];
        for (int first = 0; first < (int)FAST_VECTORS; first += SOFTMAX_SIDE) {
            vf sum[SOFTMAX_SIDE];
            SOFTMAX_EACH sum[j] = v_zero();
            for (size_t i = block + (size_t)first * VN; i < end; i += FAST_LANES) {
                vf in[V_ACT], out[V_ACT];
                softmax_fetch(ahead, i * sizeof *u, SOFTMAX_SIDE * VN * sizeof *u);
                SOFTMAX_EACH in[j] = v_ld_f32(u + i + (size_t)j * VN);
                softmax_power(SOFTMAX_SIDE, out, in, lowest, offset);
                SOFTMAX_EACH sum[j] = v_add(sum[j], out[j]);
                if (keep)
                    SOFTMAX_EACH v_st_f32(e + i + (size_t)j * VN, out[j]);
            }
            SOFTMAX_EACH lanes[first + j] = sum[j];
        }
        softmax_join(s, lanes);
    }
}

static __attribute__((noinline)) void softmax_powers_and(float *e, const float *u, size_t n, nrg_softmax_base base,
                                                         softmax_sum *s, const char *ahead)
{
    softmax_powers_of(e, u, n, base, s, e != NULL, ahead);
}

NRG_INLINE void softmax_powers(float *e, const float *u, size_t n, nrg_softmax_base base, softmax_sum *s)
{
    softmax_powers_and(e, u, n, base, s, (const char *)u);
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
