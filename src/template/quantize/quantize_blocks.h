/* Blocks of elements as bytes with a scale, a row at a time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_QUANTIZE_BLOCKS_H
#define NRG_TEMPLATE_QUANTIZE_BLOCKS_H

#include "../../job/quantize.h"
#include "../step.h"
#include "quantize_place.h"

/* Blocks whose scales are computed at once: two divisions take as long for a vector of them as for one. */
enum { SCALES = 16, FEW_BLOCKS = 4 };

/* The first n of 32 elements from i on; behind them are zeros. */
NRG_INLINE void load_bytes_of(vf v[V_BYTES], const char *x, size_t i, size_t n, nrg_dtype D)
{
    if (n >= 32) {
        load_step(v, V_BYTES, x, i, VN, D);
        return;
    }
    for (size_t j = 0; j < V_BYTES; j++)
        v[j] = j * VN < n ? load_part(x, i + j * VN, lesser(n - j * VN, VN), D) : v_zero();
}

NRG_INLINE float amax_from(const char *x, size_t i, size_t n, float so_far, nrg_dtype D)
{
    vf v[V_BYTES], m = v_set1(so_far);
    for (size_t j = 0; j < n; j += 32) {
        load_bytes_of(v, x, i + j, n - j, D);
        NRG_UNROLL
        for (int k = 0; k < V_BYTES; k++)
            m = v_max_abs(m, v[k]);
    }
    return v_fold_max(m);
}

/* t with its ties moved away from zero, where rounding to even would take them towards it. */
NRG_INLINE vf ties_away(vf t)
{
    const vf big = v_set1(0x1.8p23f), even = v_sub(v_add(t, big), big), off = v_sub(t, even);
    return v_select(v_lt(v_set1(0x1.fffffep-2f), v_abs(off)), v_add(t, v_copysign(v_set1(0.5f), t)), even);
}

/* n elements from i on, at most a block, times 1/d. 0 stands for a block without one: whatever it holds becomes zeros. */
NRG_INLINE void write_bytes(const quant_place *p, char *to, const char *x, size_t i, size_t n, float inverse, nrg_dtype D)
{
    const vf factor = v_set1(inverse);
    vf v[V_BYTES];
    for (size_t j = 0; j < n; j += 32) {
        load_bytes_of(v, x, i + j, n - j, D);
        NRG_UNROLL
        for (int k = 0; k < V_BYTES; k++)
            v[k] = NRG_RARELY(inverse == 0) ? v_zero() : v_mul(v[k], factor);
        if (p->away)
            NRG_UNROLL
        for (int k = 0; k < V_BYTES; k++)
            v[k] = ties_away(v[k]);
        place_bytes(p, to, j, lesser(n - j, 32), v);
    }
}

/* 1/d, which numbers are multiplied with. In a thread that rounds upwards it may be rounded so that 127·d becomes 128: there it
 * is a little less. */
NRG_INLINE vf bytes_factor(vf a)
{
#if V_BYTES_WRAP
    volatile float one = 1;
    if (NRG_RARELY(one + 0x1p-30f > 1))
        return v_mul(a, v_set1(1 - 0x1p-22f)); /* not a less a part of it, which may be flushed */
#endif
    return a;
}

/* d and 1/d of blocks by their largest magnitudes: 0 and 0 where 1/d is infinite, NaN and 0 where a magnitude is no number. */
NRG_INLINE void scales_of(vf amax, vf *d, vf *inverse)
{
    const vf infinite = v_set1(__builtin_inff()), q = v_div(amax, v_set1(127)), one_by = v_div(v_set1(1), q);
    const vm has_inverse = v_lt(one_by, infinite), is_number = v_lt(amax, infinite);
    *d = v_select(is_number, v_select(has_inverse, q, v_zero()), v_set1(__builtin_nanf("")));
    *inverse = v_select(is_number, v_select(has_inverse, bytes_factor(one_by), v_zero()), v_zero());
}

