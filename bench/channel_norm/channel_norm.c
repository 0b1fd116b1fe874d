/* nrg_channel_norm_forward, and nrg_channel_norm_backward with nrg_channel_norm_backward_reduce: both phases are one call, with
 * the statistics that the forward pass has saved, and with dw and db.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/channel_norm.h"
#include "../family.h"

/* Diffusion models; residual networks; style transfer. 2x640x32x32 and the like are 5 MB of f32: past L2, but not far from it. */
#define DIFFUSION BENCH_IMAGES(1, 320, 64, 64), BENCH_IMAGES(2, 640, 32, 32)
#define SMALL_PLANES BENCH_IMAGES(1, 2048, 7, 7), BENCH_IMAGES(8, 256, 14, 14), BENCH_IMAGES(8, 512, 7, 7)
#define FORTY BENCH_IMAGES(32, 40, 16, 16) /* channels, of which no vector and no 32 groups are a part */
static const bench_shape group_shapes[] = {DIFFUSION, SMALL_PLANES}, layer_shapes[] = {DIFFUSION, SMALL_PLANES, FORTY};
static const bench_shape batch_shapes[] = {BENCH_IMAGES(32, 256, 28, 28), BENCH_IMAGES(32, 64, 112, 112), SMALL_PLANES, FORTY};
static const bench_shape instance_shapes[] = {BENCH_IMAGES(4, 64, 256, 256), SMALL_PLANES, FORTY};

#define BATCH .over = NRG_CHANNEL_OVER_BATCH, BENCH_SHAPES(batch_shapes)
#define GROUP(G) .over = NRG_CHANNEL_OVER_GROUP, .groups = (G), BENCH_SHAPES(group_shapes)
#define INSTANCE .over = NRG_CHANNEL_OVER_GROUP, .groups = 0, BENCH_SHAPES(instance_shapes)
#define RELU .activation = NRG_ACT_RELU
#define SILU .activation = NRG_ACT_SILU

#define LAYOUTS(name, operands, ...)                                                                                             \
    {name, operands, __VA_ARGS__, .layout = NRG_LAYOUT_NCHW}, { name "-nhwc", operands, __VA_ARGS__, .layout = NRG_LAYOUT_NHWC }
#define EXACT(name, operands, ...)                                                                                               \
    {name "-exact", operands, __VA_ARGS__, .exact = 1},                                                                          \
    {                                                                                                                            \
        name "-nhwc-exact", operands, __VA_ARGS__, .exact = 1, .layout = NRG_LAYOUT_NHWC                                         \
    }

#define PLAIN "w,b"
#define RUNNING PLAIN ",running_mean_in,running_var_in"
#define TRAIN RUNNING ",running_mean,running_var,statistics" /* which the backward pass reads */
#define ADD ",y"

/* Groups of 32 as in diffusion models; layer is one group; instance a group for each channel. */
static const bench_op forward_ops[] = {
    LAYOUTS("group", PLAIN, GROUP(32)),
    LAYOUTS("group_silu", PLAIN, GROUP(32), SILU),
    LAYOUTS("batch_train", TRAIN, BATCH),
    LAYOUTS("batch_train_relu", TRAIN, BATCH, RELU),
    LAYOUTS("batch_add_relu", TRAIN ADD, BATCH, RELU),
    LAYOUTS("batch_infer", RUNNING, BATCH, .source = NRG_STATISTICS_RUNNING),
    LAYOUTS("batch_folded", PLAIN, BATCH, .source = NRG_STATISTICS_FOLDED),
    LAYOUTS("instance", PLAIN, INSTANCE),
    LAYOUTS("layer", PLAIN, .over = NRG_CHANNEL_OVER_GROUP, .groups = 1, BENCH_SHAPES(layer_shapes)),
    EXACT("group", PLAIN, GROUP(32)),
    EXACT("group_silu", PLAIN, GROUP(32), SILU),
    EXACT("batch_train", TRAIN, BATCH),
    EXACT("batch_infer", RUNNING, BATCH, .source = NRG_STATISTICS_RUNNING),
    EXACT("instance", PLAIN, INSTANCE),
};

#define ALL "w,statistics,dx,dw,db"
#define ACTIVATED ALL ",b"

static const bench_op backward_ops[] = {
    LAYOUTS("group", ALL, GROUP(32)),   LAYOUTS("group_silu", ACTIVATED, GROUP(32), SILU),
    LAYOUTS("batch", ALL, BATCH),       LAYOUTS("batch_relu", ACTIVATED, BATCH, RELU),
    LAYOUTS("instance", ALL, INSTANCE),
};

static size_t groups_of(const bench_case *c) { return c->op->groups ? c->op->groups : c->shape.channels; }

static size_t positions_of(const bench_case *c) { return c->shape.height * c->shape.width; }

