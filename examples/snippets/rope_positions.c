/* RoPE of q and k from the positions of their tokens, in place. SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { TOKENS = 5, Q_HEADS = 4, K_HEADS = 2, DIM = 16 };

static nrg_status rotate(size_t tokens, size_t q_heads, size_t k_heads, size_t dim, const int32_t *positions, float *q, float *k)
{
    /* snippet */
    const nrg_rope_spec spec = nrg_rope_spec_init(dim, NRG_ROPE_NEOX, 10000);
    nrg_rope_positions_args args = nrg_rope_positions_args_in_place(NRG_F32, tokens, q_heads, k_heads, dim, positions, q, k);
    nrg_status status = nrg_rope_positions_workspace(&spec, &args, 1, &args.workspace_size);
    args.workspace = malloc(args.workspace_size);
    status = status == NRG_OK ? nrg_rope_positions_forward(&spec, &args, 0, 1) : status;
    free(args.workspace);
    /* snippet */
    return status;
}

static void compare_heads(const char *what, const float *got, const float *x, size_t heads, const int32_t *positions)
{
    for (size_t i = 0; i < TOKENS * heads * DIM; i++) {
        const size_t pair = i % DIM % (DIM / 2), head = i / DIM * DIM;
        const double angle = positions[i / (heads * DIM)] * pow(10000, -2.0 * (double)pair / DIM);
        const double first = (double)x[head + pair], second = (double)x[head + pair + DIM / 2];
        const double expected =
            i % DIM < DIM / 2 ? first * cos(angle) - second * sin(angle) : first * sin(angle) + second * cos(angle);
        compare(what, i, (double)got[i], expected, 1e-6);
    }
}

int main(void)
{
    static const int32_t positions[TOKENS] = {0, 7, 8, 1000, 3};
    static float q[TOKENS * Q_HEADS * DIM], k[TOKENS * K_HEADS * DIM], q_in[TOKENS * Q_HEADS * DIM], k_in[TOKENS * K_HEADS * DIM];
    draw(q_in, TOKENS * Q_HEADS * DIM);
    draw(k_in, TOKENS * K_HEADS * DIM);
    memcpy(q, q_in, sizeof q);
    memcpy(k, k_in, sizeof k);
    require(rotate(TOKENS, Q_HEADS, K_HEADS, DIM, positions, q, k));
    compare_heads("q", q, q_in, Q_HEADS, positions);
    compare_heads("k", k, k_in, K_HEADS, positions);
    return 0;
}
