/* See multiply.h. A panel of b, a few columns wide, is copied to memory that stays in the nearest cache. ROWS rows of c at a time
 * are summed in registers over a block of k. Vectors are GNU C's. gcc and clang compile one body for each target, with as many
 * columns as the target has registers for.
 *
 * SPDX-License-Identifier: MIT */
#include "multiply.h"

#include <string.h>

enum { ROWS = 6, MOST_COLUMNS = 32, BLOCK = 256, LANES = 16 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

#define INLINE static inline __attribute__((always_inline))

/* c[rows][vectors · LANES] from a's rows and the panel; rows and vectors are constants wherever this is inlined. */
INLINE void tile(size_t rows, size_t vectors, size_t k, view a, const float *panel, size_t panel_row, float *c, size_t c_row,
                 sum_mode mode)
{
    lanes sum[ROWS][MOST_COLUMNS / LANES];
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = mode == SUM_ADD ? *(const lanes *)(c + i * c_row + v * LANES) : (lanes){0};
    for (size_t p = 0; p < k; p++) {
        lanes b[MOST_COLUMNS / LANES];
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++)
            b[v] = *(const lanes *)(panel + p * panel_row + v * LANES);
#pragma GCC unroll 6
        for (size_t i = 0; i < rows; i++) {
            const float x = a.at[i * a.row + p * a.column];
#pragma GCC unroll 2
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] += x * b[v];
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (size_t v = 0; v < vectors; v++)
            *(lanes *)(c + i * c_row + v * LANES) = sum[i][v];
}

/* Fewer columns than a panel has: through a tile on the stack. */
INLINE void edge(size_t rows, size_t vectors, size_t columns, size_t k, view a, const float *panel, float *c, size_t c_row,
                 sum_mode mode)
{
    float whole[ROWS][MOST_COLUMNS] = {{0}};
    for (size_t i = 0; i < rows && mode == SUM_ADD; i++)
        memcpy(whole[i], c + i * c_row, columns * sizeof *c);
    if (rows == ROWS)
        tile(ROWS, vectors, k, a, panel, vectors * LANES, whole[0], MOST_COLUMNS, mode);
    else
        for (size_t i = 0; i < rows; i++) {
            const view row = {a.at + i * a.row, 0, a.column};
            tile(1, vectors, k, row, panel, vectors * LANES, whole[i], MOST_COLUMNS, mode);
        }
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * c_row, whole[i], columns * sizeof *c);
}

/* m rows of a by a panel of b, a block of k. */
INLINE void panel_product(size_t vectors, size_t m, size_t columns, size_t k, view a, const float *panel, float *c, size_t c_row,
                          sum_mode mode)
{
    const size_t width = vectors * LANES;
    for (size_t i = 0; i < m; i += ROWS) {
        const size_t rows = m - i < ROWS ? m - i : ROWS;
        const view some = {a.at + i * a.row, a.row, a.column};
        if (rows == ROWS && columns == width)
            tile(ROWS, vectors, k, some, panel, width, c + i * c_row, c_row, mode);
        else
            edge(rows, vectors, columns, k, some, panel, c + i * c_row, c_row, mode);
    }
}

/* Columns of b, `width` of them at a time: the panel's rest is zeros. */
static void copy_panel(size_t width, size_t columns, size_t k, view b, float *panel)
{
    for (size_t p = 0; p < k; p++) {
        float *to = panel + p * width;
        const float *from = b.at + p * b.row;
        if (b.column == 1)
            memcpy(to, from, columns * sizeof *to);
        else
            for (size_t j = 0; j < columns; j++)
                to[j] = from[j * b.column];
        for (size_t j = columns; j < width; j++)
            to[j] = 0;
    }
}

INLINE void product(size_t vectors, size_t m, size_t n, size_t k, view a, view b, float *c, size_t c_row, sum_mode mode)
{
    const size_t width = vectors * LANES;
    float panel[BLOCK * MOST_COLUMNS];
    for (size_t from = 0; from < k; from += BLOCK) {
        const size_t depth = k - from < BLOCK ? k - from : BLOCK;
        const view a_block = {a.at + from * a.column, a.row, a.column};
        const sum_mode block_mode = from > 0 ? SUM_ADD : mode;
        for (size_t j = 0; j < n; j += width) {
            const size_t columns = n - j < width ? n - j : width;
            const view b_block = {b.at + from * b.row + j * b.column, b.row, b.column};
            if (m == 1 && columns == width && b.column == 1) { /* a single token: a copy would cost what the product does */
                tile(1, vectors, depth, a_block, b_block.at, b.row, c + j, c_row, block_mode);
                continue;
            }
            copy_panel(width, columns, depth, b_block, panel);
            panel_product(vectors, m, columns, depth, a_block, panel, c + j, c_row, block_mode);
        }
    }
}

#define VARIANT(name, target, vectors)                                                                                           \
    target static void name(size_t m, size_t n, size_t k, view a, view b, float *c, size_t c_row, sum_mode mode)                 \
    {                                                                                                                            \
        product(vectors, m, n, k, a, b, c, c_row, mode);                                                                         \
    }

VARIANT(product_plain, , 1)
#if defined(__x86_64__)
VARIANT(product_avx2, __attribute__((target("avx2"))), 1)
VARIANT(product_avx512, __attribute__((target("avx512f"))), 2)
#endif

void multiply(size_t m, size_t n, size_t k, view a, view b, float *c, size_t c_row, sum_mode mode, int ith, int nth)
{
    /* whole tiles of rows to each thread, or where there are few rows, whole vectors of columns */
    const size_t all = m > (size_t)nth ? m : n, step = m > (size_t)nth ? ROWS : MOST_COLUMNS;
    const size_t tiles = (all + step - 1) / step;
    size_t first = tiles * (size_t)ith / (size_t)nth * step, last = tiles * ((size_t)ith + 1) / (size_t)nth * step;
    last = last < all ? last : all;
    if (first >= last)
        return;
    if (m > (size_t)nth) {
        a.at += first * a.row;
        c += first * c_row;
        m = last - first;
    } else {
        b.at += first * b.column;
        c += first;
        n = last - first;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        product_avx512(m, n, k, a, b, c, c_row, mode);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        product_avx2(m, n, k, a, b, c, c_row, mode);
        return;
    }
#endif
    product_plain(m, n, k, a, b, c, c_row, mode);
}
