/* nrg_rope and nrg_norm_rope_forward: 32 heads of 128 turned, out of place; and with a norm of each head before.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { X, W, O, TABLE };
enum { HEAD = 128 };
enum { TURNED = 1 << X | 1 << O | 1 << TABLE, NORMED = TURNED | 1 << W };

static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

static const bench_op turned_ops[] = {
    {"normal", TURNED, SHAPES, .rope = NRG_ROPE_NORMAL},
    {"neox", TURNED, SHAPES, .rope = NRG_ROPE_NEOX},
};

/* In one call, and in two. */
static const bench_op normed_ops[] = {
    {"norm+normal", NORMED, SHAPES, .rope = NRG_ROPE_NORMAL, .normed = 1},
    {"norm+neox", NORMED, SHAPES, .rope = NRG_ROPE_NEOX, .normed = 1},
    {"norm,normal", NORMED, SHAPES, .rope = NRG_ROPE_NORMAL, .normed = 2},
    {"norm,neox", NORMED, SHAPES, .rope = NRG_ROPE_NEOX, .normed = 2},
};

/* The table: one row a token, small beside its heads. */
static size_t scratch(const bench_case *c) { return c->shape.rows * HEAD * sizeof(float); }

struct bound {
    nrg_rope_spec spec;
    nrg_rope_args rope;
    nrg_norm_spec norm;
    nrg_norm_args fused, first; /* for one call; the first of two */
    int normed;
};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t bytes)
{
    (void)bytes;
    struct bound *b = bound;
    double frequencies[HEAD], magnitude;
    const size_t tokens = c->shape.rows, heads = c->shape.dim / HEAD;
    b->spec = nrg_rope_spec_init(HEAD, c->op->rope, 10000);
    nrg_rope_frequencies(&b->spec, frequencies, &magnitude);
    const nrg_rope_table_args table = nrg_rope_table_args_init(tokens, frequencies, magnitude, (float *)(void *)operand[TABLE]);
    nrg_rope_table(&b->spec, &table, 0, 1);
    b->normed = c->op->normed;
    b->rope = nrg_rope_args_init(tokens, HEAD, table.table);
    b->rope.dtype = c->dtype;
    b->rope.store = c->store;
    b->rope.q_heads = heads;
    b->rope.q = b->normed == 2 ? operand[O] : operand[X];
    b->rope.q_o = operand[O];
    b->norm = nrg_rms_norm_spec(HEAD, 1e-6);
    b->norm.dtype = c->dtype;
    b->norm.store = c->store;
    b->fused = nrg_norm_args_init(0, NULL, NULL);
    b->fused.w = operand[W];
    b->first = nrg_norm_args_init(tokens * heads, operand[X], operand[O]);
    b->first.w = operand[W];
}

static nrg_status share(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    if (b->normed == 1)
        return nrg_norm_rope_forward(&b->norm, &b->spec, &b->rope, &b->fused, NULL, ith, nth);
    if (b->normed == 2) {
        nrg_status status = nrg_norm_forward(&b->norm, &b->first, ith, nth);
        if (status != NRG_OK)
            return status;
    }
    return nrg_rope(&b->spec, &b->rope, ith, nth);
}

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        share(bound, 0, 1);
}

#define OPERANDS                                                                                                                 \
    .operand = {[X] = {"x", BENCH_IN, BENCH_EVEN},                                                                               \
                [W] = {"w", BENCH_ROW_IN, BENCH_EVEN},                                                                           \
                [O] = {"o", BENCH_OUT, BENCH_EVEN},                                                                              \
                [TABLE] = {"table", BENCH_SCRATCH, BENCH_EVEN}},                                                                 \
    .scratch = scratch, .bound_size = sizeof(struct bound), .bind = bind, .phase = {share}, .run = run

const bench_family bench_rope = {
    .kernel = "rope",
    .ops = turned_ops,
    .op_count = COUNT(turned_ops),
    .quick_ops = "normal,neox",
    .quick_shapes = "1x4096,512x4096",
    OPERANDS,
};

const bench_family bench_norm_rope = {
    .kernel = "norm_rope",
    .ops = normed_ops,
    .op_count = COUNT(normed_ops),
    .quick_ops = "norm+neox",
    .quick_shapes = "1x4096,512x4096",
    OPERANDS,
};
