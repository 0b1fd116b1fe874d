/* The largest error of an activation, against double arithmetic: of f32 over a dense sample of the numbers from -80 to 80, of 16
 * bits over all of these.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../family.h"

#include "../../src/exact/element.h"
#include "../../tests/activation/activation_double.h"

/* An odd distance between the bits of inputs, so that the low ones take all values in every binade. */
enum { BLOCK = 4096, APART = 61 * 127 };

double bench_ulps(float value, double exact, double scale, nrg_dtype dtype)
{
    static const struct {
        int digits, least; /* of a significand, the hidden one included; exponent of the smallest number */
        double most;
    } format[] = {[NRG_F32] = {24, -149, 0x1.fffffep127}, [NRG_F16] = {11, -24, 65504}, [NRG_BF16] = {8, -133, 0x1.fep127}};
    if (fabs(exact) > format[dtype].most && fabs((double)value) >= format[dtype].most && (value < 0) == (exact < 0))
        return 0;
    const int exponent = ilogb(scale == 0 ? 1 : scale) - format[dtype].digits + 1;
    const double error = fabs((double)value - exact) / ldexp(1, exponent > format[dtype].least ? exponent : format[dtype].least);
    return error < BENCH_NO_NUMBER ? error : BENCH_NO_NUMBER;
}

/* The next inputs, as many as there are: numbers, and 0 for all else. */
static size_t inputs(char *in, nrg_dtype dtype, uint64_t *bits)
{
    size_t n = 0;
    for (; n < BLOCK && *bits >> (dtype == NRG_F32 ? 32 : 16) == 0; n++, *bits += dtype == NRG_F32 ? APART : 1) {
        const uint32_t low = (uint32_t)*bits;
        const uint16_t half = (uint16_t)*bits;
        memcpy(in + n * element_size(dtype), dtype == NRG_F32 ? (const void *)&low : &half, element_size(dtype));
        if (!(fabsf(load(in, n, dtype)) <= 80))
            store(in, n, dtype, 0);
    }
    return n;
}

double bench_activation_ulp(const bench_case *c, const rival_loop *loop)
{
    static _Alignas(64) char in[BLOCK * sizeof(float)], out[BLOCK * sizeof(float)];
    double worst = 0;
    size_t n;
    bench_require(nrg_isa_set(c->isa));
    for (uint64_t bits = 0; (n = inputs(in, c->dtype, &bits)) != 0;) {
        const rival_job job = {.dim = n, .x = in, .o = out};
        if (loop)
            loop->run(&job);
        else if (nrg_activation_forward(c->op->activation, c->dtype, n, in, out, 0, 1) != NRG_OK)
            return (double)INFINITY;
        for (size_t i = 0; i < n; i++) {
            const double exact = activation_double(c->op->activation, (double)load(in, i, c->dtype));
            const double error = bench_ulps(load(out, i, c->dtype), exact, exact, c->dtype);
            worst = error > worst ? error : worst;
        }
    }
    return worst;
}
