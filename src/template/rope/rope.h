/* Rotation of pairs over the vectors of a path's vec.h. The arithmetic is that of src/scalar/rope.c.
 *
 * In cache, cosines and sines of some pairs stay in registers while all heads of a token go by: 240 ns for 32 heads of 128 with
 * AVX2, where loading them for every head takes 370. From memory, heads go by one after the other, since what is read and
 * streamed is best in one piece: 0.84 of the limit, where the other order reaches 0.56.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_ROPE_H
#define NRG_TEMPLATE_ROPE_ROPE_H

#include "rope_bf16.h"

/* From memory: elements begin to end of all heads, head by head in whole steps, with cosines and sines from L1. */
NRG_INLINE void rope_interleaved_far(const rope_heads *h, const float *cosines, const float *sines, size_t begin, size_t end,
                                     int stream, nrg_dtype D)
{
    const size_t step = (size_t)V_ROPE * VN;
    const char *x = h->x;
    char *o = h->o;
    for (size_t left = h->count; left; left--, x += h->x_stride, o += h->o_stride)
        for (size_t i = begin; i < end; i += step) {
            vf v[V_ROPE];
            if (h->ahead)
                rope_prefetch(x, i, step, D);
            load_step(v, V_ROPE, x, i, step, D);
            NRG_UNROLL
            for (int j = 0; j < V_ROPE; j++) {
                const size_t at = i - begin + (size_t)j * VN;
                v[j] = v_fma(v[j], v_ld_f32(cosines + at), v_mul(v_swap_pairs(v[j]), v_ld_f32(sines + at)));
            }
            store_step(v, V_ROPE, o, i, step, D, stream);
        }
}

NRG_INLINE void rope_halves_far(const rope_heads *h, const float *cosines, const float *sines, size_t begin, size_t end,
                                int stream, nrg_dtype D)
{
    const size_t step = (size_t)(V_ROPE / 2) * VN;
    const char *x = h->x;
    char *o = h->o;
    for (size_t left = h->count; left; left--, x += h->x_stride, o += h->o_stride)
        for (size_t i = begin; i < end; i += step) {
            vf a[V_ROPE / 2], b[V_ROPE / 2], rotated[V_ROPE / 2];
            if (h->ahead) {
                rope_prefetch(x, i, step, D);
                rope_prefetch(x, i + h->pairs, step, D);
            }
            load_step(a, V_ROPE / 2, x, i, step, D);
            load_step(b, V_ROPE / 2, x, i + h->pairs, step, D);
            NRG_UNROLL
            for (int j = 0; j < V_ROPE / 2; j++) {
                const size_t at = i - begin + (size_t)j * VN;
                vf c = v_ld_f32(cosines + at), s = v_ld_f32(sines + at);
                rotated[j] = v_fms(a[j], c, v_mul(b[j], s));
                b[j] = v_fma(b[j], c, v_mul(a[j], s));
            }
            store_step(rotated, V_ROPE / 2, o, i, step, D, stream);
            store_step(b, V_ROPE / 2, o, i + h->pairs, step, D, stream);
        }
}

/* Cosines and sines of pairs p to p + n of a token, as the loops take them: with interleaved pairs each twice, sines with the
 * signs -, +, -, +. Whole vectors: what is past n is 0. */
NRG_INLINE void rope_set_up(float *cosines, float *sines, const float *table, const rope_heads *h, size_t p, size_t n,
                            int interleaved)
{
    const vf signs = interleaved ? v_mul(rope_alternate(), v_set1(h->sign)) : v_set1(h->sign);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf c = load_lanes(table + p + i, lanes), s = load_lanes(table + h->pairs + p + i, lanes);
        if (interleaved) {
            v_st_f32(cosines + 2 * i, v_twice_low(c));
            v_st_f32(cosines + 2 * i + VN, v_twice_high(c));
            v_st_f32(sines + 2 * i, v_mul(v_twice_low(s), signs));
            v_st_f32(sines + 2 * i + VN, v_mul(v_twice_high(s), signs));
        } else {
            v_st_f32(cosines + i, c);
            v_st_f32(sines + i, v_mul(s, signs));
        }
    }
}

