/* SPDX-License-Identifier: MIT */
#include "case_call.h"

#include <stdlib.h>
#include <string.h>

#include "call_value.h"

static int type_of(int type)
{
    return type == SWEEP_F64    ? CALL_F64
           : type == SWEEP_I64  ? CALL_I64
           : type == SWEEP_I32  ? CALL_I32
           : type == SWEEP_BYTE ? CALL_BYTE
                                : type;
}

static call_role role_of(const sweep_operand *o, int slot)
{
    if (slot < SWEEP_FIRST_OUTPUT)
        return CALL_INPUT;
    if (slot >= SWEEP_FIRST_SCRATCH)
        return CALL_SCRATCH;
    return o->is_read || o->may_stay ? CALL_INOUT : CALL_OUTPUT;
}

static int can_lie_over(const sweep_operand *out, const sweep_operand *in)
{
    return in->rows && out->is_transposed == in->is_transposed && out->has_stride == in->has_stride;
}

/* Where the call's description lets it be, or where the case itself has it. Inputs of the harness only: an output in another
 * one's place is for the tests that know the op. */
static unsigned over_of(const case_call *c, int which)
{
    const sweep_operand *out = &c->c.operands[c->slot[which]];
    unsigned over = 0;
    for (int i = 0; i < c->call.count; i++) {
        const sweep_operand *in = &c->c.operands[c->slot[i]];
        const int may = out->over >> c->slot[i] & 1 || out->offset == in->offset;
        if (may && c->operand[i].role == CALL_INPUT && can_lie_over(out, in))
            over |= CALL_OVER(i);
    }
    return over;
}

/* The case with its operands where the harness has put them. */
static nrg_status run(void *context, const call_operand *all, int ith, int nth)
{
    const case_call *call = context;
    sweep_case c = *call->wanted;
    if (ith)
        return NRG_OK; /* the case goes through all shares by itself, in an order of its own */
    c.shares = c.reduce_shares = nth;
    for (int i = 0; i < call->call.count; i++) {
        sweep_operand *o = &c.operands[call->slot[i]];
        o->at = all[i].at;
        o->rows = all[i].at ? o->rows : 0;
        if (all[i].role == CALL_SCRATCH)
            continue; /* dense */
        o->is_told_zero = !all[i].stride;
        o->run_is_told_zero = !all[i].group_stride && o->is_told_zero;
        o->stride = all[i].stride ? all[i].stride : o->length * sweep_type_size(o->type);
        o->run_stride = all[i].group_stride ? all[i].group_stride : o->run * o->stride;
    }
    return sweep_run(&c, NULL);
}

static void vary(void *context, uint64_t draw)
{
    case_call *call = context;
    call->wanted = draw ? &call->c : &call->plain;
    call->c.order = draw;
    call->c.store = (nrg_store)(draw % 3);
}

static void *copy_content(const sweep_operand *o, const unsigned char *memory)
{
    const size_t bytes = o->length * sweep_type_size(o->type);
    unsigned char *content = malloc(o->rows * bytes);
    if (!content)
        abort();
    for (size_t row = 0; row < o->rows; row++)
        memcpy(content + row * bytes, memory + sweep_row(o, row), bytes);
    return content;
}

static call_operand operand_of(const sweep_case *c, int slot)
{
    const sweep_operand *o = &c->operands[slot];
    call_operand to = {.name = sweep_operand_name(c, slot),
                       .type = type_of(o->type),
                       .role = role_of(o, slot),
                       .rows = o->rows,
                       .dim = o->length,
                       .group = o->has_run_stride && o->run < o->rows ? o->run : 0,
                       .padded = o->has_stride,
                       .kept = o->is_kept,
                       .optional = o->is_optional && !o->is_read && !o->may_stay};
    to.transposed = to.group != 0;
    to.fused = o->has_stride && !o->is_alone && sweep_type_size(o->type) <= 4;
    if (to.role == CALL_SCRATCH) { /* aligned as a double, whatever is in it */
        to.type = CALL_F64;
        to.dim = (o->rows * o->length * sweep_type_size(o->type) + sizeof(double) - 1) / sizeof(double);
        to.rows = 1;
    }
    return to;
}

