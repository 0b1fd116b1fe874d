/* The steps of a row of softmax, in the order in which a row passes through them: scores and their maximum, powers, their sum,
 * what the sum makes of a row, and results.
 *
 * A row passes in chunks of floats on the stack, or, if a score is x times a number, straight from x. Options of a score are
 * tested once a few vectors; whatever lies between two steps is in L1. softmax.h has the order of rows and chunks.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_ROW_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_ROW_H

#include "../../exact/softmax_base.h"
#include "../../job/activation.h"
#include "../../job/softmax.h"
#include "../activation/activation_numbers.h"
#include "../lane_sum.h"

enum {
    SOFTMAX_CHUNK = 2048, /* floats on the stack: 8 KB */
    SOFTMAX_STEP = 4,
    /* Vectors of powers side by side. Sixteen registers hold the constants and two of them (AVX2: a row of 2048 in 1258 cycles,
     * and by fours in 1452); where there are 32, four (AVX-512: 740 and 792). */
    SOFTMAX_SIDE = VN == 8 ? 2 : 4
};

#ifdef NRG_SMALL
#define SOFTMAX_IS_SMALL 1
#else
#define SOFTMAX_IS_SMALL V_SMALL
#endif

/* What follows is done for each of `count` vectors, side by side. */
#define SOFTMAX_EACH(count) NRG_UNROLL for (int j = 0; j < (count); j++)

_Static_assert((int)NORM_SEGMENT % SOFTMAX_CHUNK == 0 && SOFTMAX_CHUNK % FAST_BLOCK == 0,
               "chunks are blocks, segments are chunks");

/* n, up to a multiple of the lanes of a sum. */
NRG_INLINE size_t softmax_padded(size_t n) { return (n + FAST_LANES - 1) / FAST_LANES * FAST_LANES; }

/* ---- places ---- */

/* Row n of all. */
typedef struct softmax_at {
    size_t b, h, i;
} softmax_at;

NRG_INLINE softmax_at softmax_at_row(size_t n, size_t heads, size_t queries)
{
    if (n == 0) /* without divisions, for which all of a single row would wait */
        return (softmax_at){0, 0, 0};
    return (softmax_at){n / queries / heads, n / queries % heads, n % queries};
}

/* In its place: three numbers that are handed on by value are stored one by one and loaded two at a time, which waits for the
 * cache. */
NRG_INLINE void softmax_next(softmax_at *at, size_t heads, size_t queries)
{
    if (++at->i < queries)
        return;
    at->i = 0;
    if (++at->h == heads) {
        at->h = 0;
        at->b++;
    }
}

