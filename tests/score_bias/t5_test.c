/* T5's buckets against the paper's rule in integers of any length, written here once more; its diagonals; and its gradient.
 *
 * --report prints how often the rule in f32, as it is usually written, gives another bucket.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad.h"
#include "../harness/support.h"

/* ---- the rule ---- */

typedef struct rule {
    int bidirectional, buckets, max_distance;
} rule;

static int side_of(rule r) { return r.bidirectional ? r.buckets / 2 : r.buckets; }

/* An integer of so many words, the least first. */
enum { WORDS = 320, SIDE_MOST = 600 };
typedef struct number {
    size_t words;
    uint32_t word[WORDS];
} number;

static void times(number *a, uint32_t factor)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < a->words; i++) {
        carry += (uint64_t)a->word[i] * factor;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        ck_assert_uint_lt(a->words, WORDS);
        a->word[a->words++] = (uint32_t)carry;
    }
}

/* a^i · b^j */
static number product_of_powers(uint32_t a, int i, uint32_t b, int j)
{
    number result = {.words = 1, .word = {1}};
    for (; i > 0; i--)
        times(&result, a);
    for (; j > 0; j--)
        times(&result, b);
    return result;
}

static int at_least(const number *a, const number *b)
{
    if (a->words != b->words)
        return a->words > b->words;
    for (size_t i = a->words; i-- > 0;)
        if (a->word[i] != b->word[i])
            return a->word[i] > b->word[i];
    return 1;
}

/* first[k], for 0 ≤ k < B - E: the smallest n for which log(n/E)/log(M/E)·(B-E) ≥ k, which says that n^(B-E) ≥ M^k·E^(B-E-k). */
static void find_thresholds(rule r, int64_t first[SIDE_MOST])
{
    const int side = side_of(r), exact = side / 2, steps = side - exact;
    ck_assert_int_lt(steps, SIDE_MOST);
    for (int k = 0; k < steps; k++) {
        const number bound = product_of_powers((uint32_t)r.max_distance, k, (uint32_t)exact, steps - k);
        int64_t below = exact - 1, reaches = r.max_distance;
        while (reaches - below > 1) {
            const int64_t middle = below + (reaches - below) / 2;
            const number power = product_of_powers((uint32_t)middle, steps, 1, 0);
            if (at_least(&power, &bound))
                reaches = middle;
            else
                below = middle;
        }
        first[k] = reaches;
    }
}

/* As the paper has it. */
static int bucket_of(rule r, const int64_t *first, int64_t distance)
{
    const int side = side_of(r), exact = side / 2;
    int64_t n = distance < 0 ? -distance : distance;
    int offset = 0;
    if (r.bidirectional)
        offset = distance > 0 ? side : 0;
    else if (distance > 0)
        n = 0;
    if (n < exact)
        return offset + (int)n;
    int k = 0;
    while (k + 1 < side - exact && first[k + 1] <= n)
        k++;
    return offset + exact + k;
}

static const rule rules[] = {
    {1, 32, 128}, /* the paper's encoder */
    {0, 32, 128}, /* and its decoder */
    {1, 64, 256},
    {0, 64, 1000},
    {1, 33, 128}, /* the last bucket is never used */
    {0, 31, 100},
    {1, 20, 77},
    {0, 7, 48},      /* 3·2^k: both sides are equal at 6, 12 and 24 */
    {1, 16, 2500},   /* 4·5^k */
    {0, 32, 81},     /* 16·(3/2)^k: 24, 36 and 54 */
    {0, 16, 524288}, /* 8·4^k */
    {0, 30, 98415},  /* 15·3^8, which is no power of 15 */
    {0, 2, 2},       /* the smallest */
    {1, 4, 2},
    {0, 3, 2},
    {1, 7, 3},
    {0, 400, 201}, /* most buckets have no distance at all */
    {0, 100, 100000},
    {1, 256, 60000},
    {0, 300, 99999}, /* longer integers than the library holds whole */
    {1, 32, INT_MAX},
    /* n^L is less than 2^-50 of itself below the bound at 1440228, above at 1879574 and 130729972, below at 130026838; integers
     * of 62 and 189 bits, which no double tells apart */
    {0, 5, 1222170726},
    {0, 5, 1822108128},
    {0, 14, 2129387447},
    {0, 14, 2116031662},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static void expect_bucket(rule r, const int64_t *first, int64_t distance)
{
    const int expected = bucket_of(r, first, distance);
    const int got = nrg_t5_bucket(distance, r.bidirectional, r.buckets, r.max_distance);
    if (got != expected)
        ck_abort_msg("%s, %d buckets up to %d: distance %lld is in bucket %d and not %d",
                     r.bidirectional ? "bidirectional" : "causal", r.buckets, r.max_distance, (long long)distance, got, expected);
}

START_TEST(every_distance)
{
    const rule r = rules[_i];
    static int64_t first[SIDE_MOST];
    find_thresholds(r, first);
    const int64_t far = 100000, step = test_small() ? 37 : 1;
    for (int64_t d = -far; d <= far; d += d > -600 && d < 600 ? 1 : step)
        expect_bucket(r, first, d);
    /* and about every threshold, however far */
    const int steps = side_of(r) - side_of(r) / 2;
    for (int k = 0; k < steps; k++)
        for (int64_t n = first[k] - 1; n <= first[k] + 1; n++) {
            expect_bucket(r, first, -n);
            expect_bucket(r, first, n);
        }
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -INT_MAX - 1LL, -INT_MAX, INT_MAX, INT_MAX + 1LL, INT64_MAX};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const int64_t d = ends[i] == INT64_MIN ? INT64_MIN + 1 : ends[i];
        ck_assert_int_eq(nrg_t5_bucket(ends[i], r.bidirectional, r.buckets, r.max_distance), bucket_of(r, first, d));
    }
}
END_TEST

