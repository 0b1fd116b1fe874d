/* What the two families of channel normalization share.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"

const bench_shape bench_group_shapes[2] = {BENCH_IMAGES(1, 320, 64, 64), BENCH_IMAGES(2, 640, 32, 32)};
const bench_shape bench_batch_shapes[2] = {BENCH_IMAGES(32, 256, 28, 28), BENCH_IMAGES(32, 64, 112, 112)};
const bench_shape bench_instance_shapes[1] = {BENCH_IMAGES(4, 64, 256, 256)};

static size_t groups_of(const bench_case *c) { return c->op->groups ? c->op->groups : c->shape.channels; }

nrg_channel_norm_spec bench_channel_spec(const bench_case *c)
{
    nrg_channel_norm_spec spec = c->op->over == NRG_OVER_BATCH ? nrg_batch_norm_spec(c->shape.channels, 1e-5)
                                                               : nrg_group_norm_spec(c->shape.channels, groups_of(c), 1e-5);
    spec.layout = c->op->layout;
    spec.statistics = c->op->statistics;
    spec.dtype = c->dtype;
    spec.activation = c->op->activation;
    spec.store = c->store;
    return spec;
}

size_t bench_channel_positions(const bench_case *c) { return c->shape.height * c->shape.width; }

size_t bench_channel_statistics_bytes(const bench_case *c)
{
    size_t sets = c->op->over == NRG_OVER_BATCH ? c->shape.channels : c->shape.rows * groups_of(c);
    return sets * sizeof(nrg_channel_statistics);
}

size_t bench_channel_set_elements(const bench_case *c)
{
    if (c->op->statistics == NRG_STATISTICS_RUNNING || c->op->statistics == NRG_STATISTICS_FOLDED)
        return 0;
    if (c->op->over == NRG_OVER_BATCH)
        return bench_shape_elements(c->shape) / (c->op->layout == NRG_NHWC ? 1 : c->shape.channels);
    return c->shape.dim / (c->op->layout == NRG_NHWC ? 1 : groups_of(c));
}
