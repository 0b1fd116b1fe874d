/* SwiGLU of fused rows [gate | up]. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { ROWS = 3, DIM = 70 };

static nrg_status swiglu(size_t rows, size_t dim, const float *gate_up, float *o, int ith, int nth)
{
    /* snippet */
    const nrg_glu_args args = nrg_glu_args_halves(NRG_ACT_SILU, NRG_F32, rows, dim, gate_up, 0, o);
    nrg_status status = nrg_glu_forward(&args, ith, nth);
    /* snippet */
    return status;
}

int main(void)
{
    static float gate_up[ROWS * 2 * DIM], o[ROWS * DIM];
    draw(gate_up, ROWS * 2 * DIM);
    require(swiglu(ROWS, DIM, gate_up, o, 0, 1));
    for (size_t i = 0; i < ROWS * DIM; i++) {
        const float *row = &gate_up[i / DIM * 2 * DIM];
        const double gate = (double)row[i % DIM], up = (double)row[DIM + i % DIM];
        compare("o", i, (double)o[i], gate / (1 + exp(-gate)) * up, 2e-6);
    }
    return 0;
}