NRG_INLINE size_t softmax_row_at(nrg_head_strides stride, const softmax_at *at)
{
    return at->b * stride.batch + at->h * stride.head + at->i * stride.row;
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

/* Whether all rows of o begin at lines. Others are not streamed: a line that two rows share is finished a row later, or with an
 * ordinary store. 1024x1000 takes 465 us with ordinary stores, and 1009 with others (Emerald Rapids, AVX-512). */
NRG_INLINE int softmax_lines(const char *o, const nrg_head_strides *s)
{
    return ((uintptr_t)o | s->row | s->head | s->batch) % 64 == 0;
}

/* ---- scores ---- */

/* Key j: t = x·scale, or fma(x, scale, bias); then fma(mask, slope, t). Each is rounded. mask and bias: NULL if there is none. */
typedef struct softmax_source {
    const char *x, *mask;
    const float *bias;
    float scale, slope;
    nrg_dtype mask_dtype;
} softmax_source;

NRG_INLINE void softmax_score_step(vf *t, int count, const softmax_source *s, size_t i, size_t lanes, nrg_dtype D)
{
    const vf scale = v_set1(s->scale), slope = v_set1(s->slope);
    vf other[SOFTMAX_STEP];
    load_step(t, count, s->x, i, lanes, D);
    if (NRG_RARELY(s->bias != NULL)) {
        load_step(other, count, (const char *)s->bias, i, lanes, NRG_F32);
        SOFTMAX_EACH(count) t[j] = v_fma(t[j], scale, other[j]);
    } else {
        SOFTMAX_EACH(count) t[j] = v_mul(t[j], scale);
    }
    if (NRG_RARELY(s->mask != NULL)) {
        NRG_CALL_BY_DTYPE(s->mask_dtype, load_step, other, count, s->mask, i, lanes);
        SOFTMAX_EACH(count) t[j] = v_fma(other[j], slope, t[j]);
    }
}

/* The first lanes of t; -infinity in the others. */
NRG_INLINE vf softmax_first_lanes(vf t, size_t lanes)
{
    static const float number[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return v_select(v_lt(v_ld_f32(number), v_set1((float)lanes)), t, v_set1(-INFINITY));
}

/* t of n keys to u, unless it is NULL, and the largest of them and *max. x may be u. The last vector ends with the last key, and
 * so may overlap the one before it: it takes less time than a part of a vector. */
NRG_INLINE void softmax_read_of(vf *max, float *u, const softmax_source *from, size_t n, nrg_dtype D)
{
    const softmax_source s = *from;
    const size_t at = n < VN ? 0 : n - VN;
    vf m[SOFTMAX_STEP], last[1] = {v_zero()};
    size_t i = 0;
    if (n % VN)
        softmax_score_step(last, 1, &s, at, n - at, D);
    SOFTMAX_EACH(SOFTMAX_STEP) m[j] = *max;
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf t[SOFTMAX_STEP];
        softmax_score_step(t, SOFTMAX_STEP, &s, i, 0, D);
        SOFTMAX_EACH(SOFTMAX_STEP) m[j] = v_max(m[j], t[j]);
        if (u)
            SOFTMAX_EACH(SOFTMAX_STEP) v_st_f32(u + i + (size_t)j * VN, t[j]);
    }
    for (; i + VN <= n; i += VN) {
        vf t[1];
        softmax_score_step(t, 1, &s, i, VN, D);
        m[0] = v_max(m[0], t[0]);
        if (u)
            v_st_f32(u + i, t[0]);
    }
    if (n % VN) {
        if (n < VN)
            last[0] = softmax_first_lanes(last[0], n);
        m[1] = v_max(m[1], last[0]);
        if (u)
            v_st_f32(u + at, last[0]);
    }
    *max = v_max(v_max(m[0], m[1]), v_max(m[2], m[3]));
}

NRG_BY_DTYPE(softmax_read, (max, u, from, n), vf *max, float *u, const softmax_source *from, size_t n)

/* A row. mask, bias and o: NULL if there is none. */
typedef struct softmax_row {
    const char *x, *mask;
    const float *bias;
    char *o;
    float slope, sink;
    softmax_keys seen;
} softmax_row;

/* Whether a score is x times a positive number, and its power is what is written: then it may go straight from x. */
NRG_INLINE int softmax_is_plain(const nrg_softmax_job *job)
{
    return !SOFTMAX_IS_SMALL && !job->mask && !job->diagonals && !job->log && !(job->cap > 0) && job->scale > 0;
}

/* In its place, too. */
static __attribute__((noinline)) void softmax_place(softmax_row *row, const nrg_softmax_job *job, const softmax_at *at)
{
    row->x = job->x + softmax_row_at(job->x_stride, at);
    row->o = job->o ? job->o + softmax_row_at(job->o_stride, at) : NULL;
    row->mask = job->mask ? job->mask + softmax_row_at(job->mask_stride, at) : NULL;
    row->bias = NULL;
    if (job->diagonals)
        row->bias = (const float *)(job->diagonals + at->h * job->diagonals_stride) + (job->queries - 1 - at->i);
    row->slope = job->slopes ? job->slopes[at->h] : 1;
    row->sink = job->sinks ? job->sinks[at->h] : -INFINITY;
    row->seen = softmax_seen(job->sight, at->i, job->keys);
}

/* The same of a row whose head has the row before it, too: pointers only move. */
NRG_INLINE void softmax_place_below(softmax_row *row, const softmax_row *before, const nrg_softmax_job *job, const softmax_at *at)
{
    *row = (softmax_row){.x = before->x + job->x_stride.row, .slope = before->slope, .sink = before->sink};
    if (before->o)
        row->o = before->o + job->o_stride.row;
    if (before->mask)
        row->mask = before->mask + job->mask_stride.row;
    if (before->bias)
        row->bias = before->bias - 1;
    row->seen = softmax_seen(job->sight, at->i, job->keys);
}

/* t of keys begin to end to u, with -infinity up to the lanes around them, and their maximum; u NULL: the maximum alone, of a
 * row without a cap. */
static __attribute__((noinline)) void softmax_scores(vf *max, float *u, const nrg_softmax_job *job, const softmax_row *row,
                                                     size_t begin, size_t end, nrg_dtype D)
{
    const size_t from = begin < row->seen.begin ? row->seen.begin : begin, n = end - from, padded = softmax_padded(end - begin);
    softmax_source s = {.x = row->x + bytes_of(from, D, 0), .scale = job->scale, .slope = row->slope};
    if (u) { /* first: the scores overwrite what is too much */
        for (size_t i = 0; i < from - begin; i += VN)
            v_st_f32(u + i, v_set1(-INFINITY));
        for (size_t i = (end - begin) / VN * VN; i < padded; i += VN)
            v_st_f32(u + i, v_set1(-INFINITY));
        u += from - begin;
    }
    if (job->cap > 0) {
        vf unused = v_zero();
        softmax_read(&unused, u, &s, n, D);
        NRG_PATH_NAME(activate)(NRG_ACT_TANH, u, u, n);
        s.x = (const char *)u;
        s.scale = job->cap;
        D = NRG_F32;
    }
    s.bias = row->bias ? row->bias + from : NULL;
    s.mask = row->mask ? row->mask + bytes_of(from, job->mask_dtype, 0) : NULL;
    s.mask_dtype = job->mask_dtype;
    softmax_read(max, u, &s, n, D);
}

/* The maximum of n scores, a multiple of 64, of a plain row, and *max. */
NRG_INLINE void softmax_look_of(vf *max, const char *x, size_t n, float scale, nrg_dtype D)
{
    const vf by = v_set1(scale);
    vf v[SOFTMAX_STEP], m[SOFTMAX_STEP];
    SOFTMAX_EACH(SOFTMAX_STEP) m[j] = *max;
    for (size_t i = 0; i < n; i += SOFTMAX_STEP * VN) {
        load_step(v, SOFTMAX_STEP, x, i, 0, D);
        SOFTMAX_EACH(SOFTMAX_STEP) m[j] = v_max(m[j], v_mul(v[j], by));
    }
    *max = v_max(v_max(m[0], m[1]), v_max(m[2], m[3]));
}

NRG_BY_DTYPE(softmax_look, (max, x, n, scale), vf *max, const char *x, size_t n, float scale)

/* The largest lane; where there is a NaN, any. */
NRG_INLINE float softmax_largest(vf a)
{
    float lanes[VN];
    NRG_UNROLL
    for (int half = VN / 2; half; half /= 2)
        a = v_max(v_even(a, a), v_odd(a, a));
    v_st_f32(lanes, a);
    return lanes[0];
}

/* The largest of row n, from that of its scores; +0 of zeros, whose signs depend on the order. */
NRG_INLINE float softmax_row_max(const nrg_softmax_job *job, const softmax_row *row, size_t n, vf max)
{
    float m = softmax_largest(max);
    if (row->sink > m)
        m = row->sink;
    if (job->m_in && job->m_in[n] > m)
        m = job->m_in[n];
    return m + 0.0f;
}

/* ---- guessed bases: e^t·2^n and its sum times 2^n give the bits of e^t and its sum, so that any base does in which nothing is
 * lost, and a row need not be read for its maximum first (docs/ops/softmax.md) ---- */

/* Whether the largest of a few may stand for the row's, which is above it: not where that might have a shift. A sum below
 * NRG_SOFTMAX_MOST has it at most 60 powers of two above, which are 41.6. */
NRG_INLINE int softmax_may_guess(float m) { return m >= -256 && m <= 212; }

/* Whether it has done: the largest is less than 40 powers of two above. m: the largest that was seen. Where the scale by a power
 * of two saturates it need not be the row's: then the sum tells. */
NRG_INLINE int softmax_did_well(float m, nrg_softmax_base base, double total)
{
    return total < NRG_SOFTMAX_MOST && m <= 256 && nrg_softmax_base_of(m).n - base.n <= 40;
}

/* ---- powers ---- */

/* NRG_SOFTMAX_UNIT·e^(u - n·ln 2), n the base's: v_scale2 takes z as it is. */
NRG_INLINE void softmax_power(int count, vf *e, const vf *u, vf lowest, vf offset)
{
    const float unit = V_SCALE_KEEPS_NAN ? NRG_SOFTMAX_UNIT : 1;
    vf t[SOFTMAX_STEP], z[SOFTMAX_STEP], n[SOFTMAX_STEP], r[SOFTMAX_STEP];
    SOFTMAX_EACH(count) t[j] = v_max(lowest, u[j]);
    SOFTMAX_EACH(count) z[j] = v_fma(t[j], v_set1(NRG_LOG2_E), offset);
    SOFTMAX_EACH(count) n[j] = v_sub(z[j], offset);
    SOFTMAX_EACH(count) r[j] = v_fms(n[j], v_set1(NRG_LN2_HI), t[j]);
    SOFTMAX_EACH(count) r[j] = v_fma(n[j], v_set1(NRG_LN2_LO), r[j]);
    SOFTMAX_EACH(count) e[j] = v_set1(nrg_exp_c[6] * unit);
    NRG_UNROLL
    for (int i = 5; i >= 0; i--)
        SOFTMAX_EACH(count) e[j] = v_fma(e[j], r[j], v_set1(nrg_exp_c[i] * unit));
    if (V_SCALE_KEEPS_NAN)
        SOFTMAX_EACH(count) e[j] = v_scale2(e[j], z[j]);
    else
        SOFTMAX_EACH(count) e[j] = v_mul(e[j], v_scale2(v_set1(NRG_SOFTMAX_UNIT), z[j]));
}

/* The power of one number. */
static __attribute__((noinline)) float softmax_power_of(float t, nrg_softmax_base base)
{
    float lanes[VN];
    vf e[1] = {v_set1(t - base.shift)};
    softmax_power(1, e, e, v_set1(base.low), v_set1(NRG_EXP_MAGIC - base.n));
    v_st_f32(lanes, e[0]);
    return lanes[0];
}

/* What is fetched while there are powers to be made: bytes `at` and on of what is read next, if there is any. */
NRG_INLINE void softmax_fetch(const char *ahead, size_t at, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)ahead + at + b));
}

