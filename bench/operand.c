/* The operands of a case: from its family's list, or from the description of its call.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "family.h"

static bench_memory_of listed(const bench_case *c, int operand)
{
    const bench_operand *o = &c->family->operand[operand];
    const size_t element = nrg_dtype_size(c->dtype), row = c->shape.dim * element;
    bench_memory_of m = {o->kind, o->fill, c->dtype, 0};
    if (o->kind == BENCH_ROW_OUT || o->kind == BENCH_CHANNEL_F32)
        m.dtype = NRG_F32;
    if (!(c->op->operands >> operand & 1))
        return m;
    switch (o->kind) {
    case BENCH_IN:
    case BENCH_OUT:
        m.bytes = c->shape.rows * row;
        break;
    case BENCH_ROW_IN:
        m.bytes = row;
        break;
    case BENCH_ROW_OUT:
        m.bytes = c->shape.dim * sizeof(float);
        break;
    case BENCH_CHANNEL_IN:
        m.bytes = c->shape.channels * element;
        break;
    case BENCH_CHANNEL_F32:
        m.bytes = c->shape.channels * sizeof(float);
        break;
    case BENCH_SCRATCH:
        break;
    }
    return m;
}

static int is_there(const bench_case *c, int operand)
{
    const nrg_call *call = c->family->call;
    return operand < call->operand_count && (!call->operands[operand].may_be_absent || c->op->operands >> operand & 1);
}

static void set_pointer(const nrg_operand *o, void *const *part, const void *pointer)
{
    memcpy((char *)part[o->part] + o->at, &pointer, sizeof pointer);
}

static void start(bench_parts *parts, const bench_case *c)
{
    memset(parts, 0, sizeof *parts);
    for (int i = 0; i < NRG_PARTS; i++)
        parts->part[i] = parts->bytes[i];
    c->family->prepare(c, parts->part);
}

/* Sizes as the call sees them, with all operands of the case there. */
static nrg_status measure(const bench_case *c, nrg_sizes *s)
{
    static double any;
    const nrg_call *call = c->family->call;
    bench_parts parts;
    start(&parts, c);
    memset(s, 0, sizeof *s);
    s->n[NRG_ONE] = 1;
    for (int i = 0; i < call->operand_count; i++)
        set_pointer(&call->operands[i], parts.part, is_there(c, i) ? &any : NULL);
    return call->measure((const void *const *)parts.part, s);
}

static size_t elements_of(const nrg_operand *o, const nrg_sizes *s)
{
    return s->n[o->dim] * s->n[o->level[0].count] * s->n[o->level[1].count] * s->n[o->level[2].count];
}

static bench_memory_of described(const bench_case *c, int operand)
{
    const bench_family *f = c->family;
    bench_memory_of m = {BENCH_SCRATCH, BENCH_EVEN, c->dtype, 0};
    nrg_sizes s;
    if (operand >= f->call->operand_count || !is_there(c, operand) || measure(c, &s) != NRG_OK)
        return m;
    const nrg_operand *o = &f->call->operands[operand];
    const size_t elements = elements_of(o, &s), row = c->shape.dim;
    const int is_read = o->role == NRG_IN;
    m.fill = f->wide >> operand & 1 ? BENCH_WIDE : f->positive >> operand & 1 ? BENCH_POSITIVE : BENCH_EVEN;
    m.dtype = nrg_element_bytes(o->element, &s) == 2 ? c->dtype : NRG_F32;
    m.bytes = elements * nrg_element_bytes(o->element, &s);
    if (o->role == NRG_SCRATCH || f->aside >> operand & 1)
        m.kind = BENCH_SCRATCH;
    else if (elements == c->shape.rows * row && (o->level[0].count != NRG_ONE || elements != row || f->flat))
        m.kind = is_read ? BENCH_IN : BENCH_OUT;
    else if (elements == row)
        m.kind = is_read ? BENCH_ROW_IN : BENCH_ROW_OUT;
    else
        m.kind = m.dtype == c->dtype && is_read ? BENCH_CHANNEL_IN : BENCH_CHANNEL_F32;
    return m;
}

int bench_operand_is_there(const bench_case *c, int operand)
{
    return c->family->call ? is_there(c, operand) : (int)(c->op->operands >> operand & 1);
}

bench_memory_of bench_operand_of(const bench_case *c, int operand)
{
    return c->family->call ? described(c, operand) : listed(c, operand);
}

void bench_parts_bind(bench_parts *parts, const bench_case *c, char *const operand[BENCH_OPERANDS])
{
    const nrg_call *call = c->family->call;
    start(parts, c);
    for (int i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const size_t bytes = bench_operand_of(c, i).bytes;
        set_pointer(o, parts->part, operand[i]);
        if (o->room)
            memcpy((char *)parts->part[o->part] + o->room, &bytes, sizeof bytes);
    }
    if (c->family->ready)
        c->family->ready(c, parts->part);
}
