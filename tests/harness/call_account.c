/* SPDX-License-Identifier: MIT */
#include "call_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 32, ENOUGH = 100 };

static const char *const mark_names[CALL_MARKS] = {
    "in place",    "odd gaps",  "padded", "in shares", "fused", "transposed", "left out", "stride 0", "more shares than work",
    "front fence", "back fence"};

typedef struct tally {
    unsigned met[COMBINATIONS], marks[CALL_MARKS];
    unsigned could_meet[COMBINATIONS], could_have[CALL_MARKS]; /* calls whose cases offer it */
} tally;

typedef struct entry {
    char op[CALL_OP_NAME];
    tally of[NRG_ISA_COUNT][NRG_BF16 + 1];
} entry;

static entry *account;

void call_start(void)
{
    account = test_shared(OPS * sizeof *account);
    test_note_crashes();
}

static entry *find(const char *op)
{
    for (int i = 0; account && i < OPS; i++) {
        if (!account[i].op[0])
            snprintf(account[i].op, CALL_OP_NAME, "%s", op);
        if (strcmp(account[i].op, op) == 0)
            return &account[i];
    }
    ck_abort_msg("%s: call_start() was not called, or there are too many ops", op);
    return NULL;
}

void call_account_enter(const call_case *c, nrg_isa isa, const call_layout *l)
{
    tally *t = &find(c->op)->of[isa][c->dtype];
    const unsigned marks = call_marks(c, l), offered = call_marks_offered(c);
    t->met[marks % COMBINATIONS]++;
    for (unsigned n = 0; n < COMBINATIONS; n++)
        t->could_meet[n] += !(n & ~offered);
    for (int i = 0; i < CALL_MARKS; i++) {
        t->marks[i] += marks >> i & 1;
        t->could_have[i] += offered >> i & 1;
    }
}

static unsigned calls_of(const tally *t)
{
    unsigned calls = 0;
    for (unsigned i = 0; i < COMBINATIONS; i++)
        calls += t->met[i];
    return calls;
}

/* What few of the calls can have may be missing: layouts are drawn. */
static int should_be_met(unsigned could, unsigned calls) { return could && (could >= ENOUGH || could > calls / 8); }

static const char *judge(const entry *e, nrg_isa isa, nrg_dtype dtype)
{
    static char message[OPERAND_MESSAGE];
    const tally *t = &e->of[isa][dtype];
    const unsigned calls = calls_of(t);
    int n = snprintf(message, sizeof message, "%s %s on %s: ", e->op, nrg_dtype_name(dtype), nrg_isa_name(isa));
    char *rest = message + n;
    const size_t room = sizeof message - (size_t)n;
    for (unsigned i = 0; i < COMBINATIONS; i++) {
        if (!should_be_met(t->could_meet[i], calls) || t->met[i] || test_small())
            continue;
        snprintf(rest, room, "no call was%s in place,%s with odd gaps,%s padded,%s in shares", i & IN_PLACE ? "" : " not",
                 i & ODD_GAPS ? "" : " not", i & PADDED ? "" : " not", i & SHARED ? "" : " not");
        return message;
    }
    for (int i = 0; i < CALL_MARKS; i++)
        if (should_be_met(t->could_have[i], calls) && (!t->marks[i] || (1 << i < COMBINATIONS && t->marks[i] == calls))) {
            snprintf(rest, room, "%s: %s call of %u", mark_names[i], t->marks[i] ? "every" : "no", calls);
            return message;
        }
    snprintf(rest, room, "never called");
    return calls ? NULL : message;
}

const char *call_account_verdict(const char *op)
{
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), listed = test_kernel_dtypes(op, dtypes);
    const entry *e = find(op);
    const char *failure = NULL;
    size_t dtype_count = listed;
    for (int dtype = NRG_F32; dtype <= NRG_BF16 && !listed; dtype++)
        if (calls_of(&e->of[NRG_ISA_SCALAR][dtype]))
            dtypes[dtype_count++] = (nrg_dtype)dtype;
    for (size_t p = 0; p < path_count; p++)
        for (size_t d = 0; d < dtype_count && !failure; d++)
            failure = judge(e, paths[p], dtypes[d]);
    return dtype_count ? failure : "an op that is not in kernels.def, and was never called";
}

void call_check_account(const char *op)
{
    const char *failure =
        getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE") ? NULL /* a part was asked for */ : call_account_verdict(op);
    if (failure)
        ck_abort_msg("%s", failure);
}
