/* The harness for any call can fail: a small call made for this, wrong in one way each time, and what the harness says about it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "call_harness.h"
#include "element.h"
#include "host.h"
#include "unwritten.h"

/* o = x + table[ids], head by head; copy = ids; first = the first number of each token's o as a double; total += the sum of ids,
 * in two phases by way of the workspace. */
enum { X, IDS, TABLE, O, COPY, FIRST, TOTAL, WORK, OPERANDS };
enum { TOKENS = 9, HEADS = 3, DIM = 7, ENTRIES = 5 };

enum fault {
    NONE,
    BIT_OF_O,
    BIT_OF_COPY,
    BIT_OF_FIRST,
    BIT_OF_TOTAL,
    FORGETS_O,
    FORGETS_FIRST,
    REFUSES,
    PAST_A_ROW,
    PAST_A_GROUP,
    INTO_THE_GAP,
    PAST_THE_END,
    CHANGES_INPUT,
    REWRITES_INPUT,
    CHANGES_FUSED_INPUT,
    READS_PAST_X,
    READS_PAST_IDS,
    READS_BEFORE_X,
    WANTS_COPY,
    IGNORES_0,
    ASSUMES_DENSE_GROUPS,
    READS_WHAT_IT_WROTE,
    TRUSTS_SCRATCH,
    WANTS_ORDER,
    WRONG_SURPLUS
};

static enum fault fault;
static nrg_isa worst; /* the path that is wrong, where only one is */

static size_t share(int ith, int nth) { return (size_t)TOKENS * (size_t)ith / (size_t)nth; }

static unsigned char *head(const call_operand *o, size_t token, size_t which)
{
    size_t dense = o->dim * nrg_dtype_size((nrg_dtype)o->type), stride = o->stride || fault == IGNORES_0 ? o->stride : dense;
    size_t outer = o->group_stride && fault != ASSUMES_DENSE_GROUPS ? o->group_stride : HEADS * stride;
    return (unsigned char *)o->at + token * outer + which * stride;
}

static void flip(void *at, size_t byte) { ((volatile unsigned char *)at)[byte] ^= 1; }

static void read_byte(const void *at, ptrdiff_t byte)
{
    volatile unsigned char value = ((const volatile unsigned char *)at)[byte];
    (void)value;
}

static void one_token(const call_operand *all, size_t t)
{
    const nrg_dtype dtype = (nrg_dtype)all[O].type;
    const int32_t id = ((const int32_t *)all[IDS].at)[t];
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < DIM; i++) {
            float x = element_get(head(&all[X], t, h), i, dtype), p = element_get(all[TABLE].at, (size_t)id * DIM + i, NRG_F32);
            if (!(fault == FORGETS_O && t == 4 && h == 1 && i == 6))
                element_set(head(&all[O], t, h), i, dtype, x + p);
        }
    if (all[COPY].at || fault == WANTS_COPY)
        ((int32_t *)all[COPY].at)[t] = id;
    double first = (double)element_get(head(&all[O], t, 0), 0, dtype);
    if (!(fault == FORGETS_FIRST && t == TOKENS - 1))
        memcpy((double *)all[FIRST].at + t, &first, sizeof first);
}

/* What a wrong call does before, or after, it has done its share. Gaps and pads are told from strides and addresses, as a kernel
 * that stumbles over them would not. */
static void go_wrong(const call_operand *all, int ith, int nth, int *calls)
{
    const size_t element = nrg_dtype_size((nrg_dtype)all[O].type), row = DIM * element;
    const int one_share = nrg_isa_active() == worst && nth > 1 && ith == nth - 1;
    const int fused =
        all[X].at != all[O].at && all[O].group_stride && (uintptr_t)all[X].at - (uintptr_t)all[O].at < all[O].group_stride;
    switch (fault) {
    case BIT_OF_O:
        if (one_share)
            flip(head(&all[O], TOKENS - 1, 2), 6 * element);
        break;
    case BIT_OF_COPY:
        if (one_share && all[COPY].at)
            flip(all[COPY].at, 4 * 8);
        break;
    case BIT_OF_FIRST:
        if (one_share)
            flip(all[FIRST].at, 8 * 8);
        break;
    case PAST_A_ROW:
        if (all[O].stride > row && all[O].stride < 2 * row)
            flip(head(&all[O], 0, 1), row);
        break;
    case PAST_A_GROUP:
        if (!fused && all[O].group_stride > 2 * (all[O].stride ? all[O].stride : row) + row)
            flip(head(&all[O], 0, 2), row);
        break;
    case INTO_THE_GAP:
        flip((unsigned char *)all[O].at - 1, 0);
        break;
    case PAST_THE_END:
        flip(head(&all[O], TOKENS - 1, 2), row);
        break;
    case CHANGES_INPUT:
        flip(all[TABLE].at, 3);
        break;
    case REWRITES_INPUT:
        flip(all[TABLE].at, 3);
        flip(all[TABLE].at, 3);
        break;
    case CHANGES_FUSED_INPUT:
        if (fused && ith == 0)
            flip(head(&all[X], 1, 1), 2);
        break;
    case READS_PAST_X:
        read_byte(head(&all[X], TOKENS - 1, 2), (ptrdiff_t)row);
        break;
    case READS_PAST_IDS:
        read_byte(all[IDS].at, TOKENS * 4);
        break;
    case READS_BEFORE_X:
        if ((uintptr_t)all[X].at % 4096 == 0)
            read_byte(all[X].at, -1);
        break;
    case READS_WHAT_IT_WROTE:
        for (size_t t = share(ith, nth); t < share(ith + 1, nth) && all[O].at == all[X].at; t++)
            one_token(all, t);
        break;
    case WRONG_SURPLUS:
        if (nth > TOKENS && share(ith, nth) == share(ith + 1, nth))
            flip(head(&all[O], 0, 0), 1);
        break;
    case WANTS_ORDER:
        if (ith != (*calls)++ % nth)
            flip(head(&all[O], 0, 0), 1);
        break;
    default:
        break;
    }
}

