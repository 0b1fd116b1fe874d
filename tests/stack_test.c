/* No call uses more than 16 KB of stack: measured on a stack of our own, painted before the call.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "norm_case.h"

enum { LIMIT = 16 << 10, STACK = 256 << 10, PAINT = 0x5c };

static unsigned char *stack;
static ucontext_t here, there;
static const nrg_norm_spec *the_spec;
static const nrg_norm_args *the_args;
static nrg_status the_status;
static size_t deliberate;

/* Uses the stack it is told to, for the test of the measurement. */
static __attribute__((noinline)) void use_stack(size_t bytes)
{
    unsigned char block[1024];
    memset(block, 1, sizeof block);
    __asm__ volatile("" : : "r"(block) : "memory"); /* read, for all the compiler knows, here and after the call */
    if (bytes > sizeof block)
        use_stack(bytes - sizeof block);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static void on_stack(void)
{
    if (deliberate)
        use_stack(deliberate);
    else
        the_status = nrg_norm_forward(the_spec, the_args, 0, 1);
}

/* How deep a call goes. */
static size_t depth(void)
{
    memset(stack, PAINT, STACK);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &here;
    makecontext(&there, on_stack, 0);
    ck_assert_int_eq(swapcontext(&here, &there), 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    return STACK - untouched;
}

static void set_up(void)
{
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stack, MAP_FAILED);
}

static void tear_down(void) { munmap(stack, STACK); }

START_TEST(the_measurement_sees_depth)
{
    deliberate = 40 << 10;
    size_t deep = depth();
    deliberate = 0;
    ck_assert_uint_ge(deep, 40 << 10);
    ck_assert_uint_lt(deep, 80 << 10);
}
END_TEST

START_TEST(every_call)
{
    static const size_t dims[] = {1, 17, 64, 80, 96, 128, 256, 257, 1000, 4096, 12289};
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("norm_forward", dtypes);
    for (size_t path = 0; path < path_count; path++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++) {
            size_t deepest = 0;
            for (size_t n = 0; n < sizeof dims / sizeof dims[0]; n++)
                for (size_t number = 0; number < norm_option_count(); number += test_small() ? 509 : dims[n] > 300 ? 101 : 13) {
                    norm_options options;
                    if (!norm_options_at(&options, number, dtypes[dtype]))
                        continue;
                    norm_problem problem;
                    norm_result result;
                    size_t rows = dims[n] > 300 ? 2 : 33;
                    norm_problem_make(&problem, &options, dims[n], rows, NULL, 0, number);
                    norm_result_make(&result, &problem);
                    nrg_norm_args args = nrg_norm_args_init(rows, problem.x, result.o);
                    args.y = problem.y;
                    args.w = problem.w;
                    args.b = problem.b;
                    args.r = options.residual == RESIDUAL_AFTER ? NULL : result.r;
                    args.mean = result.mean;
                    args.rstd = result.rstd;
                    problem.spec.store = (nrg_store)(number % 3);
                    the_spec = &problem.spec;
                    the_args = &args;
                    ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                    if (n == 0 && deepest == 0)
                        depth(); /* the first call also resolves symbols, on the dynamic linker's account */
                    size_t deep = depth();
                    deepest = deep > deepest ? deep : deepest;
                    if (the_status != NRG_OK || deep > LIMIT)
                        ck_abort_msg("%s: %zu bytes of stack, status %d; %s", nrg_isa_name(paths[path]), deep, (int)the_status,
                                     problem.text);
                    norm_problem_free(&problem);
                    norm_result_free(&result);
                }
            printf("stack of norm_forward, %s, %s: %zu bytes\n", nrg_isa_name(paths[path]), nrg_dtype_name(dtypes[dtype]),
                   deepest);
        }
    fflush(stdout);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
#ifdef TEST_SANITIZED
    printf("SKIP stack use: a sanitizer's instrumentation uses more than the code it watches\n");
    return 77; /* meson's word for skipped */
#endif
#ifndef __OPTIMIZE__
    printf("SKIP stack use: in unoptimized code every value has a place of its own, and the limit is not for that\n");
    return 77;
#endif
    Suite *suite = suite_create("stack use");
    TCase *tests = test_case(suite, "stack");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_measurement_sees_depth);
    tcase_add_test(tests, every_call);
    return test_run(suite);
}
