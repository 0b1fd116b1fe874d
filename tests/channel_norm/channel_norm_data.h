/* Kinds of sets: the stress set of rows (rows.h), and what the limits of docs/ops/channel_norm.md add to it; and shapes whose
 * sets have a given size.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_DATA_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_DATA_H

#include "channel_norm_exact.h"
#include "../harness/rows.h"

/* A row_kind of the stress set, one of these, or an ordinary one: of a kind of row from ROW_ORDINARY on. */
enum {
    SET_RELU = ROW_STRESS_KINDS, /* what an activation left: half zeros */
    SET_MEAN_2,
    SET_AT_FALLBACK_LIMIT, /* around the mean where a segment is summed again */
    SET_TWO_VALUES,        /* below it: squares that are alike, and whose sums all round alike */
    SET_AT_PLAIN_LIMIT,    /* around the mean where a channel is no longer plain */
    SET_KINDS,
    SET_ORDINARY = SET_KINDS,
    SET_ALL_KINDS = SET_ORDINARY + ROW_ORDINARY_KINDS
};

const char *set_kind_name(int kind);

/* size values that dtype represents. */
void set_fill(float *values, size_t size, int kind, nrg_dtype dtype, uint64_t seed);

/* What the sets are, beside spec.over. */
enum set_over { SET_BATCH, SET_GROUP, SET_INSTANCE, SET_LAYER, SET_OVERS };

const char *set_over_name(enum set_over over);

/* Draws n, channels, groups and s with sets of `size` elements; of large ones, there is one. Sets over, groups and channels of
 * the spec. */
exact_sets set_draw_shape(nrg_channel_norm_spec *spec, enum set_over over, size_t size, uint64_t *state);

/* A new tensor whose every set is of this kind. */
float *set_tensor(const exact_sets *t, int kind, nrg_dtype dtype, uint64_t seed);

/* New weights, or NULL where not wanted. */
float *set_parameters(int wanted, size_t channels, nrg_dtype dtype, uint64_t seed);

/* New running statistics of every channel: those of its data in x, or others. */
void set_running(const nrg_channel_norm_spec *spec, const exact_sets *t, const float *x, float **mean, float **variance,
                 uint64_t seed);

#endif
