/* Rows as q8_0, ggml's blocks of 32 with an f16 scale. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 3, DIM = 64, BLOCK = 32, BLOCK_BYTES = 34 };

static nrg_status quantize(size_t rows, size_t dim, const float *x, void *packed, int ith, int nth)
{
    /* snippet */
    const nrg_quantize_args args = nrg_quantize_args_init(NRG_QUANT_Q8_0, NRG_F32, rows, dim, x, packed, NULL);
    nrg_status status = nrg_quantize(&args, ith, nth);
    /* snippet */
    return status;
}

/* Of a normal number. */
static double of_f16(uint16_t x) { return ldexp(1 + (x & 0x3ff) / 1024.0, (x >> 10 & 0x1f) - 15) * (x >> 15 ? -1 : 1); }

int main(void)
{
    static float x[ROWS * DIM];
    static unsigned char packed[ROWS * DIM / BLOCK * BLOCK_BYTES];
    draw(x, ROWS * DIM);
    require(quantize(ROWS, DIM, x, packed, 0, 1));
    for (size_t i = 0; i < ROWS * DIM; i++) {
        const unsigned char *block = &packed[i / BLOCK * BLOCK_BYTES];
        uint16_t scale;
        memcpy(&scale, block, sizeof scale);
        const double got = of_f16(scale) * (signed char)block[2 + i % BLOCK];
        compare("x", i, got, (double)x[i], of_f16(scale) * 0.6); /* half a step, and the rounding of the scale */
    }
    return 0;
}
