/* Where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep_layout.h"

#include "sweep_data.h"

void sweep_add(sweep_case *c, int operand, nrg_dtype dtype, size_t length, size_t rows)
{
    sweep_operand o = {dtype, 0, length, length * nrg_dtype_size(dtype), rows};
    c->operands[operand] = o;
}

/* Of the operands with one stride a row; w, b and the like have no stride of their own. */
static int has_stride(const sweep_case *c, int operand)
{
    switch (operand) {
    case SWEEP_W:
    case SWEEP_B:
    case SWEEP_MEAN:
    case SWEEP_RSTD:
    case SWEEP_DW:
    case SWEEP_DB:
    case SWEEP_WORKSPACE:
        return 0;
    default:
        return c->operands[operand].rows != 0;
    }
}

/* Elements, or what the library wants for its scratch. */
static size_t alignment_of(const sweep_case *c, int operand)
{
    return operand >= SWEEP_FIRST_SCRATCH ? sizeof(double) : nrg_dtype_size(c->operands[operand].dtype);
}

void sweep_lay_out(sweep_case *c, uint64_t *random)
{
    unsigned alignment = sweep_draw(random, 3);
    size_t at = 64;
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        sweep_operand *operand = &c->operands[i];
        size_t element = nrg_dtype_size(operand->dtype);
        if (!operand->rows)
            continue;
        at = (at + 63) / 64 * 64;
        if (alignment == 1) {
            at += 16 * sweep_draw(random, 4);
            if (has_stride(c, i))
                operand->stride = (operand->stride + 15) / 16 * 16 + 16 * sweep_draw(random, 3);
        } else if (alignment == 2) {
            at += alignment_of(c, i) * sweep_draw(random, 32);
            if (has_stride(c, i))
                operand->stride += element * sweep_draw(random, 12);
        }
        operand->offset = at;
        at += operand->rows * operand->stride + 64;
    }
    c->bytes = (at + 63) / 64 * 64;
}

void sweep_share_place(sweep_case *c, int output, int input)
{
    sweep_operand *to = &c->operands[output];
    const sweep_operand *from = &c->operands[input];
    if (!to->rows || !from->rows || nrg_dtype_size(to->dtype) != nrg_dtype_size(from->dtype))
        return;
    to->offset = from->offset;
    to->stride = from->stride;
}

void *sweep_place(const sweep_case *c, int operand, unsigned char *memory)
{
    return c->operands[operand].rows ? memory + c->operands[operand].offset : NULL;
}
