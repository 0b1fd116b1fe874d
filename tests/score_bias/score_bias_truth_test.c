/* What attention score biases come to against 113-bit arithmetic: ALiBi's slopes and diagonals, scores plus bias, the sums along
 * the diagonals, and the way from a gradient of scores to T5's table, taken element by element.
 *
 * --report prints the worst errors.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad.h"
#include "../harness/rows.h"

static int reporting;
static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

static void note_error(const char *what, double ulps)
{
    if (reporting)
        printf("%-40s %.6f ulp\n", what, ulps);
}

static double ulps_off(float got, quad exact, nrg_dtype dtype)
{
    return (double)(quad_abs((quad)got - exact) / (quad)element_ulp((double)exact, dtype));
}

/* ---- ALiBi ---- */

/* 2^-x for x ≥ 0, one binary digit after the other: 2^-(2^-i) is the root of the one before it. */
static quad power_of_half(quad x)
{
    quad result = 1, root = 0.5;
    for (; x >= 1; x -= 1)
        result /= 2;
    for (int i = 0; i < 120 && x > 0; i++) {
        x *= 2;
        root = quad_sqrt(root);
        if (x >= 1) {
            result *= root;
            x -= 1;
        }
    }
    return result;
}

/* As the paper's code has it: a power of two has its own progression, other numbers the one below and every other slope of the
 * one above. */
static quad slope_of(size_t heads, size_t h, double max_bias)
{
    size_t m = 1;
    while (2 * m <= heads)
        m *= 2;
    if (h < m)
        return power_of_half((quad)max_bias * (quad)(h + 1) / (quad)m);
    return power_of_half((quad)max_bias * (quad)(2 * (h - m) + 1) / (quad)(2 * m));
}

START_TEST(slopes)
{
    enum { MOST = 700 };
    static float got[MOST + 1];
    static const double biases[] = {8, 4, 16, 1, 0.3, 7.7, 100, 1e-300, 0, 0x1.fffffffffffffp7};
    double worst = 0;
    for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++)
        for (size_t heads = 1; heads <= MOST; heads += heads < 70 ? 1 : test_small() ? 211 : 29) {
            memset(got, 0xa5, sizeof got);
            ck_assert_int_eq(nrg_alibi_slopes(heads, biases[b], got), NRG_OK);
            for (size_t h = 0; h < heads; h++) {
                const quad exact = slope_of(heads, h, biases[b]);
                const double off = ulps_off(got[h], exact, NRG_F32);
                worst = off > worst ? off : worst;
                if (!(off <= 0.5001))
                    ck_abort_msg("max_bias %g, slope %zu of %zu: %a, %g ulp off", biases[b], h, heads, (double)got[h], off);
            }
            unsigned char after[4];
            memcpy(after, &got[heads], sizeof after);
            ck_assert(after[0] == 0xa5 && after[3] == 0xa5);
        }
    note_error("slopes", worst);
}
END_TEST

/* Where a slope goes over from one float to the next, to the last bits of max_bias: the exponent is a product of two numbers that
 * has more bits than a double. Half an ulp, and what arithmetic in double may lose: 2^-49 of the slope. */
START_TEST(slopes_between_floats)
{
    static const size_t all_heads[] = {3, 7, 12, 24, 100, 1000};
    static float got[1000];
    double worst = 0;
    uint64_t state = 11;
    for (int n = 0; n < 240; n++) {
        const size_t heads = all_heads[n % 6], h = test_draw(&state, heads);
        size_t whole = 1;
        while (2 * whole <= heads)
            whole *= 2;
        const double times = (double)(h < whole ? 2 * (h + 1) : 2 * (h - whole) + 1) / (double)(2 * whole);
        double low = (20 + (double)test_draw(&state, 1 << 20) * 0x1p-20 * 100) / times, high = low * (1 + 0x1p-20);
        ck_assert_int_eq(nrg_alibi_slopes(heads, low, got), NRG_OK);
        const float first = got[h];
        while (nextafter(low, high) < high) {
            const double middle = low + (high - low) / 2;
            ck_assert_int_eq(nrg_alibi_slopes(heads, middle, got), NRG_OK);
            *(got[h] == first ? &low : &high) = middle;
        }
        for (int side = 0; side < 2; side++) {
            const double max_bias = side ? high : low;
            ck_assert_int_eq(nrg_alibi_slopes(heads, max_bias, got), NRG_OK);
            const double off = ulps_off(got[h], slope_of(heads, h, max_bias), NRG_F32);
            worst = off > worst ? off : worst;
            if (!(off <= 0.5 + 0x1p-25))
                ck_abort_msg("max_bias %a, slope %zu of %zu: %a, half an ulp and %a", max_bias, h, heads, (double)got[h],
                             off - 0.5);
        }
    }
    note_error("slopes between floats", worst);
}
END_TEST

