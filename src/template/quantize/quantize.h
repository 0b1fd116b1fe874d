/* Rows to blocks of bytes, and back: the kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_QUANTIZE_H
#define NRG_TEMPLATE_QUANTIZE_H

#include "quantize_blocks.h"

NRG_INLINE void quantize_rows(const nrg_quantize_job *job, nrg_dtype D)
{
    const size_t together = nrg_format_rows(job->format), dim = job->dim;
    for (size_t row = job->begin * together, end = job->end * together; row < end; row++) {
        const nrg_quant_row to = {.q = job->q + row / together * job->q_stride,
                                  .scales = job->scales ? (float *)(job->scales + row * job->scales_stride) : NULL,
                                  .row = row % together,
                                  .format = job->format,
                                  .rounding = job->rounding,
                                  .far = job->far};
        quantize_row(&to, job->x + row * job->x_stride, 0, dim, NRG_AMAX_UNKNOWN, D);
    }
}

NRG_PATH_KERNELS(quantize, quantize, quantize_rows)

/* 32 elements side by side: times a factor. */
NRG_INLINE void read_32(const char *from, char *o, size_t first, vf factor, nrg_dtype D)
{
    vf v[V_BYTES];
    v_ld_bytes(v, (const int8_t *)from);
    NRG_UNROLL
    for (int k = 0; k < V_BYTES; k++)
        v[k] = v_mul(v[k], factor);
    store_step(v, V_BYTES, o, first, VN, D, 0);
}

/* n elements of a block: times d. All chunks are gathered before the first is converted: f32 takes up to 1.2 times as long where
 * 32 are gathered and converted at a time. */
NRG_INLINE void read_bytes_of(const quant_place *p, const char *from, char *o, size_t first, size_t n, float d, nrg_dtype D)
{
    const vf factor = v_set1(d);
    int8_t gathered[256];
    size_t i = 0;
    if (p->rows > 1) {
        for (; i < n; i += 32)
            gather_chunks(p, gathered + i, from + i * p->rows);
        from = (const char *)gathered;
    }
    for (i = 0; i + 32 <= n; i += 32)
        read_32(from + i, o, first + i, factor, D);
    if (i == n)
        return;
    vf v[V_BYTES];
    int8_t part[32] = {0};
    memcpy(part, from + i, n - i);
    v_ld_bytes(v, part);
    NRG_UNROLL
    for (int k = 0; k < V_BYTES; k++)
        v[k] = v_mul(v[k], factor);
    for (size_t k = 0; k * VN < n - i; k++)
        store_step(v + k, 1, o, first + i + k * VN, lesser(n - i - k * VN, VN), D, 0);
}

NRG_BY_DTYPE(read_bytes, (p, from, o, first, n, d), const quant_place *p, const char *from, char *o, size_t first, size_t n,
             float d)

/* Blocks of q8_0 that follow each other, VN at a time, whose scales are converted side by side: with one after the other, each
 * through memory, 4096 elements took 1.75 µs. */
NRG_INLINE void read_blocks_of(const char *q, char *o, size_t dim, nrg_dtype D)
{
    enum { BYTES = 34 };
    for (size_t at = 0, count; at < dim / 32; at += count) {
        uint16_t halves[VN] = {0};
        float d[VN];
        count = lesser(dim / 32 - at, VN);
        for (size_t k = 0; k < count; k++)
            memcpy(&halves[k], q + (at + k) * BYTES, sizeof halves[k]);
        v_st_f32(d, v_from_f16(v_ldn_half(halves, count)));
        for (size_t k = 0; k < count; k++)
            read_32(q + (at + k) * BYTES + sizeof halves[k], o, (at + k) * 32, v_set1(d[k]), D);
    }
}

NRG_BY_DTYPE(read_blocks, (q, o, dim), const char *q, char *o, size_t dim)

NRG_INLINE float scale_at(const quant_place *p, size_t number)
{
    float d, of_f16[VN];
    uint16_t half;
    if (p->scales)
        return p->scales[number];
    if (p->has_sums) {
        memcpy(&d, place_scale(p, number), sizeof d);
        return d;
    }
    memcpy(&half, place_scale(p, number), sizeof half);
    v_st_f32(of_f16, v_from_f16(v_ldn_half(&half, 1)));
    return of_f16[0];
}

static void dequantize_rows(const nrg_quantize_job *job, nrg_dtype D)
{
    const size_t together = nrg_format_rows(job->format), dim = job->dim;
    for (size_t row = job->begin * together, end = job->end * together; row < end; row++) {
        /* read only from here on: the same struct says where rows lie that are written */
        const nrg_quant_row from = {.q = (char *)(uintptr_t)job->q_in + row / together * job->q_stride,
                                    .scales =
                                        job->scales_in ? (float *)((uintptr_t)job->scales_in + row * job->scales_stride) : NULL,
                                    .row = row % together,
                                    .format = job->format};
        const quant_place p = quant_place_of(&from);
        const size_t block = p.block ? p.block : dim;
        char *o = job->o + row * job->x_stride;
        if (job->format == NRG_QUANT_Q8_0) {
            read_blocks(p.q, o, dim, D);
            continue;
        }
        for (size_t i = 0, number = 0; i < dim; i += block, number++) {
            const char *bytes = p.scales ? p.q + i : place_block(&p, number);
            read_bytes(&p, bytes, o, i, lesser(dim - i, block), scale_at(&p, number), D);
        }
    }
}

NRG_PATH_KERNELS(dequantize, quantize, dequantize_rows)

#endif
