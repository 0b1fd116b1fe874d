/* What the public functions check with: structs of any version, operands as memory, overlaps, shares. Inline: a call for one
 * short row spends a third of its time here.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_CHECKS_H
#define NRG_CALLS_CHECKS_H

#include <string.h>

#include "../internal.h"

/* No struct of any version is larger: such a size is an uninitialized field. */
enum { SIZE_LIMIT = 4096 };

/* A caller's struct of any version, as this version's: fields it does not know yet are 0, which is their default; fields that
 * this library does not know yet must be 0, since what they ask for could not be done. Returns the caller's own where that is of
 * this version, else a copy in `copy`, or NULL. */
static inline const void *read_struct(const void *from, void *copy, size_t known, size_t least)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size == known)
        return from;
    if (size < least || size > SIZE_LIMIT)
        return NULL;
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return NULL;
    memset(copy, 0, known);
    memcpy(copy, from, size < known ? size : known);
    return copy;
}

static inline int is_dtype(nrg_dtype dtype) { return dtype == NRG_F32 || dtype == NRG_F16 || dtype == NRG_BF16; }

static inline int is_beside(nrg_dtype other, nrg_dtype dtype)
{
    return other == NRG_DTYPE_SAME || other == NRG_F32 || other == dtype;
}

/* An operand as memory: from first up to end, rows of `bytes` bytes, `stride` apart. */
typedef struct extent {
    unsigned name;     /* a bit, of the caller's choice */
    unsigned in_place; /* names of the operands this one may lie over, row by row; an input: ANY_OPERAND */
    size_t element, bytes, stride, rows;
    uintptr_t first, end;
} extent;

#define ANY_OPERAND (~0u)

/* The operands that are there, in the order of the calls. */
typedef struct extents {
    size_t count;
    extent *e; /* the caller's array, as long as he has operands: stacks are small */
} extents;

/* a·b, or 0 where it does not fit. Divides only for numbers a tensor seldom has: 8 operands × 2 divisions would cost a small call
 * more than its row. */
static inline int product(size_t a, size_t b, size_t *result)
{
    const size_t half = (size_t)1 << (sizeof(size_t) * 4);
    if ((a | b) >= half && b && a > SIZE_MAX / b)
        return 0;
    *result = a * b;
    return 1;
}

/* Adds an operand, if it is there, and checks that its bytes can exist: size, stride, alignment. A stride of 0 becomes the real
 * one. */
static inline nrg_status add_operand(extents *all, unsigned name, unsigned in_place, const void *pointer, nrg_dtype dtype,
                                     size_t dim, size_t rows, size_t *stride)
{
    if (!pointer)
        return NRG_OK;
    size_t element = dtype == NRG_F32 ? 4 : 2, bytes, before_last;
    if (!product(dim, element, &bytes))
        return NRG_ERR_OVERFLOW;
    *stride = *stride ? *stride : bytes;
    if (!rows)
        return NRG_OK;
    if (*stride < bytes)
        return NRG_ERR_STRIDE;
    uintptr_t first = (uintptr_t)pointer;
    if ((first | *stride) & (element - 1))
        return NRG_ERR_ALIGNMENT;
    if (!product(rows - 1, *stride, &before_last) || before_last > SIZE_MAX - bytes || before_last + bytes > UINTPTR_MAX - first)
        return NRG_ERR_OVERFLOW;
    extent *e = &all->e[all->count++];
    e->name = name;
    e->in_place = in_place;
    e->element = element;
    e->bytes = bytes;
    e->stride = *stride;
    e->rows = rows;
    e->first = first;
    e->end = first + before_last + bytes;
    return NRG_OK;
}

/* Whether rows of two operands whose extents meet share a byte. */
static inline int rows_meet(const extent *a, const extent *b)
{
    if (a->stride != b->stride || a->rows == 1 || b->rows == 1)
        return 1;
    /* equal strides: where a row of b begins, counted from the start of the nearest row of a below it */
    size_t offset =
        a->first <= b->first ? (b->first - a->first) % a->stride : (a->stride - (a->first - b->first) % a->stride) % a->stride;
    return offset < a->bytes || offset > a->stride - b->bytes;
}

static inline int lies_over(const extent *out, const extent *other)
{
    return (out->in_place & other->name) && out->first == other->first && out->element == other->element &&
           (out->stride == other->stride || out->rows == 1);
}

/* Adds an array of `count` elements of `size` bytes, a multiple of 8, that need the alignment of a double. */
static inline nrg_status add_words(extents *all, unsigned name, unsigned in_place, const void *pointer, size_t count, size_t size)
{
    size_t floats, stride = 0;
    if (!product(count, size / sizeof(float), &floats))
        return NRG_ERR_OVERFLOW;
    if (pointer && floats && (uintptr_t)pointer % sizeof(double))
        return NRG_ERR_ALIGNMENT;
    return add_operand(all, name, in_place, pointer, NRG_F32, floats, floats ? 1 : 0, &stride);
}

/* Outputs against everything that was added before them. */
static inline nrg_status check_overlap(const extents *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const extent *out = &all->e[i];
        if (out->in_place == ANY_OPERAND)
            continue;
        for (size_t j = 0; j < i; j++) {
            const extent *other = &all->e[j];
            if (out->end > other->first && other->end > out->first && !lies_over(out, other) && rows_meet(out, other))
                return NRG_ERR_OVERLAP;
        }
    }
    return NRG_OK;
}

/* Non-temporal stores pay when the tensor does not come from cache and will not be found there again. Measured (docs/speed.md):
 * the call's bytes against the L2 of one core, since a shared L3 tells nothing about the share one gets of it. */
static inline int wants_stream(nrg_store store, const extents *all)
{
    if (store != NRG_STORE_AUTO)
        return store == NRG_STORE_STREAM;
    size_t room = nrg_l2_bytes() + nrg_l2_bytes() / 2;
    for (size_t i = 0; i < all->count; i++) {
        const extent *e = &all->e[i];
        size_t bytes = e->rows * e->bytes; /* fits: rows are no longer than their stride */
        if (bytes > room)
            return 1;
        room -= bytes;
    }
    return 0;
}

/* Row n of ith's share: rows·ith/nth without the product, which may not fit. */
static inline size_t share(size_t rows, int ith, int nth)
{
    size_t i = (size_t)ith, n = (size_t)nth;
    size_t each = rows / n, left = rows % n;
    return each * i + (i < left ? i : left);
}

#endif
