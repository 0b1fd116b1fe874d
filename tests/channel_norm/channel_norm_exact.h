/* Sets of channels, and their statistics with 113 bits from the definition in nrg/channel_norm.h. Tensors here are dense and
 * their elements floats.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_EXACT_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_EXACT_H

#include <nrg/nrg.h>

#include "../harness/quad_ulp.h"

/* A tensor, and how it falls into sets. */
typedef struct exact_sets {
    size_t n, c, s, groups; /* groups: 0 with NRG_CHANNEL_OVER_BATCH */
    int nhwc;
    size_t sets, size; /* size: elements of a set */
} exact_sets;

static inline exact_sets exact_sets_of(const nrg_channel_norm_spec *spec, size_t n, size_t s)
{
    exact_sets t = {n, spec->channels, s, 0, spec->layout == NRG_LAYOUT_NHWC, spec->channels, n * s};
    if (spec->over == NRG_CHANNEL_OVER_GROUP) {
        t.groups = spec->groups;
        t.sets = n * t.groups;
        t.size = t.c / t.groups * s;
    }
    return t;
}

static inline size_t exact_count(const exact_sets *t) { return t->n * t->c * t->s; }

/* Where an element is, and its channel. */
typedef struct exact_place {
    size_t at, channel;
} exact_place;

/* Element i of a set: samples, then channels, then positions, whatever the layout is. */
static inline exact_place exact_place_of(const exact_sets *t, size_t set, size_t i)
{
    size_t sample = i / t->s, channel = set, position = i % t->s;
    if (t->groups) {
        channel = set % t->groups * (t->c / t->groups) + sample;
        sample = set / t->groups;
    }
    exact_place place = {t->nhwc ? (sample * t->s + position) * t->c + channel : (sample * t->c + channel) * t->s + position,
                         channel};
    return place;
}

typedef struct exact_statistics {
    quad mean, variance;
    quad sigma, inverse; /* inverse: 1/s, or 0 */
} exact_statistics;

static inline exact_statistics exact_statistics_given(const nrg_channel_norm_spec *spec, quad mean, quad variance)
{
    exact_statistics exact = {mean, variance, quad_sqrt(variance), 0};
    quad square = variance + spec->eps;
    if (square > 0)
        exact.inverse = 1 / quad_sqrt(square);
    return exact;
}

static inline exact_statistics exact_statistics_of(const nrg_channel_norm_spec *spec, const exact_sets *t, size_t set,
                                                   const float *x)
{
    quad mean = 0, squares = 0, d = (quad)t->size;
    for (size_t i = 0; i < t->size && spec->centred; i++)
        mean += x[exact_place_of(t, set, i).at];
    mean /= d;
    for (size_t i = 0; i < t->size; i++) {
        quad q = x[exact_place_of(t, set, i).at] - mean;
        squares += q * q;
    }
    return exact_statistics_given(spec, mean, squares / d);
}

/* Whether a spec asks for the fast grade, which 16-bit types always get. */
static inline int exact_is_fast(const nrg_channel_norm_spec *spec)
{
    return spec->dtype != NRG_F32 || spec->accuracy == NRG_ACCURACY_FAST;
}

/* What the header allows o1 to be off by. */
static inline double exact_o1_bound(int fast, quad o1, quad w, quad b)
{
    const double size = fmax(quad_magnitude(o1), quad_magnitude(b)), ulp = element_ulp(size, NRG_F32);
    return fast ? 3 * ulp + 0x1p-23 * quad_magnitude(w) : ulp + 0x1p-24 * quad_magnitude(w);
}

#endif
