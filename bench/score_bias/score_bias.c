/* nrg_score_bias_forward and nrg_score_bias_backward. Shapes are batch x heads x queries x keys. The table is no part of what a
 * call moves: it is read from cache, or added up in it.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/score_bias.h"
#include "../family.h"

/* In L1 or near it, in L2, in what caches there are behind it, from memory; rows that no vector divides; one query and a cache.
 */
static const bench_shape shapes[] = {
    BENCH_IMAGES(1, 1, 64, 64),    BENCH_IMAGES(1, 4, 128, 128),  BENCH_IMAGES(1, 8, 512, 512), BENCH_IMAGES(1, 32, 2048, 2048),
    BENCH_IMAGES(8, 16, 511, 513), BENCH_IMAGES(16, 32, 1, 4096), BENCH_IMAGES(1, 1, 1, 64)};
static const bench_shape large[] = {BENCH_IMAGES(1, 8, 512, 512), BENCH_IMAGES(1, 32, 2048, 2048), BENCH_IMAGES(1, 1, 1, 64)};

/* option: the table that the op is named after */
enum { T5, ALIBI };
static const bench_op forward_ops[] = {
    {"t5", NULL, BENCH_SHAPES(shapes), .option = T5},
    {"alibi", NULL, BENCH_SHAPES(large), .option = ALIBI},
};
static const bench_op backward_ops[] = {{"t5", NULL, BENCH_SHAPES(shapes)}};

static void prepare_forward(const bench_case *c, void *const *part)
{
    const bench_shape s = c->shape;
    nrg_score_bias_args *args = part[NRG_SCORE_BIAS_ARGS];
    *args = nrg_score_bias_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL, NULL);
    args->store = c->store;
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    const bench_shape s = c->shape;
    *(nrg_score_bias_backward_args *)part[NRG_SCORE_BIAS_ARGS] =
        nrg_score_bias_backward_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL);
}

enum { BUCKETS = 32, HEADS_MOST = 64 };

static void fill_table(const bench_case *c, void *const *part)
{
    static float numbers[BUCKETS * HEADS_MOST];
    const nrg_score_bias_args *args = part[NRG_SCORE_BIAS_ARGS];
    const nrg_score_bias_spec t5 = nrg_score_bias_spec_t5(c->shape.channels, c->shape.height, c->shape.width),
                              alibi = nrg_score_bias_spec_alibi(t5.heads, t5.queries, t5.keys);
    float *diagonals = own_memory(args->diagonals);
    if (c->op->option == T5) {
        for (size_t i = 0; i < NRG_COUNT(numbers); i++)
            numbers[i] = (float)(i % 61) * 0.0625f - 2;
        bench_require(nrg_t5_diagonals_forward(&t5, NRG_F32, numbers, 0, diagonals, 0, 0, 1));
    } else {
        bench_require(nrg_alibi_slopes(alibi.heads, 8, numbers));
        bench_require(nrg_alibi_diagonals(&alibi, numbers, diagonals, 0, 0, 1));
    }
}

const bench_family bench_score_bias = {
    BENCH_OPS(forward_ops, call_score_bias_forward, prepare_forward),
    BENCH_QUICK(NULL, "1x4x128x128,1x32x2048x2048"),
    .scan_shape = bench_scan_scores,
    .ready = fill_table,
    .wide = "scores",
    .aside = "diagonals",
};

const bench_family bench_score_bias_backward = {
    BENCH_OPS(backward_ops, call_score_bias_backward, prepare_backward),
    BENCH_QUICK(NULL, "1x4x128x128,1x32x2048x2048"),
    .scan_shape = bench_scan_scores,
    .wide = "d_o",
    .aside = "d_diagonals",
};
