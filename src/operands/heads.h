/* For descriptions: tensors with batches, heads and rows, whose strides are an nrg_head_strides.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_HEADS_H
#define NRG_OPERANDS_HEADS_H

#include "operand.h"

#define NRG_HEAD_LEVEL(type, strides, which, number)                                                                             \
    {                                                                                                                            \
        .stride = (uint16_t)(offsetof(type, strides) + offsetof(nrg_head_strides, which)), .count = (number)                     \
    }

/* The levels of [batch, heads, rows, dim] and of [batch, rows, heads, dim]: the rows of a head, or the heads of a row, lie
 * together in a dense tensor. batch_ may be NRG_ONE: there is no such level. */
#define NRG_ROWS_TOGETHER(type, strides, batch_, heads_, rows_)                                                                  \
    {                                                                                                                            \
        NRG_HEAD_LEVEL(type, strides, row, rows_), NRG_HEAD_LEVEL(type, strides, head, heads_),                                  \
            NRG_HEAD_LEVEL(type, strides, batch, batch_)                                                                         \
    }
#define NRG_HEADS_TOGETHER(type, strides, batch_, heads_, rows_)                                                                 \
    {                                                                                                                            \
        NRG_HEAD_LEVEL(type, strides, head, heads_), NRG_HEAD_LEVEL(type, strides, row, rows_),                                  \
            NRG_HEAD_LEVEL(type, strides, batch, batch_)                                                                         \
    }

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