static nrg_status first_phase(void *context, const call_operand *all, int ith, int nth)
{
    double sum = 0;
    if (fault == REFUSES && nth == 7)
        return NRG_ERR_OVERLAP;
    for (size_t t = share(ith, nth); t < share(ith + 1, nth); t++) {
        one_token(all, t);
        sum += ((const int32_t *)all[IDS].at)[t];
    }
    if (fault == TRUSTS_SCRATCH)
        sum += ((const double *)all[WORK].at)[ith];
    memcpy((double *)all[WORK].at + ith, &sum, sizeof sum);
    go_wrong(all, ith, nth, context);
    return NRG_OK;
}

static nrg_status second_phase(void *context, const call_operand *all, int ith, int nth)
{
    int64_t *total = all[TOTAL].at;
    (void)context;
    for (int i = 0; i < nth && ith == 0; i++) {
        double sum = ((const double *)all[WORK].at)[i];
        *total += sum < 1000 ? (int64_t)sum : -1; /* whatever rubbish was there */
    }
    if (fault == BIT_OF_TOTAL && nrg_isa_active() == worst && nth > 1)
        *total ^= ith == 0;
    return NRG_OK;
}

static size_t workspace(const void *context, int nth)
{
    (void)context;
    return (size_t)nth;
}

static const char *verdict_of(const char *op, nrg_dtype dtype, uint64_t seed, int layouts)
{
    static int calls;
    const call_operand tensor = {.name = "x",
                                 .type = (int)dtype,
                                 .rows = TOKENS * HEADS,
                                 .dim = DIM,
                                 .group = HEADS,
                                 .padded = 1,
                                 .transposed = 1,
                                 .fused = 1};
    call_operand operands[OPERANDS] = {
        [X] = tensor,
        [IDS] = {.name = "ids", .type = CALL_I32, .rows = 1, .dim = TOKENS, .below = ENTRIES},
        [TABLE] = {.name = "table", .type = NRG_F32, .rows = ENTRIES, .dim = DIM, .kinds = 1u << ROW_NORMAL},
        [O] = tensor,
        [COPY] = {.name = "copy", .role = CALL_OUTPUT, .type = CALL_I32, .rows = 1, .dim = TOKENS, .optional = 1},
        [FIRST] = {.name = "first", .role = CALL_OUTPUT, .type = CALL_F64, .rows = 1, .dim = TOKENS},
        [TOTAL] = {.name = "total", .role = CALL_INOUT, .type = CALL_I64, .rows = 1, .dim = 1, .least = -100, .below = 100},
        [WORK] = {.name = "workspace", .role = CALL_SCRATCH, .type = CALL_F64, .scratch = workspace},
    };
    operands[O].name = "o";
    operands[O].role = CALL_OUTPUT;
    operands[O].over = CALL_OVER(X);
    const call_case c = {.op = op,
                         .text = "a small call",
                         .dtype = dtype,
                         .run = {first_phase, second_phase},
                         .context = &calls,
                         .operands = operands,
                         .count = OPERANDS,
                         .work = TOKENS,
                         .layouts = layouts,
                         .seed = seed};
    nrg_isa paths[NRG_ISA_COUNT];
    worst = paths[test_paths(paths) - 1];
    calls = 0;
    return call_verdict(&c);
}

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

START_TEST(right_call_passes)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        const char *said = verdict_of("gather", dtypes[_i], seed, CALL_LAYOUTS);
        if (said)
            ck_abort_msg("%s", said);
    }
}
END_TEST

enum { ENOUGH = 64 }; /* layouts, so that each fault meets the one that shows it */

