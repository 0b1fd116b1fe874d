/* nrg_norm_rope, beside what bits_test does: rows that need the fallback among others that do not, and more rows than the blocks
 * of the sums begin with; structs that say nothing may be left out.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../../src/operands/norm_rope.h"
#include "../harness/case_call.h"
#include "../harness/element.h"
#include "../harness/rows.h"

/* ---- rows of kinds that the paths' code for whole vectors hands on ---- */

static int refill(case_call *call)
{
    static const enum row_kind kinds[] = {ROW_NORMAL,    ROW_ONE_NAN,  ROW_AT_QUIET_LIMIT, ROW_AT_MEAN_LIMIT,
                                          ROW_SUBNORMAL, ROW_NEAR_MAX, ROW_ZEROS,          ROW_ANY_MAGNITUDE};
    for (int i = NRG_ROPE_Q; i <= NRG_NORM_ROPE_BACKWARD_K_X; i++) {
        const sweep_operand *o = &call->c.operands[i];
        void *rows = call->c.weights >> i & 1 ? NULL : case_call_content(call, i);
        uint64_t state = call->c.number * 8 + (uint64_t)i;
        float *row = element_tensor(o->length, NRG_F32);
        for (size_t n = 0; rows && n < o->rows; n++) {
            row_fill(row, o->length, kinds[test_draw(&state, 2) ? 0 : test_draw(&state, 8)], (nrg_dtype)o->type, test_mix(state));
            for (size_t k = 0; k < o->length; k++)
                element_set(rows, n * o->length + k, (nrg_dtype)o->type, row[k]);
        }
        free(row);
    }
    return 1;
}

START_TEST(rows_of_all_kinds) { case_sweep_op("norm_rope", _i, 8, test_small() ? 60 : UINT64_MAX, refill); }
END_TEST

/* ---- one call against the two in turn ---- */

enum { TOKENS = 512, HEADS = 9, ROWS = TOKENS * HEADS, DIM_MOST = 12 };

/* Blocks of the sums are longer where there would be too many of them. No heads of k, and no args for them. */
START_TEST(many_rows)
{
    static float table[TOKENS * DIM_MOST], d_o[ROWS * DIM_MOST], x[ROWS * DIM_MOST], dx[2][ROWS * DIM_MOST],
        sums[2][2 * DIM_MOST];
    static double workspace[2 * 64 * DIM_MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t dim = 6 + (size_t)_i % 3 * 2;
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    row_fill(table, TOKENS * dim, ROW_NORMAL, NRG_F32, 1);
    for (size_t i = 0; i < ROWS * dim; i++) {
        uint64_t state = i;
        element_set(x, i, dtype, (float)test_draw(&state, 2001) / 500 - 2);
        element_set(d_o, i, dtype, (float)test_draw(&state, 2001) / 500 - 2);
    }
    const nrg_norm_spec base = _i % 2 ? nrg_norm_spec_layer(NRG_F32, dim, 1e-5) : nrg_norm_spec_rms(NRG_F32, dim, 1e-6);
    nrg_norm_spec norm = base;
    norm.dtype = dtype;
    const nrg_rope_spec spec = nrg_rope_spec_init(dim, NRG_ROPE_NEOX, 10000);
    for (size_t p = test_paths(paths); p-- > 0;) {
        nrg_rope_args rope = nrg_rope_args_init(dtype, TOKENS, dim, table);
        rope.q_heads = HEADS;
        rope.q = d_o;
        rope.q_o = dx[0];
        nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, x, NULL, NULL, NULL);
        args.dw = sums[0];
        args.db = sums[0] + dim;
        args.workspace = workspace;
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        ck_assert_int_eq(nrg_norm_backward_workspace(&norm, &args, &args.workspace_size), NRG_OK);
        ck_assert_uint_le(args.workspace_size, sizeof workspace);
        for (int ith = 2; ith >= 0; ith--)
            ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &args, NULL, ith, 3), NRG_OK);
        for (int ith = 1; ith >= 0; ith--)
            ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, &args, NULL, ith, 2), NRG_OK);

        rope.q_o = dx[1];
        args.d_o = args.dx = dx[1];
        args.dw = sums[1];
        args.db = sums[1] + dim;
        ck_assert_int_eq(nrg_rope_backward(&spec, &rope, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_norm_backward(&norm, &args, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_norm_backward_reduce(&norm, &args, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(dx[0], dx[1], ROWS * dim * nrg_dtype_size(dtype)) == 0, "%s: dx", nrg_isa_name(paths[p]));
        ck_assert_msg(memcmp(sums[0], sums[1], 2 * dim * sizeof(float)) == 0, "%s: dw or db", nrg_isa_name(paths[p]));
    }
}
END_TEST

/* One thread reduces by itself; a second phase after it changes nothing, though the sums accumulate. */
START_TEST(one_thread)
{
    enum { DIM = 8 };
    static float table[TOKENS * DIM], d_o[ROWS * DIM], x[ROWS * DIM], dx[ROWS * DIM], sums[3][2 * DIM];
    static double workspace[2 * 64 * DIM];
    size_t of_q, of_k;
    row_fill(table, TOKENS * DIM, ROW_NORMAL, NRG_F32, 1);
    row_fill(d_o, ROWS * DIM, ROW_NORMAL, NRG_F32, 2);
    row_fill(x, ROWS * DIM, ROW_NORMAL, NRG_F32, 3);
    const nrg_norm_spec norm = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    const nrg_rope_spec spec = nrg_rope_spec_init(DIM, NRG_ROPE_NEOX, 10000);
    nrg_rope_args rope = nrg_rope_args_init(NRG_F32, TOKENS, DIM, table);
    rope.k_heads = HEADS;
    rope.k = d_o;
    rope.k_o = dx;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, x, NULL, NULL, NULL);
    args.workspace = workspace;
    args.accumulate = 1;
    for (int n = 0; n < 3; n++) { /* in three shares and a second phase; in one; in one and a second phase */
        const int nth = n ? 1 : 3;
        row_fill(sums[n], 2 * DIM, ROW_NORMAL, NRG_F32, 4);
        args.dw = sums[n];
        args.db = sums[n] + DIM;
        ck_assert_int_eq(nrg_norm_rope_backward_workspace(&norm, NULL, &args, &of_q, &of_k), NRG_OK);
        ck_assert_uint_eq(of_q, 0);
        ck_assert_uint_le(of_k, sizeof workspace);
        ck_assert_int_eq(nrg_norm_backward_workspace(&norm, &args, &args.workspace_size), NRG_OK);
        ck_assert_uint_eq(of_k, args.workspace_size);
        for (int ith = 0; ith < nth; ith++)
            ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, NULL, &args, ith, nth), NRG_OK);
        for (int ith = 0; n != 1 && ith < 2; ith++)
            ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, NULL, &args, ith, 2), NRG_OK);
        ck_assert_mem_eq(sums[n], sums[0], sizeof sums[0]);
    }
    ck_assert_int_eq(nrg_norm_rope_backward_workspace(&norm, NULL, &args, NULL, &of_k), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_rope_backward_workspace(NULL, NULL, &args, &of_q, &of_k), NRG_ERR_NULL);
    of_q = of_k = 77;
    args.size = 3;
    ck_assert_int_eq(nrg_norm_rope_backward_workspace(&norm, NULL, &args, &of_q, &of_k), NRG_ERR_STRUCT_SIZE);
    ck_assert(of_q == 77 && of_k == 77);
}
END_TEST

