/* nrg channel-norm: its options make a request, and compute answers it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_CHANNEL_CHANNEL_NORM_H
#define NRG_TOOLS_CHANNEL_CHANNEL_NORM_H

#include <nrg/nrg.h>

#include "../file_command.h"

/* In the order of the options table. */
enum { IN_X, IN_Y, IN_W, IN_B, IN_RUNNING_MEAN, IN_RUNNING_VAR, IN_D_O, INPUTS };
enum {
    OUT_O,
    OUT_MEAN,
    OUT_RSTD,
    OUT_RUNNING_MEAN,
    OUT_RUNNING_VAR,
    OUT_SCALE,
    OUT_SHIFT,
    OUT_DX,
    OUT_DY,
    OUT_DW,
    OUT_DB,
    OUTPUTS,
    FIRST_GRADIENT = OUT_DX
};

/* What a set is, in the words of --over. */
typedef enum channel_over { OVER_BATCH, OVER_GROUP, OVER_INSTANCE, OVER_LAYER } channel_over;

typedef struct channel_request {
    int backward, train, fold;
    channel_over over;
    nrg_store store;
    uint64_t batches;           /* that the running statistics have seen */
    nrg_channel_norm_spec spec; /* its channels and dtypes come from the files, and so do the groups of instance norm */
    size_t n, c, s;             /* samples, channels, positions */
} channel_request;

int channel_norm_compute(file_call *call);

#endif
