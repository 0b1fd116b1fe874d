/* ALiBi: slopes and diagonals.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/check.h"
#include "../operands/score_bias.h"
#include "call.h"

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
    nrg_checked c;
    const nrg_alibi_slopes_args args = {slopes, heads, max_bias};
    const nrg_status status = nrg_check(&c, &nrg_call_alibi_slopes, (const void *const[]){&args}, 0, 1);
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

nrg_status nrg_alibi_diagonals(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals, size_t diagonals_stride,
                               int ith, int nth)
{
    nrg_checked c;
    const nrg_alibi_args args = {slopes, diagonals, diagonals_stride};
    const nrg_status status = nrg_check(&c, &nrg_call_alibi_diagonals, (const void *const[]){spec, &args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_score_bias_spec *const s = c.part[NRG_ALIBI_SPEC];
    const size_t heads = c.sizes.n[NRG_ALIBI_N_TABLE_HEADS], entries = c.sizes.n[NRG_ALIBI_N_DIAGONALS];
    const int64_t lowest = entries ? nrg_bias_lowest(s) : 0;
    diagonals_stride = c.laid.stride[NRG_ALIBI_DIAGONALS][0];
    for (size_t h = nrg_share(heads, ith, nth), end = nrg_share(heads, ith + 1, nth); h < end; h++) {
        float *of_head = (float *)((char *)diagonals + h * diagonals_stride);
        const double slope = (double)slopes[h];
        for (size_t e = 0; e < entries; e++) {
            const int32_t distance = (int32_t)(lowest + (int64_t)e), away = distance < 0 ? -distance : distance;
            /* the product is exact in double. -0 at distance 0: adding that changes nothing at all */
            const float bias = (float)(slope * -(double)away);
            of_head[e] = distance > 0 && s->causal ? -INFINITY : bias;
        }
    }
    return NRG_OK;
}

nrg_status nrg_alibi_diagonals_check(const nrg_score_bias_spec *spec, const float *slopes, float *diagonals,
                                     size_t diagonals_stride)
{
    const nrg_alibi_args args = {slopes, diagonals, diagonals_stride};
    return NRG_ASK(alibi_diagonals, spec, &args);
}
