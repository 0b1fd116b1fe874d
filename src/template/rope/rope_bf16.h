/* Rotation of bf16 pairs, 2·VN elements a vector: elements at even places and at odd ones become floats without a shuffle, and go
 * back without one. 1.3 (AVX-512) to 1.9 times (AVX2) the speed of loading VN elements at a time. The arithmetic is that of
 * rope.h.
 *
 * A NaN among cosines and sines is made one with no lower half, once a token: all others come of bf16 elements, and have none. So
 * no output has to be looked at before it is rounded.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_ROPE_BF16_H
#define NRG_TEMPLATE_ROPE_ROPE_BF16_H

#include "rope_heads.h"

/* Vectors of cosines that stay in registers, with as many of sines, while all heads of a token go by. */
enum { ROPE_KEPT = V_ROPE / 2 };

/* Cosines and sines of some vectors of pairs, in the order of rope_bf16_set_up. */
typedef struct rope_turns {
    vf c[ROPE_KEPT], s[ROPE_KEPT];
} rope_turns;

NRG_INLINE rope_turns rope_load_turns(const float *cosines, const float *sines, int G)
{
    rope_turns t;
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        t.c[j] = v_ld_f32(cosines + j * VN);
        t.s[j] = v_ld_f32(sines + j * VN);
    }
    return t;
}

/* What is streamed starts at a line, so that v_nt_pair need not look. */
NRG_INLINE void rope_store_pairs(char *o, const vp *h, int G, int stream)
{
    if (stream) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v_nt_pair(__builtin_assume_aligned(o + j * 4 * VN, 4 * VN), h[j]);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v_st_pair((uint16_t *)(void *)o + j * 2 * VN, h[j]);
}

/* G vectors of an interleaved head: an even place and the odd one after it are a pair. */
NRG_INLINE void rope_bf16_interleaved(const char *x, char *o, const rope_turns *t, int G, int stream)
{
    vp out[ROPE_KEPT];
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const vp pair = v_ld_pair((const uint16_t *)(const void *)x + j * 2 * VN);
        const vf a = v_even_from_bf16(pair), b = v_odd_from_bf16(pair);
        out[j] = v_calm_to_bf16(v_fms(a, t->c[j], v_mul(b, t->s[j])), v_fma(b, t->c[j], v_mul(a, t->s[j])));
    }
    rope_store_pairs(o, out, G, stream);
}

/* G vectors of cosines, of G · VN half-split pairs: those with even numbers first, of each 2 · VN. second: bytes to the second
 * elements. */
NRG_INLINE void rope_bf16_halves(const char *x, char *o, size_t second, const rope_turns *t, int G, int stream)
{
    vp out[2][ROPE_KEPT / 2];
    NRG_UNROLL
    for (int j = 0; j < G; j += 2) {
        const vp first = v_ld_pair((const uint16_t *)(const void *)x + j * VN);
        const vp other = v_ld_pair((const uint16_t *)(const void *)(x + second) + j * VN);
        vf rotated[2][2];
        const vf a[2] = {v_even_from_bf16(first), v_odd_from_bf16(first)};
        const vf b[2] = {v_even_from_bf16(other), v_odd_from_bf16(other)};
        NRG_UNROLL
        for (int k = 0; k < 2; k++) {
            rotated[0][k] = v_fms(a[k], t->c[j + k], v_mul(b[k], t->s[j + k]));
            rotated[1][k] = v_fma(b[k], t->c[j + k], v_mul(a[k], t->s[j + k]));
        }
        out[0][j / 2] = v_calm_to_bf16(rotated[0][0], rotated[0][1]);
        out[1][j / 2] = v_calm_to_bf16(rotated[1][0], rotated[1][1]);
    }
    rope_store_pairs(o, out[0], G / 2, stream);
    rope_store_pairs(o + second, out[1], G / 2, stream);
}

