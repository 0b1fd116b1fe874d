/* The bare loops of the avx2 path.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>

typedef __m256i vec;
enum { VEC_BYTES = 32 };

#define v_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define v_add(a, b) _mm256_add_epi32(a, b)
#define v_store2(p, a, b) (_mm256_storeu_si256((__m256i *)(p), a), _mm256_storeu_si256((__m256i *)((p) + VEC_BYTES), b))
#define v_stream2(p, a, b) (_mm256_stream_si256((__m256i *)(p), a), _mm256_stream_si256((__m256i *)((p) + VEC_BYTES), b))
#define v_fence() _mm_sfence()
#define v_prefetch(p) _mm_prefetch(p, _MM_HINT_T0)

#define LIMIT_LOOPS limit_loops_avx2
#include "limit_template.h"
