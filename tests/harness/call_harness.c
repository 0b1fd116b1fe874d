/* SPDX-License-Identifier: MIT */
#include "call_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_account.h"
#include "call_layout.h"
#include "call_value.h"

static int is_given(const call_operand *o) { return o->type && (o->role == CALL_INPUT || o->role == CALL_INOUT); }

/* A description that contradicts itself would be a sweep that skips things. */
static void check_case(const call_case *c)
{
    ck_assert_msg(c->count <= OPERANDS_MOST && c->op && strlen(c->op) < CALL_OP_NAME && c->run[0],
                  "a case without op or run, or too large");
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        if (!o->type)
            continue;
        if (!value_bytes(o->type) || !o->name || (o->group && o->rows % o->group))
            ck_abort_msg("%s: operand %d has no name, a strange type, or no whole number of groups", c->op, i);
        if ((o->over || o->optional) && o->role != CALL_OUTPUT)
            ck_abort_msg("%s: %s is in place, or optional, and no output", c->op, o->name);
        if ((o->fused && (!o->padded || value_bytes(o->type) > 4)) || (o->transposed && (!o->padded || !o->group)))
            ck_abort_msg("%s: %s is fused or transposed, and cannot be", c->op, o->name);
        for (int j = 0; j < OPERANDS_MOST; j++)
            if (o->over & CALL_OVER(j) && (j >= c->count || c->operands[j].role != CALL_INPUT))
                ck_abort_msg("%s: %s over an operand that is no input", c->op, o->name);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

/* All dense; drawn: the given ones the test has no content for. */
typedef struct tensors {
    const void *given[OPERANDS_MOST];
    void *drawn[OPERANDS_MOST], *expected[OPERANDS_MOST], *got[OPERANDS_MOST];
} tensors;

static tensors make_tensors(const call_case *c)
{
    tensors t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        if (is_given(o) && !o->content)
            t.drawn[i] = value_draw(o, test_mix(c->seed + (uint64_t)i));
        t.given[i] = t.drawn[i] ? t.drawn[i] : is_given(o) ? o->content : NULL;
        if (call_is_result(o)) {
            t.expected[i] = allocate(o->rows * call_row_bytes(o));
            t.got[i] = allocate(o->rows * call_row_bytes(o));
        }
    }
    return t;
}

static void free_tensors(tensors *t)
{
    for (int i = 0; i < OPERANDS_MOST; i++) {
        free(t->drawn[i]);
        free(t->expected[i]);
        free(t->got[i]);
    }
}

/* Elements of 8 bytes are two words of 4 for operands.h. */
static operand as_operand(const call_case *c, const call_layout *l, int i)
{
    const call_operand *o = &c->operands[i];
    const size_t words = value_bytes(o->type) == 8 ? 2 : 1;
    operand p;
    memset(&p, 0, sizeof p);
    p.name = o->name;
    p.dtype = o->type < CALL_I32 ? (nrg_dtype)o->type : NRG_F32;
    p.is_bytes = o->type == CALL_BYTE;
    p.rows = o->scratch ? 1 : o->rows;
    p.dim = words * (o->scratch ? o->scratch(c->context, l->nth) : o->dim);
    p.group = o->scratch ? 0 : o->group;
    p.wanted = call_stands(c, l, i);
    p.tensor = o->padded;
    p.alone = !call_is_fused(c, l, i);
    p.output = o->role != CALL_INPUT;
    p.unit = words == 2 ? 8 : 0;
    p.fill = o->role == CALL_SCRATCH ? l->rubbish : l->canary;
    return p;
}

/* What the call is told: 0 where all is dense, or only the rows of a group are. */
static void say_strides(call_operand *o, const operand *p, int say_zero)
{
    o->at = p->at;
    o->stride = p->stride;
    o->group_stride = p->group_stride;
    if (!say_zero || p->stride != call_row_bytes(o))
        return;
    o->stride = 0;
    if (o->group_stride == o->group * call_row_bytes(o))
        o->group_stride = 0;
}

