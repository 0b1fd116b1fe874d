/* ALiBi: slopes and diagonals.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "score_bias_checks.h"

enum operand { SLOPES = 1, DIAGONALS = 2 };

/* 2^(-(high + low)) for high ≥ 0, to within 2^-51 of itself. Nothing but + - · / and an exact change of the exponent, so that it
 * is the same everywhere: e^t by its series, of which t^15/15! is below 2^-62 of the sum for |t| ≤ ln(2)/2. */
static double power_of_half(double high, double low)
{
    if (high > 200) /* not even a subnormal float; also where it is infinite */
        return 0;
    const int whole = (int)(high + 0.5);
    const double t = ((high - (double)whole) + low) * -0.69314718055994530942;
    double sum = 1;
    for (int k = 14; k > 0; k--)
        sum = 1 + sum * t / k;
    return ldexp(sum, -whole);
}

nrg_status nrg_alibi_slopes(size_t heads, double max_bias, float *slopes)
{
    if (!(max_bias >= 0 && max_bias <= DBL_MAX))
        return NRG_ERR_CONSTANT;
    if (!heads)
        return NRG_OK;
    if (!slopes)
        return NRG_ERR_NULL;
    extent operands[1];
    extents all = {0, operands};
    size_t stride = 0;
    nrg_status status = add_operand(&all, SLOPES, 0, slopes, NRG_F32, heads, 1, &stride);
    if (status != NRG_OK)
        return status;
    size_t whole = 1; /* the power of two */
    while (whole <= heads / 2)
        whole *= 2;
    for (size_t h = 0; h < heads; h++) {
        /* the exponent, times 2 · whole */
        const double times = (double)(h < whole ? 2 * (h + 1) : 2 * (h - whole) + 1), unit = 0.5 / (double)whole;
        const double high = max_bias * times, low = fma(max_bias, times, -high);
        slopes[h] = (float)power_of_half(high * unit, low * unit);
    }
    return NRG_OK;
}

nrg_status nrg_alibi_diagonals(const nrg_bias_spec *spec, const float *slopes, float *diagonals, size_t diagonals_stride, int ith,
                               int nth)
{
    nrg_bias_spec copy;
    bias_table t;
    const nrg_bias_spec *s = spec;
    nrg_status status = read_bias_spec(&s, &copy, &t, ith, nth);
    if (status != NRG_OK)
        return status;
    if (t.diagonals && (!slopes || !diagonals))
        return NRG_ERR_NULL;
    extent operands[2];
    extents all = {0, operands};
    size_t slopes_stride = 0;
    if ((status = add_operand(&all, SLOPES, ANY_OPERAND, slopes, NRG_F32, t.heads, t.heads ? 1 : 0, &slopes_stride)) != NRG_OK ||
        (status = add_operand(&all, DIAGONALS, 0, diagonals, NRG_F32, t.diagonals, t.heads, &diagonals_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    for (size_t h = share(t.heads, ith, nth), end = share(t.heads, ith + 1, nth); h < end; h++) {
        float *of_head = (float *)((char *)diagonals + h * diagonals_stride);
        const double slope = (double)slopes[h];
        for (size_t e = 0; e < t.diagonals; e++) {
            const int32_t distance = (int32_t)(t.lowest + (int64_t)e), away = distance < 0 ? -distance : distance;
            /* the product is exact in double. -0 at distance 0: adding that changes nothing at all */
            const float bias = (float)(slope * -(double)away);
            of_head[e] = distance > 0 && s->mask_future ? -INFINITY : bias;
        }
    }
    return NRG_OK;
}
