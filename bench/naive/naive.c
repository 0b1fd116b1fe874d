/* The naive loops of a path: of f32, then of bf16, whose numbers are the upper halves of floats. f16 has none, since C has no
 * such type that all compilers know and make vectors of. bench/meson.build compiles this file once a path, with NAIVE_LOOPS for
 * the name of the list.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../rival.h"

#define INLINE static inline __attribute__((always_inline))

#include "naive_activation.h"
#include "naive_blocks.h"

/* For each channel the average of its set, of sums over `together` channels; to may be sum. */
INLINE void average(size_t channels, size_t together, float count, const float *sum, float *to)
{
    for (size_t c = 0; c < channels; c += together) {
        float all = 0;
        for (size_t i = 0; i < together; i++)
            all += sum[c + i];
        for (size_t i = 0; i < together; i++)
            to[c + i] = all / count;
    }
}

#define ELEMENT float
#define LOAD(p, i) ((p)[i])
#define STORE(p, i, value) ((p)[i] = (value))
#define NAME(name) name##_f32
#include "naive_loops.h"
#undef ELEMENT
#undef LOAD
#undef STORE
#undef NAME

INLINE float bf16_load(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest, ties to even; what becomes of a NaN is nobody's business here. */
INLINE uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define ELEMENT uint16_t
#define LOAD(p, i) bf16_load((p)[i])
#define STORE(p, i, value) ((p)[i] = bf16_of(value))
#define NAME(name) name##_bf16
#include "naive_loops.h"

#define BOTH(kernel, op, name) {kernel, op, NRG_F32, name##_f32}, {kernel, op, NRG_BF16, name##_bf16},
#define FORWARD(name, op, ...) BOTH("norm_forward", op, name)
#define BACKWARD(name, op, ...) BOTH("norm_backward", op, name)
#define SANDWICH(name, op, ...) BOTH("norm_sandwich", op, name)
#define ACTIVATION(name, op, ...) BOTH("activation", op, name)
#define SLOPE(name, op, ...) BOTH("activation_backward", op, name)
#define GLU(name, op, ...) BOTH("glu", op, name)
#define GLU_BACKWARD(name, op, ...) BOTH("glu_backward", op, name)
#define TO_BYTES(name, op, ...) BOTH("quantize", op, name)
#define FROM_BYTES(name, op, ...) BOTH("dequantize", op, name##_back)
#define NORM_BYTES(name, op, ...) BOTH("norm_quantized", op, name)
#define SANDWICH_BYTES(name, op, ...) BOTH("norm_sandwich_quantized", op, name)
#define GLU_BYTES(name, op, ...) BOTH("glu_quantized", op, name)
#define SOFTMAX(name, op, ...) BOTH("softmax", op, name)
#define SOFTMAX_BACKWARD(name, op, ...) BOTH("softmax_backward", op, name)
#define CHANNEL_FORWARD(name, op, ...) BOTH("channel_norm_forward", op, name)
#define CHANNEL_BACKWARD(name, op, ...) BOTH("channel_norm_backward", op, name)
#define ROPE(name, op, ...) BOTH("rope", op, name)
#define NORM_ROPE(name, op, ...) BOTH("norm_rope", op, name)
#define QKV(name, op, ...) BOTH("qkv", op, name)
const rival_loop NAIVE_LOOPS[] = {
    EACH_FORWARD(FORWARD) EACH_BACKWARD(BACKWARD) EACH_SANDWICH(SANDWICH) EACH_ACTIVATION(ACTIVATION) EACH_SLOPE(SLOPE)
        EACH_GLU(GLU) EACH_GLU_BACKWARD(GLU_BACKWARD) EACH_SOFTMAX(SOFTMAX) EACH_SOFTMAX_BACKWARD(SOFTMAX_BACKWARD)
            EACH_OTHER(BOTH) EACH_CHANNEL_FORWARD(CHANNEL_FORWARD) EACH_CHANNEL_BACKWARD(CHANNEL_BACKWARD) EACH_ROPE(ROPE)
                EACH_NORM_ROPE(NORM_ROPE) EACH_QKV(QKV) EACH_BYTES(TO_BYTES) EACH_BYTES(FROM_BYTES) EACH_NORM_BYTES(NORM_BYTES)
                    EACH_SANDWICH_BYTES(SANDWICH_BYTES) EACH_GLU_BYTES(GLU_BYTES){.kernel = NULL},
};