typedef struct scale_batch {
    float amax[SCALES], d[SCALES], inverse[SCALES];
    uint16_t half[SCALES];
} scale_batch;

NRG_INLINE void find_scales(scale_batch *s)
{
    for (int k = 0; k < SCALES; k += VN) {
        vf d, inverse;
        scales_of(v_ld_f32(s->amax + k), &d, &inverse);
        v_st_f32(s->d + k, d);
        v_st_f32(s->inverse + k, inverse);
        v_st_half(s->half + k, v_to_f16(d));
    }
}

/* The largest magnitude of a block's whole 32s, in VN lanes. */
NRG_INLINE vf amax_lanes(const char *x, size_t i, size_t block, nrg_dtype D)
{
    vf m = v_zero();
    for (size_t j = 0; j < block; j += 32) {
        vf v[V_BYTES];
        load_step(v, V_BYTES, x, i + j, VN, D);
        NRG_UNROLL
        for (int k = 0; k < V_BYTES; k++)
            m = v_max_abs(m, v[k]);
    }
    return m;
}

/* Of the blocks of n elements, as many as a batch has at most: those of VN blocks are folded side by side. */
NRG_INLINE void find_amax(scale_batch *s, const char *x, size_t i, size_t n, size_t block, nrg_dtype D)
{
    size_t k = 0;
    for (; (k + VN) * block <= n; k += VN) {
        vf rows[VN];
        NRG_UNROLL
        for (size_t r = 0; r < VN; r++)
            rows[r] = amax_lanes(x, i + (k + r) * block, block, D);
        v_st_f32(s->amax + k, v_fold_max_rows(rows));
    }
    for (; k * block < n; k++)
        s->amax[k] = amax_from(x, i + k * block, lesser(n - k * block, block), 0, D);
}

/* Whole blocks of rows that lie alone, none without an inverse, ties to even: most there are. Numbers are locals: bytes that are
 * written may be anything's, for all a compiler knows. */
NRG_INLINE void write_blocks(const quant_place *p, const scale_batch *s, const char *x, size_t i, size_t number, size_t count,
                             nrg_dtype D)
{
    const size_t block = p->block, bytes = p->bytes, scale = p->scale, ahead = 4096;
    const int far = D == NRG_F32 && p->far;
    char *to = p->q + number * bytes;
    if (p->scales)
        memcpy(p->scales + number, s->d, count * sizeof *s->d);
    for (size_t k = 0; k < count; k++, to += bytes) {
        const vf factor = v_set1(s->inverse[k]);
        if (far)
            for (size_t j = 0; j < block; j += 16)
                __builtin_prefetch((const void *)((uintptr_t)x + (i + k * block + j) * sizeof(float) + ahead));
        if (scale)
            memcpy(to, &s->half[k], sizeof s->half[k]);
        for (size_t j = 0; j < block; j += 32) {
            vf v[V_BYTES];
            load_step(v, V_BYTES, x, i + k * block + j, VN, D);
            NRG_UNROLL
            for (int l = 0; l < V_BYTES; l++)
                v[l] = v_mul(v[l], factor);
            v_st_bytes((int8_t *)to + scale + j, v);
        }
    }
}

NRG_INLINE int all_have_inverses(const scale_batch *s, size_t count)
{
    int all = 1;
    for (size_t k = 0; k < count; k++)
        all &= s->inverse[k] != 0;
    return all;
}

/* A block of 32 elements of rows that lie alone, in registers. A batch of two blocks goes through memory: a call of 1x64 takes
 * 1.17 times as long (EPYC, AVX-512). */