/* Faults the harness describes, and words of what it says. */
static const struct {
    enum fault fault;
    const char *words;
} described[] = {
    {BIT_OF_O, "o: row 26 column 6"},
    {BIT_OF_COPY, "copy: row 0 column 8"},
    {BIT_OF_FIRST, "first: row 0 column 8"},
    {BIT_OF_TOTAL, "total: row 0 column 0"},
    {FORGETS_O, "o: row 13 column 6"},
    {FORGETS_FIRST, "first: row 0 column 8"},
    {REFUSES, "of 7 of phase 0: status 13"},
    {PAST_A_ROW, "which is no output's"},
    {PAST_A_GROUP, "which is no output's"},
    {INTO_THE_GAP, "byte -1 of the buffer of o, which is no output's"},
    {CHANGES_FUSED_INPUT, "which is no output's"},
    {READS_WHAT_IT_WROTE, "o: row"},
    {TRUSTS_SCRATCH, "total: row 0 column 0"},
    {WANTS_ORDER, "o: row 0 column 0"},
    {WRONG_SURPLUS, "o: row 0 column 0"},
};

/* 2 where the harness lives to say something. */
static int says_something(const void *dtype) { return verdict_of("gather", *(const nrg_dtype *)dtype, 1, ENOUGH) ? 2 : 0; }

/* Where MemorySanitizer is there: reads what nobody has written, or has the harness do so. */
static int is_for_the_sanitizer(enum fault what)
{
    return UNWRITTEN_IS_FATAL && (what == FORGETS_O || what == FORGETS_FIRST || what == TRUSTS_SCRATCH);
}

START_TEST(noticed)
{
    for (size_t d = 0; d < 3; d++) {
        fault = described[_i].fault;
        if (is_for_the_sanitizer(fault)) {
            const int status = host_in_process(says_something, &dtypes[d]);
            ck_assert_msg(status > 0 && status != 2, "MemorySanitizer is there, and did not end a wrong call: %d", status);
            continue;
        }
        const char *said = verdict_of("gather", dtypes[d], 1, ENOUGH);
        if (!said)
            ck_abort_msg("a wrong call passed (looked for: %s)", described[_i].words);
        if (!strstr(said, described[_i].words))
            ck_abort_msg("the harness said \"%s\" and not \"%s\"", said, described[_i].words);
        ck_assert_msg(strstr(said, "gather") && strstr(said, "a small call") && strstr(said, nrg_dtype_name(dtypes[d])),
                      "\"%s\" does not name the case", said);
    }
}
END_TEST

/* Faults that end the process. */
static const enum fault fatal[] = {CHANGES_INPUT, REWRITES_INPUT, READS_BEFORE_X, WANTS_COPY,
                                   PAST_THE_END,  READS_PAST_X,   READS_PAST_IDS};
enum { READS_PAST = 2 }; /* the last ones, which a readable fence lets through */

static int run_crashing(const void *data)
{
    (void)data;
    verdict_of("gather", NRG_F16, 1, ENOUGH);
    return 0;
}

START_TEST(crashes)
{
    fault = fatal[_i];
    test_must_crash(run_crashing, NULL);
}
END_TEST

/* Faults that may end the process, or give wrong numbers. */
static const enum fault either[] = {IGNORES_0, ASSUMES_DENSE_GROUPS};

static int is_noticed(const void *data)
{
    (void)data;
    return verdict_of("gather", NRG_F32, 1, ENOUGH) != NULL;
}

START_TEST(noticed_somehow)
{
    fault = either[_i];
    ck_assert_msg(host_in_process(is_noticed, NULL) != 0, "a wrong call passed");
}
END_TEST

START_TEST(account_is_complete) { call_check_account("gather"); }
END_TEST

START_TEST(account_is_not_complete)
{
    /* a call in each of the four ways, but not in all their combinations, or none at all */
    const char *said = call_account_verdict("norm_forward");
    ck_assert_msg(said && strstr(said, "never called"), "an op that was never called: %s", said ? said : "nothing");
    said = verdict_of("few calls", NRG_F16, 1, 1);
    ck_assert_msg(!said, "%s", said);
    said = call_account_verdict("few calls");
    ck_assert_msg(said && strstr(said, test_small() ? " call of " : "no call was"), "one call a path: %s",
                  said ? said : "nothing");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("the harness for any call catches wrong ones");
    TCase *right = test_case(suite, "right calls");
    tcase_add_loop_test(right, right_call_passes, 0, 3);
    tcase_add_test(right, account_is_complete);
    tcase_add_test(right, account_is_not_complete);
    TCase *wrong = test_case(suite, "wrong calls");
    tcase_add_loop_test(wrong, noticed, 0, sizeof described / sizeof described[0]);
    const int fatal_count = sizeof fatal / sizeof fatal[0];
    if (fence_readable())
        printf("SKIP reads past an end: the page after a buffer is readable (NRG_TEST_READABLE_FENCE); %d tests skipped\n",
               READS_PAST);
    tcase_add_loop_test(wrong, crashes, 0, fence_readable() ? fatal_count - READS_PAST : fatal_count);
    tcase_add_loop_test(wrong, noticed_somehow, 0, sizeof either / sizeof either[0]);
    return test_run(suite);
}
