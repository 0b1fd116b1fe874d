/* Where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#include "layout.h"

#include <string.h>

#include "data.h"

static int type_of(const nrg_operand *o, const nrg_sizes *s)
{
    static const int fixed[NRG_ELEMENT_CHOSEN] = {NRG_F32, SWEEP_F64, SWEEP_I32, SWEEP_I64, SWEEP_BYTE};
    return o->element < NRG_ELEMENT_CHOSEN ? fixed[o->element] : (int)s->type[o->element - NRG_ELEMENT_CHOSEN];
}

static int slot_of(const nrg_call *call, const unsigned char *slots, unsigned i)
{
    static const int first[] = {
        [NRG_IN] = SWEEP_IN, [NRG_OUT] = SWEEP_OUT, [NRG_INOUT] = SWEEP_OUT, [NRG_SCRATCH] = SWEEP_SCRATCH};
    if (slots)
        return slots[i];
    int slot = first[call->operands[i].role];
    for (unsigned j = 0; j < i; j++)
        slot += first[call->operands[j].role] == first[call->operands[i].role];
    return slot;
}

/* An operand, dense and without a place yet. */
static void add(sweep_case *c, int slot, const nrg_operand *o, const nrg_sizes *s, int is_transposed)
{
    sweep_operand *to = &c->operands[slot];
    const size_t rows = s->n[o->level[0].count] * s->n[o->level[1].count] * s->n[o->level[2].count];
    if (!rows || !s->n[o->dim])
        return;
    to->name = o->name;
    to->type = type_of(o, s);
    to->length = s->n[o->dim];
    to->rows = rows;
    to->is_transposed = o->levels > 1 && is_transposed;
    to->run = s->n[o->level[to->is_transposed].count]; /* rows of the level that lies inside the other */
    to->stride = to->length * sweep_type_size(to->type);
    to->run_stride = to->run * to->stride;
    to->outermost = s->n[o->level[2].count];
    if (slot < SWEEP_FIRST_SCRATCH) {
        to->has_stride = o->level[0].stride != 0;
        to->has_run_stride = o->level[1].stride != 0;
        to->may_stay = to->is_read = slot >= SWEEP_FIRST_OUTPUT && o->role == NRG_INOUT && c->accumulate;
    }
    to->is_optional = 1;
}

void sweep_add_call(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there,
                    uint32_t transposed)
{
    static double any;
    nrg_sizes s;
    memset(&s, 0, sizeof s);
    s.n[NRG_ONE] = 1;
    for (unsigned i = 0; i < call->operand_count; i++) {
        there |= call->operands[i].may_be_absent ? 0 : NRG_BIT(i);
        if (slot_of(call, slots, i) != SWEEP_NOWHERE)
            invoke_set_pointer(&call->operands[i], part, there >> i & 1 ? &any : NULL);
    }
    const nrg_status status = call->measure((const void *const *)part, &s);
    for (unsigned i = 0; i < call->operand_count; i++)
        if (slot_of(call, slots, i) != SWEEP_NOWHERE)
            invoke_set_pointer(&call->operands[i], part, NULL);
    if (status != NRG_OK)
        return; /* the call itself will say why */
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const int slot = slot_of(call, slots, i);
        sweep_operand *to = &c->operands[slot];
        if (slot == SWEEP_NOWHERE || !(there >> i & 1))
            continue;
        if (!to->rows)
            add(c, slot, o, &s, transposed >> i & 1);
        to->is_optional &= slot < SWEEP_FIRST_SCRATCH && o->role == NRG_OUT && o->may_be_absent && !(s.needed >> i & 1);
        for (unsigned j = 0; j < call->operand_count; j++)
            if (o->over >> j & 1 && (call->operands[j].role == NRG_IN || !(s.apart >> i & 1)))
                to->over |= (uint32_t)((uint64_t)1 << slot_of(call, slots, j)); /* no bit of SWEEP_NOWHERE */
    }
}

void sweep_add_before(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there)
{
    uint32_t over[SWEEP_OPERANDS];
    for (int i = 0; i < SWEEP_OPERANDS; i++)
        over[i] = c->operands[i].over;
    sweep_add_call(c, call, part, slots, there, 0);
    for (unsigned i = 0; i < call->operand_count; i++) {
        const int slot = slot_of(call, slots, i);
        if (call->operands[i].role != NRG_IN && slot != SWEEP_NOWHERE) {
            c->operands[slot].is_optional = 0;
            c->operands[slot].over = over[slot];
        }
    }
}

