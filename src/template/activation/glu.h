/* Gated linear units over the vectors of a path's vec.h. Floats that lie as they are wanted go straight through the loops of the
 * activations, which multiply; everything else becomes floats on the stack first, a block at a time: 16-bit elements, pairs, what
 * a limit or an offset makes of the inputs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_GLU_H
#define NRG_TEMPLATE_ACTIVATION_GLU_H

#include "../../job/activation.h"
#include "../../job/quantize.h"
#include "activation_blocks.h"

typedef struct glu_block {
    float a[ACT_BLOCK], b[ACT_BLOCK];
} glu_block;

NRG_INLINE int glu_is_limited(const nrg_glu_job *job) { return job->limit <= FLT_MAX; }
NRG_INLINE int glu_is_plain(const nrg_glu_job *job) { return !glu_is_limited(job) && job->b_offset == 0; }

/* Limit and offset are part of the loops of these two, which are used with them; others are limited in blocks. */
NRG_INLINE int glu_has_loop(const nrg_glu_job *job)
{
    return glu_is_plain(job) || job->activation == NRG_ACT_SILU || job->activation == NRG_ACT_GELU_QUICK;
}

NRG_INLINE void glu_times(const nrg_glu_job *job, const float *a, const float *b, float *o, size_t n, unsigned how)
{
    if (glu_is_plain(job))
        NRG_PATH_NAME(activate_times)(job->activation, job->alpha, a, b, o, n, how);
    else
        NRG_PATH_NAME(activate_limited)(job->activation, job->alpha, job->limit, job->b_offset, a, b, o, n, how);
}

/* ---- n elements from a tensor, and to one ---- */

/* Asks for what comes two blocks further on: as far ahead as the loops of the activations ask. */
NRG_INLINE void glu_ask(const void *p, size_t i, size_t n, size_t each)
{
    const uintptr_t from = (uintptr_t)p + (i + 2 * ACT_BLOCK) * each;
    for (size_t b = 0; b < n * each; b += 64)
        __builtin_prefetch((const void *)(from + b));
}

NRG_INLINE vf glu_ld(const void *p, size_t i, nrg_dtype dtype)
{
    return dtype == NRG_F32 ? v_ld_f32((const float *)p + i) : act_from_half(v_ld_half((const uint16_t *)p + i), dtype);
}

NRG_INLINE vf glu_ldn(const void *p, size_t i, size_t n, nrg_dtype dtype)
{
    return dtype == NRG_F32 ? v_ldn_f32((const float *)p + i, n) : act_from_half(v_ldn_half((const uint16_t *)p + i, n), dtype);
}

NRG_INLINE void glu_st(void *p, size_t i, vf a, nrg_dtype dtype, int stream)
{
    if (dtype == NRG_F32 && stream)
        v_nt_f32((float *)p + i, a);
    else if (dtype == NRG_F32)
        v_st_f32((float *)p + i, a);
    else if (stream)
        v_nt_half((uint16_t *)p + i, act_to_half(a, dtype));
    else
        v_st_half((uint16_t *)p + i, act_to_half(a, dtype));
}

NRG_INLINE void glu_stn(void *p, size_t i, vf a, size_t n, nrg_dtype dtype, int stream)
{
    if (dtype == NRG_F32 && stream)
        stream_f32_lanes((float *)p + i, a, n);
    else if (dtype == NRG_F32)
        v_stn_f32((float *)p + i, a, n);
    else if (stream)
        stream_half_lanes((uint16_t *)p + i, act_to_half(a, dtype), n);
    else
        v_stn_half((uint16_t *)p + i, act_to_half(a, dtype), n);
}

/* in_order: the block's elements are, beside pairs. */
NRG_INLINE void glu_read_of(float *block, const void *p, size_t i, size_t n, int in_order, nrg_dtype dtype)
{
    size_t j = 0;
    if (act_has_pairs(dtype) && !in_order) {
        act_widen(block, (const uint16_t *)p + i, n, dtype);
        return;
    }
    for (; j + VN <= n; j += VN)
        v_st_f32(block + j, glu_ld(p, i + j, dtype));
    if (j < n)
        v_st_f32(block + j, glu_ldn(p, i + j, n - j, dtype));
}