START_TEST(published_slopes)
{
    float got[12];
    ck_assert_int_eq(nrg_alibi_slopes(8, 8, got), NRG_OK);
    for (int h = 0; h < 8; h++)
        ck_assert(got[h] == ldexpf(1, -1 - h));
    /* 8 heads, and 2^-0.5, 2^-1.5 … of the 16 */
    static const double others[] = {0.70710678118654752, 0.35355339059327376, 0.17677669529663688, 0.08838834764831845};
    ck_assert_int_eq(nrg_alibi_slopes(12, 8, got), NRG_OK);
    for (int h = 0; h < 12; h++)
        ck_assert(got[h] == (h < 8 ? ldexpf(1, -1 - h) : (float)others[h - 8]));
    ck_assert_int_eq(nrg_alibi_slopes(1, 1000, got), NRG_OK);
    ck_assert(got[0] == 0);
    ck_assert_int_eq(nrg_alibi_slopes(1, 149, got), NRG_OK);
    ck_assert(got[0] == 0x1p-149f);
}
END_TEST

START_TEST(alibi_diagonals)
{
    enum { HEADS = 12, PAD = 5, MOST = 600 };
    static float got[HEADS * (MOST + PAD)];
    static const struct {
        size_t queries, keys;
        int64_t offset;
        int mask;
    } tables[] = {{1, 1, 0, 0},           {200, 300, 0, 0},        {200, 300, 0, 1},  {1, 500, 499, 1},
                  {300, 1, 0, 0},         {64, 64, 7, 1},          {64, 64, -200, 1}, {64, 64, -20, 0},
                  {100, 3, 536870812, 1}, {4, 200, -536870713, 0}, {30, 1, 100, 1}};
    float slope[HEADS];
    double worst = 0;
    ck_assert_int_eq(nrg_alibi_slopes(HEADS, 8, slope), NRG_OK);
    slope[0] = 0x1.fffffep-1f; /* and products that need all the bits there are */
    slope[1] = 0x1.555556p-7f;
    for (size_t n = 0; n < 2 * sizeof tables / sizeof tables[0]; n++) {
        const size_t pad = n % 2 ? PAD : 0, diagonals = nrg_score_bias_diagonals(tables[n / 2].queries, tables[n / 2].keys);
        nrg_score_bias_spec spec = nrg_score_bias_spec_alibi(HEADS, tables[n / 2].queries, tables[n / 2].keys);
        spec.first_position = tables[n / 2].offset;
        spec.causal = tables[n / 2].mask;
        memset(got, 0xa5, sizeof got);
        float canary;
        memcpy(&canary, got, sizeof canary);
        for (int ith = 0; ith < 5; ith++)
            ck_assert_int_eq(nrg_alibi_diagonals(&spec, slope, got, pad ? (diagonals + pad) * sizeof(float) : 0, ith, 5), NRG_OK);
        for (size_t h = 0; h < HEADS; h++)
            for (size_t e = 0; e < diagonals + pad; e++) {
                const int64_t d = (int64_t)e - (int64_t)(spec.queries - 1) - spec.first_position;
                const float value = got[h * (diagonals + pad) + e];
                const quad exact = -(quad)slope[h] * (quad)(d < 0 ? -d : d);
                if (e >= diagonals || (d > 0 && spec.causal)) {
                    if (value != (e >= diagonals ? canary : -INFINITY))
                        ck_abort_msg("table %zu, head %zu, entry %zu: %g", n / 2, h, e, (double)value);
                    continue;
                }
                const double off = ulps_off(value, exact, NRG_F32);
                worst = off > worst ? off : worst;
                if (!(off <= 0.5) || !signbit(value))
                    ck_abort_msg("table %zu, head %zu, distance %lld: %a, %g ulp off", n / 2, h, (long long)d, (double)value,
                                 off);
            }
    }
    note_error("ALiBi's diagonals", worst);
}
END_TEST

