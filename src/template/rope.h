/* Rotation of pairs over the vectors of a path's vec.h. The arithmetic is that of src/scalar/rope.c.
 *
 * Cosines and sines of some pairs stay in registers while all heads of a token go by.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_H
#define NRG_TEMPLATE_ROPE_H

#include "step.h"

/* Heads of one token. */
typedef struct rope_heads {
    const char *x;
    char *o;
    size_t x_stride, o_stride, count;
    const float *cosines, *sines;
    size_t pairs;
    float sign; /* of the sines: -1 backward */
} rope_heads;

/* Interleaved pairs: elements i to i + n of all heads; G vectors of them, or with G = 1 the first n lanes of one. */
NRG_INLINE void rope_interleaved(const rope_heads *h, int G, size_t i, size_t n, nrg_dtype D, int stream)
{
    static const float alternate[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    const vf sign = v_mul(v_ld_f32(alternate), v_set1(h->sign));
    vf cosine[V_ROPE], sine[V_ROPE];
    if (G == 1) {
        cosine[0] = v_twice_low(v_ldn_f32(h->cosines + i / 2, n / 2));
        sine[0] = v_mul(v_twice_low(v_ldn_f32(h->sines + i / 2, n / 2)), sign);
    } else {
        NRG_UNROLL
        for (int j = 0; j < G; j += 2) {
            vf c = v_ld_f32(h->cosines + i / 2 + (size_t)(j / 2) * VN), s = v_ld_f32(h->sines + i / 2 + (size_t)(j / 2) * VN);
            cosine[j] = v_twice_low(c);
            cosine[j + 1] = v_twice_high(c);
            sine[j] = v_mul(v_twice_low(s), sign);
            sine[j + 1] = v_mul(v_twice_high(s), sign);
        }
    }
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride) {
        vf v[V_ROPE];
        load_step(v, G, x, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_fma(v[j], cosine[j], v_mul(v_swap_pairs(v[j]), sine[j]));
        store_step(v, G, o, i, n, D, stream);
    }
}

/* Half-split pairs: pairs i to i + n of all heads. */
NRG_INLINE void rope_halves(const rope_heads *h, int G, size_t i, size_t n, nrg_dtype D, int stream)
{
    const vf sign = v_set1(h->sign);
    vf cosine[V_ROPE / 2], sine[V_ROPE / 2];
    load_step(cosine, G, (const char *)h->cosines, i, n, NRG_F32);
    load_step(sine, G, (const char *)h->sines, i, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        sine[j] = v_mul(sine[j], sign);
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride, second = i + h->pairs;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride) {
        vf a[V_ROPE / 2], b[V_ROPE / 2], turned[V_ROPE / 2];
        load_step(a, G, x, i, n, D);
        load_step(b, G, x, second, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            turned[j] = v_fms(a[j], cosine[j], v_mul(b[j], sine[j]));
            b[j] = v_fma(b[j], cosine[j], v_mul(a[j], sine[j]));
        }
        store_step(turned, G, o, i, n, D, stream);
        store_step(b, G, o, second, n, D, stream);
    }
}

/* stream, a constant: tested once a token instead of once a store. A streamed token is whole steps. */
NRG_INLINE void rope_token(const rope_heads *h, int interleaved, nrg_dtype D, int stream)
{
    size_t i = 0;
    if (interleaved) {
        const size_t step = (size_t)V_ROPE * VN, end = 2 * h->pairs;
        for (; i + step <= end; i += step)
            rope_interleaved(h, V_ROPE, i, step, D, stream);
        for (; !stream && i < end; i += VN)
            rope_interleaved(h, 1, i, lanes_at(i, end), D, 0);
        return;
    }
    const size_t step = (size_t)(V_ROPE / 2) * VN, end = h->pairs;
    for (; i + step <= end; i += step)
        rope_halves(h, V_ROPE / 2, i, step, D, stream);
    for (; !stream && i < end; i += VN)
        rope_halves(h, 1, i, lanes_at(i, end), D, 0);
}

/* What is not rotated. */
NRG_INLINE void rope_copy(const rope_heads *h, size_t offset, size_t dim, size_t size)
{
    const size_t past = (offset + 2 * h->pairs) * size;
    for (size_t i = 0; i < h->count; i++) {
        const char *x = h->x + i * h->x_stride;
        char *o = h->o + i * h->o_stride;
        if (offset)
            memcpy(o, x, offset * size);
        if (past < dim * size)
            memcpy(o + past, x + past, dim * size - past);
    }
}

NRG_INLINE void rope(const nrg_rope_job *job, nrg_dtype D)
{
    const nrg_rope_job j = *job;
    const size_t size = D == NRG_F32 ? 4 : 2, first = j.offset * size, rotated = 2 * j.pairs;
    /* streamed lines are written whole and at once: no element left to another loop, and vectors that begin where lines do */
    const size_t step = (size_t)V_ROPE * VN * size;
    const int in_place = j.o == j.x;
    const int stream = j.stream && !in_place && rotated == j.dim && rotated * size % step == 0 &&
                       (((uintptr_t)j.o | j.o_token_stride | j.o_head_stride) & 63) == 0;
    for (size_t n = j.begin; n < j.end;) {
        const size_t token = n < j.heads ? 0 : n / j.heads, head = n - token * j.heads;
        const size_t count = j.heads - head < j.end - n ? j.heads - head : j.end - n;
        const size_t row = j.positions ? (size_t)j.positions[token] : token;
        const float *table = (const float *)(j.table + row * j.table_stride);
        const rope_heads h = {
            .x = j.x + token * j.x_token_stride + head * j.x_head_stride,
            .o = j.o + token * j.o_token_stride + head * j.o_head_stride,
            .x_stride = j.x_head_stride,
            .o_stride = j.o_head_stride,
            .count = count,
            .cosines = table,
            .sines = table + j.pairs,
            .pairs = j.pairs,
            .sign = j.backward ? -1.0f : 1.0f,
        };
        if (rotated != j.dim && !in_place)
            rope_copy(&h, j.offset, j.dim, size);
        rope_heads turning = h;
        turning.x += first;
        turning.o += first;
        if (stream)
            rope_token(&turning, j.interleaved, D, 1);
        else
            rope_token(&turning, j.interleaved, D, 0);
        n += count;
    }
    if (stream)
        v_nt_fence();
}

#endif