static __attribute__((noinline)) void softmax_shift(float *u, size_t n, float shift)
{
    for (size_t i = 0; i < n; i += VN)
        v_st_f32(u + i, v_sub(v_ld_f32(u + i), v_set1(shift)));
}

/* Scores around their base: most bases shift nothing. */
NRG_INLINE void softmax_around(float *u, size_t n, nrg_softmax_base base)
{
    if (NRG_RARELY(base.shift != 0))
        softmax_shift(u, n, base.shift);
}

/* The powers of n floats, a multiple of 64; e: where they go, which may be u; ahead: what is read next. */
static __attribute__((noinline)) void softmax_powers(float *e, const float *u, size_t n, nrg_softmax_base base, const char *ahead)
{
    const vf lowest = v_set1(base.low), offset = v_set1(NRG_EXP_MAGIC - base.n);
    for (size_t i = 0; i < n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE];
        softmax_fetch(ahead, i * sizeof *u, SOFTMAX_SIDE * VN * sizeof *u);
        SOFTMAX_EACH(SOFTMAX_SIDE) v[j] = v_ld_f32(u + i + (size_t)j * VN);
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH(SOFTMAX_SIDE) v_st_f32(e + i + (size_t)j * VN, v[j]);
    }
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

/* Powers e of n x of a plain row, a multiple of 64. next: what is read next. o: where powers of another row go that were in e,
 * multiplied: powers wait for multiplications, and this for memory. */
