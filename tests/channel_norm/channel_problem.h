/* What a norm over channels is given, and room for its results: dense arrays. Options and shapes are those of the cases of nrg
 * check, or a test's own; what sets hold is of the kinds of rows.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_PROBLEM_H
#define NRG_TESTS_CHANNEL_CHANNEL_PROBLEM_H

#include "../../check/sweep.h"
#include "../harness/rows.h"
#include "channel_norm_exact.h"

typedef struct channel_problem {
    nrg_channel_norm_spec spec;
    size_t n, s;
    int has_y, has_w, has_b;
    /* what channel_problem_fill finds and makes */
    exact_sets sets;
    nrg_dtype w_dtype;                  /* never SAME */
    void *x, *y, *d_o, *w, *b;          /* NULL where absent */
    nrg_channel_statistics *statistics; /* [sets] with NRG_STATISTICS_GIVEN, else NULL */
    const float *mean, *rstd;           /* [sets] of the backward pass, a test's own; else NULL */
    float *running_mean, *running_var;  /* [channels] */
    int updates;                        /* running statistics are given to be updated */
    uint64_t batches;
    int accumulate; /* of the backward pass; what there is before it: */
    float *dw, *db; /* [channels] */
    char text[SWEEP_TEXT_ROOM];
} channel_problem;

/* Makes the arrays. kinds: of the sets of x, y and d_o, the first of them half of the time; NULL: all there are. To be freed. */
void channel_problem_fill(channel_problem *problem, const enum row_kind *kinds, size_t kind_count, uint64_t seed);
void channel_problem_free(channel_problem *problem);

/* A change of options, before a problem is filled. What the header does not allow is taken out after it. */
typedef void channel_change(channel_problem *problem);
typedef void channel_body(const channel_problem *problem, nrg_isa isa);

/* Calls body on every path for some of an op's cases that have samples: part i of CHANNEL_PARTS. change: may be NULL. */
enum { CHANNEL_PARTS = 24 };
void channel_each(const char *op, int i, const enum row_kind *kinds, size_t kind_count, channel_change *change,
                  channel_body *body);

/* Sets are channels: of all samples, or of one. */
int channel_has_running(const channel_problem *problem);

/* Number of elements; and where element i of a set is, its channel, and the set of the element that is there. */
size_t channel_count(const channel_problem *problem);
size_t channel_at(const channel_problem *problem, size_t set, size_t i);
size_t channel_of(const channel_problem *problem, size_t at);
size_t channel_set_of(const channel_problem *problem, size_t at);

/* Fills a dense tensor set by set. */
void channel_fill(const exact_sets *sets, void *tensor, nrg_dtype dtype, const enum row_kind *kinds, size_t kind_count,
                  uint64_t seed);

/* Room for all results, whether or not a call is asked for them. */
typedef struct channel_result {
    void *o;
    float *mean, *rstd;                 /* [sets] */
    nrg_channel_statistics *statistics; /* [sets] */
    float *running_mean, *running_var;  /* [channels] */
} channel_result;

void channel_result_make(channel_result *result, const channel_problem *problem);
void channel_result_free(channel_result *result);

/* A call's args, asking for everything. Running statistics are updated into the result, of half of the problems in place. */
nrg_channel_norm_args channel_args(const channel_problem *problem, const channel_result *result);

/* A call of one share; ends the test where it fails. */
void channel_forward(const channel_problem *problem, const channel_result *result);

/* Ends the test where one of the results that the problem has differs, any NaN being any other. */
void channel_must_equal(const channel_problem *problem, nrg_isa isa, const char *what, const channel_result *expected,
                        const channel_result *got);
int channel_statistics_equal(const nrg_channel_statistics *a, const nrg_channel_statistics *b);

/* The same of the backward pass. */
typedef struct channel_gradients {
    void *dx, *dy;
    float *dw, *db; /* [channels] */
} channel_gradients;

void channel_gradients_make(channel_gradients *result, const channel_problem *problem);
void channel_gradients_free(channel_gradients *result);
nrg_channel_norm_backward_args channel_backward_args(const channel_problem *problem, const channel_gradients *result);
void channel_backward(const channel_problem *problem, const channel_gradients *result);
void channel_gradients_must_equal(const channel_problem *problem, nrg_isa isa, const char *what,
                                  const channel_gradients *expected, const channel_gradients *got);

/* Ends the test where two arrays differ. */
void channel_arrays_must_equal(const channel_problem *problem, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                               const void *expected, const void *got);

#endif
