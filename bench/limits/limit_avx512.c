/* The bare loops of the avx512 path.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>

typedef __m512i vec;
enum { VEC_BYTES = 64 };

#define v_load(p) _mm512_loadu_si512(p)
#define v_add(a, b) _mm512_add_epi32(a, b)
#define v_store2(p, a, b) (_mm512_storeu_si512(p, a), _mm512_storeu_si512((p) + VEC_BYTES, b))
#define v_stream2(p, a, b) (_mm512_stream_si512((__m512i *)(p), a), _mm512_stream_si512((__m512i *)((p) + VEC_BYTES), b))
#define v_fence() _mm_sfence()
#define v_prefetch(p) _mm_prefetch(p, _MM_HINT_T0)

#define LIMIT_LOOPS limit_loops_avx512
#include "limit_template.h"
