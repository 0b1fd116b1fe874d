/* Ids and positions that repeat (nrg_embed_table.period): the bits of ids that are told for every token, alone, with the norm,
 * and backward; on every path, in every dtype, in any number of shares. And no id past the first period is read.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/fence.h"
#include "../harness/support.h"

enum {
    TOKENS = 29,
    DIM = 83,
    ENTRIES = 40,
    FIRST = 3,
    ELEMENTS = TOKENS * DIM,
    WORDS = 2 + (TOKENS + ENTRIES + 2) / 2 /* of a workspace */
};

/* Of one table; periods that are no shorter than the batch are no periods. */
static const size_t periods[] = {1, 2, 7, 14, TOKENS - 1, TOKENS, TOKENS + 1, SIZE_MAX};
enum { PERIODS = sizeof periods / sizeof periods[0] };

static fence ids_at;
static float values[ENTRIES * DIM], x_values[ELEMENTS];

static void make_values(void)
{
    uint64_t state = 7;
    for (size_t i = 0; i < ENTRIES * DIM; i++)
        values[i] = (float)test_uniform(&state) * (float)(1 + test_draw(&state, 1000));
    for (size_t i = 0; i < ELEMENTS; i++)
        x_values[i] = (float)test_uniform(&state);
}

/* The ids of one period, at the end of memory that may be touched; and those of all tokens. */
static const int32_t *make_ids(size_t period, int counted, int32_t tiled[TOKENS])
{
    const size_t count = period < TOKENS ? period : TOKENS;
    int32_t *ids = (int32_t *)(void *)fence_place(&ids_at, count * sizeof *ids, AT_END, 0);
    uint64_t state = period;
    for (size_t i = 0; i < count; i++)
        ids[i] = counted ? FIRST + (int32_t)i : (int32_t)test_draw(&state, ENTRIES);
    for (size_t t = 0; t < TOKENS; t++)
        tiled[t] = ids[t % count];
    return ids;
}

/* A table whose rows repeat, or the same told for every token. */
static nrg_embed_table make_table(const void *table, size_t period, int counted, const int32_t *ids)
{
    nrg_embed_table t = counted ? nrg_embed_table_counted(ENTRIES, table, FIRST) : nrg_embed_table_init(ENTRIES, table, ids);
    t.period = period;
    return t;
}

static void forward(const nrg_embed_args *args, int with_norm, void *o, size_t bytes, int nth)
{
    memset(o, 0xff, bytes);
    for (int ith = nth - 1; ith >= 0; ith--)
        if (with_norm) {
            nrg_embed_args sums = *args;
            nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
            nrg_norm_args norm = nrg_norm_args_init(TOKENS, NULL, NULL, o);
            sums.o = NULL;
            spec.dtype = args->dtype;
            ck_assert_int_eq(nrg_embed_norm_forward(&spec, &sums, &norm, ith, nth), NRG_OK);
        } else
            ck_assert_int_eq(nrg_embed_forward(args, ith, nth), NRG_OK);
}

/* Two tables whose periods differ, beside x or not. */
static void compare_forward(nrg_dtype dtype, size_t n, int counted, int with_x, int with_norm)
{
    int32_t tiled[2][TOKENS];
    float got[ELEMENTS], expected[ELEMENTS];
    const size_t bytes = ELEMENTS * nrg_dtype_size(dtype);
    void *table = element_stored(values, ENTRIES * DIM, dtype), *x = element_stored(x_values, ELEMENTS, dtype);
    for (int nth = 1; nth <= 5; nth += 2) {
        nrg_embed_args args = nrg_embed_args_init(dtype, TOKENS, DIM, expected);
        nrg_embed_table tables[3];
        for (int k = 0; k < 3; k++)
            tables[k] = nrg_embed_table_init(0, NULL, NULL);
        args.tables = tables;
        args.table_count = 3;
        args.x = with_x ? x : NULL;
        const int32_t *ids = make_ids(periods[n], counted, tiled[0]);
        for (size_t t = 0; t < TOKENS; t++)
            tiled[1][t] = FIRST + (int32_t)(t % 5);
        tables[0] = nrg_embed_table_init(ENTRIES, table, tiled[0]);
        tables[2] = nrg_embed_table_init(ENTRIES, table, tiled[1]);
        forward(&args, with_norm, expected, bytes, 1);
        args.o = got;
        tables[0] = make_table(table, periods[n], counted, ids);
        tables[2] = make_table(table, 5, 1, NULL);
        forward(&args, with_norm, got, bytes, nth);
        ck_assert_mem_eq(got, expected, bytes);
        args.table_count = 1; /* which may be a copy */
        forward(&args, with_norm, got, bytes, nth);
        args.o = expected;
        tables[0] = nrg_embed_table_init(ENTRIES, table, tiled[0]);
        forward(&args, with_norm, expected, bytes, 1);
        ck_assert_mem_eq(got, expected, bytes);
    }
    free(table);
    free(x);
}

