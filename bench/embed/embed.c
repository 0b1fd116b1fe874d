/* nrg_embed_forward; nrg_embed_norm_forward, alone and beside the two calls that it stands for; and nrg_embed_backward with
 * nrg_embed_backward_order: both phases are one call.
 *
 * The token table has as many rows as there are tokens, and each is picked once, in an order that no prefetcher knows: so the
 * call moves one tensor for it. Segments are a table of one row.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/embed.h"
#include "../family.h"

#define TOKENS "tables[0].table,tables[0].ids"
#define POSITIONS "tables[1].table"
#define SEGMENTS "tables[2].table,tables[2].ids"
/* there are limits for two such rows beside the tensors, and not for three */
#define NORM TOKENS "," POSITIONS ",w,b"

/* A few tokens of inference; a batch in L2; a batch from memory. */
static const bench_shape shapes[] = {BENCH_ROWS(4, 4096), BENCH_ROWS(128, 768), BENCH_ROWS(16384, 768), BENCH_ROWS(1, 64)};
static const bench_shape batches[] = {BENCH_ROWS(128, 768), BENCH_ROWS(16384, 768), BENCH_ROWS(1, 64)};

/* The shares of both are the same rows. */
static nrg_status call_both(void *const *part, int ith, int nth)
{
    const nrg_status status = nrg_embed_forward(part[NRG_EMBED_ARGS], ith, nth);
    return status == NRG_OK ? nrg_norm_forward(part[NRG_EMBED_NORM_SPEC], part[NRG_EMBED_NORM_ARGS], ith, nth) : status;
}
BENCH_FUNCTION(sum_then_norm, nrg_call_embed_norm_forward, call_both(part, ith, nth))

static const bench_op ops[] = {
    {"gather", TOKENS, BENCH_SHAPES(shapes)},
    {"x+position", "x," POSITIONS, BENCH_SHAPES(shapes)},
    {"bert", TOKENS "," POSITIONS "," SEGMENTS, BENCH_SHAPES(shapes)},
    {"sum+layer", NORM, BENCH_SHAPES(shapes), .function = &call_embed_norm_forward},
    {"sum+layer_r", NORM ",r", BENCH_SHAPES(shapes), .function = &call_embed_norm_forward},
    {"sum_layer", NORM, BENCH_SHAPES(shapes), .function = &sum_then_norm, .fixed_strides = 1},
};

static void prepare(const bench_case *c, void *const *part)
{
    const size_t rows = c->shape.rows;
    nrg_embed_args *args = part[NRG_EMBED_ARGS];
    nrg_norm_spec *spec = part[NRG_EMBED_NORM_SPEC];
    nrg_embed_terms *terms = part[NRG_EMBED_TERMS_PART];
    *args = nrg_embed_args_init(c->dtype, rows, c->shape.dim, NULL);
    *terms = nrg_embed_terms_of(NULL);
    args->tables = terms->table;
    args->table_count = NRG_EMBED_TABLES;
    *spec = nrg_norm_spec_layer(c->dtype, c->shape.dim, 1e-12);
    nrg_norm_args *norm = part[NRG_EMBED_NORM_ARGS];
    *norm = nrg_norm_args_init(rows, NULL, NULL, NULL);
    norm->store = c->store;
    terms->table[0].rows = terms->table[1].rows = rows;
    terms->table[2].rows = 1;
}

/* Rows in the order of a linear congruential generator with a full period: their numbers are powers of two. each: tokens that a
 * row with tokens has. */
static void fill_ids(const int32_t *ids, size_t rows, size_t each)
{
    int32_t *to = own_memory(ids);
    for (size_t t = 0, id = 0; ids && t < rows; t++, id = (id * 5 + 1371) % rows)
        to[t] = (int32_t)(id - id % each);
}

static void ready(const bench_case *c, void *const *part)
{
    const size_t rows = c->shape.rows;
    nrg_embed_args *args = part[NRG_EMBED_ARGS];
    nrg_norm_args *norm = part[NRG_EMBED_NORM_ARGS];
    nrg_embed_terms *terms = part[NRG_EMBED_TERMS_PART];
    fill_ids(args->tables[0].ids, rows, 1);
    fill_ids(args->tables[2].ids, rows, rows);
    for (size_t k = 0; k < NRG_EMBED_TABLES; k++)
        if (!terms->table[k].table)
            terms->table[k].rows = 0;
    while (args->table_count && !args->tables[args->table_count - 1].table)
        args->table_count--; /* as a caller counts them */
    if (c->op->function != &call_embed_norm_forward)
        args->store = c->store;
    if (c->op->function == &sum_then_norm) {
        args->o = norm->o;
        norm->x = norm->o;
    }
}

const bench_family bench_embed = {
    BENCH_OPS(ops, call_embed_forward, prepare),
    BENCH_QUICK("gather,bert", "128x768,16384x768"),
    .aside = "tables[0].ids,tables[2].ids",
    .ready = ready,
};

/* ---- gradients ---- */

#define BY_IDS "tables[0].d_table,tables[0].ids"

/* option: tokens that a row with tokens has; 0: all of them, whose gradient is f32 as large sums want it. `positions` has no ids,
 * and `bert` beside the tokens positions and segments of two rows. */
static const bench_op backward_ops[] = {
    {"tokens", BY_IDS, BENCH_SHAPES(batches), .option = 1},
    {"pairs", BY_IDS, BENCH_SHAPES(batches), .option = 2},
    {"one_row", BY_IDS, BENCH_SHAPES(batches)},
    {"positions", "tables[0].d_table", BENCH_SHAPES(batches)},
    {"bert", BY_IDS ",tables[1].d_table,tables[2].d_table,tables[2].ids", BENCH_SHAPES(batches), .option = 1},
};

static void prepare_backward(const bench_case *c, void *const *part)
{
    nrg_embed_backward_args *args = part[0];
    nrg_embed_gradients *gradients = part[NRG_EMBED_TERMS_PART];
    *args = nrg_embed_backward_args_init(c->dtype, c->shape.rows, c->shape.dim, NULL);
    *gradients = nrg_embed_gradients_of(NULL);
    args->tables = gradients->table;
    args->table_count = NRG_EMBED_TABLES;
    args->store = c->store;
    gradients->table[0].rows = gradients->table[1].rows = c->shape.rows;
    gradients->table[2].rows = 2;
}

static void ready_backward(const bench_case *c, void *const *part)
{
    const size_t rows = c->shape.rows;
    const nrg_embed_backward_args *args = part[0];
    nrg_embed_gradients *gradients = part[NRG_EMBED_TERMS_PART];
    for (size_t k = 0; k < NRG_EMBED_TABLES; k++)
        if (!gradients->table[k].d_table)
            gradients->table[k].rows = 0;
    fill_ids(args->tables[0].ids, rows, c->op->option ? c->op->option : rows);
    int32_t *segments = own_memory(args->tables[2].ids);
    for (size_t t = 0; segments && t < rows; t++)
        segments[t] = t >= rows / 2;
}

BENCH_FUNCTION_OF_TWO(backward, nrg_call_embed_backward, ((void)nth, ith ? NRG_OK : nrg_embed_backward_order(part[0])),
                      nrg_embed_backward(part[0], ith, nth))

const bench_family bench_embed_backward = {
    BENCH_OPS(backward_ops, backward, prepare_backward),
    BENCH_QUICK("tokens,one_row", "128x768,16384x768"),
    .aside = "tables[0].ids,tables[2].ids",
    .ready = ready_backward,
};
