/* nrg/recurrent.h, beside what bits_test does: long vectors; a chain can be continued, and knows of no other.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

/* Up to size in magnitude. */
static void *numbers(size_t n, nrg_dtype dtype, float size, uint64_t seed)
{
    void *tensor = element_tensor(n, dtype);
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++)
        element_set(tensor, i, dtype, ((float)test_draw(&state, 20001) / 10000 - 1) * size);
    return tensor;
}

/* ---- vectors that are taken in pieces of 1024 elements: every path gives the bits of scalar ---- */

typedef struct long_case {
    size_t dim;
    nrg_dtype dtype;
    void *w, *b, *p0, *p, *dp;
} long_case;

enum { LONG_N = 2, LONG_MOST = 1060, MARK = 8 /* bytes of the workspace behind g */ };

/* All that there is, in one array: p, g, dp0, dw, db. */
static void run_all(const long_case *c, nrg_isa isa, unsigned char *out)
{
    const size_t dim = c->dim, vector = dim * sizeof(float);
    nrg_recurrent_args args = nrg_recurrent_args_init(c->dtype, LONG_N, dim, c->w, c->p0, out);
    args.w_dtype = args.p0_dtype = c->dtype;
    args.b = c->b;
    nrg_recurrent_backward_args back = nrg_recurrent_backward_args_init(c->dtype, LONG_N, dim, c->w, c->p0, c->p, c->dp);
    back.w_dtype = back.p0_dtype = c->dtype;
    back.workspace = out + LONG_N * vector;
    back.workspace_size = LONG_N * vector + MARK;
    back.d_p0 = (float *)(void *)(out + 2 * LONG_N * vector + MARK);
    back.db = back.d_p0 + dim;
    back.dw = back.db + dim;
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    ck_assert_int_eq(nrg_recurrent_forward(&args, 0, 1), NRG_OK);
    for (int ith = 2; ith >= 0; ith--)
        ck_assert_int_eq(nrg_recurrent_backward(&back, ith, 3), NRG_OK);
    for (int ith = 2; ith >= 0; ith--)
        ck_assert_int_eq(nrg_recurrent_backward_reduce(&back, ith, 3), NRG_OK);
}

START_TEST(long_vectors)
{
    static const size_t dims[] = {1023, 1024, 1025, LONG_MOST};
    const size_t room = (2 * LONG_N + 2 + LONG_MOST) * LONG_MOST * sizeof(float) + MARK;
    unsigned char *expected = test_allocate(room, 1), *got = test_allocate(room, 1);
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    test_kernel_dtypes("recurrent", dtypes);
    for (size_t i = test_small() ? 3 : 0; i < 4; i++) {
        const size_t dim = dims[i];
        const nrg_dtype dtype = dtypes[_i];
        const long_case c = {.dim = dim,
                             .dtype = dtype,
                             .w = numbers(dim * dim, dtype, 2.6f / sqrtf((float)dim), 1),
                             .b = numbers(dim, dtype, 0.5f, 2),
                             .p0 = numbers(dim, dtype, 1, 3),
                             .p = numbers(LONG_N * dim, dtype, 1, 4),
                             .dp = numbers(LONG_N * dim, dtype, 1, 5)};
        run_all(&c, NRG_ISA_SCALAR, expected);
        for (size_t p = test_paths(paths); p-- > 0;) {
            run_all(&c, paths[p], got);
            ck_assert_msg(memcmp(expected, got, room) == 0, "%s %s, vectors of %zu", nrg_isa_name(paths[p]),
                          nrg_dtype_name(dtype), dim);
        }
        free(c.w);
        free(c.b);
        free(c.p0);
        free(c.p);
        free(c.dp);
    }
    free(expected);
    free(got);
}
END_TEST

/* ---- chains ---- */

