/* Where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#include "layout.h"

#include <string.h>

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

/* ---- from a call's description ---- */

static int type_of(const nrg_operand *o, const nrg_sizes *s)
{
    switch (o->element) {
    case NRG_ELEMENT_F32:
        return NRG_F32;
    case NRG_ELEMENT_F64:
        return SWEEP_F64;
    case NRG_ELEMENT_I32:
        return SWEEP_I32;
    case NRG_ELEMENT_I64:
        return SWEEP_I64;
    default:
        return (int)s->type[o->element - NRG_ELEMENT_CHOSEN];
    }
}

static void set_pointer(const nrg_operand *o, void *const *part, const void *pointer)
{
    memcpy((unsigned char *)part[o->part] + o->at, &pointer, sizeof pointer);
}

static void set_size(void *part, size_t at, size_t size) { memcpy((unsigned char *)part + at, &size, sizeof size); }

static unsigned levels_of(const nrg_operand *o)
{
    unsigned levels = 0;
    while (levels < NRG_LEVELS && o->level[levels].count != NRG_ONE)
        levels++;
    return levels;
}

/* Rows of a run: those of the innermost level, or, turned, of the next one. */
static size_t run_of(const nrg_operand *o, const nrg_sizes *s, int is_turned)
{
    return s->n[o->level[levels_of(o) > 1 && is_turned ? 1 : 0].count];
}

void sweep_add_call(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there,
                    uint32_t turned)
{
    static double any;
    nrg_sizes s;
    memset(&s, 0, sizeof s);
    s.n[NRG_ONE] = 1;
    for (unsigned i = 0; i < call->operand_count; i++)
        set_pointer(&call->operands[i], part, there >> i & 1 || !call->operands[i].may_be_absent ? &any : NULL);
    if (call->measure((const void *const *)part, &s) != NRG_OK)
        return; /* the call itself will say why */
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const size_t rows = s.n[o->level[0].count] * s.n[o->level[1].count] * s.n[o->level[2].count];
        sweep_operand *to = &c->operands[slots[i]];
        if (!(there >> i & 1 || !o->may_be_absent) || !rows || !s.n[o->dim])
            continue;
        add(c, slots[i], type_of(o, &s), s.n[o->dim], rows, run_of(o, &s, turned >> i & 1), o->level[0].stride != 0,
            o->level[1].stride != 0);
        to->is_turned = levels_of(o) > 1 && turned >> i & 1;
        to->outermost = s.n[o->level[2].count];
        to->is_optional = o->role == NRG_OUT && o->may_be_absent && !(s.needed >> i & 1);
        for (unsigned j = 0; j < call->operand_count; j++)
            if (o->over >> j & 1 && (call->operands[j].role == NRG_IN || !(s.apart >> i & 1)))
                to->over |= (uint32_t)1 << slots[j];
    }
}

void sweep_bind_call(const sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots,
                     unsigned char *memory)
{
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const sweep_operand *from = &c->operands[slots[i]];
        const unsigned levels = levels_of(o);
        set_pointer(o, part, sweep_place(c, slots[i], memory));
        if (o->room)
            set_size(part[o->part], o->room, from->rows * from->length * sweep_type_size(from->type));
        if (!from->rows || !levels || !o->level[0].stride)
            continue; /* the structs have strides of 0 */
        set_size(part[o->part], o->level[0].stride, from->is_turned ? from->run_stride : sweep_stride(c, slots[i]));
        if (levels > 1 && o->level[1].stride)
            set_size(part[o->part], o->level[1].stride, from->is_turned ? from->stride : sweep_run_stride(c, slots[i]));
        /* the outermost of three continues the one that lies outside of the two */
        if (levels > 2 && o->level[2].stride)
            set_size(part[o->part], o->level[2].stride, from->rows / from->outermost / from->run * from->run_stride);
    }
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

/* Whether an output may lie in the place of an input. */
static int fits_over(const sweep_operand *out, const sweep_operand *in)
{
    return out->rows && in->rows == out->rows && in->length == out->length && in->run == out->run &&
           in->is_turned == out->is_turned && out->has_stride >= in->has_stride &&
           sweep_type_size(in->type) == sweep_type_size(out->type);
}

/* Every output that may, or none, mostly; no place is taken twice. */
static void draw_places(sweep_case *c, uint64_t *random)
{
    uint32_t taken = 0;
    if (sweep_draw(random, 2))
        return;
    for (int out = SWEEP_FIRST_OUTPUT; out < SWEEP_FIRST_SCRATCH; out++) {
        const unsigned first = sweep_draw(random, SWEEP_OPERANDS), wanted = sweep_draw(random, 4);
        for (unsigned i = 0; wanted && i < SWEEP_OPERANDS; i++) {
            const int in = (int)((first + i) % SWEEP_OPERANDS);
            if (!((c->operands[out].over & ~taken) >> in & 1) || !fits_over(&c->operands[out], &c->operands[in]))
                continue;
            sweep_share_place(c, out, in);
            taken |= (uint32_t)1 << in | (uint32_t)1 << out;
            break;
        }
    }
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
    draw_places(c, random);
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

size_t sweep_stride(const sweep_case *c, int operand)
{
    return c->operands[operand].is_told_zero ? 0 : c->operands[operand].stride;
}

size_t sweep_run_stride(const sweep_case *c, int operand)
{
    return c->operands[operand].run_is_told_zero ? 0 : c->operands[operand].run_stride;
}

void *sweep_place(const sweep_case *c, int operand, unsigned char *memory)
{
    const sweep_operand *o = &c->operands[operand];
    return !o->rows ? NULL : o->at ? o->at : memory + o->offset;
}
