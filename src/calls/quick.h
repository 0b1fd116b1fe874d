/* A way past the checker for calls so small that it would be a quarter of their time: operands that are plainly sound. Says yes
 * only where nrg_check would; where it does not say yes, nrg_check decides. RMSNorm of 1x64 with AVX2 (callgrind): the checker
 * alone takes 880 instructions, these checks and the job together 270, and the kernel 210.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QUICK_H
#define NRG_CALLS_QUICK_H

#include "../operands/place.h"

/* An operand as memory, or nothing at all where it is absent. */
typedef struct quick_operand {
    uintptr_t first, end;
    size_t stride;
} quick_operand;

/* Whether a tensor of `rows` rows of `row` bytes lies well. unit: what pointers and strides must be multiples of, less one. */
static inline int quick_rows(quick_operand *q, const void *pointer, size_t stride, size_t rows, size_t row, size_t unit)
{
    q->first = (uintptr_t)pointer;
    q->stride = stride ? stride : row;
    q->end = pointer ? q->first + (rows - 1) * q->stride + row : q->first;
    const int is_there = pointer != NULL, fits = (q->stride >= row) & (q->stride < NRG_PLACE_STRIDE) & (q->end > q->first);
    return (fits | !is_there) & (((q->first | q->stride) & unit) == 0);
}

/* Whether an output shares no byte with another operand; or, where it may be in its place, is. */
static inline int quick_apart(const quick_operand *out, const quick_operand *other, int in_place)
{
    return (out->end <= other->first) | (other->end <= out->first) |
           (in_place & (out->first == other->first) & (out->stride == other->stride));
}

/* Whether two operands without gaps share no byte. */
static inline int quick_dense_apart(uintptr_t p, size_t bytes, uintptr_t other, size_t other_bytes)
{
    return p + bytes <= other || other + other_bytes <= p;
}

#endif