/* Where both sides of the comparison are equal, by hand. */
START_TEST(ties)
{
    static const int powers[][2] = {{15, 9}, {16, 10}, {31, 11}, {32, 12}, {63, 13}, {64, 14}, {127, 15}, {128, 15}};
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        ck_assert_int_eq(nrg_t5_bucket(-powers[i][0], 1, 32, 128), powers[i][1]);
        ck_assert_int_eq(nrg_t5_bucket(powers[i][0], 1, 32, 128), 16 + powers[i][1]);
    }
    /* and as integers of so many words that their ends are cut off at first: E = 8199 and M = E·2^9, of 9·911 buckets. At 2^7
     * the side that is larger is cut by more. E = 119 and M = E·2^24, of 24·5 buckets */
    static const struct {
        int buckets, exact, max_distance, times, step;
    } long_ones[] = {{16398, 8199, 4197888, 9, 911}, {16415, 8207, 4201984, 9, 912}, {239, 119, 1996488704, 24, 5}};
    for (size_t n = 0; n < sizeof long_ones / sizeof long_ones[0]; n++)
        for (int i = 1; i < long_ones[n].times; i++) {
            const int64_t tie = (int64_t)long_ones[n].exact << i;
            const int bucket = long_ones[n].exact + i * long_ones[n].step;
            ck_assert_int_eq(nrg_t5_bucket(-tie, 0, long_ones[n].buckets, long_ones[n].max_distance), bucket);
            ck_assert_int_lt(nrg_t5_bucket(-tie + 1, 0, long_ones[n].buckets, long_ones[n].max_distance), bucket);
        }
    static const int thirds[][2] = {{23, 19}, {24, 20}, {35, 23}, {36, 24}, {53, 27}, {54, 28}};
    for (size_t i = 0; i < sizeof thirds / sizeof thirds[0]; i++)
        ck_assert_int_eq(nrg_t5_bucket(-thirds[i][0], 0, 32, 81), thirds[i][1]);
    /* and where they nearly are, as exact integers say: the first distance of a bucket */
    static const int near[][4] = {{5, 1222170726, 1440229, 4},
                                  {5, 1822108128, 1879574, 4},
                                  {14, 2129387447, 130729972, 13},
                                  {14, 2116031662, 130026839, 13}};
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        ck_assert_int_eq(nrg_t5_bucket(-near[i][2], 0, near[i][0], near[i][1]), near[i][3]);
        ck_assert_int_eq(nrg_t5_bucket(-near[i][2] + 1, 0, near[i][0], near[i][1]), near[i][3] - 1);
    }
    ck_assert_int_eq(nrg_t5_bucket(0, 1, 32, 128), 0);
    ck_assert_int_eq(nrg_t5_bucket(1, 1, 32, 128), 17);
    ck_assert_int_eq(nrg_t5_bucket(1, 0, 32, 128), 0);
}
END_TEST

