/* Not a platform's: see ../README.md. What src/ takes of cl.exe's <intrin.h>, in the words of Microsoft's documentation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_STAND_IN_INTRIN_H
#define NRG_STAND_IN_INTRIN_H

void __cpuid(int[4], int);
void __cpuidex(int[4], int, int);
unsigned long long _xgetbv(unsigned);
#if defined(__AVX2__)
#include <immintrin.h>
#else
enum { _MM_HINT_T0 = 1 };
void _mm_prefetch(const char *, int);
#endif

#endif