NRG_INLINE void write_block_of_32(const quant_place *p, const char *x, size_t i, size_t number, nrg_dtype D)
{
    char *to = p->q + number * p->bytes;
    vf v[V_BYTES], m = v_zero(), d, inverse;
    float one[VN];
    uint16_t half[VN];
    load_step(v, V_BYTES, x, i, VN, D);
    NRG_UNROLL
    for (int k = 0; k < V_BYTES; k++)
        m = v_max_abs(m, v[k]);
    scales_of(v_set1(v_fold_max(m)), &d, &inverse);
    v_st_f32(one, inverse);
    NRG_UNROLL
    for (int k = 0; k < V_BYTES; k++)
        v[k] = NRG_RARELY(one[0] == 0) ? v_zero() : v_mul(v[k], inverse);
    v_st_f32(one, d);
    if (p->scales)
        p->scales[number] = one[0];
    else {
        v_st_half(half, v_to_f16(d));
        memcpy(to, half, sizeof half[0]);
    }
    if (p->away)
        NRG_UNROLL
    for (int k = 0; k < V_BYTES; k++)
        v[k] = ties_away(v[k]);
    v_st_bytes((int8_t *)to + p->scale, v);
}

/* Of q8_0, and of int8 by groups: elements `first` to first + n of a row, the first of which is x's. known: NULL, or the largest
 * magnitudes of its blocks. */
NRG_INLINE void quantize_blocks_of(const quant_place *p, const char *x, size_t first, size_t n, const float *known, nrg_dtype D)
{
    const size_t block = p->block;
    scale_batch s;
    if (n <= FEW_BLOCKS * 32 && block == 32 && n % 32 == 0 && p->rows == 1 && !known) {
        for (size_t i = 0; i < n; i += 32)
            write_block_of_32(p, x, i, (first + i) / 32, D);
        return;
    }
    memset(s.amax, 0, sizeof s.amax);
    for (size_t i = 0, some; i < n; i += some) {
        some = lesser(n - i, SCALES * block);
        if (known)
            memcpy(s.amax, known + i / block, some / block * sizeof *known);
        else
            find_amax(&s, x, i, some, block, D);
        find_scales(&s);
        if (p->rows == 1 && !p->away && some % block == 0 && all_have_inverses(&s, some / block)) {
            write_blocks(p, &s, x, i, (first + i) / block, some / block, D);
            continue;
        }
        for (size_t j = 0, k = 0; j < some; j += block, k++) {
            const size_t number = (first + i) / block + k;
            if (p->scales)
                p->scales[number] = s.d[k];
            else
                memcpy(place_scale(p, number), &s.half[k], sizeof s.half[k]);
            write_bytes(p, place_block(p, number), x, i + j, lesser(some - j, block), s.inverse[k], D);
        }
    }
}

NRG_BY_DTYPE(quantize_blocks, (p, x, first, n, known), const quant_place *p, const char *x, size_t first, size_t n,
             const float *known)

/* ---- q8_K ---- */

typedef struct k_scale {
    float d, inverse;
} k_scale;

/* The first element of magnitude amax, as a number. Both signs have it seldom: then it is looked for. */
NRG_INLINE float largest_of(const char *x, size_t i, float amax, nrg_dtype D)
{
    vf v[V_BYTES], most = v_zero(), least = v_zero();
    float first[VN];
    for (size_t j = 0; j < 256; j += 32) {
        load_bytes_of(v, x, i + j, 32, D);
        NRG_UNROLL
        for (int k = 0; k < V_BYTES; k++) {
            most = v_max(most, v[k]);
            least = v_min(least, v[k]);
        }
    }
    /* without signs: a maximum may be -0 */
    const int above = v_fold_max(v_abs(most)) == amax, below = v_fold_max(v_abs(least)) == amax;
    if (!NRG_RARELY(above && below))
        return above ? amax : -amax;
    for (size_t j = 0;; j += VN) {
        v_st_f32(first, load_whole(x, i + j, D));
        for (size_t k = 0; k < VN; k++)
            if (first[k] == amax || first[k] == -amax)
                return first[k];
    }
}

