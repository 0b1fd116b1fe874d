/* Where the plain way of a row's elements ends and the fallback begins (docs/numerics.md), all paths have to draw the line at the
 * same number. Both ways are within half an ulp or so and give the same float but for one element in hundreds: so here are
 * thousands of rows whose σ, factor or mean stands exactly on a line, of numbers that differ.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../harness/support.h"

enum { DIM = 16, ROWS = 1500 };

/* The sum is 0, and the mean of the squares 2^20: σ is 2^10 exactly, in any order. */
static const int row_of_integers[DIM] = {-918, -1121, 1773, -1119, -616,  -516, -986, 408,
                                         1788, 976,   762,  -962,  -1056, -240, 929,  898};

typedef struct edge {
    int sigma, mean; /* exponents of σ and of the mean; mean: NO_MEAN for none */
    int c;           /* exponent of c/√d */
    int gradient;    /* exponent of the gradient's elements */
    double times;    /* c/√d is so many of that power of two: on the line, below it, or above */
} edge;
enum { NO_MEAN = 1000 };

static const double times[] = {1, 0x1.8b4e7p-1, 0x1.3b4e7p+0};
enum { TIMES = sizeof times / sizeof times[0] };

static const int sigmas[] = {-41, -40, 0, 40}, constants[] = {-80, -40, 0, 40, 80}, means[] = {NO_MEAN, -1, 0, 9, 10};
static const int gradients[] = {-100, -60, 0, 60, 100};

static uint32_t draw(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

static float weight(uint32_t *state) { return 0.5f + (float)(draw(state) >> 8) * 0x1p-24f; }

/* Rows of the same numbers in other orders. */
static void make_rows(float *x, edge e, uint32_t *state)
{
    for (size_t row = 0; row < ROWS; row++, x += DIM) {
        int order[DIM];
        memcpy(order, row_of_integers, sizeof order);
        for (uint32_t i = DIM; i > 1; i--) {
            const uint32_t other = draw(state) >> 8 & 0xffff, k = other % i;
            const int kept = order[k];
            order[k] = order[i - 1];
            order[i - 1] = kept;
        }
        const double mean = e.mean == NO_MEAN ? 0 : ldexp(1, 10 + e.mean);
        for (size_t i = 0; i < DIM; i++)
            x[i] = (float)ldexp(order[i] + mean, e.sigma - 10);
    }
}

typedef struct results {
    float o[ROWS * DIM], dx[ROWS * DIM], dw[DIM], db[DIM], rstd[ROWS];
} results;

static void run(nrg_isa isa, const nrg_norm_spec *spec, const float *x, const float *w, const float *d_o, results *r)
{
    static double workspace[1 << 16];
    nrg_norm_args forward = nrg_norm_args_init(ROWS, x, w, r->o);
    forward.rstd = r->rstd;
    nrg_norm_backward_args backward = nrg_norm_backward_args_init(ROWS, x, w, d_o, r->dx);
    backward.dw = r->dw;
    backward.db = r->db;
    backward.accumulate = 0;
    backward.workspace = workspace;
    backward.workspace_size = sizeof workspace;
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    ck_assert_int_eq(nrg_norm_forward(spec, &forward, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_backward(spec, &backward, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_backward_reduce(spec, &backward, 0, 1), NRG_OK);
}

static void must_agree(edge e, int centred, nrg_isa isa, const char *what, const float *expected, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&expected[i], &got[i], sizeof *got) != 0 && !(isnan(expected[i]) && isnan(got[i])))
            ck_abort_msg("%s, %s, sigma 2^%d, mean 2^%d, c 2^%d, gradient 2^%d: %s[%zu] is %a and not %a", nrg_isa_name(isa),
                         centred ? "layer" : "rms", e.sigma, e.mean, e.c, e.gradient, what, i, (double)got[i],
                         (double)expected[i]);
}

static void try_edge(edge e, int centred, nrg_accuracy accuracy)
{
    static float x[ROWS * DIM], d_o[ROWS * DIM], w[DIM];
    static results expected, got;
    uint32_t state = 7;
    make_rows(x, e, &state);
    for (size_t i = 0; i < DIM; i++)
        w[i] = weight(&state);
    for (size_t i = 0; i < ROWS * DIM; i++)
        d_o[i] = (float)ldexp(weight(&state) * (draw(&state) >> 31 ? 1 : -1), e.gradient);
    nrg_norm_spec spec = centred ? nrg_norm_spec_layer(NRG_F32, DIM, 0) : nrg_norm_spec_rms(NRG_F32, DIM, 0);
    spec.accuracy = accuracy;
    /* a row's factor is a quarter of c over σ: on the line itself, or a number that is no power of two */
    spec.c_mode = NRG_C_GIVEN;
    spec.c = ldexp(4 * e.times, e.c);
    nrg_isa paths[NRG_ISA_COUNT];
    run(NRG_ISA_SCALAR, &spec, x, w, d_o, &expected);
    for (size_t p = test_paths(paths); p-- > 0;) {
        memset(&got, 0xff, sizeof got);
        run(paths[p], &spec, x, w, d_o, &got);
        must_agree(e, centred, paths[p], "o", expected.o, got.o, ROWS * DIM);
        must_agree(e, centred, paths[p], "rstd", expected.rstd, got.rstd, ROWS);
        must_agree(e, centred, paths[p], "dx", expected.dx, got.dx, ROWS * DIM);
        must_agree(e, centred, paths[p], "dw", expected.dw, got.dw, DIM);
        must_agree(e, centred, paths[p], "db", expected.db, got.db, DIM);
    }
}

START_TEST(rows_on_a_line)
{
    for (size_t s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++)
        for (size_t m = 0; m < sizeof means / sizeof means[0]; m++)
            for (size_t g = 0; g < sizeof gradients / sizeof gradients[0]; g++) {
                if (test_small() && (s + m + 2 * g) % 5)
                    continue;
                const edge e = {sigmas[s], means[m], constants[_i / TIMES], gradients[g], times[_i % TIMES]};
                for (int accuracy = NRG_ACCURACY_FAST; accuracy <= NRG_ACCURACY_EXACT; accuracy++) {
                    try_edge(e, 1, (nrg_accuracy)accuracy);
                    if (means[m] == NO_MEAN)
                        try_edge(e, 0, (nrg_accuracy)accuracy);
                }
            }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("norm: where the fallback begins");
    tcase_add_loop_test(test_case(suite, "edges"), rows_on_a_line, 0, TIMES * sizeof constants / sizeof constants[0]);
    return test_run(suite);
}
