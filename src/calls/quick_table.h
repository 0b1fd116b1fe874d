/* The way past the checker for tables of positions: one row is made for every token.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QUICK_TABLE_H
#define NRG_CALLS_QUICK_TABLE_H

#include <stdint.h>

#include "quick.h"

/* A table of `rows` rows of `dim` elements, each of `element` bytes, made from 2·pairs doubles. */
typedef struct quick_table {
    const double *frequencies;
    const int32_t *positions; /* of one axis; NULL: from first on */
    int32_t first;
    void *to;
    size_t stride, rows, dim, element, pairs;
} quick_table;

/* Whether its operands are plainly sound; its stride is then the real one. */
static inline int quick_table_is_sound(quick_table *t)
{
    quick_operand to, frequencies, positions;
    const int sizes = (t->rows - 1 < QUICK_MOST) & (t->dim - 1 < QUICK_MOST) & (t->frequencies != NULL) & (t->to != NULL);
    if (!sizes)
        return 0;
    const int lie_well = quick_rows(&to, t->to, t->stride, t->rows, t->dim * t->element, t->element - 1) &
                         quick_rows(&frequencies, t->frequencies, 0, 1, 2 * t->pairs * sizeof(double), sizeof(double) - 1) &
                         quick_apart(&to, &frequencies, 0);
    t->stride = to.stride;
    if (!t->positions)
        return lie_well & (t->rows - 1 <= (size_t)((int64_t)INT32_MAX - t->first));
    return lie_well & (t->first == 0) &
           quick_rows(&positions, t->positions, 0, 1, t->rows * sizeof(int32_t), sizeof(int32_t) - 1) &
           quick_apart(&to, &positions, 0);
}

#endif