NRG_BY_DTYPE(glu_read, (block, p, i, n, in_order), float *block, const void *p, size_t i, size_t n, int in_order)

NRG_INLINE void glu_write_of(void *p, const float *block, size_t i, size_t n, int in_order, int stream, nrg_dtype dtype)
{
    size_t j = 0;
    if (act_has_pairs(dtype) && !in_order) {
        act_narrow((uint16_t *)p + i, block, n, dtype, stream);
        return;
    }
    for (; j + VN <= n; j += VN)
        glu_st(p, i + j, v_ld_f32(block + j), dtype, stream);
    if (j < n) {
        NRG_NOBODYS_LANES(block, n);
        glu_stn(p, i + j, v_ld_f32(block + j), n - j, dtype, stream);
    }
}

NRG_BY_DTYPE(glu_write, (p, block, i, n, in_order, stream), void *p, const float *block, size_t i, size_t n, int in_order,
             int stream)

/* n pairs from element 2·i on. */
NRG_INLINE void glu_read_pairs_of(glu_block *block, const void *p, size_t i, size_t n, nrg_dtype dtype)
{
    size_t j = 0;
    for (; act_has_pairs(dtype) && j + VN <= n; j += VN) {
        const vp h = v_ld_pair((const uint16_t *)p + 2 * (i + j));
        v_st_f32(block->a + j, v_even_from_bf16(h));
        v_st_f32(block->b + j, v_odd_from_bf16(h));
    }
    for (; j + VN <= n; j += VN) {
        const vf low = glu_ld(p, 2 * (i + j), dtype), high = glu_ld(p, 2 * (i + j) + VN, dtype);
        v_st_f32(block->a + j, v_even(low, high));
        v_st_f32(block->b + j, v_odd(low, high));
    }
    if (j < n) {
        const size_t left = 2 * (n - j);
        const vf low = glu_ldn(p, 2 * (i + j), left < VN ? left : VN, dtype);
        const vf high = left > VN ? glu_ldn(p, 2 * (i + j) + VN, left - VN, dtype) : v_zero();
        v_st_f32(block->a + j, v_even(low, high));
        v_st_f32(block->b + j, v_odd(low, high));
    }
}

NRG_BY_DTYPE(glu_read_pairs, (block, p, i, n), glu_block *block, const void *p, size_t i, size_t n)

NRG_INLINE void glu_write_pairs_of(void *p, const glu_block *block, size_t i, size_t n, int stream, nrg_dtype dtype)
{
    size_t j = 0;
    for (; act_has_pairs(dtype) && j + VN <= n; j += VN) {
        const vp h = v_pair_to_bf16(v_ld_f32(block->a + j), v_ld_f32(block->b + j));
        if (stream)
            v_nt_pair((uint16_t *)p + 2 * (i + j), h);
        else
            v_st_pair((uint16_t *)p + 2 * (i + j), h);
    }
    for (; j + VN <= n; j += VN) {
        const vf a = v_ld_f32(block->a + j), b = v_ld_f32(block->b + j);
        glu_st(p, 2 * (i + j), v_zip_low(a, b), dtype, stream);
        glu_st(p, 2 * (i + j) + VN, v_zip_high(a, b), dtype, stream);
    }
    if (j < n) {
        const size_t left = 2 * (n - j);
        NRG_NOBODYS_LANES(block->a, n);
        NRG_NOBODYS_LANES(block->b, n);
        const vf a = v_ld_f32(block->a + j), b = v_ld_f32(block->b + j);
        glu_stn(p, 2 * (i + j), v_zip_low(a, b), left < VN ? left : VN, dtype, stream);
        if (left > VN)
            glu_stn(p, 2 * (i + j) + VN, v_zip_high(a, b), left - VN, dtype, stream);
    }
}