typedef struct softmax_direct {
    const char *x, *next;
    float *e;
    char *o;
    size_t n;
    float scale;
    softmax_end result; /* of o */
    int stream;
    nrg_softmax_base base;
    vf max; /* of these x, where no sum tells (V_SCALE_KEEPS_NAN) */
} softmax_direct;

NRG_INLINE void softmax_direct_of(softmax_direct *f, int has_other, nrg_dtype D)
{
    const vf lowest = v_set1(f->base.low), offset = v_set1(NRG_EXP_MAGIC - f->base.n), scale = v_set1(f->scale);
    const vf high = v_set1(f->result.high), low = v_set1(f->result.low);
    const char *x = f->x, *next = f->next;
    char *o = f->o;
    float *e = f->e;
    const size_t n = f->n;
    const int stream = f->stream;
    vf max[SOFTMAX_SIDE];
    SOFTMAX_EACH(SOFTMAX_SIDE) max[j] = v_set1(-INFINITY);
    for (size_t i = 0; i < n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE], before[SOFTMAX_SIDE];
        /* loads before stores, which may be as far into a page: they would wait */
        if (has_other)
            SOFTMAX_EACH(SOFTMAX_SIDE) before[j] = softmax_result(v_ld_f32(e + i + (size_t)j * VN), high, low, 0);
        softmax_fetch(next, bytes_of(i, D, 0), bytes_of(SOFTMAX_SIDE * VN, D, 0));
        load_step(v, SOFTMAX_SIDE, x, i, 0, D);
        if (!V_SCALE_KEEPS_NAN)
            SOFTMAX_EACH(SOFTMAX_SIDE) max[j] = v_max(max[j], v[j]);
        if (has_other)
            store_step(before, SOFTMAX_SIDE, o, i, 0, D, stream);
        SOFTMAX_EACH(SOFTMAX_SIDE) v[j] = v_mul(v[j], scale);
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH(SOFTMAX_SIDE) v_st_f32(e + i + (size_t)j * VN, v[j]);
    }
    for (int j = 1; j < SOFTMAX_SIDE; j++)
        max[0] = v_max(max[0], max[j]);
    f->max = max[0];
}

