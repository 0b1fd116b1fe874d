/* Rows of a table that an embedding layer picks, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_EMBED_ROWS_H
#define NRG_CALLS_EMBED_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* How many rows later one is prefetched: the next, or as many as make two kilobytes. Measured with rows of 768 from memory, one
 * row or two: with bf16 two are 1.3 × as fast, with f32 they are alike. */
static inline size_t embed_prefetch_rows(size_t row_bytes) { return 1 + 2048 / row_bytes; }

/* Whether n rows from `first` on are rows of a table. */
static inline int embed_counted_rows_exist(int32_t first, size_t n, size_t rows)
{
    return !n || (first >= 0 && (size_t)first <= rows && n <= rows - (size_t)first);
}

/* Whether all of n ids are rows of a table. Loops without exits, and eight at a time: what gcc makes vectors of at -O2. */
static inline int embed_ids_exist(const int32_t *ids, size_t n, size_t rows)
{
    const uint32_t limit = rows < (uint32_t)INT32_MAX + 1 ? (uint32_t)rows : (uint32_t)INT32_MAX + 1;
    uint32_t wrong[8] = {0}, any = 0;
    size_t t = 0;
    for (; t + 8 <= n; t += 8)
        for (size_t i = 0; i < 8; i++)
            wrong[i] |= (uint32_t)ids[t + i] >= limit;
    for (; t < n; t++)
        any |= (uint32_t)ids[t] >= limit;
    for (size_t i = 0; i < 8; i++)
        any |= wrong[i];
    return !any;
}

#endif
