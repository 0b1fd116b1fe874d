/* Heads of q, k and v on their way to another dtype and to slots. What stays in its dtype goes straight through the kernels of
 * the rotation, as many tokens at once as have slots that follow each other; everything else is staged in f32, some heads at a
 * time that stay in L1.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_QKV_H
#define NRG_TEMPLATE_ROPE_QKV_H

#include "../../job/norm.h"
#include "../../job/quantize.h"
#include "../../job/rope.h"
#include "../step.h"

/* ---- elements of another dtype ---- */

enum { QKV_STEP = 4 };

NRG_INLINE void qkv_convert_of(const char *x, nrg_dtype X, char *o, nrg_dtype O, size_t n)
{
    const size_t step = (size_t)QKV_STEP * VN;
    vf v[QKV_STEP];
    size_t i = 0;
    for (; i + step <= n; i += step) {
        load_step(v, QKV_STEP, x, i, step, X);
        store_step(v, QKV_STEP, o, i, step, O, 0);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        load_step(v, 1, x, i, lanes, X);
        store_step(v, 1, o, i, lanes, O, 0);
    }
}

static __attribute__((noinline)) void qkv_convert(const char *x, nrg_dtype X, char *o, nrg_dtype O, size_t n)
{
    if (X == O)
        memcpy(o, x, bytes_of(n, X, 0));
    else if (X == NRG_F32 && O == NRG_F16)
        qkv_convert_of(x, NRG_F32, o, NRG_F16, n);
    else if (X == NRG_F32)
        qkv_convert_of(x, NRG_F32, o, NRG_BF16, n);
    else if (X == NRG_F16 && O == NRG_F32)
        qkv_convert_of(x, NRG_F16, o, NRG_F32, n);
    else if (X == NRG_F16)
        qkv_convert_of(x, NRG_F16, o, NRG_BF16, n);
    else if (O == NRG_F32)
        qkv_convert_of(x, NRG_BF16, o, NRG_F32, n);
    else
        qkv_convert_of(x, NRG_BF16, o, NRG_F16, n);
}

/* Rows of one token; those without gaps are one. */
NRG_INLINE void qkv_convert_rows(const char *x, size_t x_stride, nrg_dtype X, char *o, size_t o_stride, nrg_dtype O, size_t dim,
                                 size_t count)
{
    if (x_stride == bytes_of(dim, X, 0) && o_stride == bytes_of(dim, O, 0)) {
        dim *= count;
        count = 1;
    }
    for (; count; count--, x += x_stride, o += o_stride)
        qkv_convert(x, X, o, O, dim);
}

#ifndef NRG_NO_QUANTIZE
/* Rows of one token as blocks; other dtypes in pieces that are floats first. */
enum { QKV_PIECE = 256 };

static __attribute__((noinline)) void qkv_quantize_rows(const char *x, size_t x_stride, nrg_dtype X, char *o, size_t o_stride,
                                                        size_t dim, size_t count)
{
    nrg_quant_row row = {.format = NRG_QUANT_Q8_0};
    float piece[QKV_PIECE];
    for (; count; count--, x += x_stride, o += o_stride) {
        row.q = o;
        if (X == NRG_F32) {
            NRG_PATH_NAME(quantize_floats)(&row, (const float *)(const void *)x, 0, dim, NRG_AMAX_UNKNOWN);
            continue;
        }
        for (size_t i = 0; i < dim; i += QKV_PIECE) {
            const size_t n = dim - i < QKV_PIECE ? dim - i : QKV_PIECE;
            qkv_convert(x + bytes_of(i, X, 0), X, (char *)piece, NRG_F32, n);
            NRG_PATH_NAME(quantize_floats)(&row, piece, i, n, NRG_AMAX_UNKNOWN);
        }
    }
}
#endif

/* ---- rows of a job ---- */

/* Rows of one token to their output. */
NRG_INLINE void qkv_finish(const nrg_qkv_job *job, const char *x, size_t x_stride, nrg_dtype X, char *o, size_t o_stride,
                           size_t count)
{
    const size_t dim = job->turn.rope.dim;
#ifndef NRG_NO_QUANTIZE
    if (job->is_quantized) {
        qkv_quantize_rows(x, x_stride, X, o, o_stride, dim, count);
        return;
    }
#endif
    qkv_convert_rows(x, x_stride, X, o, o_stride, job->o_dtype, dim, count);
}

/* The row of a token's output. */
NRG_INLINE size_t qkv_row(const nrg_qkv_job *job, size_t token) { return job->slots ? (size_t)job->slots[token] : token; }

/* The kernels, by name. */
NRG_INLINE void qkv_turn_in_f32(const nrg_norm_rope_job *turn, int has_norm)
{
    if (has_norm)
        NRG_PATH_NAME(norm_rope_f32)(turn);
    else
        NRG_PATH_NAME(rope_f32)(&turn->rope);
}

NRG_INLINE void qkv_turn(const nrg_norm_rope_job *turn, int has_norm, nrg_dtype D)
{
    if (D == NRG_F32)
        qkv_turn_in_f32(turn, has_norm);
    else if (D == NRG_F16)
        NRG_PATH_NAME(rope_f16)(&turn->rope);
    else
        NRG_PATH_NAME(rope_bf16)(&turn->rope);
}

