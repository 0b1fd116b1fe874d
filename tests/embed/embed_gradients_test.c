/* The gradients of several tables by one call: the bits of a call for each, in any number and order of shares, whichever of the
 * tables are there.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

enum { TOKENS = 45, DIM = 147, MOST = 60, WORDS = 3 * (2 + (TOKENS + MOST + 2) / 2) };

static float d_o_values[TOKENS * DIM], old_values[MOST * DIM];
static int32_t ids[NRG_EMBED_TABLES][TOKENS];
static nrg_embed_gradient tables[NRG_EMBED_TABLES]; /* of what is drawn */
static uint64_t space[WORDS];

/* BERT's in some order: ids of which some are frequent, positions that repeat, segments; each added to what is there, or not, and
 * with a scale or without. */
static nrg_embed_backward_args draw(uint64_t *state, nrg_dtype dtype, const void *d_o)
{
    nrg_embed_backward_args args = nrg_embed_backward_args_init(dtype, TOKENS, DIM, d_o);
    args.tables = tables;
    args.table_count = NRG_EMBED_TABLES;
    args.table_dtype = test_draw(state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    args.store = (nrg_store)test_draw(state, 3);
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        nrg_embed_gradient *t = &tables[k];
        *t = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
        const size_t kind = test_draw(state, 4);
        t->rows = kind == 0 ? 2 : MOST;
        for (size_t i = 0; i < TOKENS; i++)
            ids[k][i] = (int32_t)test_draw(state, test_draw(state, 2) ? t->rows : 1);
        t->ids = kind < 2 ? ids[k] : NULL;
        t->first_position = kind < 2 ? 0 : (int32_t)test_draw(state, MOST - TOKENS);
        t->period = kind % 2 ? 1 + test_draw(state, TOKENS) : SIZE_MAX;
        t->scale = test_draw(state, 2) ? -0.3f : 1;
        t->accumulate = (int)test_draw(state, 2);
    }
    return args;
}

static void sum(nrg_embed_backward_args *args, int nth)
{
    size_t bytes = 0;
    ck_assert_int_eq(nrg_embed_backward_workspace(args, &bytes), NRG_OK);
    ck_assert_uint_le(bytes, sizeof space);
    memset(space, 0xff, sizeof space);
    args->workspace = bytes ? space : NULL;
    args->workspace_size = bytes;
    ck_assert_int_eq(nrg_embed_backward_order(args), NRG_OK);
    ck_assert_int_eq(nrg_embed_backward_check(args), NRG_OK);
    for (int ith = nth - 1; ith >= 0; ith--)
        ck_assert_int_eq(nrg_embed_backward(args, ith, nth), NRG_OK);
}

static void compare(nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = test_mix(seed);
    const unsigned there = 1 + (unsigned)test_draw(&state, 7);
    void *d_o = element_stored(d_o_values, TOKENS * DIM, dtype), *expected[NRG_EMBED_TABLES], *got[NRG_EMBED_TABLES];
    const nrg_embed_backward_args args = draw(&state, dtype, d_o);
    nrg_embed_backward_args together = args;
    const nrg_dtype table_dtype = args.table_dtype == NRG_F32 ? NRG_F32 : dtype;
    size_t bytes, total = 0, all;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        nrg_embed_backward_args one = args;
        expected[k] = element_stored(old_values, MOST * DIM, table_dtype);
        if (!(there >> k & 1)) {
            tables[k] = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
            continue;
        }
        nrg_embed_gradient table = tables[k];
        table.d_table = expected[k];
        one.tables = &table;
        one.table_count = 1;
        sum(&one, 1);
        ck_assert_int_eq(nrg_embed_backward_workspace(&one, &bytes), NRG_OK);
        total += bytes;
    }
    ck_assert_int_eq(nrg_embed_backward_workspace(&together, &all), NRG_OK);
    ck_assert_uint_eq(all, total);
    for (int nth = 1; nth <= 9; nth += 2) {
        for (int k = 0; k < NRG_EMBED_TABLES; k++) {
            got[k] = element_stored(old_values, MOST * DIM, table_dtype);
            tables[k].d_table = there >> k & 1 ? got[k] : NULL;
        }
        sum(&together, nth);
        for (int k = 0; k < NRG_EMBED_TABLES; k++) {
            ck_assert_mem_eq(got[k], expected[k], (size_t)MOST * DIM * nrg_dtype_size(table_dtype));
            free(got[k]);
        }
    }
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        free(expected[k]);
    free(d_o);
}

