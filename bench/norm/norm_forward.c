/* nrg_norm_forward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

enum {
    ROWS = 1 << NRG_NORM_W | 1 << NRG_NORM_O,
    ADD = 1 << NRG_NORM_Y | 1 << NRG_NORM_R,
    BIAS = 1 << NRG_NORM_B,
    GATE = 1 << NRG_NORM_Z,
};

/* One token (1 row), a prompt (512), far out of cache (8192), QK-norm (4096 rows of one head, and 64 in L1). 1x64 is the cost of
 * a call. */
#define SHAPES                                                                                                                   \
    BENCH_ROWS(1, 64), BENCH_ROWS(1, 768), BENCH_ROWS(1, 2048), BENCH_ROWS(1, 4096), BENCH_ROWS(1, 8192), BENCH_ROWS(64, 128),   \
        BENCH_ROWS(512, 768), BENCH_ROWS(512, 4096), BENCH_ROWS(512, 8192), BENCH_ROWS(8192, 4096), BENCH_ROWS(4096, 64),        \
        BENCH_ROWS(4096, 128), BENCH_TAILS(BENCH_ROWS)
static const bench_shape shapes[] = {SHAPES};

/* With 64 rows a gated op is still near the cores, and its activation counts; out of cache it hides behind the memory. In 8
 * groups, rows of 128, 512 and 1024 are groups of 16, 64 and 128. */
static const bench_shape gate_shapes[] = {SHAPES, BENCH_ROWS(64, 4096), BENCH_ROWS(4096, 512), BENCH_ROWS(4096, 1024)};
static const bench_shape group_shapes[] = {BENCH_ROWS(1, 4096),    BENCH_ROWS(64, 4096),  BENCH_ROWS(512, 4096),
                                           BENCH_ROWS(8192, 4096), BENCH_ROWS(4096, 128), BENCH_ROWS(4096, 512),
                                           BENCH_ROWS(4096, 1024), BENCH_ROWS(1, 64)};

/* Heads of one token lie together in x; in o those of all tokens do, a head at a time. */
enum { HEADS = 32 };
static const bench_shape head_shapes[] = {BENCH_ROWS(HEADS, 128), BENCH_ROWS(4096, 64), BENCH_ROWS(4096, 128),
                                          BENCH_ROWS(HEADS * 4096, 128), BENCH_ROWS(HEADS, 64)};

/* 2, 4 and 8 heads of k, of 512 tokens, in a buffer that has four times as many of q before them and as many of v after them. */
enum { TOKENS = 512, HEADS_AT_ONCE = 6 };
static const bench_shape fused_shapes[] = {BENCH_ROWS(2 * TOKENS, 128), BENCH_ROWS(4 * TOKENS, 128), BENCH_ROWS(8 * TOKENS, 128)};

#define PLAIN BENCH_SHAPES(shapes)
#define GATED BENCH_SHAPES(gate_shapes)
#define PRE(g) GATED, .gate = NRG_GATE_PRE, .activation = NRG_ACT_##g
#define GROUPED BENCH_SHAPES(group_shapes), .groups = 8
#define POST(g) GATED, .gate = NRG_GATE_POST, .activation = NRG_ACT_##g

static nrg_status run_statistics(void *const *part, int ith, int nth)
{
    const nrg_norm_more *more = part[NRG_NORM_MORE];
    return nrg_norm_statistics(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], own_memory(more->statistics), ith, nth);
}

BENCH_FUNCTION(forward, nrg_call_norm_forward, nrg_norm_forward(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], ith, nth))
BENCH_FUNCTION(statistics, nrg_call_norm_statistics, run_statistics(part, ith, nth))
BENCH_FUNCTION(elements, nrg_call_norm_elements,
               nrg_norm_elements(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS],
                                 ((const nrg_norm_more *)part[NRG_NORM_MORE])->statistics, ith, nth))

/* The two halves of a pass. */
enum {
    SUMS = 1 << NRG_NORM_STATISTICS_STATISTICS,
    FROM_SUMS = 1 << NRG_NORM_ELEMENTS_X | 1 << NRG_NORM_ELEMENTS_W,
};

/* option: how the rows of x lie; of the permuted ones, where those of o lie otherwise */
enum { DENSE, PERMUTED, FUSED };

