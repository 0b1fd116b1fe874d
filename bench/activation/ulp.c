/* The largest error of an activation over a dense sample of the floats from -80 to 80, against double arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ulp.h"

#include "../../tests/activation/activation_double.h"

/* An odd distance between the bits of inputs, so that the low ones take all values in every binade. */
enum { BLOCK = 4096, APART = 61 * 127 };

double bench_ulps(float value, double exact, double scale)
{
    const double ulp = fmax(ldexp(1, ilogb(scale == 0 ? 1 : scale) - 23), 0x1p-149);
    return fabs((double)value - exact) / ulp;
}

double bench_activation_ulp(const bench_case *c, const rival_loop *loop)
{
    static float in[BLOCK], out[BLOCK];
    double worst = 0;
    nrg_isa_set(c->isa);
    for (uint64_t bits = 0; bits >> 32 == 0;) {
        for (size_t i = 0; i < BLOCK; i++, bits += APART) {
            const uint32_t low = (uint32_t)bits;
            memcpy(&in[i], &low, sizeof low);
            in[i] = fabsf(in[i]) <= 80 ? in[i] : 0;
        }
        const rival_job job = {.dim = BLOCK, .x = in, .o = out};
        if (loop)
            loop->run(&job);
        else if (nrg_activation_forward(c->op->activation, NRG_F32, BLOCK, in, out, 0, 1) != NRG_OK)
            return (double)INFINITY;
        for (size_t i = 0; i < BLOCK; i++) {
            const double exact = activation_double(c->op->activation, (double)in[i]);
            const double error = bench_ulps(out[i], exact, exact);
            if (!(error <= worst))
                worst = error;
        }
    }
    return worst;
}
