/* The paths of this build, in the order of the rows of the kernel tables, which therefore have no holes.
 *
 * An embedder that leaves a path's folder out defines NRG_NO_AVX2, NRG_NO_AVX512, NRG_NO_NEON or NRG_NO_GENERIC.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_PATHS_H
#define NRG_PATHS_H

#include "../include/nrg/isa.h"

#if defined(__x86_64__) || (defined(_M_X64) && !defined(_M_ARM64EC))
#define NRG_X86_64 1
#else
#define NRG_X86_64 0
#endif

#if NRG_X86_64 && !defined(NRG_NO_AVX2)
#define NRG_WITH_AVX2(...) __VA_ARGS__
#else
#define NRG_WITH_AVX2(...)
#endif

#if NRG_X86_64 && !defined(NRG_NO_AVX512)
#define NRG_WITH_AVX512(...) __VA_ARGS__
#else
#define NRG_WITH_AVX512(...)
#endif

#if defined(__aarch64__) && !defined(NRG_NO_NEON)
#define NRG_WITH_NEON(...) __VA_ARGS__
#else
#define NRG_WITH_NEON(...)
#endif

/* Its vectors are GNU C's. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(NRG_NO_GENERIC)
#define NRG_WITH_GENERIC(...) __VA_ARGS__
#else
#define NRG_WITH_GENERIC(...)
#endif

/* The values of nrg_isa are 0 to NRG_ISA_COUNT - 1. */
enum { NRG_ISA_COUNT = NRG_ISA_NEON + 1 };

/* each(path, nrg_isa, …) for every path. */
#define NRG_EACH_PATH(each, ...)                                                                                                 \
    each(scalar, NRG_ISA_SCALAR, __VA_ARGS__) NRG_WITH_GENERIC(each(generic, NRG_ISA_GENERIC, __VA_ARGS__))                      \
        NRG_WITH_AVX2(each(avx2, NRG_ISA_AVX2, __VA_ARGS__)) NRG_WITH_AVX512(each(avx512, NRG_ISA_AVX512, __VA_ARGS__))          \
            NRG_WITH_NEON(each(neon, NRG_ISA_NEON, __VA_ARGS__))

#define NRG_COUNT_PATH(path, isa, unused) +1
enum { NRG_PATHS = NRG_EACH_PATH(NRG_COUNT_PATH, ) };
#undef NRG_COUNT_PATH

#endif
