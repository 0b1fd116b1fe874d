/* Cases of normalization over channels: options that change values, and tensors to go with them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_CASE_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_CASE_H

#include "../norm/norm_case.h"

enum channel_kind { CHANNEL_BATCH, CHANNEL_GROUP, CHANNEL_INSTANCE, CHANNEL_LAYER, CHANNEL_KINDS };
enum { CHANNEL_LAYOUTS = NRG_NHWC + 1, CHANNEL_SOURCES = NRG_STATISTICS_FOLDED + 1 };

/* Whether running statistics are updated, and with which factor. */
enum channel_update { UPDATE_NONE, UPDATE_MOMENTUM, UPDATE_CUMULATIVE, UPDATES };

typedef struct channel_options {
    nrg_dtype dtype;
    nrg_channel_layout layout;
    enum channel_kind kind;
    nrg_channel_source source;
    enum channel_update update;
    int centred, w, b, y;
    int w_f32; /* beside a 16-bit dtype */
    nrg_activation activation;
    size_t segment;
} channel_options;

typedef struct channel_shape {
    size_t n, c, s, groups; /* groups: of CHANNEL_GROUP */
} channel_shape;

/* A divisor of c: one between 1 and c where there is any. */
size_t channel_draw_groups(size_t c, uint64_t seed);

/* Makes options into ones that the header allows for the shape, by taking out what it does not. */
void channel_options_settle(channel_options *options, const channel_shape *shape);

/* Such options, drawn. */
void channel_options_draw(channel_options *options, const channel_shape *shape, nrg_dtype dtype, uint64_t seed);

/* A call's values: dense tensors in malloc'd memory, so that a sanitizer sees their ends. */
typedef struct channel_problem {
    nrg_channel_norm_spec spec;
    enum channel_kind kind;
    nrg_dtype w_dtype; /* never SAME */
    size_t n, s;
    size_t sets, set_size;              /* how many, and of how many elements */
    size_t rows, dim;                   /* of a tensor in memory: what strides step over */
    void *x, *y, *w, *b;                /* NULL where absent */
    nrg_channel_statistics *statistics; /* [sets] NRG_STATISTICS_GIVEN; NULL otherwise */
    float *running_mean, *running_var;  /* [c] before the call, or NULL */
    uint64_t batches;
    char text[320];
} channel_problem;

/* kinds: a list of row kinds to draw from for every set, or NULL for all. */
void channel_problem_make(channel_problem *problem, const channel_options *options, const channel_shape *shape,
                          const enum row_kind *kinds, size_t kind_count, uint64_t seed);
void channel_problem_free(channel_problem *problem);

/* Where an element stands in a dense tensor; and element i of a set, in the order of samples, channels, positions. */
size_t channel_at(const channel_problem *problem, size_t sample, size_t channel, size_t position);
size_t channel_at_set(const channel_problem *problem, size_t set, size_t i);

/* The channel and the set of the element that stands there. */
size_t channel_of(const channel_problem *problem, size_t at);
size_t channel_set_of(const channel_problem *problem, size_t at);

/* Fills as many elements as a set has, of a kind: row_fill, norm_backward_fill. */
typedef void channel_filler(float *row, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);

/* A tensor like x. */
void *channel_tensor(const channel_problem *problem, channel_filler *fill, const enum row_kind *kinds, size_t kind_count,
                     uint64_t seed);

/* A call's outputs: dense; all there, whether or not a call was asked for them. */
typedef struct channel_result {
    void *o;
    float *mean, *rstd;                 /* [sets] */
    nrg_channel_statistics *statistics; /* [sets] */
    float *running_mean, *running_var;  /* [c] */
} channel_result;

void channel_result_make(channel_result *result, const channel_problem *problem);
void channel_result_free(channel_result *result);

/* A call's args on dense tensors: the problem's inputs, and every output that may be asked for. Running statistics that are to be
 * updated are copied to the result first. */
nrg_channel_norm_args channel_args(const channel_problem *problem, const channel_result *result);

/* Whether statistics are the same bits, any NaN being any other. */
int channel_statistics_equal(const nrg_channel_statistics *a, const nrg_channel_statistics *b);

#endif
