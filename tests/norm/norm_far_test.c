/* A tensor that no cache holds is walked in four parts by turns (long.h, from 64 MiB of rows on): far more rows than any
 * other test has, and a number of them that four does not divide.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../harness/support.h"

enum { DIM = 1100, ROWS = (1 << 26) / (2 * 4 * DIM) + 5 };

static const struct {
    int centred;
    nrg_accuracy accuracy;
} kinds[] = {{0, NRG_ACCURACY_FAST}, {1, NRG_ACCURACY_FAST}, {0, NRG_ACCURACY_EXACT}, {1, NRG_ACCURACY_EXACT}};

typedef struct results {
    float *o, *mean, *rstd;
} results;

/* Some rows need the fallback: they are too large, or far from 0, or all alike. */
static void make_rows(float *x)
{
    uint32_t state = 3;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < DIM; i++) {
            state = state * 1664525u + 1013904223u;
            const float v = (float)(int32_t)state * 0x1p-31f;
            x[row * DIM + i] = row % 97 == 5 ? v * 0x1p90f : row % 101 == 7 ? v + 0x1p12f : row % 103 == 1 ? 3 : v;
        }
}

static void run(nrg_isa isa, const nrg_norm_spec *spec, const float *x, const float *w, results r)
{
    nrg_norm_args args = nrg_norm_args_init(ROWS, x, w, r.o);
    args.b = spec->centred ? w + DIM : NULL;
    args.mean = spec->centred ? r.mean : NULL;
    args.rstd = r.rstd;
    args.store = NRG_STORE_STREAM; /* whatever this CPU's caches hold */
    memset(r.o, 0xff, (size_t)ROWS * DIM * sizeof *r.o);
    memset(r.mean, 0xff, ROWS * sizeof *r.mean);
    memset(r.rstd, 0xff, ROWS * sizeof *r.rstd);
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    ck_assert_int_eq(nrg_norm_forward(spec, &args, 0, 1), NRG_OK);
}

static results make_results(void)
{
    return (results){test_allocate((size_t)ROWS * DIM, sizeof(float)), test_allocate(ROWS, sizeof(float)),
                     test_allocate(ROWS, sizeof(float))};
}

static void free_results(results r)
{
    free(r.o);
    free(r.mean);
    free(r.rstd);
}

START_TEST(far_rows)
{
    nrg_norm_spec spec = kinds[_i].centred ? nrg_norm_spec_layer(NRG_F32, DIM, 1e-5) : nrg_norm_spec_rms(NRG_F32, DIM, 1e-5);
    spec.accuracy = kinds[_i].accuracy;
    float *const x = test_allocate((size_t)ROWS * DIM, sizeof *x), w[2 * DIM];
    const results expected = make_results(), got = make_results();
    make_rows(x);
    for (size_t i = 0; i < 2 * DIM; i++)
        w[i] = 0.5f + (float)i / DIM;
    run(NRG_ISA_SCALAR, &spec, x, w, expected);
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t p = test_paths(paths); p-- > 1;) {
        run(paths[p], &spec, x, w, got);
        for (size_t row = 0; row < ROWS; row++)
            if (memcmp(got.o + row * DIM, expected.o + row * DIM, DIM * sizeof *got.o) != 0)
                ck_abort_msg("%s: row %zu of %d is not the scalar path's", nrg_isa_name(paths[p]), row, (int)ROWS);
        ck_assert_mem_eq(got.rstd, expected.rstd, ROWS * sizeof *got.rstd);
        ck_assert_mem_eq(got.mean, expected.mean, ROWS * sizeof *got.mean);
    }
    free_results(got);
    free_results(expected);
    free(x);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm, far rows");
    TCase *tests = test_case(suite, "far rows");
    tcase_add_loop_test(tests, far_rows, 0, sizeof kinds / sizeof kinds[0]);
    return test_run(suite);
}
