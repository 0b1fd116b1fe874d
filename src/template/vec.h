/* What every path's vec.h is written with. The contract of vec.h itself is in docs/howto/adding-an-isa.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_VEC_H
#define NRG_TEMPLATE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../compiler.h"

/* A condition that seldom holds: what depends on it goes out of the way of what comes always. */
#define NRG_RARELY(condition) __builtin_expect(!!(condition), 0)

/* nrg_<path>_<name>: a path's vec.h defines NRG_PATH. */
#define NRG_PATH_NAME__(path, name) nrg_##path##_##name
#define NRG_PATH_NAME_(path, name) NRG_PATH_NAME__(path, name)
#define NRG_PATH_NAME(name) NRG_PATH_NAME_(NRG_PATH, name)

/* A vector reaches past the last of n numbers that stand on the stack. What is in those lanes is nobody's: it is computed with,
 * and neither a result nor a branch that matters depends on it. MemorySanitizer cannot know where that is meant. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
void __msan_unpoison(const volatile void *, size_t);
#define NRG_NOBODYS_LANES(numbers, n) __msan_unpoison((numbers) + (n), VN * sizeof *(numbers))
#endif
#endif
#ifndef NRG_NOBODYS_LANES
#define NRG_NOBODYS_LANES(numbers, n) (void)0
#endif

/* A path defines V_SMALL as 1 where little code counts for more than time: a loop is there once, with the dtype looked up as it
 * runs, and what has a walk or an order of its own for its speed goes the usual way. */
#ifndef V_SMALL
#define V_SMALL 0
#endif

/* A path defines V_BYTES_WRAP as 1 where v_st_bytes makes -128 of 128, and not 127. */
#ifndef V_BYTES_WRAP
#define V_BYTES_WRAP 0
#endif

/* Loops over elements, by functions of their own for each dtype: name(…, D) is name_of(…, D), which is inline, with D a constant.
 * args: the parameters' names, in parentheses; after them the parameters. A function begins with a cache line: 32 bytes on, the
 * same instructions took up to 1.15 times as long (Zen 4). */
#define NRG_UNPACK(...) __VA_ARGS__
#if V_SMALL
#define NRG_BY_DTYPE(name, args, ...)                                                                                            \
    static __attribute__((noinline)) void name##_any(__VA_ARGS__, nrg_dtype D) { name##_of(NRG_UNPACK args, D); }                \
    static inline void name(__VA_ARGS__, nrg_dtype D) { name##_any(NRG_UNPACK args, D); }
#else
#define NRG_BY_DTYPE(name, args, ...)                                                                                            \
    static __attribute__((noinline, aligned(64))) void name##_f32(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_F32); }          \
    static __attribute__((noinline, aligned(64))) void name##_f16(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_F16); }          \
    static __attribute__((noinline, aligned(64))) void name##_bf16(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_BF16); }        \
    static inline void name(__VA_ARGS__, nrg_dtype D)                                                                            \
    {                                                                                                                            \
        if (D == NRG_F32)                                                                                                        \
            name##_f32 args;                                                                                                     \
        else if (D == NRG_F16)                                                                                                   \
            name##_f16 args;                                                                                                     \
        else                                                                                                                     \
            name##_bf16 args;                                                                                                    \
    }
#endif

/* The same within a function: one of three copies of a call, whose last argument is D. */
#define NRG_CALL_BY_DTYPE(D, name, ...)                                                                                          \
    do {                                                                                                                         \
        if (V_SMALL)                                                                                                             \
            name(__VA_ARGS__, D);                                                                                                \
        else if ((D) == NRG_F32)                                                                                                 \
            name(__VA_ARGS__, NRG_F32);                                                                                          \
        else if ((D) == NRG_F16)                                                                                                 \
            name(__VA_ARGS__, NRG_F16);                                                                                          \
        else                                                                                                                     \
            name(__VA_ARGS__, NRG_BF16);                                                                                         \
    } while (0)

/* One kernel of an op of kernels.def, which is the given call. */
#define NRG_PATH_KERNEL(op, dtype, job_name, call)                                                                               \
    void NRG_PATH_NAME(op##_##dtype)(const nrg_##job_name##_job *job) { call; }

/* The three kernels of an op: body(job, dtype). */
#if V_SMALL
#define NRG_PATH_KERNELS(op, job_name, body)                                                                                     \
    static __attribute__((noinline)) void op##_of_any(const nrg_##job_name##_job *job, nrg_dtype D) { body(job, D); }            \
    NRG_PATH_KERNELS_(op, job_name, op##_of_any)
#else
#define NRG_PATH_KERNELS NRG_PATH_KERNELS_
#endif
#define NRG_PATH_KERNELS_(op, job_name, body)                                                                                    \
    NRG_PATH_KERNEL(op, f32, job_name, body(job, NRG_F32))                                                                       \
    NRG_PATH_KERNEL(op, f16, job_name, body(job, NRG_F16))                                                                       \
    NRG_PATH_KERNEL(op, bf16, job_name, body(job, NRG_BF16))

/* The bodies hold vectors in small arrays; those live in registers only when the loops over them are unrolled, which gcc does not
 * do by itself at -O2. A path may define it before, as nothing. */
#if defined(NRG_UNROLL)
#elif defined(__clang__)
#define NRG_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define NRG_UNROLL _Pragma("GCC unroll 16")
#else
#define NRG_UNROLL
#endif

#endif
