/* Tensors with strides for batch, head and row, as operands.
 *
 * SPDX-License-Identifier: MIT */
#include "heads.h"

/* Strides of 0 become those of a dense tensor. 0 where they do not fit a size_t. */
static int fill_strides(nrg_head_strides *s, const head_shape *shape, size_t bytes, head_order order)
{
    size_t *inner = order == ROWS_TOGETHER ? &s->row : &s->head, *outer = order == ROWS_TOGETHER ? &s->head : &s->row;
    const size_t inner_count = order == ROWS_TOGETHER ? shape->rows : shape->heads;
    const size_t outer_count = order == ROWS_TOGETHER ? shape->heads : shape->rows;
    size_t span = bytes; /* of what is inside of the next level; a level of one has a stride that nobody looks at */
    *inner = *inner ? *inner : span;
    if (inner_count != 1 && !product(inner_count, *inner, &span))
        return 0;
    *outer = *outer ? *outer : span;
    if (outer_count != 1 && !product(outer_count, *outer, &span))
        return 0;
    s->batch = s->batch ? s->batch : span;
    return 1;
}

/* One of the three levels of a tensor. */
typedef struct head_level {
    size_t stride, count;
} head_level;

/* Levels that step at all, by their strides; returns how many. */
static size_t sort_levels(head_level sorted[3], const nrg_head_strides *s, const head_shape *shape)
{
    const head_level levels[3] = {{s->row, shape->rows}, {s->head, shape->heads}, {s->batch, shape->batch}};
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (levels[i].count == 1)
            continue;
        size_t at = count++;
        for (; at > 0 && sorted[at - 1].stride > levels[i].stride; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = levels[i];
    }
    return count;
}

/* Adds one level to an extent of rows: runs that follow each other without a gap become one run, and rows at equal distances stay
 * rows; whatever else there is becomes a run with its gaps in it. */
static nrg_status add_level(extent *e, size_t *span, head_level level)
{
    size_t before_last;
    if (level.stride < *span)
        return NRG_ERR_STRIDE;
    if (!product(level.count - 1, level.stride, &before_last) || before_last > SIZE_MAX - *span)
        return NRG_ERR_OVERFLOW;
    if (e->rows > 1 && level.stride % e->stride == 0 && level.stride / e->stride == e->rows) {
        e->rows *= level.count;
    } else if (level.stride == *span) {
        e->rows = 1;
        e->bytes = before_last + *span;
        e->stride = e->bytes;
    } else {
        e->bytes = *span;
        e->stride = level.stride;
        e->rows = level.count;
    }
    *span += before_last;
    return NRG_OK;
}

nrg_status nrg_add_heads(extents *all, unsigned name, unsigned in_place, const void *pointer, nrg_dtype dtype,
                         const head_shape *shape, head_order order, nrg_head_strides *strides)
{
    if (!pointer)
        return NRG_OK;
    extent e = {.name = name, .in_place = in_place, .element = dtype == NRG_F32 ? 4 : 2, .rows = 1};
    if (!product(shape->dim, e.element, &e.bytes) || !fill_strides(strides, shape, e.bytes, order))
        return NRG_ERR_OVERFLOW;
    if (!shape->batch || !shape->heads || !shape->rows || !shape->dim)
        return NRG_OK;
    e.first = (uintptr_t)pointer;
    e.stride = e.bytes;
    uintptr_t aligned = e.first;
    size_t span = e.bytes;
    head_level levels[3];
    const size_t count = sort_levels(levels, strides, shape);
    for (size_t i = 0; i < count; i++) {
        nrg_status status = add_level(&e, &span, levels[i]);
        if (status != NRG_OK)
            return status;
        aligned |= levels[i].stride;
    }
    if (aligned & (e.element - 1))
        return NRG_ERR_ALIGNMENT;
    if (span > UINTPTR_MAX - e.first)
        return NRG_ERR_OVERFLOW;
    e.end = e.first + span;
    all->e[all->count++] = e;
    return NRG_OK;
}

int nrg_same_strides(const nrg_head_strides *a, const nrg_head_strides *b, const head_shape *shape)
{
    return (shape->rows == 1 || a->row == b->row) && (shape->heads == 1 || a->head == b->head) &&
           (shape->batch == 1 || a->batch == b->batch);
}
