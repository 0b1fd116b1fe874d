/* Cases of row normalization: every subset of the options that change values, and tensors to go with one.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_CASE_H
#define NRG_TESTS_NORM_NORM_CASE_H

#include "../harness/rows.h"

enum norm_residual { NO_RESIDUAL, RESIDUAL_BEFORE, RESIDUAL_AFTER };
enum { GATES = NRG_GATE_POST + 1, ACTIVATIONS = NRG_ACT_SOFTPLUS + 1 };

typedef struct norm_options {
    nrg_dtype dtype;
    enum norm_residual residual;
    int y_f32, r_f32, w_f32; /* f32 beside a 16-bit dtype */
    int w, b, offset, centred;
    nrg_eps_mode eps_mode;
    int c; /* 0: √d, 1: 1, 2: some number */
    nrg_gate gate;
    nrg_activation activation;
    size_t groups; /* 0: said so, and means 1 */
} norm_options;

/* Options number 0 … norm_option_count() - 1, without gates and groups; norm_options_at returns 0 for numbers that say the same
 * as another one. */
size_t norm_option_count(void);
int norm_options_at(norm_options *options, size_t number, nrg_dtype dtype);

/* Draws a gate, an activation and groups that divide dim: 27 × 8 times the numbers above would take a night. Half of the draws
 * leave the options as they are. */
void norm_options_draw_gate(norm_options *options, size_t dim, uint64_t seed);

int norm_options_gated(const norm_options *options);

/* A call's values: dense tensors in malloc'd memory, so that a sanitizer sees their ends. */
typedef struct norm_problem {
    nrg_norm_spec spec;
    nrg_dtype y_dtype, r_dtype, w_dtype; /* never SAME */
    size_t rows, groups;                 /* groups: never 0 */
    void *x, *y, *z, *w, *b;             /* NULL where absent */
    char text[320];
} norm_problem;

/* kinds: a list of row kinds to draw from, or NULL for all. */
void norm_problem_make(norm_problem *problem, const norm_options *options, size_t dim, size_t rows, const enum row_kind *kinds,
                       size_t kind_count, uint64_t seed);
void norm_problem_free(norm_problem *problem);

/* Memory for a dense tensor, and a row of it from floats. */
void *norm_tensor(size_t rows, size_t dim, nrg_dtype dtype);
void norm_put_row(void *tensor, size_t row, size_t dim, nrg_dtype dtype, const float *from);

/* A row of y: unrelated to x, or of its scale, or close to -x so that the sum cancels. */
void norm_fill_y(float *y, const float *x, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);

/* w, b: ordinary, or now and then with numbers at the ends of the range among them. */
void norm_fill_weight(float *w, size_t dim, nrg_dtype dtype, uint64_t seed);

/* A call's outputs: dense, as the problem's spec says. r, mean and rstd are there whether or not a call was asked for them. */
typedef struct norm_result {
    void *o, *r;
    float *mean, *rstd;
} norm_result;

void norm_result_make(norm_result *result, const norm_problem *problem);
void norm_result_free(norm_result *result);

#endif