NRG_BY_DTYPE(glu_write_pairs, (p, block, i, n, stream), void *p, const glu_block *block, size_t i, size_t n, int stream)

/* The inputs of elements i to i + n. What is behind them, up to a whole vector, is 0. */
static void glu_inputs(glu_block *block, const nrg_glu_job *job, size_t i, size_t n, int in_order, nrg_dtype dtype)
{
    const size_t each = (dtype == NRG_F32 ? 4 : 2) * (job->b ? 1 : 2);
    if (job->stream) {
        glu_ask(job->a, i, n, each);
        if (job->b)
            glu_ask(job->b, i, n, each);
        if (job->d_o)
            glu_ask(job->d_o, i, n, dtype == NRG_F32 ? 4 : 2);
    }
    if (job->b) {
        glu_read(block->a, job->a, i, n, in_order, dtype);
        glu_read(block->b, job->b, i, n, in_order, dtype);
    } else {
        glu_read_pairs(block, job->a, i, n, dtype);
    }
}

/* a' and b'. NaNs come through, which is why constants are first operands. */
static __attribute__((noinline)) void glu_limit(glu_block *block, const nrg_glu_job *job, size_t n)
{
    const vf most = v_set1(job->limit), least = v_set1(-job->limit), offset = v_set1(job->b_offset);
    for (size_t j = 0; j < n; j += VN) {
        v_st_f32(block->a + j, v_min(most, v_ld_f32(block->a + j)));
        v_st_f32(block->b + j, v_add(v_max(least, v_min(most, v_ld_f32(block->b + j))), offset));
    }
}

/* Whether a block goes past the cache: the first one, up to where a line ends, does not; nor does a tensor whose vectors no line
 * holds. */
NRG_INLINE int glu_may_stream(const void *p, size_t i, size_t each, int stream)
{
    return stream && ((uintptr_t)p + i * each) % 16 == 0;
}

/* The number of elements in the block from i on, of which `each` bytes are written at out: a streamed one ends where a line ends.
 */
NRG_INLINE size_t glu_block_size(const void *out, size_t i, size_t end, size_t each, int stream)
{
    const size_t line = 64 / each, past = ((uintptr_t)out / each + i) % line, n = stream && past ? line - past : ACT_BLOCK;
    return end - i < n ? end - i : n;
}

/* ---- forward ---- */

/* Lines that are in cache because the call is in place gain nothing by streaming. */
NRG_INLINE int glu_streams(const nrg_glu_job *job) { return job->stream && job->o != job->a && job->o != job->b; }

/* Elements i to i + n, in the place of a. */
static void glu_block_of(glu_block *block, const nrg_glu_job *job, size_t i, size_t n, int in_order, nrg_dtype dtype)
{
    glu_inputs(block, job, i, n, in_order, dtype);
    act_fill(block->a, n);
    n = act_fill(block->b, n);
    if (glu_has_loop(job)) {
        glu_times(job, block->a, block->b, block->a, n, 0);
    } else {
        glu_limit(block, job, n);
        NRG_PATH_NAME(activate_times)(job->activation, job->alpha, block->a, block->b, block->a, n, 0);
    }
}

static __attribute__((noinline)) void glu_blocks(const nrg_glu_job *job, nrg_dtype dtype)
{
    glu_block block;
    const int stream = glu_streams(job);
    const size_t each = dtype == NRG_F32 ? 4 : 2;
    for (size_t i = job->begin, end = job->end, n; i < end; i += n) {
        n = glu_block_size(job->o, i, end, each, stream);
        glu_block_of(&block, job, i, n, 0, dtype);
        glu_write(job->o, block.a, i, n, !job->b, glu_may_stream(job->o, i, each, stream), dtype);
    }
    if (stream)
        v_nt_fence();
}

