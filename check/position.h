/* check/position.h: what the cases of the operations with positions have in common.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_POSITION_H
#define NRG_CHECK_POSITION_H

#include "sweep.h"

/* Positions from least to most, the ends among them. */
void sweep_fill_positions(const sweep_case *c, int operand, int32_t least, int32_t most, unsigned char *memory, uint64_t *random);

/* A tensor [tokens, heads, dim], and how its rows lie: those of a token together, or those of a head; even: all rows at equal
 * distances. A dense one, whose strides may be told as 0, is by head or by token. */
void sweep_add_heads(sweep_case *c, int operand, int type, size_t dim, size_t tokens, size_t heads, int by_head, int is_even);
void sweep_head_strides(const sweep_case *c, int operand, int by_head, int dense_by_head, size_t *token_stride,
                        size_t *head_stride);

/* A tensor [batch, heads, rows, dim], by head or by row likewise, and its strides. */
void sweep_add_batches(sweep_case *c, int operand, int type, size_t dim, const size_t shape[3], int by_head);
void sweep_batch_strides(const sweep_case *c, int operand, const size_t shape[3], int by_head, int dense_by_head, size_t *batch,
                         size_t *head, size_t *row);

/* An output that is added to, if it is there. */
void sweep_accumulate(sweep_case *c, int operand);

#endif
