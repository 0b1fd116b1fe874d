/* Cases of row normalization: every subset of the options that change values, and tensors to go with one.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_CASE_H
#define NRG_TESTS_NORM_CASE_H

#include "rows.h"

enum norm_residual { NO_RESIDUAL, RESIDUAL_BEFORE, RESIDUAL_AFTER };

typedef struct norm_options {
    nrg_dtype dtype;
    enum norm_residual residual;
    int y_f32, r_f32, w_f32; /* f32 beside a 16-bit dtype */
    int w, b, offset, centred;
    nrg_eps_mode eps_mode;
    int c; /* 0: √d, 1: 1, 2: some number */
} norm_options;

/* Options number 0 … norm_option_count() - 1; norm_options_at returns 0 for numbers that say the same as another one. */
size_t norm_option_count(void);
int norm_options_at(norm_options *options, size_t number, nrg_dtype dtype);

/* A call's values: dense tensors in malloc'd memory, so that a sanitizer sees their ends. */
typedef struct norm_problem {
    nrg_norm_spec spec;
    nrg_dtype y_dtype, r_dtype, w_dtype; /* never SAME */
    size_t rows;
    void *x, *y, *w, *b; /* NULL where absent */
    char text[256];
} norm_problem;

/* kinds: a list of row kinds to draw from, or NULL for all. */
void norm_problem_make(norm_problem *problem, const norm_options *options, size_t dim, size_t rows, const enum row_kind *kinds,
                       size_t kind_count, uint64_t seed);
void norm_problem_free(norm_problem *problem);

/* A call's outputs: dense, as the problem's spec says. r, mean and rstd are there whether or not a call was asked for them. */
typedef struct norm_result {
    void *o, *r;
    float *mean, *rstd;
} norm_result;

void norm_result_make(norm_result *result, const norm_problem *problem);
void norm_result_free(norm_result *result);

#endif