NRG_INLINE void softmax_direct_both_of(softmax_direct *f, nrg_dtype D) { softmax_direct_of(f, 1, D); }
NRG_INLINE void softmax_direct_alone_of(softmax_direct *f, nrg_dtype D) { softmax_direct_of(f, 0, D); }

NRG_BY_DTYPE(softmax_direct_both, (f), softmax_direct *f)
NRG_BY_DTYPE(softmax_direct_alone, (f), softmax_direct *f)

/* ---- sums ---- */

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
NRG_INLINE void softmax_add_of(vd8 *sum, const float *e, size_t n)
{
    vd8 lanes = *sum;
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
    *sum = lanes;
}

static __attribute__((noinline)) void softmax_add(vd8 *sum, const float *e, size_t n) { softmax_add_of(sum, e, n); }

/* The same of keys begin and on, but for the one that the sum leaves out. */
NRG_INLINE void softmax_add_keys(vd8 *sum, const nrg_softmax_job *job, float *e, size_t begin, size_t n)
{
    if (job->without - 1 - begin < n)
        e[job->without - 1 - begin] = 0;
    softmax_add(sum, e, n);
}

/* Powers of n scores from key `begin` on to their sum. They take the place of the scores, unless job->log. */
NRG_INLINE void softmax_powers_and_sum(vd8 *sum, const nrg_softmax_job *job, float *u, size_t begin, size_t n,
                                       nrg_softmax_base base, const char *ahead)
{
    float e[FAST_BLOCK];
    if (!job->log) {
        softmax_powers(u, u, n, base, ahead);
        softmax_add_keys(sum, job, u, begin, n);
        return;
    }
    for (size_t i = 0; i < n; i += FAST_BLOCK) {
        const size_t count = n - i < FAST_BLOCK ? n - i : FAST_BLOCK;
        softmax_powers(e, u + i, count, base, (const char *)((uintptr_t)ahead + i * sizeof *u));
        softmax_add(sum, e, count);
    }
}

