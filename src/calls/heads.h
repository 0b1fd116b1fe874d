/* Tensors [batch, heads, rows, dim] with a stride for each of the first three, as operands that checks.h can compare.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_HEADS_H
#define NRG_CALLS_HEADS_H

#include "checks.h"

typedef struct head_shape {
    size_t batch, heads, rows, dim;
} head_shape;

/* What lies together in a dense tensor, beside the elements of a row. */
typedef enum head_order { ROWS_TOGETHER, HEADS_TOGETHER } head_order;

/* add_operand for such a tensor, if it is there; strides of 0 become those of a dense one. */
nrg_status nrg_add_heads(extents *all, unsigned name, unsigned in_place, const void *pointer, nrg_dtype dtype,
                         const head_shape *shape, head_order order, nrg_head_strides *strides);

/* Whether two tensors of one shape take the same steps. */
int nrg_same_strides(const nrg_head_strides *a, const nrg_head_strides *b, const head_shape *shape);

#endif
