/* Matrix products, the only part of the model that nrg does not compute: c = a · b, and c += a · b.
 *
 * The order of each sum is fixed. Element (i, j) is a[i][0]·b[0][j], plus a[i][1]·b[1][j], plus a[i][2]·b[2][j] and so on. Each
 * product and each sum is rounded to a float. There is no fused multiply-add, because not every CPU has one.
 *
 * Blocks, vectors and threads divide the elements of c, and never a sum. So the bits depend only on a and b.
 *
 * SPDX-License-Identifier: MIT */
#ifndef MULTIPLY_H
#define MULTIPLY_H

#include <stddef.h>

/* An operand: element (i, j) is at[i · row + j · column]. A transposed matrix is one with the two exchanged. */
typedef struct view {
    const float *at;
    size_t row, column;
} view;

static inline view rows_of(const float *at, size_t width)
{
    const view v = {at, width, 1};
    return v;
}

static inline view transposed(view v)
{
    const view t = {v.at, v.column, v.row};
    return t;
}

typedef enum sum_mode { SUM_NEW = 0, SUM_ADD = 1 } sum_mode;

/* The share of thread ith of nth of c [m][n], whose rows are c_row floats apart: a is [m][k], b is [k][n]. With SUM_ADD sums
 * begin with what is in c. c overlaps neither a nor b. */
void multiply(size_t m, size_t n, size_t k, view a, view b, float *c, size_t c_row, sum_mode mode, int ith, int nth);

#endif