/* v. */
static __attribute__((noinline)) void qkv_copy(const nrg_qkv_job *job, nrg_dtype D)
{
    const nrg_rope_job *r = &job->turn.rope;
    for (size_t n = r->begin, count; n < r->end; n += count) {
        const size_t token = n / r->heads, head = n - token * r->heads, left = r->heads - head;
        count = left < r->end - n ? left : r->end - n;
        qkv_finish(job, r->x + token * r->x_token_stride + head * r->x_head_stride, r->x_head_stride, D,
                   r->o + qkv_row(job, token) * r->o_token_stride + head * r->o_head_stride, r->o_head_stride, count);
    }
}

/* The turn of a job for parts of it: the caller's own. A second one would be 300 bytes more below the norm; and reading at once
 * what was just stored field by field waits until all that was stored before is in cache: 66 ns of the k of one token. */
NRG_INLINE nrg_norm_rope_job *qkv_turn_of(const nrg_qkv_job *job) { return (nrg_norm_rope_job *)(uintptr_t)&job->turn; }

/* From a dtype to the same, into slots: as many tokens at once as have slots that follow each other. */
static __attribute__((noinline)) void qkv_scattered(const nrg_qkv_job *job, nrg_dtype D)
{
    nrg_norm_rope_job *const part = qkv_turn_of(job);
    nrg_rope_job *const rope = &part->rope;
    const char *const x = rope->x, *const table = rope->table;
    char *const o = rope->o;
    const size_t heads = rope->heads, end = rope->end;
    for (size_t n = rope->begin, rows; n < end; n += rows) {
        const size_t token = n / heads, head = n - token * heads, most = end - n;
        size_t past = token + 1;
        for (rows = heads - head; rows < most && job->slots[past] == job->slots[past - 1] + 1; past++)
            rows += heads;
        rows = rows < most ? rows : most;
        rope->x = x + token * rope->x_token_stride;
        rope->table = table + token * rope->table_stride;
        rope->o = o + (size_t)job->slots[token] * rope->o_token_stride;
        rope->begin = head;
        rope->end = head + rows;
        qkv_turn(part, job->has_norm, D);
    }
}

/* Through the block. */
static __attribute__((noinline)) void qkv_staged(const nrg_qkv_job *job, nrg_dtype D)
{
    nrg_norm_rope_job *const part = qkv_turn_of(job);
    nrg_rope_job *const rope = &part->rope;
    const char *const x = rope->x, *const table = rope->table;
    char *const o = rope->o, *const block = (char *)job->block;
    const size_t heads = rope->heads, end = rope->end, x_token_stride = rope->x_token_stride, x_head_stride = rope->x_head_stride,
                 o_token_stride = rope->o_token_stride, o_head_stride = rope->o_head_stride, row = rope->dim * sizeof(float);
    const nrg_dtype O = job->o_dtype;
    rope->stream = 0;
    for (size_t n = rope->begin, rows; n < end; n += rows) {
        const size_t token = n / heads, head = n - token * heads;
        size_t count = heads - head, tokens = 1;
        count = count < end - n ? count : end - n;
        count = count < job->block_rows ? count : job->block_rows;
        if (count == heads && O != NRG_F32) {
            tokens = (end - n) / heads < job->block_rows / heads ? (end - n) / heads : job->block_rows / heads;
        }
        rows = tokens * count;
        const char *const from = x + token * x_token_stride + head * x_head_stride;
        rope->x = from;
        rope->table = table + token * rope->table_stride;
        rope->heads = count;
        rope->begin = 0;
        rope->end = rows;
        if (D != NRG_F32) {
            for (size_t t = 0; t < tokens; t++)
                qkv_convert_rows(from + t * x_token_stride, x_head_stride, D, block + t * count * row, row, NRG_F32, rope->dim,
                                 count);
            rope->x = block;
            rope->x_head_stride = row;
            rope->x_token_stride = count * row;
            rope->far = 0;
        }
        if (O == NRG_F32) {
            rope->o = o + qkv_row(job, token) * o_token_stride + head * o_head_stride;
        } else {
            rope->o = block;
            rope->o_head_stride = row;
            rope->o_token_stride = count * row;
        }
        qkv_turn_in_f32(part, job->has_norm);
        for (size_t t = 0; t < tokens && O != NRG_F32; t++)
            qkv_finish(job, block + t * count * row, row, NRG_F32,
                       o + qkv_row(job, token + t) * o_token_stride + head * o_head_stride, o_head_stride, count);
    }
}

NRG_INLINE void qkv(const nrg_qkv_job *job, nrg_dtype D)
{
    if (job->is_copy)
        qkv_copy(job, D);
    else if (D != job->o_dtype || job->is_quantized || (D != NRG_F32 && job->has_norm))
        qkv_staged(job, D);
    else if (job->slots)
        qkv_scattered(job, D);
    else
        qkv_turn(&job->turn, job->has_norm, D);
}

NRG_PATH_KERNELS(qkv, qkv, qkv)

#endif
