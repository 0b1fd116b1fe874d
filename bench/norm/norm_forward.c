/* nrg_norm_forward, and the same with bytes instead of o.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

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

/* option: how the rows of x lie; of the permuted ones, where those of o lie otherwise */
enum { DENSE, PERMUTED, FUSED };
#define FUSED_HEADS .option = FUSED, .rows_step = TOKENS, .fixed_strides = 1

static const bench_op ops[] = {
    {"rms", "w,o", PLAIN},
    {"layer", "w,o,b", PLAIN, .centred = 1},
    {"add+rms", "w,o,y,r", PLAIN},
    {"add+layer", "w,o,y,r,b", PLAIN, .centred = 1},
    {"rms+silu-pre", "w,o,z", PRE(SILU)},
    {"rms+silu-post", "w,o,z", POST(SILU)},
    {"add+rms+silu-post", "w,o,y,r,z", POST(SILU)},
    {"layer+gelu-post", "w,o,b,z", POST(GELU), .centred = 1},
    {"rms+silu", "w,o", GATED, .activation = NRG_ACT_SILU}, /* of the output: no z */
    {"rms-permuted", "w,o", BENCH_SHAPES(head_shapes), .option = PERMUTED, .rows_step = HEADS, .fixed_strides = 1},
    {"rms-fused", "w,o", BENCH_SHAPES(fused_shapes), FUSED_HEADS},
    {"layer-fused", "w,o,b", BENCH_SHAPES(fused_shapes), .centred = 1, FUSED_HEADS},
    {"rms+silu-pre-g8", "w,o,z", GROUPED, .gate = NRG_GATE_PRE, .activation = NRG_ACT_SILU},
    {"rms+silu-post-g8", "w,o,z", GROUPED, .gate = NRG_GATE_POST, .activation = NRG_ACT_SILU},
    {"rms-exact", "w,o", PLAIN, .exact = 1},
    {"layer-exact", "w,o,b", PLAIN, .exact = 1, .centred = 1},
    {"add+rms-exact", "w,o,y,r", PLAIN, .exact = 1},
    {"add+layer-exact", "w,o,y,r,b", PLAIN, .exact = 1, .centred = 1},
    {"rms+silu-pre-exact", "w,o,z", PRE(SILU), .exact = 1},
    {"rms-statistics", "statistics", PLAIN, .function = &call_norm_statistics},
    {"layer-statistics", "statistics", PLAIN, .centred = 1, .function = &call_norm_statistics},
    {"rms-elements", "x,w", PLAIN, .function = &call_norm_elements},
    {"layer-elements", "x,w,b", PLAIN, .centred = 1, .function = &call_norm_elements},
    {"rms+silu-post-exact", "w,o,z", POST(SILU), .exact = 1},
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

static void rival_numbers(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_norm_args *a = part[NRG_NORM_ARGS];
    const size_t element = nrg_dtype_size(c->dtype);
    job->rows = a->rows;
    job->rows2 = a->rows2;
    job->x_stride = a->x_stride[0] / element;
    job->x_stride2 = a->x_stride[1] / element;
}

/* Elements have the statistics of their rows. */
static void ready(const bench_case *c, void *const *part)
{
    if (c->op->function == &call_norm_elements)
        call_norm_statistics.run(part, 1);
}

const bench_family bench_norm_forward = {
    BENCH_OPS(ops, call_norm_forward, prepare),
    BENCH_QUICK("rms,add+rms,rms+silu-post", "1x4096,512x4096,8192x4096,4096x128"),
    .ready = ready,
    .rival = "x,y,z,w,b,o,r,r=statistics",
    .rival_numbers = rival_numbers,
    .wide = "z",
};

/* ---- to bytes instead of o ---- */

static const bench_shape blocks[] = BENCH_BLOCKS(64), super_blocks[] = BENCH_BLOCKS(256);
static const bench_op quantized_ops[] = {
    {"rms-q8_0", "w,packed", BENCH_TO(Q8_0, blocks)},
    {"add+rms-q8_0", "y,w,r,packed", BENCH_TO(Q8_0, blocks)},
    {"add+rms-q8_k", "y,w,r,packed", BENCH_TO(Q8_K, super_blocks)},
    {"add+rms-int8", "y,w,r,packed,scales", BENCH_TO(INT8, blocks)},
};

const bench_family bench_norm_quantized = {
    BENCH_OPS(quantized_ops, call_norm_forward, prepare),
    BENCH_QUICK("add+rms-q8_0", "1x4096,512x4096"),
    .rival = "x,y,w,r,q=packed,scales",
};