/* A row's sum, which ends with this. */
NRG_INLINE double softmax_total(const nrg_softmax_job *job, const softmax_row *row, nrg_softmax_base base, softmax_sum *sum)
{
    softmax_end_segment(sum);
    const double total = value_of(&sum->total);
    return job->sinks ? total + (double)softmax_power_of(row->sink, base) : total;
}

/* ---- from sums to results ---- */

/* The logarithm of a sum of powers of which `top` is the largest's. */
static __attribute__((noinline)) double softmax_log(double total, double top)
{
    const double others = total - top;
    return nrg_softmax_log1p((others > 0 ? others : 0) / top);
}

enum { SOFTMAX_TILE = 8 }; /* rows, at most */

/* The same of up to eight rows whose largest are m, operation by operation: with one after the other, a log-softmax of 64 rows of
 * 64 keys takes 1.2 (f32) to 1.45 times as long (bf16; EPYC Zen 4, AVX2). */
static __attribute__((noinline)) void softmax_logs(double log[SOFTMAX_TILE], const double *total, const float *m,
                                                   const nrg_softmax_base *base, size_t rows)
{
    float t[16] = {0}, low[16] = {0}, offset[16] = {0}; /* a vector of any path */
    double f[SOFTMAX_TILE], less[SOFTMAX_TILE], k[SOFTMAX_TILE], top[SOFTMAX_TILE];
    for (size_t r = 0; r < rows; r++) {
        t[r] = m[r] - base[r].shift;
        low[r] = base[r].low;
        offset[r] = NRG_EXP_MAGIC - base[r].n;
    }
    for (int i = 0; i < SOFTMAX_TILE; i += VN) {
        vf e[1] = {v_ld_f32(t + i)};
        softmax_power(1, e, e, v_ld_f32(low + i), v_ld_f32(offset + i));
        v_st_f32(t + i, e[0]);
    }
    for (size_t r = 0; r < SOFTMAX_TILE; r++) {
        top[r] = r < rows ? (double)t[r] : 1;
        less[r] = r < rows ? total[r] : 1;
    }
    for (int i = 0; i < SOFTMAX_TILE; i += VN / 2)
        vd_st(less + i, vd_div(vd_above_0(vd_sub(vd_ld(less + i), vd_ld(top + i))), vd_ld(top + i)));
    for (int i = 0; i < SOFTMAX_TILE; i++) {
        int exponent;
        f[i] = nrg_softmax_split(1 + less[i], &exponent);
        less[i] = exponent ? f[i] - 1 : less[i];
        k[i] = exponent;
    }
    for (int i = 0; i < SOFTMAX_TILE; i += VN / 2) {
        const vd z = vd_div(vd_ld(less + i), vd_add(vd_ld(f + i), vd_set1(1))), zz = vd_mul(z, z), square = vd_mul(zz, zz);
        vd even = vd_set1(nrg_softmax_log_even[0]), odd = vd_set1(nrg_softmax_log_odd[0]);
        for (int j = 1; j < NRG_SOFTMAX_LOG_TERMS; j++) {
            even = vd_add(vd_mul(even, square), vd_set1(nrg_softmax_log_even[j]));
            odd = vd_add(vd_mul(odd, square), vd_set1(nrg_softmax_log_odd[j]));
        }
        even = vd_add(vd_mul(even, square), vd_set1(nrg_softmax_log_even[NRG_SOFTMAX_LOG_TERMS]));
        const vd series = vd_mul(vd_set1(2), vd_add(z, vd_mul(z, vd_mul(zz, vd_add(even, vd_mul(zz, odd))))));
        vd_st(log + i, vd_add(vd_mul(vd_ld(k + i), vd_set1(NRG_SOFTMAX_LN2)), series));
    }
}

/* The inverse of a sum as two floats. */
NRG_INLINE softmax_end softmax_inverse(double total)
{
    const double inverse = 1 / total;
    const float high = (float)inverse;
    return (softmax_end){.high = high, .low = (float)(inverse - (double)high)};
}

