/* RMSNorm on several threads: each thread computes share ith of nth. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 7, DIM = 100, THREADS = 3 };

static nrg_status thread(size_t rows, size_t dim, const float *x, const float *w, float *o, int ith, int nth)
{
    /* snippet */
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, dim, 1e-6);
    const nrg_norm_args args = nrg_norm_args_init(rows, x, w, o);
    nrg_status status = nrg_norm_forward(&spec, &args, ith, nth);
    /* snippet */
    return status;
}

int main(void)
{
    static float x[ROWS * DIM], w[DIM], o[ROWS * DIM];
    draw(x, ROWS * DIM);
    draw(w, DIM);
    for (int ith = 0; ith < THREADS; ith++) /* as threads would at the same time */
        require(thread(ROWS, DIM, x, w, o, ith, THREADS));
    for (size_t i = 0; i < ROWS * DIM; i++) {
        const float *row = &x[i / DIM * DIM];
        double sum = 0;
        for (size_t j = 0; j < DIM; j++)
            sum += (double)row[j] * (double)row[j];
        compare("o", i, (double)o[i], (double)x[i] / sqrt(sum / DIM + 1e-6) * (double)w[i % DIM], 2e-6);
    }
    return 0;
}