/* A row is a plane of a channel (NCHW), or the channels of a position (NHWC), of which samples have 49. */
static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    enum { POSITIONS = 49 };
    const size_t multiple = op->groups ? op->groups : 1;
    if (op->layout == NRG_LAYOUT_NHWC) {
        const size_t positions = *rows < POSITIONS ? *rows + (*rows == 1) : POSITIONS,
                     samples = *rows < positions ? 1 : *rows / positions;
        *row = (*row + multiple - 1) / multiple * multiple;
        *rows = samples * positions;
        return (bench_shape)BENCH_IMAGES(samples, *row, 1, positions);
    }
    const size_t channels = *rows < 512 ? 32 : *rows < 4096 ? 64 : 256, samples = *rows < channels ? 1 : *rows / channels;
    *rows = samples * channels;
    return (bench_shape)BENCH_IMAGES(samples, channels, 1, *row);
}

static void prepare_spec(const bench_case *c, nrg_channel_norm_spec *spec)
{
    const size_t channels = c->shape.channels;
    *spec = c->op->over == NRG_CHANNEL_OVER_BATCH ? nrg_channel_norm_spec_batch(c->dtype, channels, 1e-5)
                                                  : nrg_channel_norm_spec_group(c->dtype, channels, groups_of(c), 1e-5);
    spec->layout = c->op->layout;
    spec->source = c->op->source;
    spec->activation = c->op->activation;
    spec->accuracy = c->op->exact ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    if (spec->source == NRG_STATISTICS_FOLDED)
        spec->w_dtype = NRG_F32; /* as nrg_channel_norm_fold makes w and b */
}

static void prepare_forward(const bench_case *c, void *const *part)
{
    prepare_spec(c, part[NRG_CHANNEL_SPEC]);
    nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    *args = nrg_channel_norm_args_init(c->shape.rows, positions_of(c), NULL, NULL, NULL, NULL);
    args->store = c->store;
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    prepare_spec(c, part[NRG_CHANNEL_SPEC]);
    nrg_channel_norm_backward_args *args = part[NRG_CHANNEL_ARGS];
    *args = nrg_channel_norm_backward_args_init(c->shape.rows, positions_of(c), NULL, NULL, NULL, NULL);
    args->store = c->store;
}

/* The forward pass that finds the statistics writes its output where dx will be. */
static void find_statistics(const bench_case *c, void *const *part)
{
    nrg_channel_norm_spec spec = *(const nrg_channel_norm_spec *)part[NRG_CHANNEL_SPEC];
    nrg_channel_norm_backward_args *back = part[NRG_CHANNEL_ARGS];
    nrg_channel_norm_args args = nrg_channel_norm_args_init(c->shape.rows, positions_of(c), back->x, NULL, NULL, back->dx);
    spec.activation = NRG_ACT_IDENTITY;
    args.statistics = own_memory(back->statistics);
    if (nrg_channel_norm_forward(&spec, &args, 0, 1) != NRG_OK)
        back->size = 0; /* refused and reported, where recomputed statistics would be measured for saved ones */
}

static void rival_numbers(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    job->rows = c->shape.rows;
    job->channels = c->shape.channels;
    job->positions = positions_of(c);
    job->groups = groups_of(c);
    job->eps = (float)spec->eps;
    job->momentum = (float)spec->momentum;
}

/* A set. With NRG_LAYOUT_NHWC, where the sets lie between each other, all that do so: those of a sample, or, over the batch, the
 * tensor. */
static size_t set_elements(const bench_case *c)
{
    if (c->op->source == NRG_STATISTICS_RUNNING || c->op->source == NRG_STATISTICS_FOLDED)
        return 0;
    if (c->op->over == NRG_CHANNEL_OVER_BATCH)
        return bench_shape_elements(c->shape) / (c->op->layout == NRG_LAYOUT_NHWC ? 1 : c->shape.channels);
    return c->shape.dim / (c->op->layout == NRG_LAYOUT_NHWC ? 1 : groups_of(c));
}

BENCH_FUNCTION_OF_TWO(backward, nrg_call_channel_norm_backward,
                      nrg_channel_norm_backward(part[NRG_CHANNEL_SPEC], part[NRG_CHANNEL_ARGS], ith, nth),
                      nrg_channel_norm_backward_reduce(part[NRG_CHANNEL_SPEC], part[NRG_CHANNEL_ARGS], ith, nth))

const bench_family bench_channel_norm_forward = {
    BENCH_OPS(forward_ops, call_channel_norm_forward, prepare_forward),
    BENCH_QUICK("group_silu,group_silu-nhwc,batch_train,batch_train-nhwc,batch_infer", "2x640x32x32,32x256x28x28"),
    .scan_shape = scan_shape,
    .rival = "x,y,w,b,o,running_mean=running_mean_in,running_var=running_var_in",
    .rival_numbers = rival_numbers,
    .positive = "running_var_in",
    .aside = "statistics",
    .set_elements = set_elements,
    .read_twice = "x",
};

const bench_family bench_channel_norm_backward = {
    BENCH_OPS(backward_ops, backward, prepare_backward),
    BENCH_QUICK("group,group-nhwc,batch,batch-nhwc", "2x640x32x32,32x256x28x28"),
    .scan_shape = scan_shape,
    .rival_numbers = rival_numbers,
    .rival = "x,d_o,w,b,statistics,dx,dw,db",
    .ready = find_statistics,
    .aside = "statistics",
    .set_elements = set_elements,
    .read_twice = "x,d_o",
};
