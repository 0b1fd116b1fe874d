/* nrg_norm_forward.
 *
 * SPDX-License-Identifier: MIT */
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { X, Y, W, B, R, O, Z };
enum {
    ROWS = 1 << X | 1 << W | 1 << O,
    ADD = 1 << Y | 1 << R,
    BIAS = 1 << B,
    GATE = 1 << Z,
};

/* One token (1 row), a prompt (512), far out of cache (8192), QK-norm (4096 rows of one head). 1x64 is the cost of a call. */
static const bench_shape shapes[] = {
    BENCH_ROWS(1, 64),      BENCH_ROWS(1, 768),   BENCH_ROWS(1, 2048),   BENCH_ROWS(1, 4096),
    BENCH_ROWS(1, 8192),    BENCH_ROWS(512, 768), BENCH_ROWS(512, 4096), BENCH_ROWS(512, 8192),
    BENCH_ROWS(8192, 4096), BENCH_ROWS(4096, 64), BENCH_ROWS(4096, 128),
};

/* With 64 rows a gated op is still near the cores, and its activation counts; out of cache it hides behind the memory. */
static const bench_shape gate_shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(64, 4096), BENCH_ROWS(512, 4096),
                                          BENCH_ROWS(8192, 4096), BENCH_ROWS(4096, 128)};

#define PLAIN .shapes = shapes, .shape_count = COUNT(shapes)
#define GATED .shapes = gate_shapes, .shape_count = COUNT(gate_shapes)
#define PRE(g) GATED, .gate = NRG_GATE_PRE, .activation = NRG_ACT_##g
#define POST(g) GATED, .gate = NRG_GATE_POST, .activation = NRG_ACT_##g

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
    {"rms+silu-post-g8", ROWS | GATE, POST(SILU), .groups = 8},
};

struct bound {
    nrg_norm_spec spec;
    nrg_norm_args args;
};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    struct bound *b = bound;
    b->spec = c->op->centred ? nrg_layer_norm_spec(c->shape.dim, 1e-5) : nrg_rms_norm_spec(c->shape.dim, 1e-6);
    b->spec.dtype = c->dtype;
    b->spec.store = c->store;
    b->spec.gate = c->op->gate;
    b->spec.activation = c->op->activation;
    b->spec.groups = c->op->groups;
    b->args = nrg_norm_args_init(c->shape.rows, operand[X], operand[O]);
    b->args.w = operand[W];
    b->args.b = operand[B];
    b->args.y = operand[Y];
    b->args.r = operand[R];
    b->args.z = operand[Z];
}

static nrg_status share(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_norm_forward(&b->spec, &b->args, ith, nth);
}

static void run(const void *bound, size_t calls)
{
    const struct bound *b = bound;
    for (; calls; calls--)
        nrg_norm_forward(&b->spec, &b->args, 0, 1);
}

const bench_family bench_norm_forward = {
    .kernel = "norm_forward",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "rms,add+rms,rms+silu-post",
    .quick_shapes = "1x4096,512x4096,8192x4096,4096x128",
    .operand = {[X] = {"x", BENCH_IN, BENCH_EVEN},
                [Y] = {"y", BENCH_IN, BENCH_EVEN},
                [W] = {"w", BENCH_ROW_IN, BENCH_EVEN},
                [B] = {"b", BENCH_ROW_IN, BENCH_EVEN},
                [R] = {"r", BENCH_OUT, BENCH_EVEN},
                [O] = {"o", BENCH_OUT, BENCH_EVEN},
                [Z] = {"z", BENCH_IN, BENCH_WIDE}},
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {share},
    .run = run,
};
