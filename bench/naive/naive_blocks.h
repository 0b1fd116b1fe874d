/* Blocks of bytes with scales, of a row of floats and back; how is a constant wherever they are called.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_NAIVE_NAIVE_BLOCKS_H
#define NRG_BENCH_NAIVE_NAIVE_BLOCKS_H

/* Elements of a block (0: all of a row), rows that lie together, in chunks of so many bytes; a block's scale, in bytes, where it
 * has its own; and its sums. */
typedef struct naive_blocks {
    size_t block, together, chunk, scale, sums;
} naive_blocks;

/* The longest row there is a buffer for. */
enum { NAIVE_ROW = 1 << 14 };

/* Of numbers that are normal in f16; to nearest, ties to even. */
INLINE uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = bits < 0x38800000 ? 0x38800000 : bits;
    return (uint16_t)((bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13);
}

INLINE float float_of_half(uint16_t half)
{
    const uint32_t bits = ((uint32_t)half << 13) + 0x38000000;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE size_t bytes_of_block(naive_blocks how) { return how.scale + how.block + 2 * how.sums; }

/* Where element i of a block is in the bytes of the rows that lie together, and where its sum is. */
INLINE size_t place_of(naive_blocks how, size_t row, size_t i)
{
    return how.together == 1 ? i : i / how.chunk * how.chunk * how.together + row * how.chunk + i % how.chunk;
}

INLINE size_t sum_of(naive_blocks how, size_t row, size_t i)
{
    return how.together == 1 ? i / 16 : i / 64 * 4 * how.together + row * 4 + i / 16 % 4;
}

/* Elements of one block; q: of the rows that lie together. */
INLINE void put_block(naive_blocks how, size_t row, size_t n, const float *restrict x, signed char *restrict q,
                      float *restrict scale)
{
    float most = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        most = x[i] > most ? x[i] : most;
        least = x[i] < least ? x[i] : least;
    }
    const float largest = -least > most ? least : most;
    const float d = how.sums ? largest / -127 : fabsf(largest) / 127, inverse = d != 0 ? 1 / d : 0;
    const uint16_t half = half_of(d);
    if (how.scale == 2)
        memcpy(q + 2 * row, &half, 2);
    else if (how.scale == 4)
        memcpy(q + 4 * row, &d, 4);
    else
        *scale = d;
    signed char *restrict to = q + how.scale * how.together;
    for (size_t i = 0; i < n; i++)
        to[place_of(how, row, i)] = (signed char)rintf(x[i] * inverse);
    for (size_t i = 0; how.sums && i < n; i += 16) {
        int sum = 0;
        for (size_t k = i; k < i + 16; k++)
            sum += to[place_of(how, row, k)];
        const int16_t stored = (int16_t)sum;
        memcpy(to + how.block * how.together + 2 * sum_of(how, row, i), &stored, 2);
    }
}

/* Row n of a tensor. */
INLINE void put_row(naive_blocks how, size_t n, size_t dim, const float *restrict x, signed char *restrict q,
                    float *restrict scales)
{
    const size_t row = n % how.together;
    if (!how.block) {
        put_block(how, 0, dim, x, q + n * dim, scales + n);
        return;
    }
    signed char *to = q + (n - row) * (dim / how.block) * bytes_of_block(how);
    for (size_t k = 0; k < dim / how.block; k++)
        put_block(how, row, how.block, x + k * how.block, to + k * how.together * bytes_of_block(how),
                  how.scale ? NULL : scales + n * (dim / how.block) + k);
}

/* What it says: q of element i, and the scale of a block. */
INLINE float scale_of(naive_blocks how, size_t row, const signed char *q, const float *scale)
{
    uint16_t half;
    float d;
    if (!how.scale)
        return *scale;
    if (how.scale == 2) {
        memcpy(&half, q + 2 * row, 2);
        return float_of_half(half);
    }
    memcpy(&d, q + 4 * row, 4);
    return d;
}

#endif