/* Neither dw nor db: no workspace, and a second phase that has nothing to do. */
START_TEST(nothing_left)
{
    enum { DIM = 8, COUNT = 3 * DIM };
    float table[3 * DIM], q[COUNT], x[COUNT], dx[COUNT], before[COUNT];
    row_fill(table, 3 * DIM, ROW_NORMAL, NRG_F32, 1);
    row_fill(q, COUNT, ROW_NORMAL, NRG_F32, 2);
    row_fill(x, COUNT, ROW_NORMAL, NRG_F32, 3);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    const nrg_rope_spec spec = nrg_rope_spec_init(DIM, NRG_ROPE_NORMAL, 10000);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(3, x, NULL, NULL, NULL);
    nrg_rope_args rope = nrg_rope_args_init(NRG_F32, 3, DIM, table);
    rope.q_heads = 1;
    rope.q = q;
    rope.q_o = dx;
    ck_assert_int_eq(nrg_norm_backward_workspace(&norm, &args, &args.workspace_size), NRG_OK);
    ck_assert_uint_eq(args.workspace_size, 0);
    for (int ith = 1; ith >= 0; ith--)
        ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &args, NULL, ith, 2), NRG_OK);
    memcpy(before, dx, sizeof dx);
    ck_assert_int_eq(nrg_norm_rope_backward_reduce_check(&norm, &spec, &rope, &args, NULL), NRG_OK);
    for (int ith = 2; ith >= 0; ith--)
        ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, &args, NULL, ith, 3), NRG_OK);
    ck_assert_mem_eq(before, dx, sizeof dx);
}
END_TEST

/* No weights and no statistics: no args. */
START_TEST(nothing_to_say)
{
    enum { DIM = 64, COUNT = 3 * DIM };
    float table[3 * DIM], q[COUNT], o[2][COUNT];
    nrg_isa paths[NRG_ISA_COUNT];
    row_fill(table, 3 * DIM, ROW_NORMAL, NRG_F32, 1);
    row_fill(q, COUNT, ROW_NORMAL, NRG_F32, 2);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    const nrg_rope_spec spec = nrg_rope_spec_init(DIM, NRG_ROPE_NORMAL, 10000);
    const nrg_norm_args none = nrg_norm_args_init(0, NULL, NULL, NULL), rows = nrg_norm_args_init(3, NULL, NULL, NULL);
    for (size_t p = test_paths(paths); p-- > 0;)
        for (int k = 0; k < 2; k++) {
            nrg_rope_args rope = nrg_rope_args_init(NRG_F32, 3, DIM, table);
            *(k ? &rope.k_heads : &rope.q_heads) = 1;
            *(k ? &rope.k : &rope.q) = q;
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            *(k ? &rope.k_o : &rope.q_o) = o[0];
            ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, NULL, NULL, 0, 1), NRG_OK);
            *(k ? &rope.k_o : &rope.q_o) = o[1];
            ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, k ? &none : &rows, k ? &rows : &none, 0, 1), NRG_OK);
            ck_assert_mem_eq(o[0], o[1], sizeof o[0]);
        }
}
END_TEST

