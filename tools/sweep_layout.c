/* Where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep_layout.h"

#include "sweep_data.h"

void sweep_add(sweep_case *c, int operand, int type, size_t length, size_t rows)
{
    sweep_operand o = {type, 0, length, length * sweep_type_size(type), rows};
    c->operands[operand] = o;
}

/* Of the operands with one stride a row; w, b and the like have no stride of their own. */
static int has_stride(const sweep_case *c, int operand)
{
    switch (operand) {
    case SWEEP_X:
    case SWEEP_Y:
    case SWEEP_Z:
    case SWEEP_R_IN:
    case SWEEP_D_O:
    case SWEEP_DR_IN:
    case SWEEP_O:
    case SWEEP_R:
    case SWEEP_DX:
    case SWEEP_DY:
    case SWEEP_DZ:
        return c->operands[operand].rows != 0;
    default:
        return 0;
    }
}

/* Elements, or what the library wants for its scratch. */
static size_t alignment_of(const sweep_case *c, int operand)
{
    return operand >= SWEEP_FIRST_SCRATCH ? sizeof(double) : sweep_type_size(c->operands[operand].type);
}

void sweep_lay_out(sweep_case *c, uint64_t *random)
{
    unsigned alignment = sweep_draw(random, 3);
    size_t at = 64;
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        sweep_operand *operand = &c->operands[i];
        size_t element = sweep_type_size(operand->type);
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
    if (!to->rows || !from->rows || sweep_type_size(to->type) != sweep_type_size(from->type))
        return;
    to->offset = from->offset;
    to->stride = from->stride;
}

void *sweep_place(const sweep_case *c, int operand, unsigned char *memory)
{
    return c->operands[operand].rows ? memory + c->operands[operand].offset : NULL;
}
