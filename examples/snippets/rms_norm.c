/* RMSNorm of f32 rows. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 3, DIM = 100 };

static nrg_status norm(size_t rows, size_t dim, const float *x, const float *w, float *o)
{
    /* snippet */
    nrg_status status = nrg_rms_norm_f32(rows, dim, x, w, o, 1e-6);
    /* snippet */
    return status;
}

int main(void)
{
    static float x[ROWS * DIM], w[DIM], o[ROWS * DIM];
    draw(x, ROWS * DIM);
    draw(w, DIM);
    require(norm(ROWS, DIM, x, w, o));
    for (size_t i = 0; i < ROWS * DIM; i++) {
        const float *row = &x[i / DIM * DIM];
        double sum = 0;
        for (size_t j = 0; j < DIM; j++)
            sum += (double)row[j] * (double)row[j];
        compare("o", i, (double)o[i], (double)x[i] / sqrt(sum / DIM + 1e-6) * (double)w[i % DIM], 2e-6);
    }
    return 0;
}
