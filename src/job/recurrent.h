/* What the kernels of nrg/recurrent.h are handed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_RECURRENT_H
#define NRG_JOB_RECURRENT_H

#include "../../include/nrg/recurrent.h"

/* Chains begin to end, with n positions each. Everything has been checked; strides are the real ones, in bytes. */
typedef struct nrg_recurrent_job {
    const char *w, *b, *p0; /* b: NULL where absent */
    char *p;
    size_t dim, n;
    size_t w_stride, p0_stride, p_stride, p_chain_stride;
    size_t begin, end;
    int w_f32, p0_f32; /* 1: f32 beside a 16-bit dtype (f32: always 1) */
} nrg_recurrent_job;

/* recurrent_backward: chains begin to end, p to g and dp0. recurrent_reduce: rows begin to end of dw and db, over all chains. */
typedef struct nrg_recurrent_backward_job {
    const char *w, *p0, *p, *dp;
    float *g;             /* [chains][n][dim] */
    float *dp0, *dw, *db; /* NULL where not asked for */
    size_t dim, n, chains;
    size_t w_stride, p0_stride, p_stride, p_chain_stride, dp_stride, dp_chain_stride, dw_stride, dp0_stride;
    size_t begin, end;
    int w_f32, p0_f32, accumulate;
} nrg_recurrent_backward_job;

#endif
