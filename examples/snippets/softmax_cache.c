/* Causal softmax of scores, in place. The queries are the last tokens of a text, and a cache has the keys of the earlier ones.
 *
 * SPDX-License-Identifier: MIT */
#include "snippet.h"

enum { BATCH = 2, HEADS = 3, QUERIES = 4, KEYS = 11, ROWS = BATCH * HEADS * QUERIES };

static nrg_status weigh(size_t batch, size_t heads, size_t queries, size_t keys, float *scores, float scale, int ith, int nth)
{
    /* snippet */
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, batch, heads, queries, keys, scores, scores);
    args.scale = scale;
    args.causal = 1;
    nrg_status status = nrg_softmax_forward(&args, ith, nth);
    /* snippet */
    return status;
}

int main(void)
{
    static float scores[ROWS * KEYS], o[ROWS * KEYS];
    draw(scores, ROWS * KEYS);
    memcpy(o, scores, sizeof o);
    require(weigh(BATCH, HEADS, QUERIES, KEYS, o, 0.25f, 0, 1));
    for (size_t row = 0; row < ROWS; row++) {
        const size_t visible = KEYS - QUERIES + row % QUERIES + 1;
        double sum = 0;
        for (size_t key = 0; key < visible; key++)
            sum += exp(0.25 * (double)scores[row * KEYS + key]);
        for (size_t key = 0; key < KEYS; key++)
            compare("o", key, (double)o[row * KEYS + key], key < visible ? exp(0.25 * (double)scores[row * KEYS + key]) / sum : 0,
                    1e-6);
    }
    return 0;
}
