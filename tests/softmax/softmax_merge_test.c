/* nrg_softmax_merge with a NaN in one state: every result of that row is NaN, whatever the state's other number is, and no other
 * row's is. Its sum of many states, whose roundings are not lost.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../harness/support.h"

enum { PARTS = 3, ROWS = 4 };

/* The result of a row: 1 where all of it is NaN, 0 where none is, -1 otherwise. */
static int nan_in(const nrg_softmax_merge_args *a, size_t row)
{
    int count = (isnan(a->m[row]) != 0) + (isnan(a->sum[row]) != 0) + (isnan(a->inverse[row]) != 0) + (isnan(a->lse[row]) != 0);
    for (size_t p = 0; p < PARTS; p++)
        count += isnan(a->factor[p * ROWS + row]) != 0;
    return count == 0 ? 0 : count == 4 + PARTS ? 1 : -1;
}

START_TEST(a_nan_in_one_state)
{
    static const float largest[] = {1, -INFINITY, NAN, 90}; /* of the state; -infinity: its factor is 0 */
    float m_in[PARTS * ROWS], m[ROWS], factor[PARTS * ROWS], inverse[ROWS];
    double s_in[PARTS * ROWS], s[ROWS], lse[ROWS];
    nrg_softmax_merge_args args = nrg_softmax_merge_args_init(PARTS, ROWS, m_in, s_in, m, s);
    args.factor = factor;
    args.inverse = inverse;
    args.lse = lse;
    for (size_t at = 0; at < PARTS * ROWS; at++)
        for (size_t k = 0; k < sizeof largest / sizeof largest[0]; k++)
            for (int nan_sum = 0; nan_sum < 2; nan_sum++) {
                for (size_t i = 0; i < PARTS * ROWS; i++) {
                    m_in[i] = 0.5f * (float)i;
                    s_in[i] = 1 + (double)i;
                }
                m_in[at] = largest[k];
                s_in[at] = nan_sum ? (double)NAN : largest[k] > 0 ? 2 : 0;
                ck_assert_int_eq(nrg_softmax_merge(&args, 0, 1), NRG_OK);
                for (size_t row = 0; row < ROWS; row++)
                    ck_assert_msg(nan_in(&args, row) == (row == at % ROWS && (nan_sum || isnan(largest[k]))),
                                  "state %zu, m %g, s %g: row %zu has m %g, s %g", at, (double)largest[k], s_in[at], row,
                                  (double)m[row], s[row]);
            }
}
END_TEST

/* One state beside eight that are each too small to change its sum: together they do, wherever it stands. */
START_TEST(small_sums_add_up)
{
    enum { STATES = 9 };
    for (size_t at = 0; at < STATES; at++) {
        float m_in[STATES], m;
        double s_in[STATES], s;
        for (size_t i = 0; i < STATES; i++) {
            m_in[i] = 3;
            s_in[i] = i == at ? 1 : 0x1p-54;
        }
        const nrg_softmax_merge_args args = nrg_softmax_merge_args_init(STATES, 1, m_in, s_in, &m, &s);
        ck_assert_int_eq(nrg_softmax_merge(&args, 0, 1), NRG_OK);
        ck_assert_msg(s == 1 + 0x1p-51, "1 is state %zu: the sum is 1 + %a", at, s - 1);
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("states of softmax, made one");
    tcase_add_test(test_case(suite, "NaN"), a_nan_in_one_state);
    tcase_add_test(test_case(suite, "sum"), small_sums_add_up);
    return test_run(suite);
}
