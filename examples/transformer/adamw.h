/* AdamW (Loshchilov, Hutter, arXiv:1711.05101), the training step. SPDX-License-Identifier: MIT */
#ifndef ADAMW_H
#define ADAMW_H

#include "model.h"

typedef struct adamw {
    float rate, decay, beta1, beta2, eps, most_norm; /* most_norm: gradients are scaled to that length where they are longer */
    uint64_t step;                                   /* from 1 */
} adamw;

/* Sums of squares of pieces, one order whatever the team; sums: room for adamw_pieces(n) of them. */
size_t adamw_pieces(size_t n);

/* Weights w with gradients g, the running means m and v; each [n], laid out as `of`. Every thread calls it. Returns the length of
 * the gradient. */
float adamw_step(const adamw *a, const shape *of, float *w, const float *g, float *m, float *v, double *sums, team *t, int ith);

#endif
