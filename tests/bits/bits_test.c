/* Every path gives the bits of scalar, and touches nothing that is not its own: the cases of nrg check between fences, in any
 * layout, place, number and order of shares. One suite for all ops; an op that is added has its cases in check/, and nothing to
 * do here.
 *
 *     bits_test OP ...    these ops of kernels.def; without one, all
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/case_call.h"

/* Parts of a kernel's cases, each a test of its own: they run side by side, and one that fails does not hide the others. */
enum { PARTS = 4 };

static char **wanted;
static int wanted_count;

static int is_wanted(const char *op)
{
    for (int i = 0; i < wanted_count; i++)
        if (strcmp(wanted[i], op) == 0)
            return 1;
    return !wanted_count;
}

/* A case in so many: the full level of an op with many options would take hours. Odd, as the numbers of options, lengths and
 * layouts that take turns are mostly even. */
static uint64_t step_of(uint64_t cases)
{
    enum { MOST = 5000 };
    return test_small() ? 1 : cases / MOST | 1;
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
    return cases < 3000 ? 4 : 1 + (int)(n % 2);
}

START_TEST(cases)
{
    const int kernel = _i / PARTS;
    const sweep_level level = test_small() ? SWEEP_QUICK : SWEEP_FULL;
    unsigned char *memory = NULL;
    size_t room = 0;
    sweep_case c;
    if (!is_wanted(sweep_kernel_op(kernel)))
        return;
    const uint64_t first = sweep_first(level, kernel), end = sweep_first(level, kernel + 1);
    const uint64_t step = step_of(end - first);
    for (uint64_t n = (uint64_t)(_i % PARTS), number; (number = first + n * step) < end; n += PARTS) {
        sweep_make(level, number, &c);
        if (!takes_part(&c))
            continue;
        if (c.bytes > room) {
            free(memory);
            room = c.bytes + c.bytes / 2;
            memory = malloc(room);
            ck_assert_ptr_nonnull(memory);
        }
        case_call call;
        case_call_make(&call, &c, memory);
        call.call.layouts = layouts_of(end - first, n / PARTS);
        call_sweep(&call.call);
        case_call_free(&call);
    }
    free(memory);
}
END_TEST

START_TEST(everything_was_met)
{
    const char *last = "";
    for (int i = 0; i < sweep_kernels; i++) {
        const char *op = sweep_kernel_op(i);
        if (strcmp(op, last) != 0 && is_wanted(op))
            call_check_account(op);
        last = op;
    }
}
END_TEST

int main(int argc, char **argv)
{
    wanted_count = test_arguments(argc, argv) - 1;
    wanted = argv + 1;
    call_start();
    Suite *suite = suite_create("bits: every path is scalar");
    TCase *all = test_case(suite, "cases");
    tcase_add_loop_test(all, cases, 0, sweep_kernels * PARTS);
    tcase_add_test(all, everything_was_met);
    return test_run(suite);
}
