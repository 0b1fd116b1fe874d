/* nrg_channel_norm_backward, and nrg_channel_norm_backward_reduce: both phases are one call. With the statistics that the forward
 * pass has saved, and with dw and db.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { D_O, X, W, B, DX, DW, DB, WORKSPACE = BENCH_OPERANDS - 1 };
enum { ALL = 1 << D_O | 1 << X | 1 << W | 1 << B | 1 << DX | 1 << DW | 1 << DB | 1 << WORKSPACE };

static const bench_op ops[] = {
    BENCH_LAYOUTS("group", ALL, BENCH_GROUP(32)),   BENCH_LAYOUTS("group_silu", ALL, BENCH_GROUP(32), .activation = NRG_ACT_SILU),
    BENCH_LAYOUTS("batch", ALL, BENCH_BATCH),       BENCH_LAYOUTS("batch_relu", ALL, BENCH_BATCH, .activation = NRG_ACT_RELU),
    BENCH_LAYOUTS("instance", ALL, BENCH_INSTANCE),
};

struct bound {
    nrg_channel_norm_spec spec;
    nrg_channel_norm_backward_args args;
};

/* The workspace, and the statistics behind it. */
static size_t scratch_of(const bench_case *c)
{
    static float something; /* that dw and db are there is all that counts */
    nrg_channel_norm_spec spec = bench_channel_spec(c);
    nrg_channel_norm_backward_args args =
        nrg_channel_norm_backward_args_init(c->shape.rows, bench_channel_positions(c), NULL, NULL, NULL);
    args.dw = args.db = &something;
    size_t bytes = 0;
    if (nrg_channel_norm_backward_workspace(&spec, &args, &bytes) != NRG_OK)
        bytes = 0; /* the error comes back in the call */
    return bytes + bench_channel_statistics_bytes(c);
}

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    const size_t bytes = bench_channel_statistics_bytes(c), n = c->shape.rows, s = bench_channel_positions(c);
    struct bound *b = bound;
    b->spec = bench_channel_spec(c);
    b->args = nrg_channel_norm_backward_args_init(n, s, operand[X], operand[D_O], operand[DX]);
    b->args.w = operand[W];
    b->args.b = operand[B];
    b->args.dw = (float *)(void *)operand[DW];
    b->args.db = (float *)(void *)operand[DB];
    b->args.workspace = operand[WORKSPACE];
    b->args.workspace_size = scratch - bytes;

    /* the forward pass that finds the statistics writes its output where dx will be */
    nrg_channel_statistics *statistics = (nrg_channel_statistics *)(void *)(operand[WORKSPACE] + (scratch - bytes));
    nrg_channel_norm_spec spec = b->spec;
    spec.activation = NRG_ACT_IDENTITY;
    nrg_channel_norm_args args = nrg_channel_norm_args_init(n, s, operand[X], operand[DX]);
    args.statistics = statistics;
    b->args.statistics = statistics;
    if (nrg_channel_norm_forward(&spec, &args, 0, 1) != NRG_OK)
        b->args.size = 0; /* refused and reported, where recomputed statistics would be measured for saved ones */
}

static nrg_status sets(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_channel_norm_backward(&b->spec, &b->args, ith, nth);
}

static nrg_status channels(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_channel_norm_backward_reduce(&b->spec, &b->args, ith, nth);
}

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--) {
        sets(bound, 0, 1);
        channels(bound, 0, 1);
    }
}

const bench_family bench_channel_norm_backward = {
    .kernel = "channel_norm_backward",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "group,group-nhwc,batch,batch-nhwc",
    .quick_shapes = "2x640x32x32,32x256x28x28",
    .operand = {[D_O] = {"d_o", BENCH_IN, BENCH_EVEN},
                [X] = {"x", BENCH_IN, BENCH_EVEN},
                [W] = {"w", BENCH_CHANNEL_IN, BENCH_EVEN},
                [B] = {"b", BENCH_CHANNEL_IN, BENCH_EVEN},
                [DX] = {"dx", BENCH_OUT, BENCH_EVEN},
                [DW] = {"dw", BENCH_CHANNEL_F32, BENCH_EVEN},
                [DB] = {"db", BENCH_CHANNEL_F32, BENCH_EVEN},
                [WORKSPACE] = {"workspace", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .set_elements = bench_channel_set_elements,
    .read_twice = 1 << D_O | 1 << X,
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {sets, channels},
    .run = run,
};