NRG_INLINE k_scale k_scale_of(const char *x, size_t i, nrg_dtype D)
{
    const float amax = amax_from(x, i, 256, 0, D);
    k_scale s = {__builtin_nanf(""), 0};
    if (NRG_RARELY(!(amax <= FLT_MAX)))
        return s;
    s.d = 0;
    if (NRG_RARELY(amax == 0))
        return s;
    const float inverse = -127.0f / largest_of(x, i, amax, D);
    if (inverse <= FLT_MAX && inverse >= -FLT_MAX) {
        float factor[VN];
        v_st_f32(factor, bytes_factor(v_set1(inverse)));
        s.inverse = factor[0];
        s.d = 1 / inverse;
    }
    return s;
}

/* The sum of 16 bytes: 128 more each, so that no sum of some has a sign. */
NRG_INLINE int16_t sum_of_16(const int8_t *q)
{
    const uint64_t sign = 0x8080808080808080u, even = 0x00ff00ff00ff00ffu, ones = 0x0001000100010001u;
    uint64_t a, b;
    memcpy(&a, q, sizeof a);
    memcpy(&b, q + 8, sizeof b);
    a ^= sign;
    b ^= sign;
    const uint64_t fours = (a & even) + (a >> 8 & even) + (b & even) + (b >> 8 & even);
    return (int16_t)((int)(fours * ones >> 48) - 16 * 128);
}

NRG_INLINE void quantize_k_of(const quant_place *p, const char *x, size_t first, size_t n, nrg_dtype D)
{
    int8_t q[256];
    const quant_place straight = {.rows = 1, .away = p->away};
    for (size_t i = 0; i < n; i += 256) {
        const size_t number = (first + i) / 256;
        const k_scale s = k_scale_of(x, i, D);
        char *to = place_block(p, number);
        memcpy(place_scale(p, number), &s.d, sizeof s.d);
        int8_t *const all = p->rows == 1 ? (int8_t *)to : q;
        write_bytes(&straight, (char *)all, x, i, 256, s.inverse, D);
        if (p->rows > 1)
            place_all(p, to, q);
        for (size_t k = 0; k < 16; k++) {
            const int16_t sum = sum_of_16(all + 16 * k);
            memcpy(place_sum(p, number, k), &sum, sizeof sum);
        }
    }
}

NRG_BY_DTYPE(quantize_k, (p, x, first, n), const quant_place *p, const char *x, size_t first, size_t n)

/* ---- a scale a row ---- */

NRG_INLINE void quantize_whole_of(const quant_place *p, const char *x, size_t first, size_t n, float amax, nrg_dtype D)
{
    vf d, inverse;
    float one[VN];
    scales_of(v_set1(amax >= 0 || amax != amax ? amax : amax_from(x, 0, n, 0, D)), &d, &inverse);
    v_st_f32(one, d);
    p->scales[0] = one[0];
    v_st_f32(one, inverse);
    write_bytes(p, p->q + first, x, 0, n, one[0], D);
}

NRG_BY_DTYPE(quantize_whole, (p, x, first, n, amax), const quant_place *p, const char *x, size_t first, size_t n, float amax)

NRG_INLINE void quantize_row(const nrg_quant_row *to, const char *x, size_t first, size_t n, float amax, nrg_dtype D)
{
    const quant_place p = quant_place_of(to);
    if (!p.block)
        quantize_whole(&p, x, first, n, amax, D);
    else if (p.has_sums)
        quantize_k(&p, x, first, n, D);
    else
        quantize_blocks(&p, x, first, n, NULL, D);
}

void NRG_PATH_NAME(quantize_floats)(const nrg_quant_row *to, const float *x, size_t first, size_t n, float amax)
{
    quantize_row(to, (const char *)x, first, n, amax, NRG_F32);
}

void NRG_PATH_NAME(quantize_known)(const nrg_quant_row *to, const float *x, size_t first, size_t n, const float *amax)
{
    const quant_place p = quant_place_of(to);
    quantize_blocks(&p, (const char *)x, first, n, amax, NRG_F32);
}

float NRG_PATH_NAME(amax)(const float *x, size_t n, float so_far) { return amax_from((const char *)x, 0, n, so_far, NRG_F32); }

#endif
