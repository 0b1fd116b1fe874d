/* nrg norm: its options make a request, and compute answers it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_NORM_NORM_H
#define NRG_TOOLS_NORM_NORM_H

#include <nrg/nrg.h>

#include "../file_command.h"

/* In the order of the options table. */
enum { IN_X, IN_Y, IN_Z, IN_W, IN_B, IN_D_O, IN_DR_IN, IN_R, IN_MEAN, INPUTS };
enum {
    OUT_O,
    OUT_R,
    OUT_MEAN,
    OUT_RSTD,
    OUT_PACKED,
    OUT_SCALES,
    OUT_DX,
    OUT_DY,
    OUT_DZ,
    OUT_DW,
    OUT_DB,
    OUTPUTS,
    FIRST_GRADIENT = OUT_DX
};

typedef struct request {
    int backward;
    nrg_norm_spec spec; /* its dim and dtypes come from the files, but for r_dtype and y_dtype where they are asked for */
    size_t rows;
    nrg_store store;
} request;

int norm_compute(file_call *call);

#endif
