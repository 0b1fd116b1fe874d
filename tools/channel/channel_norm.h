/* tools/channel/channel_norm.h: what the parts of nrg channel-norm share.
 *
 * channel_norm_options.c reads the arguments into a request, channel_norm_inputs.c the files into tensors,
 * channel_norm_compute.c fills in the outputs, and channel_norm.c writes them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_CHANNEL_CHANNEL_NORM_H
#define NRG_TOOLS_CHANNEL_CHANNEL_NORM_H

#include <nrg/nrg.h>

#include "../npy/npy.h"

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
    const char *inputs[INPUTS], *outputs[OUTPUTS]; /* file names; NULL: absent */
    int backward, train, fold;
    channel_over over;
    uint64_t batches;           /* that the running statistics have seen */
    nrg_channel_norm_spec spec; /* its channels and dtypes come from the files, and so do the groups of instance norm */
} channel_request;

/* Like all of the following: CLI_DONE, or the exit status after a complaint; here also CLI_HELP_GIVEN. */
int channel_norm_parse(char **arguments, channel_request *q);

typedef struct channel_tensors {
    npy_array in[INPUTS], out[OUTPUTS]; /* data NULL: absent */
    size_t n, c, s;                     /* samples, channels, positions */
    void *workspace;
} channel_tensors;

/* Reads the files and checks them against each other; completes q->spec. */
int channel_norm_read(channel_request *q, channel_tensors *t);

/* Takes memory for the outputs and calls the library. */
int channel_norm_compute(const channel_request *q, channel_tensors *t);

#endif
