/* Whether tokens have different slots: qkv_check_slots compared with every pair. Slots lie at the edges of the windows that it
 * marks on the stack, so that one beyond the array shows: as a mark that the next window finds again, or under a sanitizer.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../../src/calls/qkv_slots.h"
#include "../harness/support.h"

enum { TOKENS = 300 };

static int all_differ(const int64_t *slots, size_t tokens)
{
    for (size_t i = 0; i < tokens; i++)
        for (size_t j = 0; j < i; j++)
            if (slots[i] == slots[j])
                return 0;
    return 1;
}

static void judge(const int64_t *slots, size_t tokens, size_t count, uint64_t seed)
{
    const nrg_status should = all_differ(slots, tokens) ? NRG_OK : NRG_ERR_OVERLAP, got = qkv_check_slots(slots, tokens, count);
    ck_assert_msg(got == should, "seed %llu, %zu tokens: %d and not %d", (unsigned long long)seed, tokens, (int)got, (int)should);
}

/* Falling slots, which are neither in turn nor rising: a window apart, give or take a word and a bit. */
START_TEST(edges_of_windows)
{
    int64_t slots[TOKENS];
    uint64_t state = 1;
    for (int seed = 0; seed < 2000; seed++) {
        const size_t tokens = QKV_SLOTS_FEW + 1 + test_draw(&state, TOKENS - QKV_SLOTS_FEW - 1);
        int64_t slot = 0;
        for (size_t t = tokens; t-- > 0;) {
            slots[t] = slot;
            slot += test_draw(&state, 3) ? (int64_t)test_draw(&state, 200) + 1
                                         : QKV_WINDOW + (int64_t)test_draw(&state, 3 * 64) - (test_draw(&state, 2) ? 64 : 0);
        }
        judge(slots, tokens, (size_t)slot, (uint64_t)seed);
        /* and one of them twice */
        slots[test_draw(&state, tokens)] = slots[test_draw(&state, tokens)];
        judge(slots, tokens, (size_t)slot, (uint64_t)seed);
    }
}
END_TEST

/* Any order, of as many slots as there are tokens and of far more. */
START_TEST(any_slots)
{
    int64_t slots[TOKENS];
    uint64_t state = 2;
    for (int seed = 0; seed < 4000; seed++) {
        const size_t tokens = 1 + test_draw(&state, TOKENS),
                     count = tokens * (1 + test_draw(&state, 2) * 50) + test_draw(&state, 1000);
        for (size_t t = 0; t < tokens; t++)
            slots[t] = (int64_t)test_draw(&state, count);
        judge(slots, tokens, count, (uint64_t)seed);
        slots[test_draw(&state, tokens)] = (int64_t)count;
        ck_assert_int_eq(qkv_check_slots(slots, tokens, count), NRG_ERR_POSITION);
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("slots of nrg_qkv_forward");
    TCase *all = test_case(suite, "slots");
    tcase_add_test(all, edges_of_windows);
    tcase_add_test(all, any_slots);
    return test_run(suite);
}
