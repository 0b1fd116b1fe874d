/* Numbers as the sum of two doubles, some 104 bits, and the functions that setting up positions needs. Nothing but additions,
 * multiplications, divisions and fma: the same bits wherever the library runs, which no libm promises.
 *
 * Once a model, so it is kept small: calls, not copies. Sums and products: Dekker, Numerische Mathematik 18 (1971); Knuth, The
 * Art of Computer Programming 2, 4.2.2.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_DOUBLE_DOUBLE_H
#define NRG_EXACT_DOUBLE_DOUBLE_H

#include <math.h>

#include "../compiler.h"

typedef struct wide {
    double high, low; /* |low| is at most half a last place of high */
} wide;

static inline wide wide_of(double a) { return (wide){a, 0}; }

/* a + b, exactly. */
static inline wide wide_sum(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (wide){sum, (a - (sum - part)) + (b - part)};
}

static __attribute__((noinline, unused)) wide wide_add(wide a, wide b)
{
    wide high = wide_sum(a.high, b.high), low = wide_sum(a.low, b.low);
    high = wide_sum(high.high, high.low + low.high);
    return wide_sum(high.high, high.low + low.low);
}

static inline wide wide_minus(wide a) { return (wide){-a.high, -a.low}; }

static __attribute__((noinline, unused)) wide wide_mul(wide a, wide b)
{
    double product = a.high * b.high;
    double rest = fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
    return wide_sum(product, rest);
}

static __attribute__((noinline, unused)) wide wide_div(wide a, wide b)
{
    double first = a.high / b.high;
    wide rest = wide_add(a, wide_minus(wide_mul(b, wide_of(first))));
    double second = rest.high / b.high;
    rest = wide_add(rest, wide_minus(wide_mul(b, wide_of(second))));
    wide sum = wide_sum(first, second);
    return wide_add(sum, wide_of(rest.high / b.high));
}

static const wide wide_two_pi = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};
static const wide wide_log_two_pi = {0x1.d67f1c864beb5p+0, -0x1.65b5a1b7ff5dfp-54};
static const wide wide_ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/* ln a, a > 0, by 2·artanh((m - 1)/(m + 1)) of the mantissa, to some 90 bits. */
static __attribute__((noinline, unused)) wide wide_log(double a)
{
    int exponent;
    double mantissa = frexp(a, &exponent);
    if (mantissa < 0x1.6a09e667f3bcdp-1) {
        mantissa *= 2;
        exponent--;
    }
    const wide s = wide_div(wide_sum(mantissa, -1), wide_sum(mantissa, 1)), square = wide_mul(s, s);
    wide sum = wide_of(0);
    for (int k = 41; k > 0; k -= 2) /* s² < 0.0295: 21 terms leave 2^-106 */
        sum = wide_add(wide_mul(sum, square), wide_div(wide_of(1), wide_of(k)));
    sum = wide_mul(wide_mul(wide_of(2), s), sum);
    return wide_add(sum, wide_mul(wide_of(exponent), wide_ln_2));
}

/* e^a, |a| < 700, to some 90 bits. */
static __attribute__((noinline, unused)) wide wide_exp(wide a)
{
    const double n = rint(a.high / wide_ln_2.high);
    const wide r = wide_add(a, wide_minus(wide_mul(wide_of(n), wide_ln_2)));
    wide sum = wide_of(1);
    for (int k = 25; k > 0; k--) /* |r| < 0.35: 0.35^26/26! is below 2^-126 */
        sum = wide_add(wide_of(1), wide_mul(sum, wide_div(r, wide_of(k))));
    return (wide){ldexp(sum.high, (int)n), ldexp(sum.low, (int)n)};
}

#endif
