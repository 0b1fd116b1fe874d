/* Normalizes the heads of q and k in rows [q | k | v] of the projections, rotates them, and writes k and v to the slots of bf16
 * caches.
 *
 * SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { TOKENS = 5, Q_HEADS = 4, KV_HEADS = 2, DIM = 16, ROW = (Q_HEADS + 2 * KV_HEADS) * DIM, SLOTS = 9, SLOT = KV_HEADS * DIM };

static nrg_status heads(size_t tokens, size_t q_heads, size_t kv_heads, size_t dim, float *qkv, const float *q_w,
                        const float *k_w, const int32_t *positions, const int64_t *slots, size_t slot_count, uint16_t *k_cache,
                        uint16_t *v_cache)
{
    /* snippet */
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, dim, 1e-6);
    const nrg_rope_spec rope = nrg_rope_spec_init(dim, NRG_ROPE_NEOX, 10000);
    nrg_qkv_args args = nrg_qkv_args_fused(NRG_F32, tokens, q_heads, kv_heads, dim, qkv);
    args.k_o_dtype = args.v_o_dtype = NRG_BF16;
    args.q_w = q_w;
    args.k_w = k_w;
    args.positions = positions;
    args.slots = slots;
    args.slot_count = slot_count;
    args.k_o = k_cache;
    args.v_o = v_cache;
    nrg_status status = nrg_qkv_workspace(&rope, &args, 1, &args.workspace_size);
    args.workspace = malloc(args.workspace_size);
    status = status == NRG_OK ? nrg_qkv_forward(&norm, &rope, &args, 0, 1) : status;
    free(args.workspace);
    /* snippet */
    return status;
}

/* A head after norm and rotation. */
static void rotated(double *o, const float *x, const float *w, int32_t position)
{
    double sum = 0;
    for (size_t i = 0; i < DIM; i++)
        sum += (double)x[i] * (double)x[i];
    for (size_t pair = 0; pair < DIM / 2; pair++) {
        const size_t other = pair + DIM / 2;
        const double angle = position * pow(10000, -2.0 * (double)pair / DIM), scale = 1 / sqrt(sum / DIM + 1e-6);
        const double first = (double)x[pair] * scale * (double)w[pair], second = (double)x[other] * scale * (double)w[other];
        o[pair] = first * cos(angle) - second * sin(angle);
        o[other] = first * sin(angle) + second * cos(angle);
    }
}

int main(void)
{
    static const int32_t positions[TOKENS] = {3, 4, 5, 0, 1};
    static const int64_t slots[TOKENS] = {3, 4, 5, 8, 7};
    static float qkv[TOKENS * ROW], in[TOKENS * ROW], q_w[DIM], k_w[DIM];
    static uint16_t k_cache[SLOTS * SLOT], v_cache[SLOTS * SLOT];
    draw(in, TOKENS * ROW);
    draw(q_w, DIM);
    draw(k_w, DIM);
    memcpy(qkv, in, sizeof qkv);
    require(heads(TOKENS, Q_HEADS, KV_HEADS, DIM, qkv, q_w, k_w, positions, slots, SLOTS, k_cache, v_cache));
    for (size_t t = 0; t < TOKENS; t++) {
        const float *const k = &in[t * ROW + Q_HEADS * DIM], *const v = k + SLOT;
        const size_t slot = (size_t)slots[t] * SLOT;
        double expected[DIM];
        for (size_t head = 0; head < Q_HEADS; head++) {
            rotated(expected, &in[t * ROW + head * DIM], q_w, positions[t]);
            for (size_t i = 0; i < DIM; i++)
                compare("q", head * DIM + i, (double)qkv[t * ROW + head * DIM + i], expected[i], 4e-6);
        }
        for (size_t head = 0; head < KV_HEADS; head++) {
            rotated(expected, &k[head * DIM], k_w, positions[t]);
            for (size_t i = head * DIM; i < (head + 1) * DIM; i++) {
                compare("k", i, (double)of_bf16(k_cache[slot + i]), expected[i % DIM],
                        fabs(expected[i % DIM]) * 0x1.01p-8 + 1e-6);
                compare("v", i, (double)of_bf16(v_cache[slot + i]), (double)v[i], fabs((double)v[i]) * 0x1p-8);
            }
        }
    }
    return 0;
}
