/* What the two families of channel normalization share: shapes, and what a call computes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_CHANNEL_CHANNEL_H
#define NRG_BENCH_CHANNEL_CHANNEL_H

#include "../cases.h"

/* Diffusion models; residual networks; style transfer. 2x640x32x32 and the like are 5 MB of f32: past L2, but not far from it. */
extern const bench_shape bench_group_shapes[2], bench_batch_shapes[2], bench_instance_shapes[1];

/* How the ops of both begin: NRG_NCHW and NRG_NHWC, the latter's name ending in -nhwc. */
#define BENCH_LAYOUTS(NAME, OPERANDS, ...)                                                                                       \
    {NAME, OPERANDS, __VA_ARGS__, .layout = NRG_NCHW}, { NAME "-nhwc", OPERANDS, __VA_ARGS__, .layout = NRG_NHWC }

#define BENCH_BATCH                                                                                                              \
    .over = NRG_OVER_BATCH, .shapes = bench_batch_shapes, .shape_count = sizeof bench_batch_shapes / sizeof *bench_batch_shapes
#define BENCH_GROUP(G)                                                                                                           \
    .over = NRG_OVER_GROUP, .groups = (G), .shapes = bench_group_shapes,                                                         \
    .shape_count = sizeof bench_group_shapes / sizeof *bench_group_shapes
#define BENCH_INSTANCE                                                                                                           \
    .over = NRG_OVER_GROUP, .groups = 0, .shapes = bench_instance_shapes,                                                        \
    .shape_count = sizeof bench_instance_shapes / sizeof *bench_instance_shapes

nrg_channel_norm_spec bench_channel_spec(const bench_case *c);

/* Height times width. */
size_t bench_channel_positions(const bench_case *c);

/* Bytes of nrg_channel_statistics for all sets. */
size_t bench_channel_statistics_bytes(const bench_case *c);

/* bench_family.set_elements: a set. With NRG_NHWC, where the sets lie between each other, all that do so: those of a sample, or,
 * over the batch, the tensor. */
size_t bench_channel_set_elements(const bench_case *c);

#endif
