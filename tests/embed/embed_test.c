/* nrg_embed_backward, beside what bits_test does: the order of its sums, and shares of equal work.
 *
 * SPDX-License-Identifier: MIT */
#include "../harness/support.h"

static void choose(nrg_isa isa) { ck_assert_int_eq(nrg_isa_set(isa), NRG_OK); }

/* Terms so large that what is small is lost in double beside them, and shows again where they cancel: another order of the tokens
 * gives another sum. */
START_TEST(order_of_the_sum)
{
    enum { ROWS = 150, DIM = 70, TABLE_ROWS = 3 };
    static float d_o[ROWS * DIM], d_table[TABLE_ROWS * DIM];
    static int32_t ids[ROWS];
    static uint64_t workspace[ROWS];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t p = 0; p < path_count; p++)
        for (uint64_t n = 0; n < 10; n++) {
            uint64_t state = test_mix(n);
            for (size_t t = 0; t < ROWS; t++) {
                ids[t] = (int32_t)test_draw(&state, TABLE_ROWS);
                for (size_t i = 0; i < DIM; i++) {
                    static const float values[] = {0x1p60f, -0x1p60f, 1, 3, -0x1p59f};
                    d_o[t * DIM + i] = values[test_draw(&state, 5)];
                }
            }
            nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o, TABLE_ROWS, d_table);
            args.ids = ids;
            args.workspace = workspace;
            args.workspace_size = sizeof workspace;
            choose(paths[p]);
            ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
            for (int ith = 2; ith >= 0; ith--)
                ck_assert_int_eq(nrg_embed_backward(&args, ith, 3), NRG_OK);
            for (int32_t k = 0; k < TABLE_ROWS; k++)
                for (size_t i = 0; i < DIM; i++) {
                    double sum = 0;
                    for (size_t t = 0; t < ROWS; t++)
                        sum += ids[t] == k ? (double)d_o[t * DIM + i] : 0;
                    if (d_table[(size_t)k * DIM + i] != (float)sum)
                        ck_abort_msg("%s: row %d, column %zu is %g and not %g", nrg_isa_name(paths[p]), (int)k, i,
                                     (double)d_table[(size_t)k * DIM + i], sum);
                }
        }
}
END_TEST

/* A table of two rows, and one of many in which two have most of the tokens: each share writes as much as the others, but for
 * what does not divide. */
START_TEST(equal_shares)
{
    enum { ROWS = 1000, DIM = 1024, MANY = 300, NTH = 8 };
    static float d_o[ROWS * DIM], d_table[MANY * DIM];
    static int32_t ids[ROWS];
    static uint64_t workspace[ROWS];
    for (size_t i = 0; i < ROWS * (size_t)DIM; i++)
        d_o[i] = 1;
    for (size_t table_rows = 2; table_rows <= MANY; table_rows += MANY - 2) {
        for (int32_t t = 0; t < ROWS; t++)
            ids[t] = t % 10 ? t % 2 : t % (int32_t)table_rows;
        nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o, table_rows, d_table);
        args.ids = ids;
        args.workspace = workspace;
        args.workspace_size = sizeof workspace;
        ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
        for (int ith = 0; ith < NTH; ith++) {
            double work = 0;
            for (size_t i = 0; i < table_rows * DIM; i++)
                d_table[i] = -1;
            ck_assert_int_eq(nrg_embed_backward(&args, ith, NTH), NRG_OK);
            for (size_t i = 0; i < table_rows * DIM; i++)
                work += d_table[i] + 1; /* the tokens that were added up, and one for what was written */
            const double fair = (double)(ROWS + table_rows) * DIM / NTH, most = (ROWS / 2.0 + 50) * 64;
            if (work < fair - most || work > fair + most)
                ck_abort_msg("table of %zu, share %d: %.0f of work, where %.0f would be fair", table_rows, ith, work, fair);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("embed_backward");
    TCase *properties = test_case(suite, "properties");
    tcase_add_test(properties, order_of_the_sum);
    tcase_add_test(properties, equal_shares);
    return test_run(suite);
}