NRG_INLINE void glu_f32(const nrg_glu_job *job)
{
    if (!job->b || !glu_has_loop(job)) {
        glu_blocks(job, NRG_F32);
        return;
    }
    const int stream = glu_streams(job);
    const unsigned how = stream ? NRG_TIMES_STREAM | NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR : 0;
    glu_times(job, (const float *)job->a + job->begin, (const float *)job->b + job->begin, (float *)job->o + job->begin,
              job->end - job->begin, how);
    if (stream)
        v_nt_fence();
}

/* Elements from begin on in a loop of their own where there is one; blocks have what is before a line begins, and what is left.
 */
static void glu_bf16(const nrg_glu_job *job)
{
    const int stream = glu_streams(job);
    const size_t past = ((uintptr_t)job->o / 2 + job->begin) % 32, n = job->end - job->begin;
    const size_t head = stream && past ? 32 - past : 0;
    nrg_glu_job part = *job;
    if (job->b && n > head) {
        nrg_bf16_times p = {(const uint16_t *)job->a + job->begin + head,
                            (const uint16_t *)job->b + job->begin + head,
                            (uint16_t *)job->o + job->begin + head,
                            job->alpha,
                            job->limit,
                            job->b_offset};
        const unsigned how = stream ? NRG_TIMES_STREAM | NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR : 0;
        const size_t done = NRG_PATH_NAME(activate_bf16_times)(job->activation, &p, n - head, how);
        if (done && done < n && !stream && job->o != job->a && job->o != job->b) {
            /* the end of the row fills a step with what is before it, which is made again */
            const size_t last = n - 2 * VN;
            p.in += last;
            p.factor += last;
            p.out += last;
            NRG_PATH_NAME(activate_bf16_times)(job->activation, &p, 2 * VN, 0);
            return;
        }
        if (done) {
            if (head) {
                part.end = job->begin + head;
                glu_blocks(&part, NRG_BF16);
            }
            part.begin = job->begin + head + done;
            part.end = job->end;
        }
    }
    if (part.begin < part.end || stream)
        glu_blocks(&part, NRG_BF16);
}

NRG_PATH_KERNEL(glu, f32, glu, glu_f32(job))
NRG_PATH_KERNEL(glu, f16, glu, glu_blocks(job, NRG_F16))
NRG_PATH_KERNEL(glu, bf16, glu, glu_bf16(job))

#ifndef NRG_NO_QUANTIZE
/* A row as bytes, a block at a time; with a scale for all of them, the largest magnitude first. */
static __attribute__((noinline)) void glu_bytes(const nrg_glu_job *job, nrg_dtype dtype)
{
    glu_block block;
    float amax = 0;
    const int is_direct = dtype == NRG_F32 && job->b && glu_has_loop(job);
    const unsigned how = job->stream ? NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR : 0;
    for (int pass = nrg_format_block(job->quant->format) ? 1 : 0; pass < 2; pass++)
        for (size_t i = 0, end = job->end, n; i < end; i += n) {
            n = end - i < ACT_BLOCK ? end - i : ACT_BLOCK;
            if (is_direct)
                glu_times(job, (const float *)job->a + i, (const float *)job->b + i, block.a, n, how);
            else
                glu_block_of(&block, job, i, n, 1, dtype);
            if (pass == 0)
                amax = NRG_PATH_NAME(amax)(block.a, n, amax);
            else
                NRG_PATH_NAME(quantize_floats)(job->quant, block.a, i, n, amax);
        }
}

NRG_PATH_KERNEL(glu_quantized, f32, glu, glu_bytes(job, NRG_F32))
NRG_PATH_KERNEL(glu_quantized, f16, glu, glu_bytes(job, NRG_F16))
NRG_PATH_KERNEL(glu_quantized, bf16, glu, glu_bytes(job, NRG_BF16))
#endif

/* ---- backward ---- */

#ifndef NRG_NO_BACKWARD

