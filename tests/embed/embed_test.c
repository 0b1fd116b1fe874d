/* nrg/embed.h, beside what bits_test and bad_input_test do: the order of the gradients' sums, shares of equal work, workspaces,
 * constructors.
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
            nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o);
            args.tables[0] = nrg_embed_gradient_of(nrg_embed_by_ids(NULL, TABLE_ROWS, ids), d_table);
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
        nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o);
        args.tables[0] = nrg_embed_gradient_of(nrg_embed_by_ids(NULL, table_rows, ids), d_table);
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

/* The workspace; and what its contents are good for: one order serves many calls. */
START_TEST(workspace)
{
    enum { ROWS = 5, DIM = 4, TABLE_ROWS = 9, SPACE = 80 };
    static float d_o[ROWS * DIM], d_table[TABLE_ROWS * DIM];
    static const int32_t ids[ROWS] = {0, 4, 8, 0, 4};
    static uint64_t space[SPACE / 8];
    size_t bytes = 1;
    nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o);
    args.tables[0] = nrg_embed_gradient_of(nrg_embed_counted(NULL, TABLE_ROWS, 0), d_table);
    ck_assert_int_eq(nrg_embed_backward_workspace(&args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, 0);
    args.tables[0].ids = ids;
    ck_assert_int_eq(nrg_embed_backward_workspace(&args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, SPACE);
    args.workspace = space;
    args.workspace_size = SPACE;
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_ERR_WORKSPACE); /* there is no order yet */
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_OK);
}
END_TEST

/* No tokens: rows of zeros, or what was there. */
START_TEST(no_tokens)
{
    enum { DIM = 4, TABLE_ROWS = 9 };
    static const float zero[TABLE_ROWS * DIM];
    static uint64_t space[TABLE_ROWS];
    static const int32_t ids[1];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float d_table[TABLE_ROWS * DIM], before[TABLE_ROWS * DIM];
        for (int i = 0; i < TABLE_ROWS * DIM; i++)
            d_table[i] = before[i] = (float)(i + 1);
        nrg_embed_backward_args args = nrg_embed_backward_args_init(0, DIM, NULL);
        args.tables[0] = nrg_embed_gradient_of(nrg_embed_by_ids(NULL, TABLE_ROWS, ids), d_table);
        args.workspace = space;
        args.workspace_size = sizeof space;
        args.tables[0].accumulate = accumulate;
        ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
        ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_OK);
        ck_assert_mem_eq(d_table, accumulate ? before : zero, sizeof d_table);
    }
}
END_TEST

START_TEST(constructors)
{
    static const int32_t ids[1];
    float x, o;
    nrg_embed_args a = nrg_embed_args_init(3, 7, &o);
    ck_assert(a.size == sizeof a && a.rows == 3 && a.dim == 7 && a.o == &o && a.dtype == NRG_F32 &&
              a.table_dtype == NRG_DTYPE_SAME && a.store == NRG_STORE_AUTO && !a.x && !a.x_stride && !a.o_stride && !a.reserved);
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        ck_assert(!a.tables[k].table && !a.tables[k].ids && !a.tables[k].rows && a.tables[k].scale == 0);
    nrg_embed_table t = nrg_embed_by_ids(&x, 5, ids);
    ck_assert(t.table == &x && t.rows == 5 && t.ids == ids && t.first == 0 && t.scale == 1 && t.stride == 0);
    t = nrg_embed_counted(&x, 5, 2);
    ck_assert(t.table == &x && t.rows == 5 && !t.ids && t.first == 2 && t.scale == 1 && t.stride == 0);
    nrg_embed_backward_args b = nrg_embed_backward_args_init(3, 7, &x);
    ck_assert(b.size == sizeof b && b.rows == 3 && b.dim == 7 && b.d_o == &x && b.dtype == NRG_F32 && !b.workspace &&
              !b.workspace_size && !b.d_o_stride && !b.reserved);
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        ck_assert(!b.tables[k].d_table && !b.tables[k].ids && !b.tables[k].rows && !b.tables[k].accumulate);
    t.period = 4;
    t.scale = 3;
    t.stride = 64;
    nrg_embed_gradient g = nrg_embed_gradient_of(t, &o);
    ck_assert(g.d_table == &o && g.rows == 5 && !g.ids && g.first == 2 && g.period == 4 && g.scale == 3 && !g.stride &&
              !g.accumulate);
    ck_assert(nrg_embed_gradient_of(nrg_embed_by_ids(&x, 5, ids), &o).ids == ids);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("embed");
    TCase *properties = test_case(suite, "properties");
    tcase_add_test(properties, order_of_the_sum);
    tcase_add_test(properties, equal_shares);
    tcase_add_test(properties, workspace);
    tcase_add_test(properties, no_tokens);
    tcase_add_test(properties, constructors);
    return test_run(suite);
}
