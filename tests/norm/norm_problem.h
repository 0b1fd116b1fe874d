/* What a row norm is given, and room for its results: dense arrays.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_PROBLEM_H
#define NRG_TESTS_NORM_NORM_PROBLEM_H

#include "../harness/plain_case.h"

typedef struct norm_problem {
    nrg_norm_spec spec;
    nrg_dtype y_dtype, r_dtype, w_dtype; /* never SAME */
    size_t rows, groups;                 /* groups: never 0 */
    void *x, *y, *z, *w, *b;             /* NULL where absent */
    const char *text;
} norm_problem;

/* Of a case of norm_forward or norm_backward, which keeps its arrays. */
norm_problem norm_problem_of(const plain_case *c);

/* Whether x + y is normalized. */
static inline int norm_adds_before(const norm_problem *p) { return p->y && p->spec.residual_mode == NRG_RESIDUAL_BEFORE; }
static inline int norm_adds_after(const norm_problem *p) { return p->spec.residual_mode == NRG_RESIDUAL_AFTER; }

/* Room for all results, whether or not a call is asked for them. */
typedef struct norm_result {
    void *o, *r;
    float *mean, *rstd;
} norm_result;

void norm_result_make(norm_result *result, const norm_problem *problem);
void norm_result_free(norm_result *result);

typedef struct norm_backward_problem {
    norm_problem forward;
    void *d_o;
    void *dr_in; /* NULL where absent */
    void *r;     /* NULL where it is x + y, or not needed */
    int accumulate;
    float *dw, *db; /* [dim] what is there before the call, where it accumulates */
} norm_backward_problem;

/* Of a case of norm_backward. To be freed. */
void norm_backward_problem_make(norm_backward_problem *problem, const plain_case *c);
void norm_backward_problem_free(norm_backward_problem *problem);

typedef struct norm_backward_result {
    void *dx, *dy, *dz;
    float *dw, *db;
} norm_backward_result;

void norm_backward_result_make(norm_backward_result *result, const norm_backward_problem *problem);
void norm_backward_result_free(norm_backward_result *result);

/* A call's args, asking for everything, with a workspace that is to be freed. */
nrg_norm_backward_args norm_backward_args(const norm_backward_problem *problem, const norm_backward_result *result);

#endif
