/* A call before the library's own constructor has run: from .preinit_array where there is one, and from a constructor that
 * comes first.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "../harness/support.h"

enum { DIM = 100 };

/* What an early call gave. */
typedef struct early {
    int happened;
    nrg_status status;
    nrg_isa isa;
    float o[DIM];
    char reason[128];
} early;

static early at_constructor;

static void call_early(early *e)
{
    float x[DIM];
    for (int i = 0; i < DIM; i++)
        x[i] = (float)(i * 37 % 19) - 7;
    e->status = nrg_rms_norm_f32(1, DIM, x, NULL, e->o, 1e-6);
    e->isa = nrg_isa_active();
    const char *reason = nrg_isa_reason();
    for (size_t i = 0; i < sizeof e->reason - 1 && reason[i]; i++)
        e->reason[i] = reason[i];
    e->happened = 1;
}

#if !defined(TEST_SANITIZED) && defined(__linux__)
#define HAVE_PREINIT 1
static early at_preinit;

static void preinit(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
    call_early(&at_preinit);
    nrg_dispatch_forget(); /* for the next one to be early as well */
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(int, char **, char **) = preinit;
#endif

__attribute__((constructor(101))) static void first_constructor(void) { call_early(&at_constructor); }

static void check(const early *e)
{
    early late;
    memset(&late, 0, sizeof late);
    ck_assert_int_eq(e->happened, 1);
    ck_assert_int_eq(e->status, NRG_OK);
    ck_assert_int_eq(nrg_isa_supported(e->isa), 1);
    ck_assert_str_ne(e->reason, "");
    call_early(&late);
    ck_assert_mem_eq(e->o, late.o, sizeof late.o);
}

START_TEST(before_all_constructors)
{
#if defined(HAVE_PREINIT)
    check(&at_preinit);
    /* libc may have no environment at that point, so that NRG_ISA need not have been seen: what the reason says must be true */
    const char *seen, *unseen;
    nrg_isa with = nrg_choose_isa(getenv("NRG_ISA"), nrg_cpu_features(), &seen);
    nrg_isa without = nrg_choose_isa(NULL, nrg_cpu_features(), &unseen);
    ck_assert((at_preinit.isa == with && strcmp(at_preinit.reason, seen) == 0) ||
              (at_preinit.isa == without && strcmp(at_preinit.reason, unseen) == 0));
#else
    check(&at_constructor); /* the earliest there is in this build: main has said so */
#endif
}
END_TEST

START_TEST(before_our_constructor)
{
    check(&at_constructor);
    /* and the library's constructor left the choice alone */
    ck_assert_int_eq(nrg_isa_active(), at_constructor.isa);
    ck_assert_str_eq(nrg_isa_reason(), at_constructor.reason);
    const char *reason;
    ck_assert_int_eq(at_constructor.isa, nrg_choose_isa(getenv("NRG_ISA"), nrg_cpu_features(), &reason));
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
#if !defined(HAVE_PREINIT)
    printf("SKIP .preinit_array: not in this build\n");
#endif
    Suite *suite = suite_create("dispatch before the constructor");
    TCase *tests = test_case(suite, "early calls");
    tcase_add_test(tests, before_all_constructors);
    tcase_add_test(tests, before_our_constructor);
    return test_run(suite);
}
