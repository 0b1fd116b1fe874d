/* Memory that nobody has written, as MemorySanitizer and valgrind see it: they report whatever is computed from it and then
 * decides anything. Said of memory that is about to be written, so that what is left out is noticed, and what is read too early.
 * Without either of them nothing happens.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_UNWRITTEN_H
#define NRG_TESTS_HARNESS_UNWRITTEN_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define UNWRITTEN_FORGET __msan_poison
#define UNWRITTEN_ACCEPT __msan_unpoison
#endif
#endif
#if !defined(UNWRITTEN_FORGET) && defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define UNWRITTEN_FORGET(at, bytes) (void)VALGRIND_MAKE_MEM_UNDEFINED(at, bytes)
#define UNWRITTEN_ACCEPT(at, bytes) (void)VALGRIND_MAKE_MEM_DEFINED(at, bytes)
#endif
#endif

/* Whether such a report ends the process, before anybody else can say a word. */
#if defined(UNWRITTEN_FORGET) && !defined(__VALGRIND_MAJOR__)
enum { UNWRITTEN_IS_FATAL = 1 };
#else
enum { UNWRITTEN_IS_FATAL = 0 };
#endif

/* Whether valgrind runs the program. Its 3.19 makes a fused multiply-add that is 0 have the other sign: fma(-0, 1, -0) is 0. */
static inline int unwritten_by_valgrind(void)
{
#ifdef __VALGRIND_MAJOR__
    return (int)RUNNING_ON_VALGRIND;
#else
    return 0;
#endif
}

/* What is there counts as never written. */
static inline void unwritten_forget(const void *at, size_t bytes)
{
#ifdef UNWRITTEN_FORGET
    UNWRITTEN_FORGET(at, bytes);
#else
    (void)at, (void)bytes;
#endif
}

/* What is there may be looked at, whoever wrote it. */
static inline void unwritten_accept(const void *at, size_t bytes)
{
#ifdef UNWRITTEN_ACCEPT
    UNWRITTEN_ACCEPT(at, bytes);
#else
    (void)at, (void)bytes;
#endif
}

#endif
