/* T5's buckets, decided by integers.
 *
 * For n ≥ E, f(n) ≥ E + k says that E·(M/E)^(k/L) ≤ n, with L = B - E; that is, M^k · E^(L-k) ≤ n^L, and both sides are integers.
 * They may be long, so only the bits that lead are computed: in double first, which nearly always suffices (all ends of the
 * paper's buckets: 3 µs, where the following alone takes 21), then 256 of them, rounded down. That is enough:
 *
 * - A product loses less than 2^-255 of itself, and L - 1 of them make a side, each counted as often as it goes into it. So a
 *   side is less than L · 2^-255 too small, which is less than 2L + 1 units of its last bit. The left side counts as that much
 *   larger than it was computed; sides that are equal are found equal, then.
 * - Different integers below 2^S differ by 2^-S of themselves at least, and must differ by L · 2^-252. So up to
 *   S = L · log2(M) = 252 - log2(L) every answer is right: for 32 buckets in both directions, where L is 8, with any M.
 * - Longer sides would have to agree in 252 - log2(L) bits to be taken for equal. No such pair is known or likely to exist.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../compiler.h"
#include "t5_rule.h"

/* A number of [1/2, 1) · 2^exponent, to within its rounding errors: those of fewer than f multiplications, with their weights as
 * below, are less than f · 1.01 · 2^-53 of it. */
typedef struct estimate {
    double fraction;
    int64_t exponent;
} estimate;

static estimate estimate_product(estimate a, estimate b)
{
    estimate p = {a.fraction * b.fraction, a.exponent + b.exponent};
    if (p.fraction < 0.5) {
        p.fraction *= 2;
        p.exponent--;
    }
    return p;
}

static estimate estimate_power(int base, int exponent)
{
    int bits;
    const double fraction = frexp((double)base, &bits);
    estimate result = {0.5, 1}, square = {fraction, bits};
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = estimate_product(result, square);
        square = estimate_product(square, square);
    }
    return result;
}

/* 1 and -1: a is larger, or smaller, whatever `factors` multiplications have lost on both sides. 0: nothing is known. */
static int compare_estimates(estimate a, estimate b, int factors)
{
    const double margin = 1 + (double)factors * 0x1p-50;
    const int64_t apart = a.exponent - b.exponent;
    if (apart > 2 || apart < -2)
        return apart > 0 ? 1 : -1;
    for (int64_t i = 0; i < apart; i++)
        a.fraction *= 2;
    for (int64_t i = 0; i < -apart; i++)
        b.fraction *= 2;
    return a.fraction > b.fraction * margin ? 1 : b.fraction > a.fraction * margin ? -1 : 0;
}

/* The bits are the same for words of any size. */
#ifdef __SIZEOF_INT128__
typedef uint64_t word;
__extension__ typedef unsigned __int128 two_words;
#else
typedef uint32_t word;
typedef uint64_t two_words;
#endif
enum { WORD_BITS = 8 * sizeof(word), WORDS = 256 / WORD_BITS };

/* The same with 256 bits, the least word first, and rounded down. */
typedef struct number {
    word fraction[WORDS];
    int64_t exponent;
} number;

static number number_of(int value)
{
    number a = {{0}, WORD_BITS};
    word first = (word)value;
    for (; !(first >> (WORD_BITS - 1)); a.exponent--)
        first <<= 1;
    a.fraction[WORDS - 1] = first;
    return a;
}

static number product(const number *a, const number *b)
{
    word all[2 * WORDS] = {0};
    for (int i = 0; i < WORDS; i++) {
        word carry = 0;
        for (int j = 0; j < WORDS; j++) {
            const two_words sum = (two_words)a->fraction[i] * b->fraction[j] + all[i + j] + carry;
            all[i + j] = (word)sum;
            carry = (word)(sum >> WORD_BITS);
        }
        all[i + WORDS] = carry;
    }
    const int shift = !(all[2 * WORDS - 1] >> (WORD_BITS - 1));
    number p = {{0}, a->exponent + b->exponent - shift};
    for (int i = 0; i < WORDS; i++)
        p.fraction[i] = shift ? all[WORDS + i] << 1 | all[WORDS + i - 1] >> (WORD_BITS - 1) : all[WORDS + i];
    return p;
}

static number power(int base, int exponent)
{
    number result = number_of(1), square = number_of(base);
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = product(&result, &square);
        square = product(&square, &square);
    }
    return result;
}

/* So many units of the last bit more; a little more than that where it passes a power of two. */
static void add_units(number *a, word units)
{
    for (int i = 0; i < WORDS && units; i++) {
        a->fraction[i] += units;
        units = a->fraction[i] < units;
    }
    if (units) {
        a->fraction[WORDS - 1] = (word)1 << (WORD_BITS - 1);
        a->exponent++;
    }
}

static int is_less(const number *a, const number *b)
{
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent;
    int i = WORDS - 1;
    while (i && a->fraction[i] == b->fraction[i])
        i--;
    return a->fraction[i] < b->fraction[i];
}

/* n^L ≥ M^k · E^(L-k), for 0 ≤ k ≤ L. */
static int reaches(const t5_rule *rule, int n, int k)
{
    const int whole = rule->side - rule->exact;
    const estimate right_about = estimate_product(estimate_power(rule->max_distance, k), estimate_power(rule->exact, whole - k));
    const int known = compare_estimates(estimate_power(n, whole), right_about, whole);
    if (known)
        return known > 0;
    const number of_most = power(rule->max_distance, k), of_exact = power(rule->exact, whole - k);
    const number right = product(&of_most, &of_exact);
    number left = power(n, whole);
    add_units(&left, 2 * (word)whole + 1);
    return !is_less(&left, &right);
}

int nrg_t5_rule_make(t5_rule *rule, int bidirectional, int buckets, int max_distance)
{
    rule->side = bidirectional ? buckets / 2 : buckets;
    rule->exact = rule->side / 2;
    rule->max_distance = max_distance;
    return rule->side >= 2 && max_distance > rule->exact;
}

int nrg_t5_rule_bucket(const t5_rule *rule, int64_t n)
{
    if (n < rule->exact)
        return (int)n;
    if (n >= rule->max_distance)
        return rule->side - 1;
    int low = 0, high = rule->side - rule->exact; /* n reaches low, and not high */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (reaches(rule, (int)n, middle))
            low = middle;
        else
            high = middle;
    }
    return rule->exact + low;
}

int64_t nrg_t5_rule_first(const t5_rule *rule, int bucket)
{
    if (bucket >= rule->side)
        return INT64_MAX;
    if (bucket <= rule->exact)
        return bucket;
    int low = rule->exact, high = rule->max_distance; /* high reaches it, and low does not */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (reaches(rule, middle, bucket - rule->exact))
            high = middle;
        else
            low = middle;
    }
    return high;
}
