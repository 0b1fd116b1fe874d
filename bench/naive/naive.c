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
#define BOTH_OF(kernel, op, name, ...) BOTH(kernel, op, name)
#define ACTIVATION(g, name, ...) BOTH("activation", #name, g)
const rival_loop NAIVE_LOOPS[] = {
#include "../../src/template/activation/activations.def"
    EACH_LOOP(BOTH_OF) EACH_OTHER(BOTH){.kernel = NULL}};