START_TEST(table_by_table)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    uint64_t state = 3;
    for (size_t i = 0; i < TOKENS * DIM; i++)
        d_o_values[i] = (float)test_uniform(&state) * (float)(1 + test_draw(&state, 1000));
    for (size_t i = 0; i < MOST * DIM; i++)
        old_values[i] = (float)test_uniform(&state);
    for (size_t p = 0; p < path_count; p++) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
            for (uint64_t seed = 0; seed < (test_small() ? 12 : 60); seed++)
                compare(dtype, seed);
    }
}
END_TEST

/* Each share has a part of every table, as large as the others'. */
START_TEST(equal_shares)
{
    enum { ROWS = 600, COLUMNS = 1024, NTH = 4 };
    static const size_t table_rows[NRG_EMBED_TABLES] = {300, 200, 2};
    float *d_o = test_allocate((size_t)ROWS * COLUMNS, sizeof *d_o), *d_table[NRG_EMBED_TABLES];
    int32_t *token_ids = test_allocate(ROWS, sizeof *token_ids), *segment_ids = test_allocate(ROWS, sizeof *segment_ids);
    uint64_t *workspace = test_allocate(2 * ROWS, sizeof *workspace);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        d_o[i] = 1;
    for (int32_t t = 0; t < ROWS; t++) {
        token_ids[t] = t % 3 ? t % 7 : t % 300;
        segment_ids[t] = t % 200 > 20;
    }
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, ROWS, COLUMNS, d_o);
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        tables[k] = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
    args.tables = tables;
    args.table_count = NRG_EMBED_TABLES;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        d_table[k] = test_allocate(table_rows[k] * COLUMNS, sizeof *d_table[k]);
        tables[k].d_table = d_table[k];
        tables[k].rows = table_rows[k];
        tables[k].scale = 1;
    }
    tables[0].ids = token_ids;
    tables[1].period = 200;
    tables[2].ids = segment_ids;
    args.workspace = workspace;
    args.workspace_size = 2 * ROWS * sizeof *workspace;
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
    for (int ith = 0; ith < NTH; ith++) {
        for (int k = 0; k < NRG_EMBED_TABLES; k++)
            for (size_t i = 0; i < table_rows[k] * COLUMNS; i++)
                d_table[k][i] = -1;
        ck_assert_int_eq(nrg_embed_backward(&args, ith, NTH), NRG_OK);
        for (int k = 0; k < NRG_EMBED_TABLES; k++) {
            double work = 0;
            for (size_t i = 0; i < table_rows[k] * COLUMNS; i++)
                work += d_table[k][i] + 1; /* the tokens that were added up, and one for what was written */
            const double fair = (double)(ROWS + table_rows[k]) * COLUMNS / NTH, most = (ROWS + 1) * 64;
            if (work < fair - most || work > fair + most)
                ck_abort_msg("table %d, share %d: %.0f of work, where %.0f would be fair", k, ith, work, fair);
        }
    }
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        free(d_table[k]);
    free(workspace);
    free(segment_ids);
    free(token_ids);
    free(d_o);
}
END_TEST

/* An id that no table has leaves the orders of all tables as they were; and so does an order that is missing the gradients. */
START_TEST(all_or_nothing)
{
    static const int32_t right[4] = {0, 1, 2, 0}, wrong[4] = {0, 1, 3, 0};
    float d_o[4] = {1, 1, 1, 1}, d_table[2][3] = {{7, 7, 7}, {7, 7, 7}}, before[2][3];
    uint64_t workspace[16] = {0}, zeros[16] = {0};
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, 4, 1, d_o);
    for (int k = 0; k < 3; k++)
        tables[k] = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
    args.tables = tables;
    args.table_count = 3;
    tables[0] = nrg_embed_gradient_init(nrg_embed_table_init(3, NULL, right), d_table[0]);
    tables[2] = nrg_embed_gradient_init(nrg_embed_table_init(3, NULL, wrong), d_table[1]);
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    memcpy(before, d_table, sizeof before);
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_ERR_POSITION);
    ck_assert_mem_eq(workspace, zeros, sizeof workspace);
    tables[2].ids = right;
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_ERR_WORKSPACE);
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
    tables[2].rows = 2;
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_ERR_WORKSPACE); /* though the first has its order */
    ck_assert_mem_eq(before, d_table, sizeof before);
    tables[2].rows = 3;
    tables[2].d_table = d_table[0];
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_ERR_OVERLAP);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("embed: gradients of several tables");
    TCase *all = test_case(suite, "gradients");
    tcase_add_test(all, table_by_table);
    tcase_add_test(all, equal_shares);
    tcase_add_test(all, all_or_nothing);
    return test_run(suite);
}