/* G vectors of cosines from pair p on. */
NRG_INLINE void rope_bf16_turn(const char *x, char *o, const rope_heads *h, size_t p, const rope_turns *t, int G, int interleaved)
{
    const size_t at = bytes_of(interleaved ? 2 * p : p, NRG_BF16, 0), second = bytes_of(h->pairs, NRG_BF16, 0);
    if (h->far) {
        rope_prefetch(x + at, 0, (size_t)(interleaved ? 2 * G : G) * VN, NRG_BF16);
        if (!interleaved)
            rope_prefetch(x + at + second, 0, (size_t)G * VN, NRG_BF16);
    }
    if (interleaved)
        rope_bf16_interleaved(x + at, o + at, t, G, h->stream);
    else
        rope_bf16_halves(x + at, o + at, second, t, G, h->stream);
}

/* All heads, for G vectors of cosines. */
NRG_INLINE void rope_bf16_kept(const rope_heads *h, const float *cosines, const float *sines, size_t p, int G, int interleaved)
{
    const rope_turns t = rope_load_turns(cosines + p, sines + p, G);
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride)
        rope_bf16_turn(x, o, h, p, &t, G, interleaved);
}

/* Head by head, with cosines and sines from L1. */
NRG_INLINE void rope_bf16_far(const rope_heads *h, const float *cosines, const float *sines, int interleaved)
{
    const int G = interleaved ? 1 : 2;
    const char *x = h->x;
    char *o = h->o;
    const size_t x_stride = h->x_stride, o_stride = h->o_stride, pairs = h->pairs;
    for (size_t left = h->count; left; left--, x += x_stride, o += o_stride)
        for (size_t p = 0; p < pairs; p += (size_t)G * VN) {
            const rope_turns t = rope_load_turns(cosines + p, sines + p, G);
            rope_bf16_turn(x, o, h, p, &t, G, interleaved);
        }
}

NRG_INLINE int rope_bf16_serves(size_t pairs, int interleaved)
{
    return !V_SMALL && pairs % (interleaved ? VN : 2 * VN) == 0 && pairs <= ROPE_BLOCK;
}

/* Half-split pairs are taken 2·VN at a time, the even ones first. */
NRG_INLINE void rope_bf16_set_up(float *cosines, float *sines, const float *table, size_t pairs, int interleaved, float sign)
{
    const vf signs = v_set1(sign);
    for (size_t p = 0; p < pairs; p += interleaved ? VN : 2 * VN) {
        vf c[2], s[2];
        const int G = interleaved ? 1 : 2;
        load_step(c, G, (const char *)table, p, VN, NRG_F32);
        load_step(s, G, (const char *)table, pairs + p, VN, NRG_F32);
        if (!interleaved) {
            order_to_pairs(c, 2);
            order_to_pairs(s, 2);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            v_st_f32(cosines + p + j * VN, v_calm(c[j]));
            v_st_f32(sines + p + j * VN, v_calm(v_mul(s[j], signs)));
        }
    }
}

NRG_INLINE void rope_token_bf16_as(const rope_heads *h, const float *table, int interleaved)
{
    float cosines[ROPE_BLOCK], sines[ROPE_BLOCK];
    const size_t kept = (size_t)ROPE_KEPT * VN;
    const int least = interleaved ? 1 : 2;
    rope_bf16_set_up(cosines, sines, table, h->pairs, interleaved, h->sign);
    if (h->far && h->pairs == kept) {
        rope_bf16_kept(h, cosines, sines, 0, ROPE_KEPT, interleaved);
        return;
    }
    if (h->far) {
        rope_bf16_far(h, cosines, sines, interleaved);
        return;
    }
    rope_heads near = *h; /* constants: a token in L1 takes up to 1.04 times as long with tests in its loops */
    near.far = near.stream = 0;
    size_t p = 0;
    for (; p + kept <= h->pairs; p += kept)
        rope_bf16_kept(&near, cosines, sines, p, ROPE_KEPT, interleaved);
    for (; p < h->pairs; p += (size_t)least * VN)
        rope_bf16_kept(&near, cosines, sines, p, least, interleaved);
}

NRG_INLINE void rope_token_bf16(const rope_heads *h, const float *table, int interleaved)
{
    if (interleaved)
        rope_token_bf16_as(h, table, 1);
    else
        rope_token_bf16_as(h, table, 0);
}

#endif
