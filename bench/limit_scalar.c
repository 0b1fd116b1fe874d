/* The bare loops of the scalar path: plain C, with whatever vectors the compiler makes of it for the base instruction set.
 * C has no non-temporal stores.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "limits.h"

/* n words of a row; the compiler sees four loops without a choice in them. */
static void words(size_t n, const uint32_t *restrict x, const uint32_t *restrict y, const uint32_t *restrict w,
                  const uint32_t *restrict b, uint32_t *restrict r, uint32_t *restrict o)
{
    if (!y && !b)
        for (size_t i = 0; i < n; i++)
            o[i] = x[i] + w[i];
    else if (!y)
        for (size_t i = 0; i < n; i++)
            o[i] = x[i] + w[i] + b[i];
    else if (!b)
        for (size_t i = 0; i < n; i++) {
            uint32_t sum = x[i] + y[i];
            r[i] = sum;
            o[i] = sum + w[i];
        }
    else
        for (size_t i = 0; i < n; i++) {
            uint32_t sum = x[i] + y[i];
            r[i] = sum;
            o[i] = sum + w[i] + b[i];
        }
}

static void piece(const limit_job *j, size_t a, size_t c, size_t bytes)
{
    words(bytes / 4, (const uint32_t *)(j->x + a), j->y ? (const uint32_t *)(j->y + a) : NULL, (const uint32_t *)(j->w + c),
          j->b ? (const uint32_t *)(j->b + c) : NULL, j->r ? (uint32_t *)(j->r + a) : NULL, (uint32_t *)(j->o + a));
}

static void keep(const limit_job *j)
{
    for (size_t row = 0; row < j->rows; row++)
        piece(j, row * j->row_bytes, 0, j->row_bytes);
}

/* The quarters of the tensor in turn, a piece of a row each. */
static void keep_4(const limit_job *j)
{
    enum { PIECE = 512 };
    size_t quarter = j->rows / 4;
    for (size_t row = 0; row < quarter; row++)
        for (size_t c = 0; c < j->row_bytes; c += PIECE)
            for (size_t p = 0; p < 4; p++)
                piece(j, (p * quarter + row) * j->row_bytes + c, c, j->row_bytes - c < PIECE ? j->row_bytes - c : PIECE);
    for (size_t row = 4 * quarter; row < j->rows; row++)
        piece(j, row * j->row_bytes, 0, j->row_bytes);
}

const limit_loop limit_loops_scalar[] = {
    {"ordinary stores", keep},
    {"ordinary stores, 4 places", keep_4},
    {NULL, NULL},
};
