/* What the kernels of nrg/score_bias.h are handed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_BIAS_H
#define NRG_JOB_BIAS_H

#include "../../include/nrg/score_bias.h"

/* A share of rows for score_bias: row n is query n mod queries of head n / queries mod heads. Everything in it has been checked;
 * strides are the real ones, in bytes, those of rows from query to query. */
typedef struct nrg_score_bias_job {
    const char *scores;
    const char *diagonals; /* of f32 */
    char *o;
    nrg_head_strides scores_stride, o_stride;
    size_t diagonals_stride;
    size_t heads, queries, keys;
    size_t begin, end; /* the share */
    float scale;
    int stream;
} nrg_score_bias_job;

/* A share of diagonals for score_bias_backward: diagonal n is entry n mod (queries + keys - 1) of head n / (queries + keys - 1).
 */
typedef struct nrg_score_bias_backward_job {
    const char *d_o;
    char *d_diagonals; /* of double */
    nrg_head_strides d_o_stride;
    size_t d_diagonals_stride;
    size_t batch, queries, keys;
    size_t begin, end; /* the share */
    int accumulate;
} nrg_score_bias_backward_job;

#endif