void sweep_bind_call(const sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots,
                     unsigned char *memory)
{
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const int slot = slot_of(call, slots, i);
        const sweep_operand *from = &c->operands[slot];
        if (slot == SWEEP_NOWHERE)
            continue;
        invoke_set_pointer(o, part, sweep_place(c, slot, memory));
        if (o->room)
            invoke_set_number(part[o->part], o->room, from->rows * from->length * sweep_type_size(from->type));
        if (!from->rows || !o->levels || !o->level[0].stride)
            continue; /* the structs have strides of 0 */
        const size_t inner = sweep_stride(c, slot), outer = sweep_run_stride(c, slot);
        invoke_set_number(part[o->part], o->level[0].stride, from->is_transposed ? outer : inner);
        if (o->levels > 1 && o->level[1].stride)
            invoke_set_number(part[o->part], o->level[1].stride, from->is_transposed ? inner : outer);
        /* the outermost of three continues the one that lies outside of the two */
        if (o->levels > 2 && o->level[2].stride)
            invoke_set_number(part[o->part], o->level[2].stride, from->rows / from->outermost / from->run * outer);
    }
}

static void parts_of(sweep_case *c, const sweep_call *call, void *part[NRG_PARTS])
{
    for (unsigned i = 0; i < NRG_PARTS; i++)
        part[i] = (unsigned char *)c + call->part[i];
}

static void insert(sweep_case *c, int at, sweep_when when, const sweep_call *call)
{
    const size_t after = (size_t)(c->call_count++ - at);
    memmove(c->calls + at + 1, c->calls + at, after * sizeof *c->calls);
    memmove(c->when + at + 1, c->when + at, after * sizeof *c->when);
    c->calls[at] = call;
    c->when[at] = when;
    c->fused |= when != SWEEP_ALWAYS;
}

void sweep_add_last(sweep_case *c, sweep_when when, const sweep_call *call) { insert(c, c->call_count, when, call); }

void sweep_add(sweep_case *c, sweep_when when, const sweep_call *call, uint32_t there, uint32_t transposed)
{
    void *part[NRG_PARTS];
    parts_of(c, call, part);
    sweep_add_call(c, call->run->call, part, call->slots, there, transposed);
    sweep_add_last(c, when, call);
}

void sweep_add_first(sweep_case *c, sweep_when when, const sweep_call *call, uint32_t there)
{
    void *part[NRG_PARTS];
    parts_of(c, call, part);
    sweep_add_before(c, call->run->call, part, call->slots, there);
    insert(c, 0, when, call);
}

nrg_status sweep_run_shares(const sweep_case *c, const invoke_function *function, void *const *part, int shares)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < shares && status == NRG_OK; i++)
        status = function->run(part, sweep_share(c, i, shares), shares);
    return status;
}

nrg_status sweep_run_calls(const sweep_case *c, unsigned char *memory)
{
    sweep_case bound = *c;
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->call_count && status == NRG_OK; i++) {
        const sweep_call *call = c->calls[i];
        void *part[NRG_PARTS];
        if (c->when[i] == (c->recompute ? SWEEP_FUSED : SWEEP_PLAIN))
            continue;
        parts_of(&bound, call, part);
        sweep_bind_call(c, call->run->call, part, call->slots, memory);
        if (call->store)
            memcpy((unsigned char *)&bound + call->store, &c->store, sizeof c->store);
        if (call->fix)
            call->fix(part);
        status = sweep_run_shares(c, call->run, part, c->shares);
        if (status == NRG_OK && call->reduce)
            status = sweep_run_shares(c, call->reduce, part, c->reduce_shares);
    }
    return status;
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
           in->is_transposed == out->is_transposed && out->has_stride >= in->has_stride &&
           sweep_type_size(in->type) == sweep_type_size(out->type);
}

static void share_place(sweep_operand *to, const sweep_operand *from)
{
    to->offset = from->offset;
    to->stride = from->stride;
    to->run_stride = from->run_stride;
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
            share_place(&c->operands[out], &c->operands[in]);
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

/* What is dense in the other order only is told the strides it has. */
size_t sweep_stride(const sweep_case *c, int operand)
{
    const sweep_operand *o = &c->operands[operand];
    return o->is_told_zero && !o->is_transposed ? 0 : o->stride;
}

size_t sweep_run_stride(const sweep_case *c, int operand)
{
    const sweep_operand *o = &c->operands[operand];
    return o->run_is_told_zero && !o->is_transposed ? 0 : o->run_stride;
}

void *sweep_place(const sweep_case *c, int operand, unsigned char *memory)
{
    const sweep_operand *o = &c->operands[operand];
    return !o->rows ? NULL : o->at ? o->at : memory + o->offset;
}