static const bench_op ops[] = {
    {"rms", ROWS, PLAIN},
    {"layer", ROWS | BIAS, PLAIN, .centred = 1},
    {"add+rms", ROWS | ADD, PLAIN},
    {"add+layer", ROWS | ADD | BIAS, PLAIN, .centred = 1},
    {"rms+silu-pre", ROWS | GATE, PRE(SILU)},
    {"rms+silu-post", ROWS | GATE, POST(SILU)},
    {"add+rms+silu-post", ROWS | ADD | GATE, POST(SILU)},
    {"layer+gelu-post", ROWS | BIAS | GATE, POST(GELU), .centred = 1},
    {"rms+silu", ROWS, GATED, .activation = NRG_ACT_SILU}, /* of the output: no z */
    {"rms-permuted", ROWS, BENCH_SHAPES(head_shapes), .option = PERMUTED, .fixed_strides = 1},
    {"rms-fused", ROWS, BENCH_SHAPES(fused_shapes), .option = FUSED, .fixed_strides = 1},
    {"layer-fused", ROWS | BIAS, BENCH_SHAPES(fused_shapes), .centred = 1, .option = FUSED, .fixed_strides = 1},
    {"rms+silu-pre-g8", ROWS | GATE, GROUPED, .gate = NRG_GATE_PRE, .activation = NRG_ACT_SILU},
    {"rms+silu-post-g8", ROWS | GATE, GROUPED, .gate = NRG_GATE_POST, .activation = NRG_ACT_SILU},
    {"rms-exact", ROWS, PLAIN, .exact = 1},
    {"layer-exact", ROWS | BIAS, PLAIN, .exact = 1, .centred = 1},
    {"add+rms-exact", ROWS | ADD, PLAIN, .exact = 1},
    {"add+layer-exact", ROWS | ADD | BIAS, PLAIN, .exact = 1, .centred = 1},
    {"rms+silu-pre-exact", ROWS | GATE, PRE(SILU), .exact = 1},
    {"rms-statistics", SUMS, PLAIN, .function = &statistics},
    {"layer-statistics", SUMS, PLAIN, .centred = 1, .function = &statistics},
    {"rms-elements", FROM_SUMS, PLAIN, .function = &elements},
    {"layer-elements", FROM_SUMS | 1 << NRG_NORM_ELEMENTS_B, PLAIN, .centred = 1, .function = &elements},
    {"rms+silu-post-exact", ROWS | GATE, POST(SILU), .exact = 1},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    *spec = bench_norm_spec(c);
    nrg_norm_args *args = part[NRG_NORM_ARGS];
    *args = nrg_norm_args_init(c->shape.rows, NULL, NULL, NULL);
    args->store = c->store;
    const size_t row = c->shape.dim * nrg_dtype_size(c->dtype), heads = c->shape.rows / TOKENS;
    if (c->op->option == PERMUTED) {
        args->rows = c->shape.rows / HEADS;
        args->rows2 = HEADS;
        args->x_stride[0] = HEADS * row;
        args->x_stride[1] = row;
    } else if (c->op->option == FUSED) {
        args->rows = heads;
        args->rows2 = TOKENS;
        args->x_stride[0] = row;
        args->x_stride[1] = HEADS_AT_ONCE * heads * row;
    }
}

static void rival_of(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_norm_args *a = part[NRG_NORM_ARGS];
    const size_t element = nrg_dtype_size(c->dtype);
    *job = (rival_job){
        .rows = a->rows,
        .rows2 = a->rows2,
        .x_stride = a->x_stride[0] / element,
        .x_stride2 = a->x_stride[1] / element,
        .dim = c->shape.dim,
        .groups = c->op->groups,
        .eps = (float)((const nrg_norm_spec *)part[NRG_NORM_SPEC])->eps,
        .x = a->x,
        .y = a->y,
        .z = a->z,
        .w = a->w,
        .b = a->b,
        .o = a->o,
        .r = a->r,
    };
    if (c->op->function == &statistics || c->op->function == &elements)
        job->r = own_memory(((const nrg_norm_more *)part[NRG_NORM_MORE])->statistics);
}

/* Elements have the statistics of their rows. */
static void ready(const bench_case *c, void *const *part)
{
    if (c->op->function == &elements)
        run_statistics(part, 0, 1);
}

static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    const size_t groups = op->groups ? op->groups : 1, multiple = op->option == PERMUTED ? HEADS
                                                                  : op->option == FUSED  ? TOKENS
                                                                                         : 1;
    *row = (*row + groups - 1) / groups * groups;
    *rows = (*rows + multiple - 1) / multiple * multiple;
    return (bench_shape)BENCH_ROWS(*rows, *row);
}

const bench_family bench_norm_forward = {
    .kernel = "norm_forward",
    BENCH_OPS(ops),
    .quick_ops = "rms,add+rms,rms+silu-post",
    .quick_shapes = "1x4096,512x4096,8192x4096,4096x128",
    .function = &forward,
    .prepare = prepare,
    .ready = ready,
    .rival_job = rival_of,
    .scan_shape = scan_shape,
    .wide = 1 << NRG_NORM_Z,
};
