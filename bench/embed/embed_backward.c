/* nrg_embed_backward, and nrg_embed_backward_order: both phases are one call.
 *
 * `tokens`: as many rows as tokens, each with one token, in an order that no prefetcher knows. `positions`: without ids.
 * `one_row`: all tokens of one row, whose gradient is f32 as large sums want it.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { D_O, D_TABLE, WORKSPACE = BENCH_OPERANDS - 1 };
enum { COUNTED = 1 << D_O | 1 << D_TABLE, BY_IDS = COUNTED | 1 << WORKSPACE };

static const bench_shape shapes[] = {BENCH_ROWS(128, 768), BENCH_ROWS(16384, 768)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

/* groups: tokens that a row with tokens has; 0 for all of them */
static const bench_op ops[] = {
    {"tokens", BY_IDS, SHAPES, .groups = 1},
    {"pairs", BY_IDS, SHAPES, .groups = 2},
    {"one_row", BY_IDS, SHAPES},
    {"positions", COUNTED, SHAPES},
};

/* The ids, and the workspace behind them. */
static size_t ids_bytes(const bench_case *c) { return (c->shape.rows * sizeof(int32_t) + 63) / 64 * 64; }

static size_t scratch_of(const bench_case *c)
{
    static const int32_t something; /* that there are ids is all that counts */
    nrg_embed_backward_args args = nrg_embed_backward_args_init(c->shape.rows, c->shape.dim, NULL, c->shape.rows, NULL);
    args.ids = &something;
    size_t bytes = 0;
    if (nrg_embed_backward_workspace(&args, &bytes) != NRG_OK)
        bytes = 0; /* the error comes back in the call */
    return ids_bytes(c) + bytes;
}

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    const size_t rows = c->shape.rows;
    nrg_embed_backward_args *args = bound;
    *args = nrg_embed_backward_args_init(rows, c->shape.dim, operand[D_O], rows, operand[D_TABLE]);
    args->dtype = c->dtype;
    args->store = c->store;
    if (operand[WORKSPACE]) {
        int32_t *ids = (int32_t *)(void *)operand[WORKSPACE];
        for (size_t t = 0, id = 0; t < rows; t++, id = (id * 5 + 1371) % rows) /* see family_embed.c */
            ids[t] = c->op->groups ? (int32_t)(id - id % c->op->groups) : 0;
        args->ids = ids;
        args->workspace = operand[WORKSPACE] + ids_bytes(c);
        args->workspace_size = scratch - ids_bytes(c);
    }
}

static nrg_status order(const void *bound, int ith, int nth)
{
    (void)nth;
    return ith == 0 ? nrg_embed_backward_order(bound) : NRG_OK;
}

static nrg_status sums(const void *bound, int ith, int nth) { return nrg_embed_backward(bound, ith, nth); }

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--) {
        order(bound, 0, 1);
        sums(bound, 0, 1);
    }
}

const bench_family bench_embed_backward = {
    .kernel = "embed_backward",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "tokens,one_row",
    .quick_shapes = "128x768,16384x768",
    .operand = {[D_O] = {"d_o", BENCH_IN, BENCH_EVEN},
                [D_TABLE] = {"d_table", BENCH_OUT, BENCH_EVEN},
                [WORKSPACE] = {"workspace", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .bound_size = sizeof(nrg_embed_backward_args),
    .bind = bind,
    .phase = {order, sums},
    .run = run,
};