START_TEST(refused_rules)
{
    static const rule bad[] = {{1, 3, 100}, {0, 1, 100}, {0, 0, 100},       {1, -8, 100}, {0, INT_MIN, 100},
                               {1, 32, 8},  {0, 32, 16}, {0, 32, 0},        {0, 32, -1},  {1, 32, INT_MIN},
                               {1, 4, 1},   {0, 2, 1},   {0, INT_MAX, 1000}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(nrg_t5_bucket(5, bad[i].bidirectional, bad[i].buckets, bad[i].max_distance), -1);
    ck_assert_int_eq(nrg_t5_bucket(-9, 1, 32, 9), 15);
    ck_assert_int_eq(nrg_t5_bucket(-17, 0, 32, 17), 31);
    /* as many buckets as an int counts: B = INT_MAX, E = 2^30 - 1 */
    ck_assert_int_eq(nrg_t5_bucket(-((1 << 30) - 2), 0, INT_MAX, INT_MAX), (1 << 30) - 2);
    ck_assert_int_eq(nrg_t5_bucket(-((1 << 30) - 1), 0, INT_MAX, INT_MAX), (1 << 30) - 1);
    ck_assert_int_eq(nrg_t5_bucket(INT64_MIN, 0, INT_MAX, INT_MAX), INT_MAX - 1);
}
END_TEST

/* ---- diagonals, and back ---- */

enum { HEADS = 5, BUCKETS_MOST = 512, DIAGONALS_MOST = 900 };

typedef struct table_case {
    size_t queries, keys;
    int64_t offset;
    int mask;
} table_case;

static const table_case tables[] = {
    {1, 1, 0, 0},    {1, 300, 299, 0},   {300, 1, 0, 0},       {200, 200, 0, 0},   {200, 200, 0, 1},   {64, 500, 436, 1},
    {30, 500, 0, 1}, {500, 30, 0, 0},    {100, 100, 90, 1},    {100, 100, -90, 0}, {100, 100, -90, 1}, {100, 100, -300, 1},
    {1, 7, 0, 1},    {3, 3, 1 << 20, 0}, {9, 9, 536870904, 1}, {0, 7, 0, 0},
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static nrg_score_bias_spec spec_of(rule r, const table_case *t)
{
    nrg_score_bias_spec spec = nrg_score_bias_spec_t5(HEADS, t->queries, t->keys);
    spec.first_position = t->offset;
    spec.causal = t->mask;
    spec.bidirectional = r.bidirectional;
    spec.buckets = r.buckets;
    spec.max_distance = r.max_distance;
    return spec;
}

/* Entry e of the table: its distance, by the definition in the header. */
static int64_t distance_of(const table_case *t, size_t e) { return (int64_t)e - (int64_t)(t->queries - 1) - t->offset; }

/* Values that all dtypes have, so that each bucket and head has its own. */
static float number_of(int bucket, size_t h) { return (float)(bucket % 64 * 8 + (int)h) / 4 * (float)(bucket / 64 + 1); }

START_TEST(table_of_diagonals)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    enum { PAD = 3 };
    static unsigned char numbers[BUCKETS_MOST * (HEADS + PAD) * 4];
    static float got[HEADS * (DIAGONALS_MOST + PAD)];
    const rule r = rules[_i];
    if (r.buckets > BUCKETS_MOST)
        return;
    for (size_t n = 0; n < 2 * TABLES; n++) {
        const table_case *t = &tables[n / 2];
        const size_t pad = n % 2 ? PAD : 0, diagonals = nrg_score_bias_diagonals(t->queries, t->keys);
        const nrg_dtype dtype = dtypes[(n + (size_t)_i) % 3];
        const nrg_score_bias_spec spec = spec_of(r, t);
        for (int b = 0; b < r.buckets; b++)
            for (size_t h = 0; h < HEADS; h++)
                element_set(numbers, (size_t)b * (HEADS + pad) + h, dtype, number_of(b, h));
        memset(got, 0xa5, sizeof got);
        float canary;
        memcpy(&canary, got, sizeof canary);
        const size_t table_stride = pad ? (HEADS + pad) * nrg_dtype_size(dtype) : 0;
        const size_t stride = pad ? (diagonals + pad) * sizeof(float) : 0;
        for (int ith = 0; ith < 3; ith++)
            ck_assert_int_eq(nrg_t5_diagonals_forward(&spec, dtype, numbers, table_stride, got, stride, ith, 3), NRG_OK);
        for (size_t h = 0; h < HEADS; h++)
            for (size_t e = 0; e < diagonals + pad; e++) {
                const int64_t d = distance_of(t, e);
                const int bucket = nrg_t5_bucket(d, r.bidirectional, r.buckets, r.max_distance);
                float expected = element_round(number_of(bucket, h), dtype);
                expected = e >= diagonals ? canary : d > 0 && t->mask ? -INFINITY : expected;
                if (got[h * (diagonals + pad) + e] != expected)
                    ck_abort_msg("%d buckets up to %d, table %zu, head %zu, distance %lld: %g and not %g", r.buckets,
                                 r.max_distance, n / 2, h, (long long)d, (double)got[h * (diagonals + pad) + e],
                                 (double)expected);
            }
    }
}
END_TEST

/* Error of a result that should be one rounding of a sum in double: half an ulp, and what the sum of n numbers lost. */
static double ulps_off(float got, quad exact)
{
    return (double)(quad_abs((quad)got - exact) / (quad)element_ulp((double)exact, NRG_F32));
}

START_TEST(gradient)
{
    enum { PAD = 3 };
    static double sums[HEADS * (DIAGONALS_MOST + PAD)];
    static float got[BUCKETS_MOST * (HEADS + PAD)], before[BUCKETS_MOST * (HEADS + PAD)];
    static quad exact[BUCKETS_MOST][HEADS], size[BUCKETS_MOST][HEADS];
    const rule r = rules[_i];
    if (r.buckets > BUCKETS_MOST)
        return;
    uint64_t state = (uint64_t)_i;
    for (size_t n = 0; n < 4 * TABLES; n++) {
        const table_case *t = &tables[n / 4];
        const size_t pad = n % 2 ? PAD : 0, diagonals = nrg_score_bias_diagonals(t->queries, t->keys);
        const int accumulate = n / 2 % 2;
        const nrg_score_bias_spec spec = spec_of(r, t);
        for (size_t i = 0; i < HEADS * (diagonals + pad); i++)
            sums[i] = ldexp((double)test_mix(state++), (int)test_draw(&state, 20) - 70) * (test_draw(&state, 2) ? 1 : -1);
        for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
            before[i] = got[i] = (float)test_draw(&state, 1 << 20) / 4096 - 128;
        memset(exact, 0, sizeof exact);
        memset(size, 0, sizeof size);
        for (size_t e = 0; e < diagonals; e++) {
            const int64_t d = distance_of(t, e);
            const int bucket = nrg_t5_bucket(d, r.bidirectional, r.buckets, r.max_distance);
            for (size_t h = 0; h < HEADS && !(d > 0 && t->mask); h++) {
                exact[bucket][h] += (quad)sums[h * (diagonals + pad) + e];
                size[bucket][h] += quad_abs((quad)sums[h * (diagonals + pad) + e]);
            }
        }
        const size_t stride = pad ? (diagonals + pad) * sizeof(double) : 0;
        const size_t table_stride = pad ? (HEADS + pad) * sizeof(float) : 0;
        for (int ith = 0; ith < 2; ith++)
            ck_assert_int_eq(nrg_t5_diagonals_backward(&spec, sums, stride, got, table_stride, accumulate, ith, 2), NRG_OK);
        for (size_t b = 0; b < BUCKETS_MOST; b++)
            for (size_t h = 0; h < HEADS + pad; h++) {
                const size_t at = b * (HEADS + pad) + h;
                if (b >= (size_t)r.buckets || h >= HEADS) {
                    if (got[at] != before[at])
                        ck_abort_msg("table %zu: wrote beside the gradient", n / 4);
                    continue;
                }
                const quad truth = exact[b][h] + (accumulate ? (quad)before[at] : 0);
                const quad lost = (size[b][h] + quad_abs((quad)before[at])) * (quad)(0x1p-53 * (double)(diagonals + 1));
                const double ulp = element_ulp((double)truth, NRG_F32), off = ulps_off(got[at], truth);
                if (!(off <= 0.5 + (double)lost / ulp))
                    ck_abort_msg("table %zu, bucket %zu, head %zu: %g ulp", n / 4, b, h, off);
            }
    }
}
END_TEST

/* ---- the usual way ---- */

/* The rule in f32, as most implementations have it. */
static int usual_bucket(rule r, int n)
{
    const int side = side_of(r), exact = side / 2;
    if (n < exact)
        return n;
    const float log_ratio = (float)log((double)r.max_distance / exact);
    const int bucket = exact + (int)(logf((float)n / (float)exact) / log_ratio * (float)(side - exact));
    return bucket < side ? bucket : side - 1;
}

static void report(void)
{
    for (size_t i = 0; i < RULES; i++) {
        const rule r = rules[i];
        int differ = 0, last = 0;
        for (int n = 0; n < 100000; n++)
            if (usual_bucket(r, n) != nrg_t5_bucket(-n, r.bidirectional, r.buckets, r.max_distance)) {
                differ++;
                last = n;
            }
        printf("%-13s %3d buckets up to %10d: f32 differs at %d distances", r.bidirectional ? "bidirectional" : "causal",
               r.buckets, r.max_distance, differ);
        printf(differ ? ", the last of them %d\n" : "\n", last);
    }
}

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        report();
    test_note_crashes();
    Suite *suite = suite_create("T5: buckets, diagonals, gradient");
    TCase *buckets = test_case(suite, "buckets");
    tcase_add_loop_test(buckets, every_distance, 0, RULES);
    tcase_add_test(buckets, ties);
    tcase_add_test(buckets, refused_rules);
    TCase *table = test_case(suite, "table");
    tcase_add_loop_test(table, table_of_diagonals, 0, RULES);
    tcase_add_loop_test(table, gradient, 0, RULES);
    return test_run(suite);
}
