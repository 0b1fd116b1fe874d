/* The gated norm of Mamba-2 (Dao, Gu, arXiv:2405.21060): RMSNorm of x · SiLU(z) in groups, with one weight for each element of
 * the row. The program compares the call with an ordinary loop in double precision.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <math.h>
#include <stdio.h>

enum { ROWS = 64, DIM = 1536, GROUPS = 8, GROUP = DIM / GROUPS };
static const double eps = 1e-5;

static float x[ROWS][DIM], z[ROWS][DIM], w[DIM], o[ROWS][DIM];

/* The same, as the paper says it. */
static void plain(int row, double *out)
{
    for (int group = 0; group < GROUPS; group++) {
        double p[GROUP], sum = 0;
        for (int i = 0; i < GROUP; i++) {
            const double gate = (double)z[row][group * GROUP + i];
            p[i] = (double)x[row][group * GROUP + i] * (gate / (1 + exp(-gate)));
            sum += p[i] * p[i];
        }
        for (int i = 0; i < GROUP; i++)
            out[group * GROUP + i] = p[i] / sqrt(sum / GROUP + eps) * (double)w[group * GROUP + i];
    }
}

static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-13f;
}

int main(void)
{
    for (int j = 0; j < DIM; j++) {
        for (int i = 0; i < ROWS; i++) {
            x[i][j] = draw();
            z[i][j] = draw();
        }
        w[j] = draw();
    }

    nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, DIM, eps);
    spec.gate = NRG_GATE_PRE; /* Mamba-2's norm_before_gate=False, its default; True is NRG_GATE_POST */
    spec.activation = NRG_ACT_SILU;
    spec.groups = GROUPS;
    nrg_norm_args args = nrg_norm_args_init(ROWS, x, w, o);
    args.z = z;
    nrg_status status = nrg_norm_forward(&spec, &args, 0, 1);
    if (status != NRG_OK) {
        fprintf(stderr, "mamba2_gated_norm: FAILED: %s\n", nrg_status_string(status));
        return 1;
    }

    /* SiLU, its product with x and the result are rounded to f32 */
    const double allowed = 8 * 0x1p-24;
    double worst = 0;
    for (int i = 0; i < ROWS; i++) {
        double exact[DIM];
        plain(i, exact);
        for (int j = 0; j < DIM; j++) {
            double error = fabs((double)o[i][j] - exact[j]) / fmax(fabs(exact[j]), 0x1p-126);
            if (!(error <= worst)) /* so that a NaN stays */
                worst = error;
        }
    }
    printf("%d rows of %d in %d groups: at most %.3g from double precision, relative to the result; %.3g is allowed\n", ROWS, DIM,
           GROUPS, worst, allowed);
    if (!(worst <= allowed)) {
        fprintf(stderr, "mamba2_gated_norm: FAILED\n");
        return 1;
    }
    return 0;
}
