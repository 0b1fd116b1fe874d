/* Cases of the backward pass over channels: the forward pass's (channel_norm_case.h), with a gradient that arrives.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_CASE_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_CASE_H

#include "channel_norm_case.h"

/* A call's values: dense tensors in malloc'd memory. */
typedef struct channel_backward_problem {
    channel_problem forward;
    void *d_o;
    nrg_channel_statistics *statistics; /* [sets] of the forward pass; NULL with NRG_STATISTICS_RUNNING */
    int accumulate;
    float *dw, *db; /* what is there before the call, where it accumulates */
    char text[384];
} channel_backward_problem;

/* Options without a backward pass become others. accumulate is drawn. kinds: for x, y and d_o. */
void channel_backward_problem_make(channel_backward_problem *problem, const channel_options *options, const channel_shape *shape,
                                   const enum row_kind *kinds, size_t kind_count, uint64_t seed);
void channel_backward_problem_free(channel_backward_problem *problem);

/* A call's outputs, dense; all there, whether or not a call was asked for them. */
typedef struct channel_backward_result {
    void *dx, *dy;
    float *dw, *db;
} channel_backward_result;

void channel_backward_result_make(channel_backward_result *result, const channel_backward_problem *problem);
void channel_backward_result_free(channel_backward_result *result);

/* A call's args on dense tensors: the problem's inputs, statistics to be computed where they can be, and every output, without
 * the workspace. */
nrg_channel_norm_backward_args channel_backward_args(const channel_backward_problem *problem,
                                                     const channel_backward_result *result);

#endif
