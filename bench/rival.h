/* What a kernel is held against beside its limit: other code that gives the same result within some ulps, at its own speed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_RIVAL_H
#define NRG_BENCH_RIVAL_H

#include <stddef.h>

#include "nrg/nrg.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bench_rival {
    BENCH_NAIVE, /* naive/: plain loops */
    BENCH_SLEEF, /* sleef/: activations made of SLEEF's functions */
    BENCH_RIVALS
} bench_rival;

/* What a loop is given, by the names that the headers have for it. A tensor is dense where it has no stride here; strides are in
 * elements. What a case has none of is NULL or 0. */
typedef struct rival_job {
    size_t rows, dim, groups;
    size_t rows2, x_stride, x_stride2; /* rows in planes: of x, which lies otherwise than o does */
    float eps;
    const void *x, *y, *z, *w, *b, *w2, *d_o, *dr_in;
    const float *mean;
    void *o, *r, *dx, *dz;
    float *dw, *db;

    const float *m_in, *d_loss; /* of softmax in parts, whose parts are groups, and of cross-entropy */
    const double *sum_in, *others_in;
    const int32_t *ids;
    float *m, *factor, *inverse, *loss;
    double *sum, *others;

    size_t channels, positions; /* of channel norms, whose samples are rows */
    float momentum;
    float *running_mean, *running_var;
    const nrg_channel_statistics *statistics;

    size_t head_dim;    /* of rotations, whose tokens are rows */
    const float *table; /* as nrg_rope_table makes it */

    const void *k, *v; /* beside rotations of x: k_heads of each, of head_dim, on their way to slots */
    const float *q_w, *k_w;
    void *k_o, *v_o;
    const int64_t *slots;
    size_t k_heads;

    void *q; /* rows as bytes, which are read where x is not there; scales: NULL where blocks have theirs */
    float *scales;
} rival_job;

typedef struct rival_loop {
    const char *kernel, *op; /* as in the name of a case */
    nrg_dtype dtype;
    void (*run)(const rival_job *job); /* NULL: the build is without it */
} rival_loop;

/* A path's loops; the last has no kernel. */
extern const rival_loop naive_loops_scalar[], naive_loops_avx2[], naive_loops_avx512[], naive_loops_neon[], naive_loops_generic[];
extern const rival_loop sleef_loops_scalar[], sleef_loops_avx2[], sleef_loops_avx512[], sleef_loops_neon[], sleef_loops_generic[];

#ifdef __cplusplus
}
#endif
#endif
