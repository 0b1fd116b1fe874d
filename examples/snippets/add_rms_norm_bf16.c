/* r = x + y and o = rms_norm(r) ⊙ w in bf16, with rows in wider buffers. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 3, DIM = 96, X_ROW = 128, Y_ROW = 100 };

static nrg_status add_norm(size_t rows, size_t dim, const uint16_t *x, size_t x_stride, const uint16_t *y, size_t y_stride,
                           const uint16_t *w, uint16_t *r, uint16_t *o, int ith, int nth)
{
    /* snippet */
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_BF16, dim, 1e-6);
    nrg_norm_args args = nrg_norm_args_init(rows, x, w, o);
    args.x_stride[0] = x_stride;
    args.y = y;
    args.y_stride[0] = y_stride;
    args.r = r;
    nrg_status status = nrg_norm_forward(&spec, &args, ith, nth);
    /* snippet */
    return status;
}

int main(void)
{
    static float numbers[ROWS * X_ROW];
    static uint16_t x[ROWS * X_ROW], y[ROWS * Y_ROW], w[DIM], r[ROWS * DIM], o[ROWS * DIM];
    draw(numbers, ROWS * X_ROW);
    to_bf16(x, numbers, ROWS * X_ROW);
    draw(numbers, ROWS * Y_ROW);
    to_bf16(y, numbers, ROWS * Y_ROW);
    draw(numbers, DIM);
    to_bf16(w, numbers, DIM);
    require(add_norm(ROWS, DIM, x, sizeof *x * X_ROW, y, sizeof *y * Y_ROW, w, r, o, 0, 1));
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (size_t j = 0; j < DIM; j++) {
            const double expected = (double)of_bf16(x[i * X_ROW + j]) + (double)of_bf16(y[i * Y_ROW + j]);
            const double got = (double)of_bf16(r[i * DIM + j]);
            compare("r", j, got, expected, fabs(expected) * 0x1p-8);
            sum += got * got;
        }
        for (size_t j = 0; j < DIM; j++) {
            const double expected = (double)of_bf16(r[i * DIM + j]) / sqrt(sum / DIM + 1e-6) * (double)of_bf16(w[j]);
            compare("o", j, (double)of_bf16(o[i * DIM + j]), expected, fabs(expected) * 0x1.01p-8);
        }
    }
    return 0;
}