/* ---- scores plus bias ---- */

enum { BATCH = 2, HEADS = 3, QUERIES = 19, KEYS = 70, DIAGONALS = QUERIES + KEYS - 1, COUNT = BATCH * HEADS * QUERIES * KEYS };

/* Numbers of sizes that meet: some sums cancel. */
static float draw(uint64_t *state)
{
    const float fraction = 1 + (float)test_draw(state, 1 << 23) * 0x1p-23f;
    return ldexpf(test_draw(state, 2) ? fraction : -fraction, (int)test_draw(state, 8) - 4);
}

/* As many of them, or, from the first ordinary case on, ordinary numbers of each kind in turn. */
static const float *draw_all(size_t count, size_t n, size_t first_ordinary, uint64_t *state)
{
    static float all[COUNT];
    const size_t kind = ROW_ORDINARY + n % ROW_ORDINARY_KINDS;
    if (n >= first_ordinary)
        row_fill(all, count, (enum row_kind)kind, NRG_F32, *state = test_mix(*state));
    for (size_t i = 0; i < count && n < first_ordinary; i++)
        all[i] = draw(state);
    return all;
}

START_TEST(sums_of_scores_and_bias)
{
    static float table[HEADS * DIAGONALS];
    static unsigned char scores[4 * COUNT], o[4 * COUNT];
    static const float scales[] = {0, 1, 0.125f, 0.08838834764f, -1.75f, 0x1.3p-20f};
    const nrg_dtype dtype = dtypes[_i];
    double worst = 0;
    uint64_t state = (uint64_t)_i;
    for (size_t n = 0; n < 12 + 20; n++) {
        const float scale = scales[n % 6];
        const float *x = draw_all(COUNT, n, 12, &state);
        for (size_t i = 0; i < COUNT; i++)
            element_set(scores, i, dtype, x[i]);
        memcpy(table, draw_all(HEADS * DIAGONALS, n, 12, &state), sizeof table);
        nrg_score_bias_args args = nrg_score_bias_args_init(dtype, BATCH, HEADS, QUERIES, KEYS, scores, table, o);
        args.scale = scale;
        ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
        for (size_t i = 0; i < COUNT; i++) {
            const size_t key = i % KEYS, query = i / KEYS % QUERIES, h = i / KEYS / QUERIES % HEADS;
            /* the distance key - query, counted from the smallest there is */
            const quad bias = table[h * DIAGONALS + key + (QUERIES - 1) - query];
            const quad exact = (quad)element_get(scores, i, dtype) * (quad)scale + bias;
            /* 16 bits: the rounding to f32 first, a 2^-13 or 2^-16 of an ulp of theirs */
            const double off = ulps_off(element_get(o, i, dtype), exact, dtype);
            const double bound = dtype == NRG_F32 ? 0.5 : dtype == NRG_F16 ? 0.5 + 0x1p-14 : 0.5 + 0x1p-17;
            worst = off > worst ? off : worst;
            if (!(off <= bound))
                ck_abort_msg("%s, scale %g, element %zu: %g ulp off", nrg_dtype_name(dtype), (double)scale, i, off);
        }
    }
    char what[64];
    snprintf(what, sizeof what, "scores plus bias, %s", nrg_dtype_name(dtype));
    note_error(what, worst);
}
END_TEST

/* ---- gradients ---- */

static double worst_sum;

