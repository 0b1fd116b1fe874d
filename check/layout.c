/* Where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#include "layout.h"

#include "data.h"

static void add(sweep_case *c, int operand, int type, size_t length, size_t rows, size_t run, int has_stride, int has_run_stride)
{
    size_t stride = length * sweep_type_size(type);
    sweep_operand o = {.type = type,
                       .length = length,
                       .stride = stride,
                       .rows = rows,
                       .run = run ? run : 1,
                       .run_stride = run * stride,
                       .has_stride = has_stride,
                       .has_run_stride = has_run_stride};
    c->operands[operand] = o;
}

void sweep_add_tensor(sweep_case *c, int operand, int type, size_t length, size_t rows)
{
    add(c, operand, type, length, rows, rows, 1, 0);
}

void sweep_add_dense(sweep_case *c, int operand, int type, size_t length, size_t rows)
{
    add(c, operand, type, length, rows, rows, 0, 0);
}

void sweep_add_runs(sweep_case *c, int operand, int type, size_t length, size_t run, size_t runs, int is_even)
{
    add(c, operand, type, length, run * runs, run, 1, !is_even);
}

/* Of a norm's operands, those with one stride a row; w, b and the like have no stride of their own. */
static int norm_has_stride(int operand)
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
        return 1;
    default:
        return 0;
    }
}

void sweep_add(sweep_case *c, int operand, int type, size_t length, size_t rows)
{
    add(c, operand, type, length, rows, rows, norm_has_stride(operand), 0);
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
        size_t element = sweep_type_size(operand->type), gap = 0;
        if (!operand->rows)
            continue;
        at = (at + 63) / 64 * 64;
        if (alignment == 1) {
            at += 16 * sweep_draw(random, 4);
            if (operand->has_stride) {
                operand->stride = (operand->stride + 15) / 16 * 16 + 16 * sweep_draw(random, 3);
                gap = 16 * sweep_draw(random, 3);
            }
        } else if (alignment == 2) {
            at += alignment_of(c, i) * sweep_draw(random, 32);
            if (operand->has_stride) {
                operand->stride += element * sweep_draw(random, 12);
                gap = element * sweep_draw(random, 12);
            }
        }
        operand->run_stride = operand->run * operand->stride + (operand->has_run_stride ? gap : 0);
        operand->offset = at;
        at += operand->rows / operand->run * operand->run_stride + 64;
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
    to->run = from->run;
    to->run_stride = from->run_stride;
}

void *sweep_place(const sweep_case *c, int operand, unsigned char *memory)
{
    return c->operands[operand].rows ? memory + c->operands[operand].offset : NULL;
}
