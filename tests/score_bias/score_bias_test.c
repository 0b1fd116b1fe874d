/* nrg_score_bias_forward and nrg_score_bias_backward, beside what bits_test does: long rows, parts of a larger table, samples
 * that are apart, layers that add to the same sums, equal shares.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

typedef struct shape {
    size_t batch, heads, queries, keys;
} shape;

/* ---- every path against scalar, where the table is taken apart in pieces ---- */

/* Beyond the pieces that bf16 takes the table apart in, by rows and by columns; pieces that end a few keys before the row. */
static const shape large[] = {{1, 1, 9, 2048}, {1, 1, 12, 2050}, {1, 2, 9, 2079}, {1, 1, 13, 4200},
                              {1, 2, 460, 65}, {1, 1, 1, 5000},  {2, 1, 3, 3000}};
enum { LARGE = sizeof large / sizeof large[0] };

START_TEST(large_shapes)
{
    const shape s = large[_i];
    const size_t count = s.batch * s.heads * s.queries * s.keys,
                 diagonals = s.heads * nrg_score_bias_diagonals(s.queries, s.keys);
    float *table = element_tensor(diagonals, NRG_F32);
    double *sums = test_allocate(2 * diagonals, sizeof *sums);
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = (uint64_t)_i;
    for (size_t i = 0; i < diagonals; i++)
        table[i] = (float)test_draw(&state, 20001) / 1000 - 10;
    for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
        void *scores = element_tensor(count, (nrg_dtype)dtype), *expected = element_tensor(count, (nrg_dtype)dtype);
        for (size_t i = 0; i < count; i++)
            element_set(scores, i, (nrg_dtype)dtype, (float)test_draw(&state, 20001) / 1000 - 10);
        nrg_score_bias_args args =
            nrg_score_bias_args_init((nrg_dtype)dtype, s.batch, s.heads, s.queries, s.keys, scores, table, expected);
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
        nrg_score_bias_backward_args back =
            nrg_score_bias_backward_args_init((nrg_dtype)dtype, s.batch, s.heads, s.queries, s.keys, scores, sums);
        ck_assert_int_eq(nrg_score_bias_backward(&back, 0, 1), NRG_OK);
        back.d_diagonals = sums + diagonals;
        for (size_t p = test_paths(paths); p-- > 0;)
            for (int store = 0; store < 3; store++) {
                void *o = element_tensor(count, (nrg_dtype)dtype);
                args.o = o;
                args.store = (nrg_store)store;
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (int ith = 2; ith >= 0; ith--)
                    ck_assert_int_eq(nrg_score_bias_forward(&args, ith, 3), NRG_OK);
                ck_assert_msg(memcmp(o, expected, count * nrg_dtype_size((nrg_dtype)dtype)) == 0, "%s, %s, store %d",
                              nrg_isa_name(paths[p]), nrg_dtype_name((nrg_dtype)dtype), store);
                for (int ith = 2; ith >= 0; ith--)
                    ck_assert_int_eq(nrg_score_bias_backward(&back, ith, 3), NRG_OK);
                ck_assert_msg(memcmp(sums, sums + diagonals, diagonals * sizeof *sums) == 0, "%s, %s, sums",
                              nrg_isa_name(paths[p]), nrg_dtype_name((nrg_dtype)dtype));
                free(o);
            }
        free(scores);
        free(expected);
    }
    free(table);
    free(sums);
}
END_TEST