/* ---- heads that fit registers ---- */

/* Rows of whole lanes, rotations that begin and end with a vector's elements: what models have, and what the paths rotate before
 * it is stored. Some rows, and all of some tokens, need the fallback. */
START_TEST(heads_in_registers)
{
    enum { MOST_TOKENS = 5, MOST_HEADS = 7, MOST_DIM = 256, MOST = MOST_TOKENS * MOST_HEADS * MOST_DIM };
    static float table[MOST_TOKENS * MOST_DIM], rstd[2][MOST_TOKENS * MOST_HEADS], w[MOST_DIM], x[MOST];
    static _Alignas(64) float o[2][MOST];
    static const size_t dims[] = {32, 64, 96, 128, MOST_DIM};
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    uint64_t state = test_mix((uint64_t)_i);
    row_fill(table, MOST_TOKENS * MOST_DIM, ROW_NORMAL, NRG_F32, 3);
    row_fill(w, MOST_DIM, ROW_NORMAL, NRG_F32, 4);
    for (unsigned n = 0; n < 120; n++) {
        const size_t dim = dims[test_draw(&state, 5)],
                     n_dims = test_draw(&state, 2) ? dim : 16 * (1 + test_draw(&state, dim / 16));
        const size_t offset = 16 * test_draw(&state, (dim - n_dims) / 16 + 1), heads = 1 + test_draw(&state, MOST_HEADS);
        const size_t tokens = 1 + test_draw(&state, MOST_TOKENS), bytes = tokens * heads * dim * nrg_dtype_size(dtype);
        const int32_t positions[MOST_TOKENS] = {3, 0, 4, 4, 1};
        for (size_t i = 0; i < tokens * heads * dim; i++) {
            const float scale = n % 3 == 0 && i / dim % 4 == 1 ? 0x1p-60f : 1; /* what f16 cannot hold is a row of zeros */
            element_set(x, i, dtype, scale * ((float)test_draw(&state, 4001) / 1000 - 2));
        }
        nrg_norm_spec norm = nrg_norm_spec_rms(dtype, dim, 1e-6);
        norm.w_dtype = NRG_F32;
        norm.weight_offset = n % 2 ? 1.0f : 0.0f;
        nrg_rope_spec spec = nrg_rope_spec_init(n_dims, n / 2 % 2 ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 10000);
        nrg_rope_args rope = nrg_rope_args_init(dtype, tokens, dim, table);
        nrg_norm_args args = nrg_norm_args_init(tokens * heads, NULL, w, NULL);
        rope.rotate_from = offset;
        rope.store = (nrg_store)(n / 4 % 3);
        rope.table_rows = MOST_TOKENS;
        rope.table_ids = n / 3 % 2 ? positions : NULL;
        rope.q_heads = heads;
        rope.q = x;
        nrg_isa paths[NRG_ISA_COUNT];
        rope.q_o = o[0];
        args.rstd = rstd[0];
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, &args, NULL, 0, 1), NRG_OK);
        rope.q_o = o[1];
        args.rstd = rstd[1];
        for (size_t p = test_paths(paths); p-- > 0;) {
            memset(o[1], 0xff, bytes);
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            for (int ith = 1; ith >= 0; ith--)
                ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, &args, NULL, ith, 2), NRG_OK);
            ck_assert_msg(memcmp(o[0], o[1], bytes) == 0 && memcmp(rstd[0], rstd[1], tokens * heads * sizeof(float)) == 0,
                          "%s: %s, %zu heads of %zu, %zu rotated from %zu on, mode %d, store %d", nrg_isa_name(paths[p]),
                          nrg_dtype_name(dtype), heads, dim, n_dims, offset, (int)spec.mode, (int)rope.store);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("norm_rope: the two calls in one");
    tcase_add_loop_test(test_case(suite, "rows of all kinds"), rows_of_all_kinds, 0, 8);
    TCase *turn = test_case(suite, "the two calls in turn");
    tcase_add_loop_test(turn, many_rows, 0, 6);
    tcase_add_test(turn, one_thread);
    tcase_add_test(turn, nothing_left);
    tcase_add_test(turn, nothing_to_say);
    tcase_add_loop_test(test_case(suite, "heads in registers"), heads_in_registers, 0, 6);
    return test_run(suite);
}
