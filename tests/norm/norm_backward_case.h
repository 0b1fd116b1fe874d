/* Cases of the backward pass: the forward pass's (norm_case.h), with gradients that arrive.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_BACKWARD_CASE_H
#define NRG_TESTS_NORM_NORM_BACKWARD_CASE_H

#include "norm_case.h"

/* A call's values: dense tensors in malloc'd memory. */
typedef struct norm_backward_problem {
    norm_problem forward;
    void *d_o;
    void *dr_in; /* NULL where absent */
    void *r;     /* NULL with NRG_RESIDUAL_AFTER */
    float *mean; /* as the forward pass stores it */
    int accumulate;
    float *dw, *db; /* what is there before the call, where it accumulates */
    char text[384];
} norm_backward_problem;

/* Rows of d_o: of the kinds of x, or all the same number, or one that is not 0, or none. */
void norm_backward_fill(float *d_o, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);

/* dr_in and accumulate are drawn. kinds: for x, y and the gradients. */
void norm_backward_problem_make(norm_backward_problem *problem, const norm_options *options, size_t dim, size_t rows,
                                const enum row_kind *kinds, size_t kind_count, uint64_t seed);
void norm_backward_problem_free(norm_backward_problem *problem);

/* A call's outputs, dense; all there, whether or not a call was asked for them. */
typedef struct norm_backward_result {
    void *dx, *dy, *dz;
    float *dw, *db;
} norm_backward_result;

void norm_backward_result_make(norm_backward_result *result, const norm_backward_problem *problem);
void norm_backward_result_free(norm_backward_result *result);

#endif
