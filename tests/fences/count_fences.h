/* Included before every source of an x86 path (-include), in the build of the path that fences_test.c looks at: stores past the
 * cache are counted, and forgotten at a fence. The library's own build knows nothing of it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_FENCES_COUNT_FENCES_H
#define NRG_TESTS_FENCES_COUNT_FENCES_H

#include <immintrin.h>

/* Since the program began; and since the last fence. */
extern unsigned long fences_streamed, fences_pending;

/* A name within its own expansion is the function. */
#define FENCES_COUNT(store) (fences_streamed++, fences_pending++, (store))
#define _mm_stream_ps(p, a) FENCES_COUNT(_mm_stream_ps((p), (a)))
#define _mm_stream_pd(p, a) FENCES_COUNT(_mm_stream_pd((p), (a)))
#define _mm_stream_si32(p, a) FENCES_COUNT(_mm_stream_si32((p), (a)))
#define _mm_stream_si128(p, a) FENCES_COUNT(_mm_stream_si128((p), (a)))
#define _mm256_stream_ps(p, a) FENCES_COUNT(_mm256_stream_ps((p), (a)))
#define _mm256_stream_pd(p, a) FENCES_COUNT(_mm256_stream_pd((p), (a)))
#define _mm256_stream_si256(p, a) FENCES_COUNT(_mm256_stream_si256((p), (a)))
#define _mm512_stream_ps(p, a) FENCES_COUNT(_mm512_stream_ps((p), (a)))
#define _mm512_stream_pd(p, a) FENCES_COUNT(_mm512_stream_pd((p), (a)))
#define _mm512_stream_si512(p, a) FENCES_COUNT(_mm512_stream_si512((p), (a)))
#define _mm_sfence() (fences_pending = 0, _mm_sfence())

#endif
