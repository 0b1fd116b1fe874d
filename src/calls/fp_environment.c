/* What the floating-point environment of the calling thread makes of arithmetic, found by doing some: so no CPU's control
 * register has to be known. See nrg/isa.h.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../internal.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

unsigned nrg_fp_environment(void)
{
    /* volatile: so that the CPU computes it, at the time of the call. Bits: with DAZ a subnormal compares as equal to 0. */
    volatile float least_normal = 0x1p-126f, subnormal = 0x1p-149f, one = 1, little = 0x1p-30f;
    const float half = least_normal * 0.5f, grown = subnormal * 0x1p24f;
    const float above = one + little, below = one - little, negative = -one - little;
    unsigned found = 0;
    if (bits_of(half) == 0)
        found |= NRG_FP_FLUSHES_RESULTS;
    if (bits_of(grown) == 0)
        found |= NRG_FP_FLUSHES_OPERANDS;
    if (above != one || below != one || negative != -one)
        found |= NRG_FP_ROUNDS_OTHERWISE;
    return found;
}

#define SUBNORMALS(which) which " below 2^-126 count as 0 (FTZ, DAZ; -ffast-math in any object of a program switches them on)"
#define ROUNDING "arithmetic does not round to nearest"
#define MEANING ": nrg guarantees neither bits nor error bounds"

const char *nrg_fp_environment_string(unsigned environment)
{
    static const char *const sentences[8] = {
        "IEEE 754, to nearest, with subnormals",
        SUBNORMALS("results") MEANING,
        SUBNORMALS("operands") MEANING,
        SUBNORMALS("results and operands") MEANING,
        ROUNDING MEANING,
        SUBNORMALS("results") ", and " ROUNDING MEANING,
        SUBNORMALS("operands") ", and " ROUNDING MEANING,
        SUBNORMALS("results and operands") ", and " ROUNDING MEANING,
    };
    return environment < 8 ? sentences[environment] : "?";
}