static const char *call_shares(const call_case *c, const call_layout *l, const call_operand *all)
{
    static char message[OPERAND_MESSAGE];
    int order[CALL_MOST_SHARES];
    uint64_t state = l->order;
    for (int i = 0; i < l->nth; i++) {
        int j = (int)test_draw(&state, (size_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int phase = 0; phase < CALL_PHASES && c->run[phase]; phase++)
        for (int i = 0; i < l->nth; i++) {
            nrg_status status = c->run[phase](c->context, all, order[i], l->nth);
            if (status == NRG_OK)
                continue;
            snprintf(message, sizeof message, "share %d of %d of phase %d: status %d (%s)", order[i], l->nth, phase, (int)status,
                     nrg_status_string(status));
            return message;
        }
    return NULL;
}

/* What the call itself has to write before anybody reads it. */
static int is_unwritten(const call_case *c, const call_layout *l, int i)
{
    const call_role role = c->operands[i].role;
    return (role == CALL_SCRATCH && !c->operands[i].kept) || (role == CALL_OUTPUT && l->over[i] == i);
}

/* Lays the operands out, calls, and takes the results. NULL, or what was wrong with the call itself. */
static const char *call(const call_case *c, const call_layout *l, const tensors *t, void *const *results)
{
    operand placed[OPERANDS_MOST];
    call_operand all[OPERANDS_MOST];
    for (int i = 0; i < c->count; i++)
        placed[i] = as_operand(c, l, i);
    operands_place(placed, c->count, l->place, l->fused >= 0, l->fused);
    for (int i = 0; i < c->count; i++)
        if (l->over[i] != i)
            operand_over(placed, i, l->over[i]);
    for (int i = 0; i < c->count; i++) {
        if (t->given[i])
            operand_copy_in(&placed[i], t->given[i]);
        all[i] = c->operands[i];
        say_strides(&all[i], &placed[i], l->say_zero[i]);
    }
    operands_keep(placed, c->count);
    for (int i = 0; i < c->count; i++)
        if (placed[i].at && is_unwritten(c, l, i))
            operand_forget(&placed[i]);
    if (c->vary)
        c->vary(c->context, l->vary);

    operands_protect(placed, c->count, 1);
    const char *failure = call_shares(c, l, all);
    operands_protect(placed, c->count, 0);
    for (int i = 0; i < c->count; i++)
        if (placed[i].at && c->operands[i].role == CALL_SCRATCH)
            operand_accept(&placed[i]);
    for (int i = 0; i < c->count && !failure; i++)
        if (placed[i].at && placed[i].output)
            operand_copy_out(&placed[i], results[i]);
    return failure ? failure : operands_changed(placed, c->count);
}

/* One call, and where its results are not the reference themselves, the comparison. */
static const char *run(const call_case *c, nrg_isa isa, const call_layout *l, const tensors *t, void *const *results)
{
    static char message[4 * OPERAND_MESSAGE];
    char where[OPERAND_MESSAGE], how[OPERAND_MESSAGE];
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    call_layout_write(how, sizeof how, c, l);
    snprintf(where, sizeof where, "%s %s on %s%s%s", c->op, nrg_dtype_name(c->dtype), nrg_isa_name(isa), c->text ? ", " : "",
             c->text ? c->text : "");
    snprintf(test_note, sizeof test_note, "%.150s; %.350s", where, how);
    const char *failure = call(c, l, t, results);
    for (int i = 0; i < c->count && !failure; i++)
        if (results == t->got && call_is_result(&c->operands[i]) && !l->left_out[i])
            failure = value_compare(&c->operands[i], t->expected[i], t->got[i]);
    if (!failure)
        return NULL;
    snprintf(message, sizeof message, "%s: %s\n  layout: %s", where, failure, how);
    return message;
}

const char *call_verdict(const call_case *c)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    check_case(c);
    tensors t = make_tensors(c);
    const call_layout reference = call_layout_plain(c);
    const char *failure = run(c, NRG_ISA_SCALAR, &reference, &t, t.expected);
    for (size_t p = 0; p < path_count; p++)
        for (int i = 0; i < (c->layouts ? c->layouts : CALL_LAYOUTS) && !failure; i++) {
            const call_layout l = call_layout_draw(c, test_mix(c->seed + 1000 * p), (unsigned)i);
            failure = run(c, paths[p], &l, &t, t.got);
            if (!failure)
                call_account_enter(c, paths[p], &l);
        }
    free_tensors(&t);
    return failure;
}

void call_sweep(const call_case *c)
{
    const char *failure = call_verdict(c);
    if (failure)
        ck_abort_msg("%s", failure);
}
