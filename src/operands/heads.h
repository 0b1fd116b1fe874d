/* For descriptions: tensors with batches, heads and rows, whose strides are an nrg_head_strides.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_HEADS_H
#define NRG_OPERANDS_HEADS_H

#include "describe.h"

/* The strides that nrg_check found for such a tensor. */
static inline nrg_head_strides nrg_rows_together(const size_t stride[NRG_LEVELS])
{
    return (nrg_head_strides){.row = stride[0], .head = stride[1], .batch = stride[2]};
}
static inline nrg_head_strides nrg_heads_together(const size_t stride[NRG_LEVELS])
{
    return (nrg_head_strides){.head = stride[0], .row = stride[1], .batch = stride[2]};
}

/* The diagonals of [queries, keys]. */
static inline size_t nrg_diagonals(size_t queries, size_t keys) { return queries && keys ? queries + keys - 1 : 0; }

#endif
