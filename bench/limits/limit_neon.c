/* The bare loops of the neon path. Its non-temporal stores are STNP, a hint that some cores follow and others take for STP.
 *
 * SPDX-License-Identifier: MIT */
#include <arm_neon.h>

typedef uint32x4_t vec;
enum { VEC_BYTES = 16 };

#define v_load(p) vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)(p)))
#define v_add(a, b) vaddq_u32(a, b)
#define v_store2(p, a, b)                                                                                                        \
    (vst1q_u8((uint8_t *)(p), vreinterpretq_u8_u32(a)), vst1q_u8((uint8_t *)(p) + VEC_BYTES, vreinterpretq_u8_u32(b)))
#define v_stream2(p, a, b) __asm__ volatile("stnp %q1, %q2, [%0]" : : "r"(p), "w"(a), "w"(b) : "memory")
#define v_fence() ((void)0) /* STNP keeps the order of one thread's own accesses */
#define v_prefetch(p) __builtin_prefetch(p)

#define LIMIT_LOOPS limit_loops_neon
#include "limit_template.h"
