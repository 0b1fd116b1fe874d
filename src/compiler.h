/* What is asked of the compiler, and what some do not have.
 *
 * The sources are C11 with some of GNU C's attributes and builtins. For a compiler that is no gcc and no clang, cl.exe above all,
 * they are made of what it has, or of nothing: speed is what most of them are for.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_COMPILER_H
#define NRG_COMPILER_H

#include <float.h>
#include <math.h>

/* Results are defined to the last bit, and each of these changes bits. The order matters: of two reasons, only one is reported,
 * and an advice about x87 helps no big-endian target. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                                   \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || defined(_M_FP_FAST)
#error "nrg must not be compiled with -ffast-math or a part of it"
#elif defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "nrg is for little-endian targets: its files and hashes are, and pairs of 16-bit elements are words"
#elif FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
/* 16: _Float16 arithmetic stays in _Float16, and float arithmetic in float. gcc reports it in its own dialects of C for CPUs with
 * such arithmetic (AVX512-FP16, Arm's fp16). */
#error "nrg needs float arithmetic in float: on 32-bit x86, -msse2 -mfpmath=sse"
#endif
/* Whoever forgets -ffp-contract=off has the same bits: gcc fuses in its own dialects of C, and heeds no standard pragma. Where
 * the option is given as well, the code is the same to the instruction. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#if !defined(__GNUC__) && !defined(__clang__)
#define __attribute__(list)
#define __asm__(...) ((void)0)
#define __builtin_assume_aligned(at, bytes) ((void *)(at))
#define __builtin_constant_p(value) 0
#define __builtin_expect(value, expected) (value)
#define __builtin_inff() INFINITY
#define __builtin_nanf(payload) NAN
#define __builtin_ctz(bits) nrg_lowest_bit(bits)
#define __builtin_sqrt(a) sqrt(a)
static inline int nrg_lowest_bit(unsigned bits)
{
    int bit = 0;
    while (!(bits >> bit & 1))
        bit++;
    return bit;
}
#if defined(_MSC_VER)
#define NRG_INLINE static __forceinline
#define __builtin_unreachable() __assume(0)
#else
#define NRG_INLINE static inline
#define __builtin_unreachable() ((void)0)
#endif
#if defined(_M_X64)
#include <intrin.h>
#define NRG_FIRST(first, ...) (first)
#define __builtin_prefetch(...) _mm_prefetch((const char *)NRG_FIRST(__VA_ARGS__, 0), _MM_HINT_T0)
#else
#define __builtin_prefetch(...) ((void)0)
#endif
#define NRG_IN_REGISTER(number) ((void)0)
#define NRG_UNROLL_3
#else
#define NRG_INLINE static inline __attribute__((always_inline))
/* A number or a pointer of which the compiler is not to know where it comes from. */
#define NRG_IN_REGISTER(number) __asm__ volatile("" : "+r"(number))
/* Before a loop of at most three turns that gcc alone unrolls too late, so that what it reads stays in memory. */
#define NRG_UNROLL_3 _Pragma("GCC unroll 3")
#endif

/* The target has a fused multiply-add of floats and of doubles. gcc reports it by __FP_FAST_FMA, clang by a macro of each target.
 * An Arm FPU for floats alone, bit 3 of __ARM_FP, has none of doubles. */
#if (defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)) || (defined(__ARM_FEATURE_FMA) && (__ARM_FP & 8)) || defined(__FMA__) || \
    (defined(__riscv_flen) && __riscv_flen >= 64) || defined(__powerpc64__)
#define NRG_HAS_FMA 1
#else
#define NRG_HAS_FMA 0
#endif

/* exact/fma.c: a·b + c rounded once, to nearest, as C defines fma() and fmaf(). glibc's are right. Others round twice:
 * mingw-w64's (10.0) in general, musl's fmaf (1.2.3) where the result is subnormal, and on WebAssembly at any tie. */
double nrg_fma(double a, double b, double c);
float nrg_fmaf(float a, float b, float c);
#if !NRG_HAS_FMA && !defined(__GLIBC__)
#define fma nrg_fma
#define fmaf nrg_fmaf
#endif

#endif
