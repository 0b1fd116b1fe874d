/* Sums in parts. That a set whose sums are taken in parts has the statistics of one call, and that what is normalized with them
 * is the same, forward and backward, is among the cases of nrg check, and so of bits_test. Here: sums are added as integers, so
 * that any order and any grouping will do; the sum of nothing; sums of many parts; dw and db of a part, which are its own.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "channel_problem.h"

/* As a reduction of integers does it, whatever is in them. */
START_TEST(sums_are_integers)
{
    enum { SETS = 5, WORDS = SETS * NRG_CHANNEL_NORM_SUMS_WORDS };
    int64_t into[WORDS], from[WORDS], expected[WORDS];
    uint64_t state = 1;
    for (int round = 0; round < 1000; round++) {
        for (size_t i = 0; i < WORDS; i++) {
            into[i] = (int64_t)(test_mix(state + i) >> round % 64);
            from[i] = (int64_t)(test_mix(~state - i) >> round % 61);
            expected[i] = (int64_t)((uint64_t)into[i] + (uint64_t)from[i]);
        }
        state = test_mix(state);
        ck_assert_int_eq(nrg_channel_norm_sums_add(SETS, into, from), NRG_OK);
        ck_assert_mem_eq(into, expected, sizeof into);
    }
}
END_TEST

/* The sum of nothing is zero, and zero changes nothing. */
START_TEST(sums_of_nothing)
{
    int64_t nothing[3 * NRG_CHANNEL_NORM_SUMS_WORDS], sums[3 * NRG_CHANNEL_NORM_SUMS_WORDS],
        kept[3 * NRG_CHANNEL_NORM_SUMS_WORDS], zero[3 * NRG_CHANNEL_NORM_SUMS_WORDS] = {0};
    float x[3 * 5];
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, 3, 1e-5);
    nrg_channel_norm_args args = nrg_channel_norm_args_init(0, 5, NULL, NULL, NULL, NULL);
    row_fill(x, 15, ROW_NORMAL, NRG_F32, 1);
    memset(nothing, 0xff, sizeof nothing);
    ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, nothing, 0, 1), NRG_OK);
    ck_assert_mem_eq(nothing, zero, sizeof zero);
    args = nrg_channel_norm_args_init(1, 5, x, NULL, NULL, NULL);
    ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, sums, 0, 1), NRG_OK);
    memcpy(kept, sums, sizeof kept);
    ck_assert_int_eq(nrg_channel_norm_sums_add(3, sums, nothing), NRG_OK);
    ck_assert_mem_eq(kept, sums, sizeof sums);
    ck_assert_int_eq(nrg_channel_norm_sums_add(3, nothing, sums), NRG_OK);
    ck_assert_mem_eq(kept, nothing, sizeof sums);
    ck_assert_int_eq(nrg_channel_norm_sums_add(0, sums, NULL), NRG_OK);
}
END_TEST

/* As many copies of one part as a doubling makes are a set with the same mean and variance: 2^20 parts, of numbers that carry. */
START_TEST(sums_of_many_parts)
{
    enum { DOUBLINGS = 20, S = 64 };
    float x[S];
    int64_t sums[NRG_CHANNEL_NORM_SUMS_WORDS], copy[NRG_CHANNEL_NORM_SUMS_WORDS];
    nrg_channel_statistics one, many;
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, 1, 0);
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++) {
        row_fill(x, S, (enum row_kind)kind, NRG_F32, 5);
        nrg_channel_norm_args args = nrg_channel_norm_args_init(1, S, x, NULL, NULL, NULL);
        ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, sums, 0, 1), NRG_OK);
        args.statistics = &one;
        ck_assert_int_eq(nrg_channel_norm_statistics(&spec, &args, sums, 0, 1), NRG_OK);
        for (int i = 0; i < DOUBLINGS; i++) {
            memcpy(copy, sums, sizeof copy);
            ck_assert_int_eq(nrg_channel_norm_sums_add(1, sums, copy), NRG_OK);
        }
        args.statistics = &many;
        ck_assert_int_eq(nrg_channel_norm_statistics(&spec, &args, sums, 0, 1), NRG_OK);
        /* powers of two: the sums are the same but for their exponent, and so is all that follows */
        ck_assert(many.count == S * 0x1p20);
        many.count = one.count;
        if (!channel_statistics_equal(&one, &many))
            ck_abort_msg("%s: mean %.17g + %.17g, variance %.17g and %.17g + %.17g, %.17g", row_kind_name((enum row_kind)kind),
                         one.mean, one.mean_low, one.variance, many.mean, many.mean_low, many.variance);
    }
}
END_TEST

static void batch(channel_problem *p)
{
    p->spec.over = NRG_CHANNEL_OVER_BATCH;
    p->spec.groups = 1;
    p->spec.source = NRG_STATISTICS_COMPUTE;
}

/* The samples from begin to end. */
static channel_problem samples_of(const channel_problem *p, size_t begin, size_t end, nrg_channel_statistics *statistics)
{
    const size_t first = begin * p->spec.channels * p->s;
    channel_problem part = *p;
    part.n = end - begin;
    part.sets = exact_sets_of(&part.spec, part.n, part.s);
    part.x = element_at(p->x, first, p->spec.dtype);
    part.y = element_at(p->y, first, p->spec.dtype);
    part.d_o = element_at(p->d_o, first, p->spec.dtype);
    part.spec.source = NRG_STATISTICS_GIVEN;
    part.statistics = statistics;
    return part;
}

/* dw and db beside a part's sums are those that it has alone, with the statistics of all; in any number of shares. */
static void gradients_of_a_part(const channel_problem *p, nrg_isa isa)
{
    const size_t words = p->spec.channels * NRG_CHANNEL_NORM_SUMS_WORDS, middle = p->n / 3;
    int64_t *sums = malloc(words * sizeof *sums);
    channel_result all;
    ck_assert_ptr_nonnull(sums);
    channel_result_make(&all, p);
    channel_forward(p, &all);
    for (int i = 0; i < 2; i++) {
        const channel_problem part = samples_of(p, i ? middle : 0, i ? p->n : middle, all.statistics);
        const int nth = 1 + (int)(p->batches % 4);
        channel_gradients alone, beside;
        channel_gradients_make(&alone, &part);
        channel_gradients_make(&beside, &part);
        channel_backward(&part, &alone);
        const nrg_channel_norm_backward_args args = channel_backward_args(&part, &beside);
        for (int ith = nth; ith-- > 0;)
            ck_assert_int_eq(nrg_channel_norm_backward_sums(&part.spec, &args, sums, ith, nth), NRG_OK);
        channel_arrays_must_equal(p, isa, "dw of a part", NRG_F32, p->spec.channels, alone.dw, beside.dw);
        channel_arrays_must_equal(p, isa, "db of a part", NRG_F32, p->spec.channels, alone.db, beside.db);
        channel_gradients_free(&alone);
        channel_gradients_free(&beside);
    }
    free(sums);
    channel_result_free(&all);
}

START_TEST(parts_have_gradients) { channel_each("channel_norm_backward", _i, NULL, 0, batch, gradients_of_a_part); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("channel_norm: sums in parts");
    TCase *tests = test_case(suite, "parts");
    tcase_add_test(tests, sums_are_integers);
    tcase_add_test(tests, sums_of_nothing);
    tcase_add_test(tests, sums_of_many_parts);
    tcase_add_loop_test(tests, parts_have_gradients, 0, CHANNEL_PARTS);
    return test_run(suite);
}