/* How often each element is written is what a workspace and a fence do not tell: old values are added to as well. */
static void compare_backward(nrg_dtype dtype, nrg_dtype table_dtype, size_t n, int counted, int accumulate)
{
    int32_t tiled[TOKENS];
    uint64_t space[2][WORDS];
    const size_t bytes = (size_t)ENTRIES * DIM * nrg_dtype_size(table_dtype);
    void *d_o = element_stored(x_values, ELEMENTS, dtype);
    void *expected = element_stored(values, ENTRIES * DIM, table_dtype);
    const int32_t *ids = make_ids(periods[n], counted, tiled);
    nrg_embed_backward_args args = nrg_embed_backward_args_init(dtype, TOKENS, DIM, d_o);
    args.table_dtype = table_dtype;
    nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_init(ENTRIES, NULL, tiled), expected);
    args.tables = &table;
    args.table_count = 1;
    table.accumulate = accumulate;
    table.scale = -0.3f;
    args.workspace = space[0];
    args.workspace_size = sizeof space[0];
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
    ck_assert_int_eq(nrg_embed_backward(&args, 0, 1), NRG_OK);
    table.ids = counted ? NULL : ids;
    table.first_position = counted ? FIRST : 0;
    table.period = periods[n];
    args.workspace = counted ? NULL : space[1];
    ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
    for (int nth = 1; nth <= 7; nth += 2) {
        void *got = table.d_table = element_stored(values, ENTRIES * DIM, table_dtype);
        for (int ith = nth - 1; ith >= 0; ith--)
            ck_assert_int_eq(nrg_embed_backward(&args, ith, nth), NRG_OK);
        ck_assert_mem_eq(got, expected, bytes);
        free(got);
    }
    free(d_o);
    free(expected);
}

START_TEST(same_bits)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths), n = (size_t)_i;
    make_values();
    for (size_t p = 0; p < path_count; p++) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
            for (int way = 0; way < 8; way++) {
                compare_forward(dtype, n, way & 1, way >> 1 & 1, way >> 2);
                compare_backward(dtype, way & 4 ? NRG_F32 : dtype, n, way & 1, way >> 1 & 1);
            }
    }
    fence_free(&ids_at);
}
END_TEST

/* A table that is larger than any cache, so that what later tokens pick is looked up early: in the ids of one period as well. */
START_TEST(early_looks)
{
    enum { STRIDE = 1 << 20, ROWS = 300 };
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    char *table = malloc((size_t)STRIDE * ROWS); /* of which the picked rows are touched, and no others */
    float o[TOKENS * 2];
    ck_assert_ptr_nonnull(table);
    for (size_t n = 0; n < PERIODS; n++) {
        int32_t tiled[TOKENS];
        const int32_t *ids = make_ids(periods[n], 0, tiled);
        for (int k = 0; k < ENTRIES; k++)
            memcpy(table + (size_t)k * STRIDE, (const float[]){(float)k, 1}, 2 * sizeof(float));
        for (size_t p = 0; p < path_count; p++) {
            nrg_embed_args args = nrg_embed_args_init(NRG_F32, TOKENS, 2, o);
            nrg_embed_table term = make_table(table, periods[n], 0, ids);
            args.tables = &term;
            args.table_count = 1;
            term.rows = ROWS;
            term.table_stride = STRIDE;
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            for (int ith = 0; ith < 3; ith++)
                ck_assert_int_eq(nrg_embed_forward(&args, ith, 3), NRG_OK);
            for (size_t t = 0; t < TOKENS; t++)
                ck_assert(o[2 * t] == (float)tiled[t] && o[2 * t + 1] == 1);
        }
    }
    fence_free(&ids_at);
    free(table);
}
END_TEST

