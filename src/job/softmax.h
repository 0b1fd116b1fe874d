/* What the kernels of nrg/softmax.h are handed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_SOFTMAX_H
#define NRG_JOB_SOFTMAX_H

#include "../../include/nrg/softmax.h"

/* Which keys a query sees: key j of query i where first + i ≤ j < last + i. What cuts nothing is far away. */
typedef struct nrg_softmax_sight {
    int64_t first, last;
} nrg_softmax_sight;

/* A share of rows: row n is query n mod queries of head n / queries mod heads. Everything in it has been checked. */
typedef struct nrg_softmax_job {
    const char *x, *mask, *diagonals; /* all but x may be NULL, like the following */
    const float *slopes, *sinks;
    char *o;           /* NULL, in parts: sums alone */
    const float *m_in; /* parts: numbers of rows. m is NULL where it is none */
    const double *s_in;
    float *m, *factor;
    double *s;
    const float *given; /* powers beside base(m_in) are multiplied by the sum of these two floats: no sum is made; or NULL */
    size_t without;     /* parts: a key that is in the maximum and not in the sum, plus 1; 0: none */
    nrg_head_strides x_stride, mask_stride, o_stride;
    size_t diagonals_stride;
    size_t heads, queries, keys;
    size_t begin, end; /* the share */
    nrg_softmax_sight sight;
    float scale, cap; /* cap 0: none; otherwise scale is what is taken of x before the tanh */
    nrg_dtype mask_dtype;
    int log, stream;
} nrg_softmax_job;

typedef struct nrg_softmax_backward_job {
    const char *o, *d_o, *x; /* x: NULL without a cap */
    char *dx;
    nrg_head_strides o_stride, d_o_stride, x_stride, dx_stride;
    size_t heads, queries, keys;
    size_t begin, end;
    nrg_softmax_sight sight;
    float scale, inner; /* of the gradient; of x before the tanh */
    int log, stream;
} nrg_softmax_backward_job;

#endif