void case_call_make(case_call *to, const sweep_case *c, unsigned char *memory)
{
    memset(to, 0, sizeof *to);
    to->c = *c;
    to->plain = sweep_plain(c);
    sweep_describe(c, to->text);
    sweep_fill(c, memory);
    for (int slot = 0; slot < SWEEP_OPERANDS; slot++) {
        const sweep_operand *o = &c->operands[slot];
        const int i = to->call.count;
        if (!o->rows)
            continue;
        ck_assert_int_lt(i, OPERANDS_MOST);
        to->slot[i] = (unsigned char)slot;
        to->operand[i] = operand_of(c, slot);
        if (slot < SWEEP_FIRST_OUTPUT || o->is_read || o->may_stay)
            to->operand[i].content = to->content[i] = copy_content(o, memory);
        to->call.count++;
    }
    for (int i = 0; i < to->call.count; i++)
        if (to->operand[i].role == CALL_OUTPUT)
            to->operand[i].over = over_of(to, i);
    to->call.op = sweep_kernel_op(c->kernel);
    to->call.text = to->text;
    to->call.dtype = sweep_kernel_dtype(c->kernel);
    to->call.run[0] = run;
    to->call.context = to;
    to->call.operands = to->operand;
    to->call.seed = test_mix(c->seed);
    to->call.vary = vary;
}

void *case_call_content(const case_call *c, int slot)
{
    for (int i = 0; i < c->call.count; i++)
        if (c->slot[i] == slot)
            return c->content[i];
    return NULL;
}

void case_call_free(case_call *c)
{
    for (int i = 0; i < OPERANDS_MOST; i++)
        free(c->content[i]);
}

/* Under an emulator or a sanitizer, long operands now and then; never so long that nothing but their length is tested. */
static int takes_part(const sweep_case *c)
{
    return test_small() ? c->bytes < 1 << 16 || c->number % 8 == 0 : c->bytes < 1 << 24;
}

/* Layouts are drawn for every case; where there are few cases, there are more of them. */
static int layouts_of(uint64_t cases, uint64_t n)
{
    if (test_small())
        return 1 + (n % 3 == 0);
    return cases < 1000 ? 4 : 2;
}

static void sweep_level_of(sweep_level level, int kernel, int i, int parts, uint64_t most, case_change *change)
{
    const uint64_t first = sweep_first(level, kernel), cases = sweep_first(level, kernel + 1) - first;
    unsigned char *memory = NULL;
    size_t room = 0;
    for (uint64_t n = (uint64_t)i; n < cases; n += (uint64_t)parts) {
        sweep_case c;
        if (test_mix(n) % cases >= most) /* in steps, some options would never meet */
            continue;
        if (test_tiny() && test_mix(~n) % 2)
            continue;
        sweep_make(level, first + n, &c);
        if (!takes_part(&c))
            continue;
        if (c.bytes > room) {
            free(memory);
            room = c.bytes + c.bytes / 2;
            memory = test_allocate(room, 1);
        }
        case_call call;
        case_call_make(&call, &c, memory);
        call.call.layouts = layouts_of(cases, n / (uint64_t)parts);
        if (!change || change(&call))
            call_sweep(&call.call);
        case_call_free(&call);
    }
    free(memory);
}

void case_sweep(int kernel, int i, int parts, uint64_t most, case_change *change)
{
    sweep_level_of(test_small() ? SWEEP_QUICK : SWEEP_FULL, kernel, i, parts, most, change);
    sweep_level_of(SWEEP_LOOPS, kernel, i, parts, most, change);
}

void case_sweep_op(const char *op, int i, int parts, uint64_t most, case_change *change)
{
    for (int kernel = 0; kernel < sweep_kernels; kernel++)
        if (strcmp(sweep_kernel_op(kernel), op) == 0)
            case_sweep(kernel, i, parts, most, change);
}
