/* nrg_embed_forward, and nrg_embed_norm_forward: alone, and beside the two calls that it stands for.
 *
 * The token table has as many rows as there are tokens, and each is picked once, in an order that no prefetcher knows: so the
 * call moves one tensor for it. Segments are a table of one row.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { X, TOKENS, POSITIONS, SEGMENT, W, B, O, R, IDS = BENCH_OPERANDS - 1 };
enum {
    GATHER = 1 << TOKENS | 1 << O | 1 << IDS,
    ADD = 1 << X | 1 << POSITIONS | 1 << O,
    SUM = GATHER | 1 << POSITIONS,
    BERT = SUM | 1 << SEGMENT,
    NORM = SUM | 1 << W | 1 << B /* there are limits for two such rows beside the tensors, and not for three */
};

/* A few tokens of inference; a batch in L2; a batch from memory. */
static const bench_shape shapes[] = {BENCH_ROWS(4, 4096), BENCH_ROWS(128, 768), BENCH_ROWS(16384, 768)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

/* `centred` says that a LayerNorm follows; groups 2 that it has a call of its own. */
static const bench_op ops[] = {
    {"gather", GATHER, SHAPES},
    {"x+position", ADD, SHAPES},
    {"bert", BERT, SHAPES},
    {"sum+layer", NORM, SHAPES, .centred = 1},
    {"sum+layer_r", NORM | 1 << R, SHAPES, .centred = 1},
    {"sum_layer", NORM, SHAPES, .centred = 1, .groups = 2},
};

struct bound {
    nrg_embed_args args;
    nrg_norm_spec spec;
    nrg_norm_args norm;
    int with_norm, apart;
};

static size_t scratch_of(const bench_case *c) { return c->shape.rows * 2 * sizeof(int32_t); }

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    const size_t rows = c->shape.rows;
    int32_t *ids = (int32_t *)(void *)operand[IDS];
    struct bound *b = bound;
    (void)scratch;
    *b = (struct bound){.args = nrg_embed_args_init(rows, c->shape.dim, operand[O]),
                        .spec = nrg_layer_norm_spec(c->shape.dim, 1e-12),
                        .norm = nrg_norm_args_init(rows, NULL, operand[O]),
                        .with_norm = c->op->centred,
                        .apart = c->op->groups == 2};
    b->args.dtype = b->spec.dtype = c->dtype;
    b->args.store = b->spec.store = c->store;
    b->args.x = operand[X];
    if (operand[TOKENS]) {
        /* rows in the order of a linear congruential generator with a full period: rows are powers of two */
        for (size_t t = 0, id = 0; t < rows; t++, id = (id * 5 + 1371) % rows) {
            ids[t] = (int32_t)id;
            ids[rows + t] = 0;
        }
        b->args.tables[0] = nrg_embed_by_ids(operand[TOKENS], rows, ids);
    }
    if (operand[POSITIONS])
        b->args.tables[1] = nrg_embed_counted(operand[POSITIONS], rows, 0);
    if (operand[SEGMENT])
        b->args.tables[2] = nrg_embed_by_ids(operand[SEGMENT], 1, ids + rows);
    b->norm.w = operand[W];
    b->norm.b = operand[B];
    if (b->apart)
        b->norm.x = operand[O];
    else if (b->with_norm)
        b->args.o = NULL;
    b->norm.r = operand[R];
}

static nrg_status call(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    if (b->with_norm && !b->apart)
        return nrg_embed_norm_forward(&b->args, &b->spec, &b->norm, ith, nth);
    nrg_status status = nrg_embed_forward(&b->args, ith, nth);
    /* the shares of both are the same rows */
    return b->apart && status == NRG_OK ? nrg_norm_forward(&b->spec, &b->norm, ith, nth) : status;
}

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        call(bound, 0, 1);
}

const bench_family bench_embed = {
    .kernel = "embed",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "gather,bert",
    .quick_shapes = "128x768,16384x768",
    .operand = {[X] = {"x", BENCH_IN, BENCH_EVEN},
                [TOKENS] = {"tokens", BENCH_IN, BENCH_EVEN},
                [POSITIONS] = {"positions", BENCH_IN, BENCH_EVEN},
                [SEGMENT] = {"segment", BENCH_ROW_IN, BENCH_EVEN},
                [W] = {"w", BENCH_ROW_IN, BENCH_EVEN},
                [B] = {"b", BENCH_ROW_IN, BENCH_EVEN},
                [O] = {"o", BENCH_OUT, BENCH_EVEN},
                [R] = {"r", BENCH_OUT, BENCH_EVEN},
                [IDS] = {"ids", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {call},
    .run = run,
};
