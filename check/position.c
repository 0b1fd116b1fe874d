/* What the cases of the operations with positions have in common.
 *
 * SPDX-License-Identifier: MIT */
#include "position.h"

#include <string.h>

#include "data.h"
#include "layout.h"

void sweep_fill_positions(const sweep_case *c, int operand, int32_t least, int32_t most, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    uint64_t span = (uint64_t)((int64_t)most - least) + 1;
    /* of a wide range, mostly a part in which there are positions of texts */
    uint64_t near_zero = least < 0 && span > 1 << 20 && sweep_draw(random, 3) ? 1 << 20 : 0;
    for (size_t row = 0; row < o->rows; row++)
        for (size_t i = 0; i < o->length; i++) {
            uint64_t drawn = sweep_random(random), end = drawn >> 40 & 15;
            int32_t position = end == 0    ? least
                               : end == 1  ? most
                               : near_zero ? (int32_t)(drawn % near_zero)
                                           : (int32_t)(least + (int64_t)((drawn & 0xffffffff) * span >> 32));
            memcpy(memory + sweep_row(o, row) + i * sizeof position, &position, sizeof position);
        }
}

void sweep_add_heads(sweep_case *c, int operand, int type, size_t dim, size_t tokens, size_t heads, int by_head, int is_even)
{
    sweep_add_runs(c, operand, type, dim, by_head ? tokens : heads, by_head ? heads : tokens, is_even);
}

void sweep_head_strides(const sweep_case *c, int operand, int by_head, int dense_by_head, size_t *token_stride,
                        size_t *head_stride)
{
    const sweep_operand *o = &c->operands[operand];
    const int may_be_zero = by_head == dense_by_head;
    const size_t stride = may_be_zero ? sweep_stride(c, operand) : o->stride,
                 run_stride = may_be_zero ? sweep_run_stride(c, operand) : o->run_stride;
    *token_stride = by_head ? stride : run_stride;
    *head_stride = by_head ? run_stride : stride;
}

void sweep_add_batches(sweep_case *c, int operand, int type, size_t dim, const size_t shape[3], int by_head)
{
    sweep_add_heads(c, operand, type, dim, by_head ? shape[2] : shape[0] * shape[2], by_head ? shape[0] * shape[1] : shape[1],
                    by_head, 0);
}

void sweep_batch_strides(const sweep_case *c, int operand, const size_t shape[3], int by_head, int dense_by_head, size_t *batch,
                         size_t *head, size_t *row)
{
    sweep_head_strides(c, operand, by_head, dense_by_head, row, head);
    *batch = by_head ? shape[1] * *head : shape[2] * *row;
}

void sweep_accumulate(sweep_case *c, int operand) { c->operands[operand].may_stay = c->operands[operand].is_read = 1; }