/* A part of a matrix with a part of the table has the bits of the whole one, on every path; samples may be apart. */
START_TEST(parts)
{
    enum { BATCH = 2, HEADS = 2, QUERIES = 37, KEYS = 81, FROM_QUERY = 11, PART_QUERIES = 17, FROM_KEY = 29, PART_KEYS = 40 };
    enum { HEAD = QUERIES * KEYS, SAMPLE = HEADS * HEAD + 7, DIAGONALS = QUERIES + KEYS - 1 };
    static float scores[BATCH * SAMPLE], table[HEADS * DIAGONALS], whole[BATCH * SAMPLE], part[BATCH * SAMPLE];
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = 5;
    for (size_t i = 0; i < BATCH * SAMPLE; i++)
        scores[i] = (float)test_draw(&state, 2000) / 64 - 10;
    for (size_t i = 0; i < HEADS * DIAGONALS; i++)
        table[i] = (float)test_draw(&state, 2000) / 128 - 5;
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        memset(whole, 0, sizeof whole);
        memset(part, 0, sizeof part);
        nrg_score_bias_args args = nrg_score_bias_args_init(NRG_F32, BATCH, HEADS, QUERIES, KEYS, scores, table, whole);
        args.scores_strides.batch = args.o_strides.batch = SAMPLE * sizeof(float);
        ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
        const size_t first = FROM_QUERY * KEYS + FROM_KEY;
        args.queries = PART_QUERIES;
        args.keys = PART_KEYS;
        args.scores = scores + first;
        args.o = part + first;
        args.diagonals = table + (QUERIES - FROM_QUERY - PART_QUERIES) + FROM_KEY;
        args.diagonals_stride = DIAGONALS * sizeof(float);
        args.scores_strides.head = args.o_strides.head = HEAD * sizeof(float);
        args.scores_strides.row = args.o_strides.row = KEYS * sizeof(float);
        ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
        for (size_t n = 0; n < BATCH * SAMPLE; n++) {
            const size_t in_sample = n % SAMPLE, i = in_sample % HEAD / KEYS, j = in_sample % KEYS;
            const int inside = in_sample < HEADS * HEAD && i >= FROM_QUERY && i < FROM_QUERY + PART_QUERIES && j >= FROM_KEY &&
                               j < FROM_KEY + PART_KEYS;
            if (part[n] != (inside ? whole[n] : 0))
                ck_abort_msg("%s: sample %zu, query %zu, key %zu", nrg_isa_name(paths[p]), n / SAMPLE, i, j);
        }
    }
}
END_TEST

/* bf16 takes the table apart, and the last entry of an odd number of them by itself: it is the last key's in the first row, which
 * whole steps of any path read, rows that are streamed too. What a call before has left in the same place is a NaN. */
START_TEST(last_entry)
{
    enum { KEYS = 192, ROWS = 9, OFFSET = 32 };
    static _Alignas(64) uint16_t scores[ROWS * KEYS], o[ROWS * KEYS + OFFSET];
    static float table[ROWS + KEYS - 1], nans[ROWS + KEYS - 1];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < ROWS + KEYS - 1; i++) {
        table[i] = (float)(i + 1);
        nans[i] = NAN;
    }
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (size_t rows = 8; rows <= ROWS; rows++)
            for (size_t keys = 31; keys <= KEYS; keys++)
                for (size_t n = 0; n < 2 * OFFSET; n += keys % 32 ? 5 : 1) {
                    uint16_t *to = o + n / 2;
                    nrg_score_bias_args args = nrg_score_bias_args_init(NRG_BF16, 1, 1, rows, keys, scores, nans, to);
                    args.store = n % 2 ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                    ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
                    args.diagonals = table;
                    ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
                    for (size_t i = 0; i < rows * keys; i++) {
                        const size_t entry = i % keys + (rows - 1) - i / keys;
                        if (element_get(to, i, NRG_BF16) != table[entry])
                            ck_abort_msg("%s, %zu rows of %zu keys, store %d, offset %zu: row %zu, key %zu is %g and not %g",
                                         nrg_isa_name(paths[p]), rows, keys, (int)args.store, n / 2, i / keys, i % keys,
                                         (double)element_get(to, i, NRG_BF16), (double)table[entry]);
                    }
                }
    }
}
END_TEST

/* Whatever the bits of a table's NaNs: rounded to bf16 like a number, those whose bits are all set would become zeros. */
START_TEST(nans_of_a_table)
{
    enum { KEYS = 192, ROWS = 9 };
    static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff80ffff};
    static _Alignas(64) uint16_t scores[ROWS * KEYS], o[ROWS * KEYS];
    static float table[ROWS + KEYS - 1];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < ROWS + KEYS - 1; i++)
        memcpy(&table[i], &nans[i % 4], sizeof table[i]);
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (size_t rows = 1; rows <= ROWS; rows += 4)
            for (size_t keys = 1; keys <= KEYS; keys++)
                for (int stream = 0; stream < 2; stream++) {
                    nrg_score_bias_args args = nrg_score_bias_args_init(NRG_BF16, 1, 1, rows, keys, scores, table, o);
                    args.store = stream ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                    ck_assert_int_eq(nrg_score_bias_forward(&args, 0, 1), NRG_OK);
                    for (size_t i = 0; i < rows * keys; i++)
                        if (!isnan(element_get(o, i, NRG_BF16)))
                            ck_abort_msg("%s, %zu rows of %zu keys, streamed %d: row %zu, key %zu is %g and no NaN",
                                         nrg_isa_name(paths[p]), rows, keys, stream, i / keys, i % keys,
                                         (double)element_get(o, i, NRG_BF16));
                }
    }
}
END_TEST

