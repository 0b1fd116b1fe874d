/* What every suite needs: the paths to test, the scale of a sweep, random numbers, a note for crashes, the runner.
 *
 * Environment:
 *   NRG_TEST_SCALE=small   shorter sweeps, for emulators (also: --quick); tiny: shorter still
 *   NRG_TEST_READABLE_FENCE=1  see fence.h
 *   NRG_REQUIRE_PATHS=a,b  a path of this list that cannot run here is a failure, not a skip
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_SUPPORT_H
#define NRG_TESTS_HARNESS_SUPPORT_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

#include "../../src/paths.h"

/* Check notes in a file where each assertion stands that holds, a system call each: millions of them, in loops over elements,
 * were two thirds of the time of some suites, and more under sanitizers. Only what fails is noted; of a crash Check then names
 * the test, and not the last assertion before it. */
#undef ck_assert
#undef ck_assert_msg
#define ck_assert_msg(expr, ...) ((expr) ? (void)0 : ck_abort_msg(__VA_ARGS__))
#define ck_assert(expr) ck_assert_msg(expr, "Assertion '%s' failed", #expr)

/* AddressSanitizer moves locals to a stack of its own and wants no instrumented code before it has started. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif

/* Reads --quick; to be called first. Returns the number of arguments it leaves, moved to the front. */
int test_arguments(int argc, char **argv);

/* 1 where sweeps should be short. */
int test_small(void);

/* Whether it is so slow that of many alike one in two is enough: NRG_TEST_SCALE=tiny, which is small as well. */
int test_tiny(void);

/* The paths this machine can run, scalar first. Returns how many. */
size_t test_paths(nrg_isa paths[NRG_ISA_COUNT]);

/* The dtypes kernels.def has for an op. Returns how many. */
size_t test_kernel_dtypes(const char *op, nrg_dtype dtypes[3]);

/* Names the paths that are skipped, runs the suite, frees it. Returns the exit status of the program. */
int test_run(Suite *suite);

/* A suite of one case with a generous time limit, since it may run under an emulator or a sanitizer. */
TCase *test_case(Suite *suite, const char *name);

/* Memory that a test's child process shares with the tests after it. Zeroed, never freed. */
void *test_shared(size_t bytes);

/* Ends the test unless body(data), in a process of its own, dies of touching memory that it may not. */
void test_must_crash(int body(const void *data), const void *data);

/* Zeroed memory; never NULL. */
void *test_allocate(size_t count, size_t size);

/* What is being run now: printed if the process dies of a signal. */
extern char test_note[512];
void test_note_crashes(void);

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one word in, one well-mixed word out. */
uint64_t test_mix(uint64_t seed);

/* Draws the next number below n from *state. */
size_t test_draw(uint64_t *state, size_t n);

/* Draws a multiple of 2^-29 from -1 to 1. */
double test_uniform(uint64_t *state);

#endif
