/* Heads on their way from the projections to attention, the reference: widened, normalized and turned in f32, and rounded once,
 * one head after the other.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../job/norm.h"
#include "../job/quantize.h"
#include "../job/rope.h"
#include "element.h"

static void convert(const char *x, nrg_dtype x_dtype, char *o, nrg_dtype o_dtype, size_t dim)
{
    if (x_dtype == o_dtype)
        memcpy(o, x, dim * element_size(x_dtype));
    else
        for (size_t i = 0; i < dim; i++)
            store(o, i, o_dtype, load(x, i, x_dtype));
}

#ifndef NRG_NO_QUANTIZE
static void quantize(const char *x, nrg_dtype dtype, char *o, size_t dim)
{
    const nrg_quant_row row = {.q = o, .format = NRG_QUANT_Q8_0};
    float block[32];
    for (size_t i = 0; i < dim; i += 32) {
        convert(x + i * element_size(dtype), dtype, (char *)block, NRG_F32, 32);
        nrg_scalar_quantize_floats(&row, block, i, 32, NRG_AMAX_UNKNOWN);
    }
}
#endif

/* To the dtype of the job, or to q8_0. */
static void finish(const nrg_qkv_job *job, const char *x, nrg_dtype dtype, char *o)
{
#ifndef NRG_NO_QUANTIZE
    if (job->is_quantized) {
        quantize(x, dtype, o, job->turn.rope.dim);
        return;
    }
#endif
    convert(x, dtype, o, job->o_dtype, job->turn.rope.dim);
}

/* The head in the block, of a token. */
static void turn(const nrg_qkv_job *job, size_t token)
{
    const nrg_rope_job *all = &job->turn.rope;
    nrg_rope_job rope = *all;
    rope.o = (char *)job->block;
    rope.x = rope.o;
    rope.table = all->table + token * all->table_stride;
    rope.heads = 1;
    rope.begin = 0;
    rope.end = 1;
    if (job->has_norm) {
        nrg_norm_job norm = job->turn.norm;
        norm.x = rope.x;
        norm.o = rope.o;
        norm.row_begin = 0;
        norm.row_end = norm.groups;
        if (nrg_norm_is_gated(&norm))
            nrg_scalar_norm_gated_f32(&norm);
        else
            nrg_scalar_norm_forward_f32(&norm);
    }
    nrg_scalar_rope_f32(&rope);
}

/* A head of a tensor whose elements are not even looked at where they are not rotated. */
static void turn_alike(const nrg_qkv_job *job, const char *x, char *o, size_t token, nrg_dtype dtype)
{
    nrg_rope_job rope = job->turn.rope;
    rope.x = x;
    rope.o = o;
    rope.table += token * rope.table_stride;
    rope.heads = 1;
    rope.begin = 0;
    rope.end = 1;
    if (dtype == NRG_F16)
        nrg_scalar_rope_f16(&rope);
    else
        nrg_scalar_rope_bf16(&rope);
}

static void qkv(const nrg_qkv_job *job, nrg_dtype dtype)
{
    const nrg_rope_job *rope = &job->turn.rope;
    for (size_t n = rope->begin; n < rope->end; n++) {
        const size_t token = n / rope->heads, head = n % rope->heads, row = job->slots ? (size_t)job->slots[token] : token;
        const char *x = rope->x + token * rope->x_token_stride + head * rope->x_head_stride;
        char *o = rope->o + row * rope->o_token_stride + head * rope->o_head_stride;
        if (job->is_copy) {
            finish(job, x, dtype, o);
        } else if (!job->is_quantized && dtype != NRG_F32 && dtype == job->o_dtype && !job->has_norm) {
            turn_alike(job, x, o, token, dtype);
        } else {
            convert(x, dtype, (char *)job->block, NRG_F32, rope->dim);
            turn(job, token);
            finish(job, (const char *)job->block, NRG_F32, o);
        }
    }
}

SCALAR_KERNELS(qkv, qkv, qkv)