/* Positions that are counted need as many rows as a period has, and ids past a period may be anything: they are not ids. */
START_TEST(rows_of_a_period)
{
    enum { PERIOD = 6 };
    float table[PERIOD * 2] = {0}, o[TOKENS * 2], d_o[TOKENS * 2] = {0};
    nrg_embed_args args = nrg_embed_args_init(NRG_F32, TOKENS, 2, o);
    nrg_embed_table term = nrg_embed_table_counted(PERIOD, table, 0);
    args.tables = &term;
    args.table_count = 1;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_POSITION);
    term.period = PERIOD;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_OK);
    term.period = PERIOD + 1;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_POSITION);
    ck_assert_int_eq(nrg_embed_forward_check(&args), NRG_ERR_POSITION);

    nrg_embed_backward_args backward = nrg_embed_backward_args_init(NRG_F32, TOKENS, 2, d_o);
    nrg_embed_gradient backward_table = nrg_embed_gradient_init(nrg_embed_table_counted(PERIOD, NULL, 0), table);
    backward.tables = &backward_table;
    backward.table_count = 1;
    ck_assert_int_eq(nrg_embed_backward(&backward, 0, 1), NRG_ERR_POSITION);
    backward_table.period = PERIOD;
    ck_assert_int_eq(nrg_embed_backward(&backward, 0, 1), NRG_OK);
    backward_table.first_position = 1;
    ck_assert_int_eq(nrg_embed_backward_check(&backward), NRG_ERR_POSITION);

    const int32_t ids[PERIOD + 1] = {0, 5, 1, 4, 2, 3, -1};
    term = nrg_embed_table_init(PERIOD, table, ids);
    term.period = PERIOD;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_OK);
    term.period = PERIOD + 1;
    ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_ERR_POSITION);
}
END_TEST

/* Rows of the table with tokens a period apart are not alike in work: shares are of the tokens. */
START_TEST(equal_shares)
{
    enum { ROWS = 1000, COLUMNS = 1024, PERIOD = 3, NTH = 8, TABLE_ROWS = 6 };
    float *d_o = test_allocate((size_t)ROWS * COLUMNS, sizeof *d_o), *d_table = test_allocate(TABLE_ROWS * COLUMNS, sizeof *d_o);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        d_o[i] = 1;
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, ROWS, COLUMNS, d_o);
    nrg_embed_gradient table = nrg_embed_gradient_init(nrg_embed_table_counted(TABLE_ROWS, NULL, 2), d_table);
    args.tables = &table;
    args.table_count = 1;
    table.period = PERIOD;
    for (int ith = 0; ith < NTH; ith++) {
        double work = 0;
        for (size_t i = 0; i < TABLE_ROWS * COLUMNS; i++)
            d_table[i] = -1;
        ck_assert_int_eq(nrg_embed_backward(&args, ith, NTH), NRG_OK);
        for (size_t i = 0; i < TABLE_ROWS * COLUMNS; i++)
            work += d_table[i] + 1;
        const double fair = (double)(ROWS + TABLE_ROWS) * COLUMNS / NTH, most = (ROWS / (double)PERIOD + 2) * 64;
        if (work < fair - most || work > fair + most)
            ck_abort_msg("share %d: %.0f of work, where %.0f would be fair", ith, work, fair);
    }
    free(d_o);
    free(d_table);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("embed: ids that repeat");
    TCase *all = test_case(suite, "period");
    tcase_add_loop_test(all, same_bits, 0, PERIODS);
    tcase_add_test(all, early_looks);
    tcase_add_test(all, rows_of_a_period);
    tcase_add_test(all, equal_shares);
    return test_run(suite);
}
