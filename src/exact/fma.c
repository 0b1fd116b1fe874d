/* Fused multiply-adds for C libraries whose own are none (compiler.h): of doubles in integers, of floats in double.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <string.h>

#include "../compiler.h"

/* A finite number other than 0: mantissa · 2^exponent, the mantissa from 2^52 to below 2^53. */
typedef struct parts {
    uint64_t mantissa;
    int exponent, is_negative;
} parts;

typedef struct wide_integer {
    uint64_t high, low;
} wide_integer;

enum { MANTISSA_BITS = 52, LEAST_EXPONENT = -1074, SPECIAL = 0x7ff };

static uint64_t bits_of(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static int is_ordinary(double a) { return (bits_of(a) >> MANTISSA_BITS & SPECIAL) != SPECIAL && bits_of(a) << 1 != 0; }

static parts take_apart(double a)
{
    const uint64_t bits = bits_of(a), fraction = bits & (((uint64_t)1 << MANTISSA_BITS) - 1);
    const int field = (int)(bits >> MANTISSA_BITS & SPECIAL);
    parts p = {fraction, LEAST_EXPONENT, (int)(bits >> 63)};
    if (field) {
        p.mantissa |= (uint64_t)1 << MANTISSA_BITS;
        p.exponent += field - 1;
    }
    for (; !(p.mantissa >> MANTISSA_BITS); p.exponent--)
        p.mantissa <<= 1;
    return p;
}

static wide_integer multiply(uint64_t a, uint64_t b)
{
    const uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    const uint64_t low = a0 * b0, one = a1 * b0 + (low >> 32), other = a0 * b1 + (one & UINT32_MAX);
    return (wide_integer){a1 * b1 + (one >> 32) + (other >> 32), other << 32 | (low & UINT32_MAX)};
}

static wide_integer shift_left(wide_integer a, int by)
{
    if (by >= 64)
        return (wide_integer){a.low << (by - 64), 0};
    return by ? (wide_integer){a.high << by | a.low >> (64 - by), a.low << by} : a;
}

/* What is lost stays visible in the last bit, which is then 1. */
static wide_integer shift_right(wide_integer a, int by)
{
    if (by == 0)
        return a;
    if (by >= 128)
        return (wide_integer){0, (a.high | a.low) != 0};
    if (by >= 64) {
        const uint64_t lost = a.low | (by > 64 ? a.high << (128 - by) : 0);
        return (wide_integer){0, a.high >> (by - 64) | (lost != 0)};
    }
    return (wide_integer){a.high >> by, a.high << (64 - by) | a.low >> by | (a.low << (64 - by) != 0)};
}

static int is_less(wide_integer a, wide_integer b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

static wide_integer add(wide_integer a, wide_integer b)
{
    const uint64_t low = a.low + b.low;
    return (wide_integer){a.high + b.high + (low < a.low), low};
}

static wide_integer subtract(wide_integer a, wide_integer b)
{
    return (wide_integer){a.high - b.high - (a.low < b.low), a.low - b.low};
}

static int top_bit(wide_integer a)
{
    int bit = a.high ? 64 : 0;
    for (uint64_t word = a.high ? a.high : a.low; word >>= 1;)
        bit++;
    return bit;
}

/* a · 2^exponent, a not 0, to the nearest double, ties to even. */
static double rounded(wide_integer a, int exponent, int is_negative)
{
    int unit = top_bit(a) - MANTISSA_BITS + exponent;
    if (unit < LEAST_EXPONENT)
        unit = LEAST_EXPONENT;
    uint64_t bits;
    if (unit > 1023 - MANTISSA_BITS) {
        bits = (uint64_t)SPECIAL << MANTISSA_BITS;
    } else {
        /* two bits more than the result has, the second of which stands for all that follow */
        const int by = unit - 2 - exponent;
        const uint64_t more = by < 0 ? shift_left(a, -by).low : shift_right(a, by).low;
        const uint64_t mantissa = (more >> 2) + ((more & 3) == 3 || (more & 7) == 6);
        /* a mantissa of 53 bits adds 1 to the exponent's field, and one that has become 2^53 another */
        bits = ((uint64_t)(unit - LEAST_EXPONENT) << MANTISSA_BITS) + mantissa;
    }
    bits |= (uint64_t)is_negative << 63;
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

double nrg_fma(double a, double b, double c)
{
    /* exact, or an infinity or a NaN */
    if (!is_ordinary(a) || !is_ordinary(b))
        return a * b + c;
    if (!is_ordinary(c))
        return bits_of(c) << 1 ? c + c : a * b;
    const parts x = take_apart(a), y = take_apart(b), z = take_apart(c);
    /* The product has 105 or 106 bits; 20 zeros after it and two bits of room before it. The addend where it belongs beside that,
     * or, where it is far larger, the product beside the addend. Bits that fall off are far below those of the result then. */
    enum { ROOM = 20, LARGEST = 73 };
    wide_integer product = shift_left(multiply(x.mantissa, y.mantissa), ROOM), addend = {0, z.mantissa};
    int exponent = x.exponent + y.exponent - ROOM;
    const int by = z.exponent - exponent, product_is_negative = x.is_negative ^ y.is_negative;
    if (by < 0)
        addend = shift_right(addend, -by);
    else if (by <= LARGEST)
        addend = shift_left(addend, by);
    else {
        addend = shift_left(addend, LARGEST);
        product = shift_right(product, by - LARGEST);
        exponent += by - LARGEST;
    }
    if (product_is_negative == z.is_negative)
        return rounded(add(product, addend), exponent, z.is_negative);
    if (is_less(product, addend))
        return rounded(subtract(addend, product), exponent, z.is_negative);
    const wide_integer difference = subtract(product, addend);
    return difference.high | difference.low ? rounded(difference, exponent, product_is_negative) : 0.0;
}

/* The product of floats is exact in double. The sum is rounded to odd there: of the two doubles around it the one whose last bit
 * is 1, so that the second rounding is as if it were the only one (Boldo and Melquiond). */
float nrg_fmaf(float a, float b, float c)
{
    const double product = (double)a * (double)b, sum = product + (double)c, part = sum - product;
    const double error = (product - (sum - part)) + ((double)c - part);
    uint64_t bits = bits_of(sum);
    if ((error > 0 || error < 0) && !(bits & 1)) {
        bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
        double odd;
        memcpy(&odd, &bits, sizeof odd);
        return (float)odd;
    }
    return (float)sum;
}