/* Interleaved pairs: elements i to i + n of all heads; G vectors of them, or with G = 1 the first n lanes of one. */
NRG_INLINE void rope_interleaved_kept(const rope_heads *h, const float *cosines, float sign, int G, size_t i, size_t n,
                                      nrg_dtype D)
{
    const float *sines = cosines + h->pairs;
    const vf signs = v_mul(rope_alternate(), v_set1(sign));
    vf cosine[V_ROPE], sine[V_ROPE];
    if (G == 1) {
        cosine[0] = v_twice_low(v_ldn_f32(cosines + i / 2, n / 2));
        sine[0] = v_mul(v_twice_low(v_ldn_f32(sines + i / 2, n / 2)), signs);
    } else {
        NRG_UNROLL
        for (int j = 0; j < G; j += 2) {
            vf c = v_ld_f32(cosines + i / 2 + (size_t)(j / 2) * VN), s = v_ld_f32(sines + i / 2 + (size_t)(j / 2) * VN);
            cosine[j] = v_twice_low(c);
            cosine[j + 1] = v_twice_high(c);
            sine[j] = v_mul(v_twice_low(s), signs);
            sine[j + 1] = v_mul(v_twice_high(s), signs);
        }
    }
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride) {
        vf v[V_ROPE];
        load_step(v, G, x, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            v[j] = v_hold(v[j]);
            v[j] = v_fma(v[j], cosine[j], v_mul(v_swap_pairs(v[j]), sine[j]));
        }
        store_step(v, G, o, i, n, D, 0);
    }
}

/* Half-split pairs: pairs i to i + n of all heads. */
NRG_INLINE void rope_halves_kept(const rope_heads *h, const float *cosines, float sign, int G, size_t i, size_t n, nrg_dtype D)
{
    const float *sines = cosines + h->pairs;
    const vf signs = v_set1(sign);
    vf cosine[V_ROPE / 2], sine[V_ROPE / 2];
    load_step(cosine, G, (const char *)cosines, i, n, NRG_F32);
    load_step(sine, G, (const char *)sines, i, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        sine[j] = v_mul(sine[j], signs);
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride, second = i + h->pairs;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride) {
        vf a[V_ROPE / 2], b[V_ROPE / 2], rotated[V_ROPE / 2];
        load_step(a, G, x, i, n, D);
        load_step(b, G, x, second, n, D);
        /* held: loads as operands of the arithmetic take 1.17 times as long (1x1024 f32, Zen 4); all before it: otherwise gcc 12
         * copies a vector for each head */
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            a[j] = v_hold(a[j]);
            b[j] = v_hold(b[j]);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            rotated[j] = v_fms(a[j], cosine[j], v_mul(b[j], sine[j]));
            b[j] = v_fma(b[j], cosine[j], v_mul(a[j], sine[j]));
        }
        store_step(rotated, G, o, i, n, D, 0);
        store_step(b, G, o, second, n, D, 0);
    }
}

NRG_INLINE void rope_token_far(const rope_heads *h, const float *table, int interleaved, nrg_dtype D)
{
    float cosines[ROPE_BLOCK + 2 * VN], sines[ROPE_BLOCK + 2 * VN];
    const size_t most = interleaved ? ROPE_BLOCK / 2 : ROPE_BLOCK;
    for (size_t p = 0; p < h->pairs; p += most) {
        const size_t n = h->pairs - p < most ? h->pairs - p : most;
        rope_set_up(cosines, sines, table, h, p, n, interleaved);
        if (interleaved)
            rope_interleaved_far(h, cosines, sines, 2 * p, 2 * (p + n), h->stream, D);
        else
            rope_halves_far(h, cosines, sines, p, p + n, h->stream, D);
    }
}

