/* Logarithm, sine and cosine with 113 bits. Good to about 2^-105 of the value, sines and cosines of large angles to 2^-112 of
 * the angle.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_QUAD_ANGLE_H
#define NRG_TESTS_HARNESS_QUAD_ANGLE_H

#include "quad_activation.h"

/* ln a for a > 0 that a double can hold: a power of two, and 2·artanh((m - 1)/(m + 1)) of what is left. */
static inline quad quad_log(quad a)
{
    int exponent = 0;
    (void)frexp((double)a, &exponent);
    quad m = a, two = exponent > 0 ? (quad)0.5 : (quad)2;
    for (int left = exponent < 0 ? -exponent : exponent; left; left /= 2, two *= two)
        if (left % 2)
            m *= two;
    quad t = (m - 1) / (m + 1), square = t * t, sum = 0;
    for (int n = 80; n >= 0; n--)
        sum = sum * square + (quad)1 / (2 * n + 1);
    return (quad)exponent * QUAD_LN2 + 2 * t * sum;
}

typedef struct quad_turned {
    quad cosine, sine;
} quad_turned;

/* For angles below 2^50: less the nearest number of quarter turns, whose multiples are exact in three parts. */
static inline quad_turned quad_turn(quad angle)
{
    const double quarters = rint((double)angle / 0x1.921fb54442d18p+0);
    const quad n = quarters;
    quad r = angle - n * (quad)0x1.921fb54442d18p+0;
    r -= n * (quad)0x1.1a62633145c07p-54;
    r -= n * (quad)-0x1.f1976b7ed8fbcp-110;
    const quad square = r * r;
    quad cosine = 0, sine = 0;
    for (int k = 34; k > 0; k -= 2) {
        cosine = (cosine + 1) * -square / (k * (k - 1));
        sine = (sine + 1) * -square / (k * (k + 1));
    }
    cosine += 1;
    sine = r * (sine + 1);
    switch ((int)(quarters - 4 * floor(quarters / 4))) {
    case 0:
        return (quad_turned){cosine, sine};
    case 1:
        return (quad_turned){-sine, cosine};
    case 2:
        return (quad_turned){-cosine, -sine};
    default:
        return (quad_turned){sine, -cosine};
    }
}

/* One angle and another. */
static inline quad_turned quad_turn_on(quad_turned a, quad_turned b)
{
    return (quad_turned){a.cosine * b.cosine - a.sine * b.sine, a.sine * b.cosine + a.cosine * b.sine};
}

#endif