/* What is written, from the sum of powers, which a NaN among them has made NaN: the sum's inverse as two floats; or
 * log, its logarithm beside the largest. */
static __attribute__((noinline)) softmax_end softmax_finish(const nrg_softmax_job *job, size_t n, float m, nrg_softmax_base base,
                                                            double total, double log)
{
    const int is_nan = total != total || m > FLT_MAX, is_empty = m < -FLT_MAX;
    if (job->m) {
        const float m_in = job->m_in ? job->m_in[n] : -INFINITY;
        const double s_in = job->s_in ? job->s_in[n] : 0;
        const int poisoned = is_nan | (m_in != m_in) | (s_in != s_in);
        double factor = m == m_in ? 1 : 0;
        if (m_in >= -FLT_MAX && m != m_in && !poisoned)
            factor = nrg_softmax_factor(nrg_softmax_base_of(m_in), base);
        job->m[n] = poisoned ? NAN : m;
        job->s[n] = poisoned ? (double)NAN : is_empty ? 0 : s_in * factor + total * (1 / (double)NRG_SOFTMAX_UNIT);
        job->factor[n] = poisoned ? NAN : (float)factor;
        return (softmax_end){.high = poisoned ? NAN : is_empty ? 0 : 1 / NRG_SOFTMAX_UNIT};
    }
    if (is_nan || is_empty)
        return (softmax_end){.high = is_nan ? NAN : job->log ? INFINITY : 0, .is_log = job->log};
    if (job->log)
        return (softmax_end){.high = m - base.shift, .low = (float)log, .is_log = 1};
    return softmax_inverse(total);
}

/* ---- results ---- */

/* o of n powers or scores in u, which may be o. The last vector is made first, and overlaps the one before it as in
 * softmax_read_of; not past the cache, where an ordinary store into a line waits. */
NRG_INLINE void softmax_write_of(char *o, const float *u, size_t n, const softmax_end *end, int stream, nrg_dtype D)
{
    const int is_log = end->is_log;
    const vf high = v_set1(end->high), low = v_set1(end->low);
    const size_t lanes = n < VN || stream ? n % VN : VN, at = n - lanes;
    size_t i = 0;
    vf last[1] = {v_zero()};
    if (n % VN)
        last[0] = softmax_result(load_lanes(u + at, lanes), high, low, is_log);
    for (; i + SOFTMAX_STEP * VN <= n; i += SOFTMAX_STEP * VN) {
        vf v[SOFTMAX_STEP];
        load_step(v, SOFTMAX_STEP, (const char *)u, i, 0, NRG_F32);
        SOFTMAX_EACH(SOFTMAX_STEP) v[j] = softmax_result(v[j], high, low, is_log);
        store_step(v, SOFTMAX_STEP, o, i, 0, D, stream);
    }
    for (; i + VN <= n; i += VN) {
        const vf v = softmax_result(v_ld_f32(u + i), high, low, is_log);
        store_step(&v, 1, o, i, VN, D, 0);
    }
    if (n % VN)
        store_step(last, 1, o, at, lanes, D, 0);
}

NRG_BY_DTYPE(softmax_write, (o, u, n, end, stream), char *o, const float *u, size_t n, const softmax_end *end, int stream)

NRG_INLINE void softmax_fill_of(char *o, size_t begin, size_t end, float filler, int stream, nrg_dtype D)
{
    const size_t line = 64 / bytes_of(1, D, 0);
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

/* Keys that are not seen, begin to end: 0 or, with log, -infinity. The bits of that in f16 are bf16's of -2^121. */
static __attribute__((noinline)) void softmax_blank(char *o, size_t begin, size_t end, int log, int stream, nrg_dtype D)
{
    const float infinite = D == NRG_F16 ? -0x1p121f : -INFINITY;
    if (D == NRG_F32)
        softmax_fill_of(o, begin, end, log ? infinite : 0, stream, NRG_F32);
    else
        softmax_fill_of(o, begin, end, log ? infinite : 0, stream, NRG_BF16);
}

#endif