NRG_INLINE void rope_token_kept(const rope_heads *h, const float *table, int interleaved, nrg_dtype D)
{
    const float sign = h->sign;
    size_t i = 0;
    if (interleaved) {
        const size_t step = (size_t)V_ROPE * VN, end = 2 * h->pairs;
        for (; i + step <= end; i += step)
            rope_interleaved_kept(h, table, sign, V_ROPE, i, step, D);
        for (; i < end; i += VN)
            rope_interleaved_kept(h, table, sign, 1, i, lanes_at(i, end), D);
        return;
    }
    const size_t step = (size_t)(V_ROPE / 2) * VN, end = h->pairs;
    for (; i + step <= end; i += step)
        rope_halves_kept(h, table, sign, V_ROPE / 2, i, step, D);
    for (; i < end; i += VN)
        rope_halves_kept(h, table, sign, 1, i, lanes_at(i, end), D);
}

NRG_INLINE void rope_token(const rope_heads *h, const float *table, int interleaved, nrg_dtype D)
{
    if (h->far)
        rope_token_far(h, table, interleaved, D);
    else
        rope_token_kept(h, table, interleaved, D);
}

/* What rope_bf16.h leaves. */
static __attribute__((noinline)) void rope_token_bf16_rest(const rope_heads *h, const float *table, int interleaved)
{
    rope_token(h, table, interleaved, NRG_BF16);
}

/* Vectors, the last over the one before it: a call of memcpy takes as long as a head of 128. */
NRG_INLINE void rope_copy_run(const char *x, char *o, size_t bytes)
{
    const size_t step = 2 * VN * sizeof(uint16_t);
    if (bytes < step) {
        memcpy(o, x, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += step) {
        const size_t at = i + step <= bytes ? i : bytes - step;
        v_st_pair((uint16_t *)(void *)(o + at), v_ld_pair((const uint16_t *)(const void *)(x + at)));
    }
}

/* What is not rotated. */
NRG_INLINE void rope_copy(const rope_heads *h, size_t offset, size_t dim, size_t size)
{
    const size_t past = (offset + 2 * h->pairs) * size;
    const char *x = h->x;
    char *o = h->o;
    for (size_t left = h->count; left; left--, x += h->x_stride, o += h->o_stride) {
        if (offset)
            rope_copy_run(x, o, offset * size);
        if (past < dim * size)
            rope_copy_run(x + past, o + past, dim * size - past);
    }
}

NRG_INLINE void rope(const nrg_rope_job *job, nrg_dtype D)
{
    const nrg_rope_job j = *job;
    const size_t size = D == NRG_F32 ? 4 : 2, first = j.offset * size, rotated = 2 * j.pairs;
    const int in_place = j.o == j.x, far = j.far && rotated % (V_ROPE * VN) == 0;
    /* streamed lines are written whole and at once: no element left to another loop, and vectors that begin where lines do */
    const int stream = j.stream && !in_place && rotated == j.dim && rotated % (V_ROPE * VN) == 0 &&
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
            .pairs = j.pairs,
            .sign = j.backward ? -1.0f : 1.0f,
            .far = far || stream,
            .stream = stream,
            /* f32 512x4096, Zen 4, AVX2: beside ordinary stores to another place prefetches take 1.3 times as long, beside
             * streamed ones 0.8 of the time */
            .ahead = stream || in_place,
        };
        if (rotated != j.dim && !in_place)
            rope_copy(&h, j.offset, j.dim, size);
        rope_heads turning = h;
        turning.x += first;
        turning.o += first;
        if (D != NRG_BF16)
            rope_token(&turning, table, j.interleaved, D);
        else if (rope_bf16_serves(j.pairs, j.interleaved))
            rope_token_bf16(&turning, table, j.interleaved);
        else
            rope_token_bf16_rest(&turning, table, j.interleaved);
        n += count;
    }
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(rope, rope, rope)

#endif