START_TEST(sums_along_diagonals)
{
    static unsigned char d_o[4 * COUNT];
    static double sums[HEADS * DIAGONALS];
    static quad exact[HEADS * DIAGONALS], size[HEADS * DIAGONALS];
    const nrg_dtype dtype = dtypes[_i];
    uint64_t state = (uint64_t)_i + 3;
    for (size_t n = 0; n < 8 + 10; n++) {
        const int accumulate = n % 2;
        const float *x = n < 8 ? NULL : draw_all(COUNT, n, 8, &state);
        for (size_t i = 0; i < HEADS * DIAGONALS; i++) {
            sums[i] = (double)draw(&state) * (1 + 0x1p-40 * (double)test_draw(&state, 1000));
            exact[i] = accumulate ? (quad)sums[i] : 0;
            size[i] = quad_abs(exact[i]);
        }
        for (size_t i = 0; i < COUNT; i++) {
            element_set(d_o, i, dtype, x ? x[i] : ldexpf(draw(&state), (int)test_draw(&state, 4 * n + 1) - 20));
            const size_t key = i % KEYS, query = i / KEYS % QUERIES, h = i / KEYS / QUERIES % HEADS;
            const size_t e = h * DIAGONALS + key + (QUERIES - 1) - query;
            exact[e] += (quad)element_get(d_o, i, dtype);
            size[e] += quad_abs((quad)element_get(d_o, i, dtype));
        }
        nrg_score_bias_backward_args args = nrg_score_bias_backward_args_init(dtype, BATCH, HEADS, QUERIES, KEYS, d_o, sums);
        args.accumulate = accumulate;
        ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        for (size_t e = 0; e < HEADS * DIAGONALS; e++) {
            /* in 2^-53 of the sum of magnitudes, of which there are at most BATCH · QUERIES + 1 */
            const double off = (double)(quad_abs((quad)sums[e] - exact[e]) / size[e]) * 0x1p53;
            worst_sum = off > worst_sum ? off : worst_sum;
            if (!(off <= BATCH * QUERIES))
                ck_abort_msg("%s, diagonal %zu: off by %g · 2^-53 of the magnitudes", nrg_dtype_name(dtype), e, off);
        }
    }
    if (reporting)
        printf("sums along diagonals, %-18s %.3f · 2^-53 of the magnitudes\n", nrg_dtype_name(dtype), worst_sum);
}
END_TEST

/* The derivative of Σ d_o · o by a number of T5's table is the sum of d_o over all elements of its bucket and head: two layers
 * that share a table, through the sums of diagonals, against that sum taken at once. */
START_TEST(gradient_of_a_table)
{
    enum { LAYERS = 2, BUCKETS = 32 };
    static float d_o[LAYERS][COUNT], d_table[BUCKETS * HEADS];
    static double sums[HEADS * DIAGONALS];
    static quad exact[BUCKETS * HEADS], size[BUCKETS * HEADS];
    double worst = 0;
    uint64_t state = 9;
    for (int n = 0; n < 8 + 10; n++) {
        nrg_score_bias_spec spec = nrg_score_bias_spec_t5(HEADS, QUERIES, KEYS);
        spec.bidirectional = n % 2;
        spec.first_position = n / 2 % 4 * 17;
        spec.max_distance = 60;
        memset(exact, 0, sizeof exact);
        memset(size, 0, sizeof size);
        for (int layer = 0; layer < LAYERS; layer++) {
            memcpy(d_o[layer], draw_all(COUNT, (size_t)n, 8, &state), sizeof d_o[layer]);
            for (size_t i = 0; i < COUNT; i++) {
                const size_t key = i % KEYS, query = i / KEYS % QUERIES, h = i / KEYS / QUERIES % HEADS;
                const int64_t distance = (int64_t)key - (int64_t)query - spec.first_position;
                const int bucket = nrg_t5_bucket(distance, spec.bidirectional, BUCKETS, spec.max_distance);
                exact[(size_t)bucket * HEADS + h] += (quad)d_o[layer][i];
                size[(size_t)bucket * HEADS + h] += quad_abs((quad)d_o[layer][i]);
            }
            nrg_score_bias_backward_args args =
                nrg_score_bias_backward_args_init(NRG_F32, BATCH, HEADS, QUERIES, KEYS, d_o[layer], sums);
            args.accumulate = layer > 0;
            ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        }
        ck_assert_int_eq(nrg_t5_diagonals_backward(&spec, sums, 0, d_table, 0, 0, 0, 1), NRG_OK);
        for (size_t i = 0; i < BUCKETS * HEADS; i++) {
            const double ulp = element_ulp((double)exact[i], NRG_F32), off = ulps_off(d_table[i], exact[i], NRG_F32);
            const double lost = (double)size[i] * 0x1p-53 * (LAYERS * BATCH * QUERIES + DIAGONALS);
            worst = off > worst ? off : worst;
            if (!(off <= 0.5 + lost / ulp))
                ck_abort_msg("bucket %zu, head %zu: %g ulp off", i / HEADS, i % HEADS, off);
        }
    }
    note_error("gradient of a table", worst);
}
END_TEST

