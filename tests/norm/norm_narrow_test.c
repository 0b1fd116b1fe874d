/* Many rows of 64 and 128 floats, as heads have them: tile.h takes 16 at a time, where the cases of nrg check hardly
 * have as many of one length. Every path has the bits of the scalar one, also where some rows want the fallback.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../harness/support.h"

/* The last one is beyond 32 K elements, from where on rows that lie ahead are asked for. */
static const size_t row_counts[] = {15, 16, 17, 37, 600};
enum { DIM_MOST = 128, GAP = 8, STRIDE_MOST = DIM_MOST + GAP, ROWS_MOST = 600, ROOM = ROWS_MOST * STRIDE_MOST };

static float x[ROOM], y[ROOM], w[DIM_MOST], b[DIM_MOST];

/* hard: one row in seven is large, far from 0, all alike, zeros, subnormal, with a NaN, or with an element unlike the others. */
static void make_rows(size_t rows, size_t dim, size_t stride, int hard)
{
    uint64_t random = dim + hard;
    for (size_t i = 0; i < ROOM; i++) {
        x[i] = (float)test_uniform(&random);
        y[i] = (float)test_uniform(&random);
    }
    for (size_t i = 0; i < DIM_MOST; i++) {
        w[i] = (float)(1 + test_uniform(&random) / 4);
        b[i] = (float)test_uniform(&random);
    }
    for (size_t row = 3; hard && row < rows; row += 7)
        for (size_t i = 0; i < dim; i++) {
            float *const v = &x[row * stride + i];
            const float kinds[] = {*v * 0x1p90f, *v + 4096, 3, 0, *v * 0x1p-140f, i == 7 ? NAN : *v, i == 5 ? 1e6f : *v};
            *v = kinds[row / 7 % (sizeof kinds / sizeof kinds[0])];
        }
}

typedef struct narrow {
    size_t rows, dim, stride;
    int centred, has_b, is_residual, is_in_place, shares;
} narrow;

/* o, and r where there is one: of the scalar path, and of another. */
static float results[2][2][ROOM];

static void run(const narrow *n, nrg_isa isa, float result[2][ROOM])
{
    const nrg_norm_spec spec = n->centred ? nrg_norm_spec_layer(NRG_F32, n->dim, 1e-5) : nrg_norm_spec_rms(NRG_F32, n->dim, 1e-5);
    float *const o = result[0], *const r = result[1];
    memset(r, 0x55, sizeof result[1]);
    memset(o, 0x55, sizeof result[0]);
    if (n->is_in_place)
        memcpy(o, x, sizeof x);
    nrg_norm_args args = nrg_norm_args_init(n->rows, n->is_in_place ? o : x, w, o);
    args.b = n->has_b ? b : NULL;
    args.x_stride[0] = args.o_stride[0] = n->stride * sizeof(float);
    if (n->is_residual) {
        args.y = y;
        args.r = r;
        args.y_stride[0] = args.r_stride[0] = n->stride * sizeof(float);
    }
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    for (int ith = 0; ith < n->shares; ith++)
        ck_assert_int_eq(nrg_norm_forward(&spec, &args, ith, n->shares), NRG_OK);
}

/* Any NaN is any other. */
static void compare(const narrow *n, nrg_isa isa)
{
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < ROOM; i++) {
            const float *const is = &results[1][which][i], *const was = &results[0][which][i];
            if (memcmp(is, was, sizeof *is) != 0 && !(isnan(*is) && isnan(*was)))
                ck_abort_msg("%s, %zux%zu of stride %zu%s%s%s%s, %d shares: %s[%zu][%zu] is %a, and not %a", nrg_isa_name(isa),
                             n->rows, n->dim, n->stride, n->centred ? ", centred" : "", n->has_b ? ", b" : "",
                             n->is_residual ? ", residual" : "", n->is_in_place ? ", in place" : "", n->shares, which ? "r" : "o",
                             i / n->stride, i % n->stride, (double)*is, (double)*was);
        }
}

START_TEST(many_narrow_rows)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths), counts = sizeof row_counts / sizeof row_counts[0];
    const int hard = _i % 2;
    for (unsigned way = 0; way < 64 * counts; way++) {
        narrow n = {.rows = row_counts[way / 64],
                    .dim = way & 1 ? 64 : 128,
                    .centred = way >> 1 & 1,
                    .has_b = way >> 2 & 1,
                    .is_residual = way >> 3 & 1,
                    .is_in_place = way >> 4 & 1,
                    .shares = way % 5 == 0 ? 3 : 1};
        n.stride = n.dim + (way >> 5 & 1 ? GAP : 0);
        make_rows(n.rows, n.dim, n.stride, hard);
        run(&n, NRG_ISA_SCALAR, results[0]);
        for (size_t p = path_count; p-- > 1;) {
            run(&n, paths[p], results[1]);
            compare(&n, paths[p]);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm, narrow rows");
    tcase_add_loop_test(test_case(suite, "narrow rows"), many_narrow_rows, 0, 2);
    return test_run(suite);
}
