/* nrg_norm_backward, and nrg_norm_backward_reduce where dw or db is asked for: both phases are one call.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { D_O, X, R, W, DR_IN, DX, Z, DZ, DW, DB, WORKSPACE };
enum {
    ROWS = 1 << D_O | 1 << W | 1 << DX,
    WEIGHT = 1 << DW | 1 << WORKSPACE,
    BIAS = 1 << DB,
    /* after the sum: r was kept by the forward pass, and a gradient comes down the residual stream. dy is dx: not written */
    ADD = 1 << R | 1 << DR_IN,
    GATE = 1 << Z | 1 << DZ,
};

static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(64, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096),
                                     BENCH_ROWS(4096, 128)};

#define SHAPES .shapes = shapes, .shape_count = COUNT(shapes)

/* -dx: without gradients of w and b, as below a frozen norm; -saved: with the mean that the forward pass stored */
static const bench_op ops[] = {
    {"rms", ROWS | 1 << X | WEIGHT, SHAPES},
    {"layer", ROWS | 1 << X | WEIGHT | BIAS, SHAPES, .centred = 1},
    {"add+rms", ROWS | ADD | WEIGHT, SHAPES},
    {"add+layer", ROWS | ADD | WEIGHT | BIAS, SHAPES, .centred = 1},
    {"layer-saved", ROWS | 1 << X | WEIGHT | BIAS, SHAPES, .centred = 1},
    {"add+layer-saved", ROWS | ADD | WEIGHT | BIAS, SHAPES, .centred = 1},
    {"rms-dx", ROWS | 1 << X, SHAPES},
    {"layer-dx", ROWS | 1 << X, SHAPES, .centred = 1},
    {"rms+silu-post", ROWS | 1 << X | WEIGHT | GATE, SHAPES, .gate = NRG_GATE_POST, .activation = NRG_ACT_SILU},
};

struct bound {
    nrg_norm_spec spec;
    nrg_norm_backward_args args;
};

static nrg_norm_spec spec_of(const bench_case *c)
{
    nrg_norm_spec spec = c->op->centred ? nrg_layer_norm_spec(c->shape.dim, 1e-5) : nrg_rms_norm_spec(c->shape.dim, 1e-6);
    spec.dtype = c->dtype;
    spec.store = c->store;
    spec.gate = c->op->gate;
    spec.activation = c->op->activation;
    spec.groups = c->op->groups;
    return spec;
}

static int is_saved(const bench_case *c) { return strstr(c->op->name, "-saved") != NULL; }

static size_t scratch_of(const bench_case *c)
{
    static float something; /* that dw and db are there is all that counts */
    nrg_norm_spec spec = spec_of(c);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(c->shape.rows, NULL, NULL, NULL);
    args.dw = c->op->operands & 1 << DW ? &something : NULL;
    args.db = c->op->operands & 1 << DB ? &something : NULL;
    size_t bytes = 0;
    if (nrg_norm_backward_workspace(&spec, &args, &bytes) != NRG_OK)
        return 0; /* the error comes back in the call */
    return bytes + (is_saved(c) ? c->shape.rows * sizeof(float) : 0);
}

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    struct bound *b = bound;
    b->spec = spec_of(c);
    b->args = nrg_norm_backward_args_init(c->shape.rows, operand[X], operand[D_O], operand[DX]);
    b->args.dr_in = operand[DR_IN];
    b->args.r = operand[R];
    b->args.z = operand[Z];
    b->args.w = operand[W];
    b->args.dz = operand[DZ];
    b->args.dw = (float *)(void *)operand[DW];
    b->args.db = (float *)(void *)operand[DB];
    b->args.workspace = operand[WORKSPACE];
    b->args.workspace_size = scratch;
    if (!is_saved(c))
        return;
    /* the means lie behind the workspace; the forward pass that finds them writes its output where dx will be */
    const size_t bytes = c->shape.rows * sizeof(float);
    float *mean = (float *)(void *)(operand[WORKSPACE] + scratch - bytes);
    nrg_norm_args args = nrg_norm_args_init(c->shape.rows, operand[R] ? operand[R] : operand[X], operand[DX]);
    args.mean = mean;
    b->args.workspace_size = scratch - bytes;
    b->args.mean = nrg_norm_forward(&b->spec, &args, 0, 1) == NRG_OK ? mean : NULL;
}

static nrg_status rows(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_norm_backward(&b->spec, &b->args, ith, nth);
}

static nrg_status columns(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return b->args.dw || b->args.db ? nrg_norm_backward_reduce(&b->spec, &b->args, ith, nth) : NRG_OK;
}

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--) {
        rows(bound, 0, 1);
        columns(bound, 0, 1);
    }
}

const bench_family bench_norm_backward = {
    .kernel = "norm_backward",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "rms,add+rms,rms+silu-post",
    .quick_shapes = "1x4096,512x4096,8192x4096,4096x128",
    .operand = {[D_O] = {"d_o", BENCH_IN, BENCH_EVEN},
                [X] = {"x", BENCH_IN, BENCH_EVEN},
                [R] = {"r", BENCH_IN, BENCH_EVEN},
                [W] = {"w", BENCH_ROW_IN, BENCH_EVEN},
                [DR_IN] = {"dr_in", BENCH_IN, BENCH_EVEN},
                [DX] = {"dx", BENCH_OUT, BENCH_EVEN},
                [Z] = {"z", BENCH_IN, BENCH_WIDE},
                [DZ] = {"dz", BENCH_OUT, BENCH_EVEN},
                [DW] = {"dw", BENCH_ROW_OUT, BENCH_EVEN},
                [DB] = {"db", BENCH_ROW_OUT, BENCH_EVEN},
                [WORKSPACE] = {"workspace", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {rows, columns},
    .run = run,
};