/* A NaN and an infinity: their own elements and diagonals, and no other. */
START_TEST(strange_numbers)
{
    static float scores[QUERIES * KEYS], o[QUERIES * KEYS], table[DIAGONALS];
    static double sums[DIAGONALS];
    enum { QUERY = 5, KEY = 40, ENTRY = 30 };
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (size_t i = 0; i < QUERIES * KEYS; i++)
            scores[i] = 1;
        for (size_t i = 0; i < DIAGONALS; i++)
            table[i] = 0.5f;
        scores[QUERY * KEYS + KEY] = NAN;
        scores[QUERY * KEYS + KEY + 1] = INFINITY;
        table[ENTRY] = -INFINITY;
        nrg_score_bias_args args = nrg_score_bias_args_init(NRG_F32, 1, 1, QUERIES, KEYS, scores, table, o);
        ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
        nrg_score_bias_backward_args back = nrg_score_bias_backward_args_init(NRG_F32, 1, 1, QUERIES, KEYS, scores, sums);
        ck_assert_int_eq(nrg_score_bias_backward(&back, 0, 1), NRG_OK);
        for (size_t i = 0; i < QUERIES * KEYS; i++) {
            const size_t query = i / KEYS, key = i % KEYS;
            const int is_nan = query == QUERY && key == KEY, is_inf = query == QUERY && key == KEY + 1;
            const int masked = key + QUERIES - 1 - query == ENTRY;
            const int right = is_nan ? isnan(o[i]) : o[i] == (is_inf ? INFINITY : masked ? -INFINITY : 1.5f);
            if (!right)
                ck_abort_msg("%s: query %zu, key %zu: %g", nrg_isa_name(paths[p]), query, key, (double)o[i]);
        }
        for (size_t e = 0; e < DIAGONALS; e++) {
            const size_t strange = KEY + QUERIES - 1 - QUERY;
            if (e == strange ? !isnan(sums[e]) : e == strange + 1 ? sums[e] != INFINITY : !(sums[e] >= 1 && sums[e] <= QUERIES))
                ck_abort_msg("%s: diagonal %zu: %g", nrg_isa_name(paths[p]), e, sums[e]);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    reporting = argc > 1 && strcmp(argv[1], "--report") == 0;
    test_note_crashes();
    Suite *suite = suite_create("attention score biases against 113 bits");
    TCase *alibi = test_case(suite, "ALiBi");
    tcase_add_test(alibi, slopes);
    tcase_add_test(alibi, slopes_between_floats);
    tcase_add_test(alibi, published_slopes);
    tcase_add_test(alibi, alibi_diagonals);
    TCase *calls = test_case(suite, "scores and gradients");
    tcase_add_loop_test(calls, sums_of_scores_and_bias, 0, 3);
    tcase_add_loop_test(calls, sums_along_diagonals, 0, 3);
    tcase_add_test(calls, gradient_of_a_table);
    tcase_add_test(calls, strange_numbers);
    return test_run(suite);
}