/* 0 where the inputs were beyond the limit. */
NRG_INLINE void glu_cut(const nrg_glu_job *job, glu_block *d, const glu_block *in, size_t n)
{
    const vf most = v_set1(job->limit);
    for (size_t j = 0; j < n; j += VN) {
        const vm a_is_cut = v_lt(most, v_ld_f32(in->a + j)), b_is_cut = v_lt(most, v_abs(v_ld_f32(in->b + j)));
        v_st_f32(d->a + j, v_select(a_is_cut, v_zero(), v_ld_f32(d->a + j)));
        v_st_f32(d->b + j, v_select(b_is_cut, v_zero(), v_ld_f32(d->b + j)));
    }
}

/* The gradients of n elements whose inputs are in `in`: in d, or where those lie. */
NRG_INLINE void glu_gradients(const nrg_glu_job *job, glu_block *d, glu_block *in, const float *d_o, size_t n)
{
    if (glu_is_plain(job)) {
        NRG_PATH_NAME(activate_gradients)(job->activation, job->alpha, in->a, in->b, d_o, d->a, d->b, n, 0);
        return;
    }
    for (size_t j = 0; j < n; j += VN) {
        v_st_f32(d->a + j, v_ld_f32(in->a + j));
        v_st_f32(d->b + j, v_ld_f32(in->b + j));
    }
    glu_limit(d, job, n);
    NRG_PATH_NAME(activate_gradients)(job->activation, job->alpha, d->a, d->b, d_o, d->a, d->b, n, 0);
    if (glu_is_limited(job))
        glu_cut(job, d, in, n);
}

NRG_INLINE int glu_streams_back(const nrg_glu_job *job)
{
    return job->stream && job->da != job->a && job->da != job->b && job->da != job->d_o && job->db != job->a &&
           (!job->db || job->db != job->b) && job->db != job->d_o;
}

static __attribute__((noinline)) void glu_backward_blocks(const nrg_glu_job *job, nrg_dtype dtype)
{
    glu_block in, d;
    float d_o[ACT_BLOCK];
    const int stream = glu_streams_back(job);
    const size_t each = (dtype == NRG_F32 ? 4 : 2) * (job->b ? 1 : 2);
    for (size_t i = job->begin, end = job->end, n; i < end; i += n) {
        n = glu_block_size(job->da, i, end, each, stream);
        glu_inputs(&in, job, i, n, 0, dtype);
        glu_read(d_o, job->d_o, i, n, !job->b, dtype);
        act_fill(in.a, n);
        act_fill(in.b, n);
        glu_gradients(job, &d, &in, d_o, act_fill(d_o, n));
        if (job->b) {
            glu_write(job->da, d.a, i, n, 0, glu_may_stream(job->da, i, each, stream), dtype);
            glu_write(job->db, d.b, i, n, 0, glu_may_stream(job->db, i, each, stream), dtype);
        } else {
            glu_write_pairs(job->da, &d, i, n, glu_may_stream(job->da, i, each, stream), dtype);
        }
    }
    if (stream)
        v_nt_fence();
}

/* Floats that lie as they are wanted; and lines of both gradients end at the same elements, if they are written past the cache.
 */
NRG_INLINE void glu_backward_f32(const nrg_glu_job *job)
{
    const size_t at = job->begin * sizeof(float);
    const int stream = glu_streams_back(job), are_alike = ((uintptr_t)job->da - (uintptr_t)job->db) % 64 == 0;
    if (!job->b || !glu_is_plain(job) || (stream && !are_alike)) {
        glu_backward_blocks(job, NRG_F32);
        return;
    }
    NRG_PATH_NAME(activate_gradients)
    (job->activation, job->alpha, (const float *)(job->a + at), (const float *)(job->b + at), (const float *)(job->d_o + at),
     (float *)(job->da + at), (float *)(job->db + at), job->end - job->begin,
     stream ? NRG_TIMES_STREAM | NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR : 0);
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNEL(glu_backward, f32, glu, glu_backward_f32(job))
NRG_PATH_KERNEL(glu_backward, f16, glu, glu_backward_blocks(job, NRG_F16))
NRG_PATH_KERNEL(glu_backward, bf16, glu, glu_backward_blocks(job, NRG_BF16))

#endif

#endif
