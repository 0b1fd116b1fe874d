/* The backward pass of a norm in one OpenMP region: rows, a barrier, columns. Results are bit-identical for any number of
 * threads.
 *
 * Exit status 77 (skipped) if the compiler has no OpenMP.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _OPENMP
int main(void)
{
    puts("SKIP backward_openmp: this compiler has no OpenMP");
    return 77;
}
#else
#include <omp.h>

enum { ROWS = 1000, DIM = 320 };

static float x[ROWS][DIM], d_o[ROWS][DIM], w[DIM];

typedef struct gradients {
    float dx[ROWS][DIM], dw[DIM], db[DIM];
} gradients;

static gradients alone, together;

static nrg_status backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    nrg_status first = NRG_OK, second = NRG_OK;
#pragma omp parallel
    {
        int ith = omp_get_thread_num(), nth = omp_get_num_threads();
        nrg_status status = nrg_norm_backward(spec, args, ith, nth);
        if (ith == 0)
            first = status; /* what is refused is refused on every thread alike */
#pragma omp barrier
        status = nrg_norm_backward_reduce(spec, args, ith, nth);
        if (ith == 0)
            second = status;
    }
    return first != NRG_OK ? first : second;
}

static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-14f;
}

int main(void)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++) {
            x[i][j] = draw();
            d_o[i][j] = draw();
        }
    for (int j = 0; j < DIM; j++)
        w[j] = draw();

    nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, x, w, d_o, alone.dx);
    args.dw = alone.dw;
    args.db = alone.db;
    nrg_status status = nrg_norm_backward_workspace(&spec, &args, &args.workspace_size);
    args.workspace = malloc(args.workspace_size);
    if (status == NRG_OK)
        status = nrg_norm_backward(&spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&spec, &args, 0, 1);

    static const int counts[] = {1, 2, 3, 4, 7, 16};
    int failed = status != NRG_OK;
    args.dx = together.dx;
    args.dw = together.dw;
    args.db = together.db;
    omp_set_dynamic(0);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !failed; i++) {
        memset(&together, 0xff, sizeof together);
        omp_set_num_threads(counts[i]);
        status = backward(&spec, &args);
        failed = status != NRG_OK || memcmp(&alone, &together, sizeof alone) != 0;
        if (!failed)
            printf("%2d threads: dx, dw and db of %d rows of %d have the bits of one thread\n", counts[i], ROWS, DIM);
    }
    if (failed)
        fprintf(stderr, "backward_openmp: FAILED: %s\n", status != NRG_OK ? nrg_status_string(status) : "the bits differ");
    free(args.workspace);
    return failed;
}
#endif
