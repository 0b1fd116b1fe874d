/* T5's buckets in exact arithmetic.
 *
 * For n ≥ E, f(n) ≥ E + k says that E·(M/E)^(k/L) ≤ n, with L = B - E; that is, M^k · E^(L-k) ≤ n^L, and both sides are integers.
 * They may be long, so they are computed as intervals: in double first, which nearly always suffices (all ends of the paper's
 * buckets: 6 µs where integers alone take 51), then with the words that lead, and with more of them where the intervals meet.
 * That ends:
 *
 * - k/L is reduced first. The two sides can then be equal only where M/E, in lowest terms, is the power L of a fraction; M is
 *   below 2^31, so L is below 31, and the sides have at most 31 words.
 * - Sides of up to ROOM_MOST words are exact in the end: L·log2(M) up to 2048, where a model may have some 7 · 16.
 * - Longer ones are different numbers, and would have to agree in more than 1900 bits not to be told apart. No such pair is known
 *   or likely to exist; it would count as equal.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "t5_rule.h"

enum { ROOM_LEAST = 4, ROOM_MOST = 64 };

/* The leading words of an integer, which is at least words · 2^(32 · left), and more where some are cut off. */
typedef struct number {
    uint32_t word[ROOM_MOST + 1]; /* least first, the last not 0; one more for a carry */
    int words, left;
    int cut; /* what was left out, here or in the factors, was not all 0 */
} number;

static number number_of(uint32_t value)
{
    number a = {.word = {value}, .words = 1};
    return a;
}

/* a·b with the `room` words that lead. What is lost is less than 2^(-32·(room-1)) of the product. */
static void multiply(number *a, const number *b, int room)
{
    uint32_t all[2 * ROOM_MOST] = {0};
    for (int i = 0; i < a->words; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->words; j++) {
            carry += (uint64_t)a->word[i] * b->word[j] + all[i + j];
            all[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        all[i + b->words] = (uint32_t)carry;
    }
    int words = a->words + b->words;
    while (words > 1 && !all[words - 1])
        words--;
    const int lost = words > room ? words - room : 0;
    a->cut |= b->cut;
    for (int i = 0; i < lost; i++)
        a->cut |= all[i] != 0;
    a->words = words - lost;
    a->left += b->left + lost;
    memcpy(a->word, all + lost, (size_t)a->words * sizeof all[0]);
}

/* base^exponent, by squares. */
static number power(int base, int exponent, int room)
{
    number result = number_of(1), square = number_of((uint32_t)base);
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            multiply(&result, &square, room);
        if (exponent > 1)
            multiply(&square, &square, room);
    }
    return result;
}

/* -1, 0 or 1. */
static int compare(const number *a, const number *b)
{
    const int length = a->words + a->left;
    if (length != b->words + b->left)
        return length < b->words + b->left ? -1 : 1;
    const int left = a->left < b->left ? a->left : b->left;
    for (int i = length - 1; i >= left; i--) {
        const uint32_t of_a = i < a->left ? 0 : a->word[i - a->left], of_b = i < b->left ? 0 : b->word[i - b->left];
        if (of_a != of_b)
            return of_a < of_b ? -1 : 1;
    }
    return 0;
}

/* Above all that the number may be, if it was made by fewer than `factors` multiplications, each of them counted as often as its
 * result went into this one. Together they lose less than factors · 2^(-32·(room-1)) of it, and it is below 2^(32·room) units of
 * its last word: twice as much as 2^32 · factors covers that the loss is of the larger, true number. */
static number bound(number a, int factors)
{
    if (!a.cut)
        return a;
    uint64_t carry = 2 * (uint64_t)factors;
    for (int i = 1; i < a.words && carry; i++) {
        carry += a.word[i];
        a.word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        a.word[a.words++] = (uint32_t)carry;
    return a;
}

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

static int common_divisor(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* n^L ≥ M^k · E^(L-k), for 0 ≤ k ≤ L. */
static int reaches(const t5_rule *rule, int n, int k)
{
    int whole = rule->side - rule->exact;
    const int divisor = common_divisor(whole, k);
    whole /= divisor;
    k /= divisor;
    const estimate of_exact = estimate_power(rule->exact, whole - k);
    const int known =
        compare_estimates(estimate_power(n, whole), estimate_product(estimate_power(rule->max_distance, k), of_exact), whole);
    if (known)
        return known > 0;
    for (int room = ROOM_LEAST;; room *= 4) {
        const number left = power(n, whole, room), exact = power(rule->exact, whole - k, room);
        number right = power(rule->max_distance, k, room);
        multiply(&right, &exact, room);
        const number left_most = bound(left, whole), right_most = bound(right, whole);
        if (compare(&left, &right_most) >= 0)
            return 1;
        if (compare(&right, &left_most) >= 0)
            return 0;
        if (room == ROOM_MOST)
            return 1;
    }
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
