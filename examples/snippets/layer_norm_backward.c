/* The gradients of LayerNorm, on one thread. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 50, DIM = 24 };

static nrg_status backward(size_t rows, size_t dim, const float *x, const float *w, const float *d_o, float *dx, float *dw,
                           float *db)
{
    /* snippet */
    const nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, dim, 1e-5);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(rows, x, w, d_o, dx);
    args.dw = dw;
    args.db = db;
    nrg_status status = nrg_norm_backward_workspace(&spec, &args, &args.workspace_size);
    args.workspace = malloc(args.workspace_size);
    status = status == NRG_OK ? nrg_norm_backward(&spec, &args, 0, 1) : status;
    free(args.workspace);
    /* snippet */
    return status;
}

/* Mean, and 1 / √(variance + eps). */
static void statistics(const double *x, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (size_t j = 0; j < DIM; j++)
        sum += x[j];
    for (size_t j = 0; j < DIM; j++)
        squares += (x[j] - sum / DIM) * (x[j] - sum / DIM);
    *mean = sum / DIM;
    *rstd = 1 / sqrt(squares / DIM + 1e-5);
}

/* Σ d_o ⊙ w ⊙ layer_norm(x) of a row, of which dx is the gradient. */
static double loss(const double *x, const float *w, const float *d_o)
{
    double mean, rstd, sum = 0;
    statistics(x, &mean, &rstd);
    for (size_t j = 0; j < DIM; j++)
        sum += (double)d_o[j] * (double)w[j] * (x[j] - mean) * rstd;
    return sum;
}

int main(void)
{
    static float x[ROWS * DIM], w[DIM], d_o[ROWS * DIM], dx[ROWS * DIM], dw[DIM], db[DIM];
    static double expected_dw[DIM], expected_db[DIM];
    draw(x, ROWS * DIM);
    draw(w, DIM);
    draw(d_o, ROWS * DIM);
    require(backward(ROWS, DIM, x, w, d_o, dx, dw, db));
    for (size_t i = 0; i < ROWS; i++) {
        const float *const row_d_o = &d_o[i * DIM];
        double row[DIM], mean, rstd;
        for (size_t j = 0; j < DIM; j++)
            row[j] = (double)x[i * DIM + j];
        statistics(row, &mean, &rstd);
        for (size_t j = 0; j < DIM; j++) {
            const double at = row[j], step = 1e-5;
            expected_dw[j] += (double)row_d_o[j] * (at - mean) * rstd;
            expected_db[j] += (double)row_d_o[j];
            row[j] = at + step;
            const double above = loss(row, w, row_d_o);
            row[j] = at - step;
            const double below = loss(row, w, row_d_o);
            row[j] = at;
            compare("dx", i * DIM + j, (double)dx[i * DIM + j], (above - below) / (2 * step), 1e-5);
        }
    }
    for (size_t j = 0; j < DIM; j++) {
        compare("dw", j, (double)dw[j], expected_dw[j], 1e-4);
        compare("db", j, (double)db[j], expected_db[j], 1e-4);
    }
    return 0;
}