static void run_forward(const nrg_recurrent_args *args)
{
    nrg_status status = nrg_recurrent_forward(args, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", test_note, nrg_status_string(status));
}

/* Some positions, and the others from where they ended, are all of them; and a chain alone is what it is among others. */
START_TEST(chains_continued_and_alone)
{
    enum { DIM = 37, N = 12, CHAINS = 3, VECTOR = DIM * 4 };
    static unsigned char whole[CHAINS * N * VECTOR], parts[CHAINS * N * VECTOR];
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("recurrent", dtypes);
    for (size_t p = 0; p < path_count; p++)
        for (size_t d = 0; d < dtype_count; d++) {
            const nrg_dtype dtype = dtypes[d];
            const size_t vector = DIM * nrg_dtype_size(dtype), chain = N * vector;
            float *w = numbers(DIM * DIM, NRG_F32, 0.5f, 1), *b = numbers(DIM, NRG_F32, 0.5f, 2);
            float *p0 = numbers(CHAINS * DIM, NRG_F32, 1, 3);
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            snprintf(test_note, sizeof test_note, "%s %s", nrg_isa_name(paths[p]), nrg_dtype_name(dtype));
            nrg_recurrent_args args = nrg_recurrent_args_init(dtype, N, DIM, w, p0, whole);
            args.w_dtype = args.p0_dtype = NRG_F32;
            args.b = b;
            args.chains = CHAINS;
            run_forward(&args);
            for (size_t first = 1; first < N; first += 3) {
                args.p0 = p0;
                args.p0_dtype = NRG_F32;
                args.p0_stride = 0;
                args.p = parts;
                args.p_stride[1] = chain;
                args.positions = first;
                run_forward(&args);
                args.p0 = parts + (first - 1) * vector;
                args.p0_dtype = NRG_DTYPE_SAME;
                args.p0_stride = chain;
                args.p = parts + first * vector;
                args.positions = N - first;
                run_forward(&args);
                ck_assert_msg(memcmp(whole, parts, CHAINS * chain) == 0, "%s: continued after %zu", test_note, first);
            }
            for (size_t c = 0; c < CHAINS; c++) {
                args = nrg_recurrent_args_init(dtype, N, DIM, w, p0 + c * DIM, parts);
                args.w_dtype = args.p0_dtype = NRG_F32;
                args.b = b;
                run_forward(&args);
                ck_assert_msg(memcmp(whole + c * chain, parts, chain) == 0, "%s: chain %zu alone", test_note, c);
            }
            free(w);
            free(b);
            free(p0);
        }
}
END_TEST

/* Without positions there is nothing to be passed on; without chains there is nothing at all. */
START_TEST(nothing_to_do)
{
    enum { DIM = 5 };
    float w[DIM * DIM], dw[DIM * DIM], db[DIM], dp0[2 * DIM];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t p = 0; p < path_count; p++)
        for (size_t chains = 0; chains < 3; chains += 2)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (size_t i = 0; i < DIM * DIM; i++)
                    w[i] = dw[i] = db[i % DIM] = dp0[i % (2 * DIM)] = 3;
                nrg_recurrent_backward_args args = nrg_recurrent_backward_args_init(NRG_F32, 0, DIM, NULL, NULL, NULL, NULL);
                args.chains = chains;
                args.accumulate = accumulate;
                args.dw = dw;
                args.db = db;
                args.d_p0 = dp0;
                size_t bytes = 1;
                ck_assert_int_eq(nrg_recurrent_backward_workspace(&args, &bytes), NRG_OK);
                ck_assert_uint_eq(bytes, 0);
                ck_assert_int_eq(nrg_recurrent_backward(&args, 0, 1), NRG_OK);
                ck_assert_int_eq(nrg_recurrent_backward_reduce(&args, 0, 1), NRG_OK);
                for (size_t i = 0; i < DIM * DIM; i++)
                    ck_assert(dw[i] == (accumulate ? 3 : 0) && db[i % DIM] == (accumulate ? 3 : 0));
                for (size_t i = 0; i < 2 * DIM; i++)
                    ck_assert(dp0[i] == (chains ? 0 : 3));
                nrg_recurrent_args forwards = nrg_recurrent_args_init(NRG_F32, chains ? 0 : 4, DIM, NULL, NULL, NULL);
                forwards.chains = chains;
                ck_assert_int_eq(nrg_recurrent_forward(&forwards, 0, 1), NRG_OK);
            }
    ck_assert(w[0] == 3);
}
END_TEST