/* Layers that add to the same sums: the bits of one sum over the samples of both. A -0 that is added to counts as 0. */
START_TEST(layers)
{
    enum { HEADS = 3, QUERIES = 21, KEYS = 50, DIAGONALS = QUERIES + KEYS - 1, SAMPLE = HEADS * QUERIES * KEYS };
    static float d_o[2 * SAMPLE];
    static double once[HEADS * DIAGONALS], twice[HEADS * DIAGONALS];
    uint64_t state = 6;
    for (size_t i = 0; i < 2 * SAMPLE; i++)
        d_o[i] = (float)test_draw(&state, 20000) / 777 - 10;
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        nrg_score_bias_backward_args args = nrg_score_bias_backward_args_init(NRG_F32, 2, HEADS, QUERIES, KEYS, d_o, once);
        ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        args.batch = 1;
        args.d_diagonals = twice;
        ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        args.d_o = d_o + SAMPLE;
        args.accumulate = 1;
        ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        ck_assert(memcmp(once, twice, sizeof once) == 0);

        /* no samples: 0, or what is there */
        args.batch = 0;
        args.d_o = NULL;
        for (size_t i = 0; i < HEADS * DIAGONALS; i++)
            twice[i] = i % 2 ? -0.0 : (double)i;
        for (int ith = 0; ith < 5; ith++)
            ck_assert_int_eq(nrg_score_bias_backward(&args, ith, 5), NRG_OK);
        for (size_t i = 0; i < HEADS * DIAGONALS; i++) {
            const double expected = i % 2 ? 0 : (double)i;
            if (memcmp(&twice[i], &expected, sizeof expected) != 0)
                ck_abort_msg("%s: a sum of no samples", nrg_isa_name(paths[p]));
        }
        args.accumulate = 0;
        ck_assert_int_eq(nrg_score_bias_backward(&args, 0, 1), NRG_OK);
        for (size_t i = 0; i < HEADS * DIAGONALS; i++)
            if (twice[i] != 0)
                ck_abort_msg("%s: a sum of no samples", nrg_isa_name(paths[p]));
    }
}
END_TEST

/* Shares of the sums have as many elements of d_o as any other, to within a line of eight diagonals at either end. */
START_TEST(shares_are_equal)
{
    enum { MOST = 4096 };
    static double sums[MOST];
    static float d_o[2 * 64 * 64];
    static const shape shapes[] = {{1, 2, 64, 64}, {1, 1, 5, 90}, {1, 1, 90, 5}, {1, 3, 1, 40}, {1, 2, 40, 1}, {1, 1, 1, 1}};
    for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++)
        for (int nth = 1; nth <= 9; nth++) {
            const shape s = shapes[n];
            const size_t diagonals = nrg_score_bias_diagonals(s.queries, s.keys), all = s.heads * s.queries * s.keys;
            const size_t shorter = s.queries < s.keys ? s.queries : s.keys;
            size_t sum = 0;
            for (size_t i = 0; i < s.heads * diagonals; i++)
                sums[i] = -1;
            for (int ith = 0; ith < nth; ith++) {
                nrg_score_bias_backward_args args =
                    nrg_score_bias_backward_args_init(NRG_F32, 1, s.heads, s.queries, s.keys, d_o, sums);
                ck_assert_int_eq(nrg_score_bias_backward(&args, ith, nth), NRG_OK);
                size_t elements = 0;
                for (size_t i = 0; i < s.heads * diagonals; i++)
                    if (sums[i] == 0) {
                        const size_t e = i % diagonals, from_end = diagonals - 1 - e, near_end = e < from_end ? e : from_end;
                        elements += near_end + 1 < shorter ? near_end + 1 : shorter;
                        sums[i] = 1; /* taken */
                    }
                sum += elements;
                const size_t fair = all / (size_t)nth, off = elements > fair ? elements - fair : fair - elements;
                ck_assert_msg(off <= 9 * shorter, "%zu x %zu: share %d of %d has %zu elements of %zu", s.queries, s.keys, ith,
                              nth, elements, all);
            }
            ck_assert_uint_eq(sum, all);
        }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("score_bias and score_bias_backward");
    TCase *rest = test_case(suite, "long rows, parts, layers, shares");
    tcase_add_loop_test(rest, large_shapes, 0, LARGE);
    tcase_add_test(rest, parts);
    tcase_add_test(rest, last_entry);
    tcase_add_test(rest, nans_of_a_table);
    tcase_add_test(rest, layers);
    tcase_add_test(rest, shares_are_equal);
    return test_run(suite);
}
