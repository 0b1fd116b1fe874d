/* Exact sums of doubles, in integers: a number is the sum of its digits times powers of 2^32, and a digit has 64 bits, so that
 * many numbers can be added before a carry has to go anywhere. Whatever order they are added in, the integers are the same.
 *
 * Sums of floats are multiples of 2^-149, sums of products of two multiples of 2^-298, rounded to double or not; the digits reach
 * from below that to 2^33 times the largest such term.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_sums.h"

#include <string.h>

enum {
    COUNT = 0,
    POISON = 1,
    T_FIRST = 2,
    T_DIGITS = 10,
    T_EXPONENT = -160, /* of the lowest digit's unit */
    Q_FIRST = T_FIRST + T_DIGITS,
    Q_DIGITS = 19,
    Q_EXPONENT = -320
};
_Static_assert(Q_FIRST + Q_DIGITS <= NRG_CHANNEL_NORM_SUMS_WORDS, "a record holds both numbers");

/* Adds a finite value, a multiple of 2^exponent. */
static void deposit(int64_t *digits, int count, int exponent, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (biased == 0) /* 0: a subnormal double is no multiple of 2^-320 */
        return;
    mantissa |= (uint64_t)1 << 52;
    int place = biased - 1075 - exponent;
    if (place < 0) {
        mantissa >>= -place; /* zeros */
        place = 0;
    }
    const int shift = place % 32;
    const uint64_t low = (mantissa & 0xffffffffu) << shift, high = (mantissa >> 32) << shift;
    const int64_t sign = bits >> 63 ? -1 : 1;
    const int64_t part[3] = {(int64_t)(low & 0xffffffffu), (int64_t)((low >> 32) + (high & 0xffffffffu)), (int64_t)(high >> 32)};
    for (int i = 0, digit = place / 32; i < 3; i++, digit++) {
        if (digit < count)
            digits[digit] += sign * part[i];
        else if (part[i]) /* the highest digit has room above its 32 bits */
            digits[count - 1] += sign * part[i] * ((int64_t)1 << 32);
    }
}

static void deposit_t(int64_t *record, double value) { deposit(record + T_FIRST, T_DIGITS, T_EXPONENT, value); }
static void deposit_q(int64_t *record, double value) { deposit(record + Q_FIRST, Q_DIGITS, Q_EXPONENT, value); }

void nrg_sums_clear(int64_t *record) { memset(record, 0, NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *record); }

void nrg_sums_segment(int64_t *record, double count, double t, double q)
{
    record[COUNT] += (int64_t)count;
    if (!(fabs(q) <= DBL_MAX && fabs(t) <= DBL_MAX)) {
        record[POISON]++;
        return;
    }
    deposit_t(record, t);
    deposit_q(record, q);
}

void nrg_sums_segment_around(int64_t *record, double count, double a, double u, double v)
{
    record[COUNT] += (int64_t)count;
    if (!(v <= DBL_MAX && fabs(a) <= DBL_MAX)) {
        record[POISON]++;
        return;
    }
    double t[NRG_AROUND_T], q[NRG_AROUND_Q];
    nrg_around_terms(count, a, u, v, t, q);
    for (int i = 0; i < NRG_AROUND_T; i++)
        deposit_t(record, t[i]);
    for (int i = 0; i < NRG_AROUND_Q; i++)
        deposit_q(record, q[i]);
}

/* Every digit but the last into 0 … 2^32 - 1. */
static void carry(int64_t *digits, int count)
{
    int64_t over = 0;
    for (int i = 0; i < count - 1; i++) {
        const int64_t digit = digits[i] + over, low = digit & 0xffffffff;
        over = (digit - low) / ((int64_t)1 << 32);
        digits[i] = low;
    }
    digits[count - 1] += over;
}

void nrg_sums_carry(int64_t *record)
{
    carry(record + T_FIRST, T_DIGITS);
    carry(record + Q_FIRST, Q_DIGITS);
}

void nrg_sums_put(int64_t *record, const nrg_set_sums *sums)
{
    nrg_sums_clear(record);
    record[COUNT] = (int64_t)sums->count;
    deposit_t(record, sums->t);
    deposit_t(record, sums->t_low);
    deposit_q(record, sums->q);
    deposit_q(record, sums->q_low);
    nrg_sums_carry(record);
}

/* The double nearest to a number, ties to even; the number is left without it. */
static double take_double(int64_t *digits, int count, int exponent)
{
    int64_t part[Q_DIGITS > T_DIGITS ? Q_DIGITS : T_DIGITS];
    carry(digits, count);
    const int negative = digits[count - 1] < 0;
    for (int i = 0; i < count; i++)
        part[i] = negative ? -digits[i] : digits[i];
    carry(part, count);
    int top = count - 1;
    while (top >= 0 && part[top] == 0)
        top--;
    if (top < 0)
        return 0;
    int bit = 63; /* the highest one of the highest digit, which may have more than 32 bits */
    while (!(part[top] >> bit & 1))
        bit--;
    /* the 64 bits from there on, and whether there are others */
    uint64_t bits = (uint64_t)part[top] << (63 - bit), rest = 0;
    int room = 63 - bit;
    for (int i = top - 1; i >= 0; i--) {
        const uint64_t digit = (uint64_t)part[i];
        if (room >= 32)
            bits |= digit << (room - 32);
        else {
            bits |= digit >> (32 - room);
            rest |= digit << room & 0xffffffffu;
        }
        room = room >= 32 ? room - 32 : 0;
    }
    uint64_t mantissa = bits >> 11;
    rest |= bits & 0x3ff;
    if ((bits >> 10 & 1) && (rest || (mantissa & 1)))
        mantissa++;
    const int unit = 32 * top + bit - 52 + exponent;
    const double value = ldexp(negative ? -(double)mantissa : (double)mantissa, unit);
    deposit(digits, count, exponent, -value);
    return value;
}

nrg_set_sums nrg_sums_value(const int64_t *record)
{
    int64_t copy[NRG_CHANNEL_NORM_SUMS_WORDS];
    memcpy(copy, record, sizeof copy);
    nrg_set_sums sums = {(double)record[COUNT], (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (record[POISON])
        return sums;
    sums.t = take_double(copy + T_FIRST, T_DIGITS, T_EXPONENT);
    sums.t_low = take_double(copy + T_FIRST, T_DIGITS, T_EXPONENT);
    sums.q = take_double(copy + Q_FIRST, Q_DIGITS, Q_EXPONENT);
    sums.q_low = take_double(copy + Q_FIRST, Q_DIGITS, Q_EXPONENT);
    return sums;
}