/* The vectors of another operand between those of p. */
START_TEST(between_the_vectors)
{
    enum { DIM = 5, N = 3, CHAINS = 2, VECTOR = DIM * 4 };
    float w[DIM * DIM] = {0}, rows[2 * CHAINS * N * DIM + 1] = {0};
    nrg_recurrent_args args = nrg_recurrent_args_init(NRG_F32, N, DIM, w, rows + DIM, rows);
    args.chains = CHAINS;
    args.p_stride[0] = args.p0_stride = 2 * VECTOR;
    ck_assert_int_eq(nrg_recurrent_forward(&args, 0, 1), NRG_OK);
    args.p_stride[1] = 2 * N * VECTOR + sizeof(float); /* not all of the gaps are alike */
    ck_assert_int_eq(nrg_recurrent_forward(&args, 0, 1), NRG_ERR_OVERLAP);
}
END_TEST

/* One share makes all gradients, and a second phase after it changes none; with several shares it makes dw and db. */
START_TEST(one_share_needs_no_second_phase)
{
    enum { DIM = 7, N = 4, CHAINS = 2, DW = DIM * DIM, FLOATS = CHAINS * N * DIM };
    float *w = numbers(DW, NRG_F32, 0.5f, 1), *p0 = numbers(CHAINS * DIM, NRG_F32, 1, 2), *p = numbers(FLOATS, NRG_F32, 1, 3),
          *dp = numbers(FLOATS, NRG_F32, 1, 4), room[FLOATS + MARK / sizeof(float)], expected[DW + DIM], got[DW + DIM];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        nrg_recurrent_backward_args args = nrg_recurrent_backward_args_init(NRG_F32, N, DIM, w, p0, p, dp);
        args.chains = CHAINS;
        args.accumulate = accumulate;
        args.workspace = room;
        args.workspace_size = sizeof room;
        for (size_t i = 0; i < DW + DIM; i++)
            expected[i] = got[i] = 3;
        args.dw = expected;
        args.db = expected + DW;
        for (int ith = 0; ith < 2; ith++)
            ck_assert_int_eq(nrg_recurrent_backward(&args, ith, 2), NRG_OK);
        ck_assert(expected[0] == 3 && expected[DW] == 3);
        ck_assert_int_eq(nrg_recurrent_backward_reduce(&args, 0, 1), NRG_OK);
        ck_assert(expected[0] != 3 && expected[DW] != 3);
        args.dw = got;
        args.db = got + DW;
        ck_assert_int_eq(nrg_recurrent_backward(&args, 0, 1), NRG_OK);
        ck_assert(memcmp(expected, got, sizeof got) == 0);
        for (int ith = 0; ith < 3; ith++)
            ck_assert_int_eq(nrg_recurrent_backward_reduce(&args, ith, 3), NRG_OK);
        ck_assert(memcmp(expected, got, sizeof got) == 0);
    }
    free(w);
    free(p0);
    free(p);
    free(dp);
}
END_TEST

START_TEST(workspace)
{
    nrg_recurrent_backward_args args = nrg_recurrent_backward_args_init(NRG_F32, 3, 5, NULL, NULL, NULL, NULL);
    size_t bytes;
    args.chains = 2;
    ck_assert_int_eq(nrg_recurrent_backward_workspace(&args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, 2 * 3 * 5 * sizeof(float) + MARK);
    ck_assert_int_eq(nrg_recurrent_backward_workspace(&args, NULL), NRG_ERR_NULL);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("recurrent encodings");
    tcase_add_loop_test(test_case(suite, "long vectors"), long_vectors, 0, 3);
    TCase *tests = test_case(suite, "chains");
    tcase_add_test(tests, chains_continued_and_alone);
    tcase_add_test(tests, nothing_to_do);
    tcase_add_test(tests, between_the_vectors);
    tcase_add_test(tests, one_share_needs_no_second_phase);
    tcase_add_test(tests, workspace);
    return test_run(suite);
}
