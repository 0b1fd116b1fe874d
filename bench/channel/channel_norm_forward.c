/* nrg_channel_norm_forward.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"
#include "../family.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { X, Y, W, B, RUNNING_MEAN, RUNNING_VAR, SCALE, SHIFT, O, STATISTICS = BENCH_OPERANDS - 1 };
enum {
    PLAIN = 1 << X | 1 << W | 1 << B | 1 << O,
    RUNNING = 1 << RUNNING_MEAN | 1 << RUNNING_VAR,
    TRAIN = PLAIN | RUNNING | 1 << STATISTICS, /* which the backward pass will want */
    ADD = 1 << Y,
    FOLDED = 1 << X | 1 << SCALE | 1 << SHIFT | 1 << O,
};

/* Groups of 32 as in diffusion models; layer is one group; instance a group for each channel. */
static const bench_op ops[] = {
    BENCH_LAYOUTS("group", PLAIN, BENCH_GROUP(32)),
    BENCH_LAYOUTS("group_silu", PLAIN, BENCH_GROUP(32), .activation = NRG_ACT_SILU),
    BENCH_LAYOUTS("batch_train", TRAIN, BENCH_BATCH),
    BENCH_LAYOUTS("batch_train_relu", TRAIN, BENCH_BATCH, .activation = NRG_ACT_RELU),
    BENCH_LAYOUTS("batch_add_relu", TRAIN | ADD, BENCH_BATCH, .activation = NRG_ACT_RELU),
    BENCH_LAYOUTS("batch_infer", PLAIN | RUNNING, BENCH_BATCH, .statistics = NRG_STATISTICS_RUNNING),
    BENCH_LAYOUTS("batch_folded", FOLDED, BENCH_BATCH, .statistics = NRG_STATISTICS_FOLDED),
    BENCH_LAYOUTS("instance", PLAIN, BENCH_INSTANCE),
    BENCH_LAYOUTS("layer", PLAIN, BENCH_GROUP(1)),
};

struct bound {
    nrg_channel_norm_spec spec;
    nrg_channel_norm_args args;
};

static size_t scratch_of(const bench_case *c)
{
    return c->op->operands >> STATISTICS & 1 ? bench_channel_statistics_bytes(c) : 0;
}

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    const int folded = c->op->statistics == NRG_STATISTICS_FOLDED;
    struct bound *b = bound;
    b->spec = bench_channel_spec(c);
    b->spec.w_dtype = folded ? NRG_F32 : NRG_DTYPE_SAME; /* as nrg_channel_norm_fold makes them */
    b->args = nrg_channel_norm_args_init(c->shape.rows, bench_channel_positions(c), operand[X], operand[O]);
    b->args.y = operand[Y];
    b->args.w = folded ? operand[SCALE] : operand[W];
    b->args.b = folded ? operand[SHIFT] : operand[B];
    b->args.running_mean = (float *)(void *)operand[RUNNING_MEAN];
    b->args.running_var = (float *)(void *)operand[RUNNING_VAR];
    b->args.statistics = (nrg_channel_statistics *)(void *)operand[STATISTICS];
}

static nrg_status share(const void *bound, int ith, int nth)
{
    const struct bound *b = bound;
    return nrg_channel_norm_forward(&b->spec, &b->args, ith, nth);
}

static void run(const void *bound, size_t calls)
{
    const struct bound *b = bound;
    for (; calls; calls--)
        nrg_channel_norm_forward(&b->spec, &b->args, 0, 1);
}

const bench_family bench_channel_norm_forward = {
    .kernel = "channel_norm_forward",
    .ops = ops,
    .op_count = COUNT(ops),
    .quick_ops = "group_silu,group_silu-nhwc,batch_train,batch_train-nhwc,batch_infer",
    .quick_shapes = "2x640x32x32,32x256x28x28",
    .operand = {[X] = {"x", BENCH_IN, BENCH_EVEN},
                [Y] = {"y", BENCH_IN, BENCH_EVEN},
                [W] = {"w", BENCH_CHANNEL_IN, BENCH_EVEN},
                [B] = {"b", BENCH_CHANNEL_IN, BENCH_EVEN},
                [RUNNING_MEAN] = {"running_mean", BENCH_CHANNEL_F32, BENCH_EVEN},
                [RUNNING_VAR] = {"running_var", BENCH_CHANNEL_F32, BENCH_POSITIVE},
                [SCALE] = {"scale", BENCH_CHANNEL_F32, BENCH_EVEN},
                [SHIFT] = {"shift", BENCH_CHANNEL_F32, BENCH_EVEN},
                [O] = {"o", BENCH_OUT, BENCH_EVEN},
                [STATISTICS] = {"statistics", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = scratch_of,
    .set_elements = bench_channel_set_elements,
    .read_twice = 1 << X,
    .bound_size = sizeof(struct bound),
    .bind = bind,
    .phase = {share},
    .run = run,
};
