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
            nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, ROWS, DIM, d_o);
            nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_init(TABLE_ROWS, NULL, ids), d_table);
            args.tables = &table;
            args.table_count = 1;
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
        nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, ROWS, DIM, d_o);
        nrg_embed_gradient gradient_of_table = nrg_embed_gradient_init(nrg_embed_table_init(table_rows, NULL, ids), d_table);
        args.tables = &gradient_of_table;
        args.table_count = 1;
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
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, ROWS, DIM, d_o);
    nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_counted(TABLE_ROWS, NULL, 0), d_table);
    args.tables = &table;
    args.table_count = 1;
    ck_assert_int_eq(nrg_embed_backward_workspace(&args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, 0);
    table.ids = ids;
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
        nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, 0, DIM, NULL);
        nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_init(TABLE_ROWS, NULL, ids), d_table);
        args.tables = &table;
        args.table_count = 1;
        args.workspace = space;
        args.workspace_size = sizeof space;
        table.accumulate = accumulate;
        ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
        ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_OK);
        ck_assert_mem_eq(d_table, accumulate ? before : zero, sizeof d_table);
    }
}
END_TEST

/* Tables of a later version are larger, and zero beyond this one's. */
START_TEST(sizes_of_tables)
{
    static const int32_t ids[] = {1, 0};
    static const float table[] = {5, 7};
    struct {
        nrg_embed_table known;
        uint64_t later;
    } tables[NRG_EMBED_TABLES + 1];
    struct {
        nrg_embed_gradient known;
        uint64_t later;
    } gradients[NRG_EMBED_TABLES + 1];
    float o[2], d_table[2][2];
    uint64_t space[16];
    nrg_embed_args args = nrg_embed_args_init(NRG_F32, 2, 1, o);
    nrg_embed_backward_args back = nrg_embed_backward_args_init(NRG_F32, 2, 1, table);
    for (int k = 0; k <= NRG_EMBED_TABLES; k++) {
        tables[k].known = nrg_embed_table_init(2, table, ids);
        gradients[k].known = nrg_embed_gradient_init(tables[k].known, d_table[k % 2]);
        tables[k].known.size = sizeof tables[0];
        gradients[k].known.size = sizeof gradients[0];
        tables[k].later = gradients[k].later = 0;
    }
    back.workspace = space;
    back.workspace_size = sizeof space;
    args.tables = &tables[0].known;
    back.tables = &gradients[0].known;
    args.table_count = back.table_count = 2;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_OK);
    ck_assert(o[0] == 14 && o[1] == 10);
    ck_assert_int_eq(nrg_embed_backward_order(&back), NRG_OK);
    ck_assert_int_eq(nrg_embed_backward(&back, 0, 1), NRG_OK);
    ck_assert(d_table[1][0] == 7 && d_table[1][1] == 5);
    tables[1].later = gradients[1].later = 1;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(nrg_embed_backward(&back, 0, 1), NRG_ERR_STRUCT_SIZE);
    tables[1].later = gradients[1].later = 0;
    tables[1].known.size--;
    gradients[1].known.size = 0;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_STRUCT_SIZE);
    ck_assert_int_eq(nrg_embed_backward_order(&back), NRG_ERR_STRUCT_SIZE);
    args.table_count = back.table_count = NRG_EMBED_TABLES + 1;
    ck_assert_int_eq(nrg_embed_forward_check(&args), NRG_ERR_COUNT);
    ck_assert_int_eq(nrg_embed_backward_check(&back), NRG_ERR_COUNT);
    args.table_count = back.table_count = 1;
    args.tables = NULL;
    back.tables = NULL;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_embed_backward(&back, 0, 1), NRG_ERR_NULL);
}
END_TEST

START_TEST(constructors)
{
    static const int32_t ids[1];
    float x, o;
    nrg_embed_args a = nrg_embed_args_init(NRG_F32, 3, 7, &o);
    ck_assert(!a.tables && !a.table_count);
    nrg_embed_table t = nrg_embed_table_init(5, &x, ids);
    ck_assert(t.size == sizeof t && t.table == &x && t.rows == 5 && t.ids == ids && t.first_position == 0 && t.scale == 1 &&
              t.table_stride == 0 && t.period == SIZE_MAX);
    t = nrg_embed_table_counted(5, &x, 2);
    ck_assert(t.table == &x && t.rows == 5 && !t.ids && t.first_position == 2 && t.scale == 1 && t.table_stride == 0);
    nrg_embed_backward_args b = nrg_embed_backward_args_init(NRG_F32, 3, 7, &x);
    ck_assert(b.size == sizeof b && b.rows == 3 && b.dim == 7 && b.d_o == &x && b.dtype == NRG_F32 && !b.workspace &&
              !b.workspace_size && !b.d_o_stride && !b.reserved);
    ck_assert(!b.tables && !b.table_count);
    t.period = 4;
    t.scale = 3;
    t.table_stride = 64;
    nrg_embed_gradient g = nrg_embed_gradient_init(t, &o);
    ck_assert(g.d_table == &o && g.rows == 5 && !g.ids && g.first_position == 2 && g.period == 4 && g.scale == 3 &&
              !g.d_table_stride && !g.accumulate);
    ck_assert(nrg_embed_gradient_init(nrg_embed_table_init(5, &x, ids), &o).ids == ids);
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
    tcase_add_test(properties, sizes_of_tables);
    tcase_add_test(properties, no_tokens);
    tcase_add_test(properties, constructors);
    return test_run(suite);
}
