/* tools/norm/norm.h: what the parts of nrg norm share.
 *
 * norm_options.c reads the arguments into a request, norm_inputs.c the files into tensors, norm_compute.c fills in the outputs,
 * and norm.c writes them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_NORM_NORM_H
#define NRG_TOOLS_NORM_NORM_H

#include <nrg/nrg.h>

#include "../npy/npy.h"

/* In the order of the options table. */
enum { IN_X, IN_Y, IN_Z, IN_W, IN_B, IN_D_O, IN_DR_IN, IN_R, IN_MEAN, INPUTS };
enum { OUT_O, OUT_R, OUT_MEAN, OUT_RSTD, OUT_DX, OUT_DY, OUT_DZ, OUT_DW, OUT_DB, OUTPUTS, FIRST_GRADIENT = OUT_DX };

typedef struct request {
    const char *inputs[INPUTS], *outputs[OUTPUTS]; /* file names; NULL: absent */
    int backward;
    nrg_norm_spec spec; /* its dim and dtypes come from the files, but for r_dtype and y_dtype where they are asked for */
} request;

/* Like all of the following: CLI_DONE, or the exit status after a complaint; here also CLI_HELP_GIVEN. */
int norm_parse(char **arguments, request *q);

typedef struct tensors {
    npy_array in[INPUTS], out[OUTPUTS]; /* data NULL: absent */
    npy_shape shape;                    /* of x, or of what stands for it */
    size_t rows, dim;
    void *workspace;
} tensors;

/* Reads the files and checks them against each other; completes q->spec. */
int norm_read(request *q, tensors *t);

/* Of mean and rstd: without the last axis; the groups of a row are an axis of their own. */
npy_shape norm_statistics_shape(const request *q, const tensors *t);

/* Takes memory for the outputs and calls the library. */
int norm_compute(const request *q, tensors *t);

#endif
