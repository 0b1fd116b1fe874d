/* The sets of a tensor with channels: where their elements are, in which order they come and are added up.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_CHANNEL_PLACE_H
#define NRG_SCALAR_CHANNEL_PLACE_H

#include "element.h"

enum { LANES_S = 64 }; /* batch sets of NCHW with fewer positions are summed by columns */

typedef struct channel_tensor {
    const char *x;
    size_t x_stride; /* the stride of any operand is of samples with NCHW, of positions with NHWC */
    size_t n, c, s, groups, group_channels;
    int nhwc;
    size_t size; /* of an element */
    int fast;    /* the grade of its sums */
} channel_tensor;

/* Element (n, c, s) of an operand, as load and store count. A stride is a multiple of an element. */
static inline size_t element_at(const channel_tensor *t, size_t stride, size_t n, size_t c, size_t s)
{
    return t->nhwc ? (n * t->s + s) * (stride / t->size) + c : n * (stride / t->size) + c * t->s + s;
}

/* Samples and channels of a set. */
typedef struct channel_set {
    size_t n, n_end, c, c_end;
} channel_set;

static inline channel_set set_at(const channel_tensor *t, size_t set)
{
    channel_set at = {0, t->n, set, set + 1};
    if (t->groups) {
        at.n = set / t->groups;
        at.n_end = at.n + 1;
        at.c = set % t->groups * t->group_channels;
        at.c_end = at.c + t->group_channels;
    }
    return at;
}

/* A set in its order: runs of elements that lie together, of `length` each, `stride` elements apart. */
typedef struct set_runs {
    const char *first;
    size_t length, stride;
} set_runs;

static inline set_runs runs_of(const channel_tensor *t, const channel_set *set)
{
    const size_t stride = t->x_stride / t->size;
    set_runs runs = {t->x + element_at(t, t->x_stride, set->n, set->c, 0) * t->size, t->s, stride};
    if (t->nhwc) {
        runs.length = set->c_end - set->c;
        runs.stride = stride;
    } else if (t->groups)
        runs.length = (set->c_end - set->c) * t->s; /* one run */
    return runs;
}

/* Where a walk over the elements of a set stands. */
typedef struct set_walk {
    set_runs runs;
    size_t run, i;
} set_walk;

static inline set_walk walk_from(const set_runs *runs, size_t element)
{
    return (set_walk){*runs, element / runs->length, element % runs->length};
}

static inline float next_x(set_walk *w, nrg_dtype dtype)
{
    const float x = load(w->runs.first, w->run * w->runs.stride + w->i, dtype);
    if (++w->i == w->runs.length) {
        w->i = 0;
        w->run++;
    }
    return x;
}

/* How the elements of a segment that begins at element `first` of its set are added up: element i is in column i mod columns,
 * where there are columns; otherwise in a lane. */
typedef struct channel_order {
    size_t columns; /* 0: lanes */
    size_t period;  /* lanes begin anew after so many elements: batch norm's samples */
} channel_order;

static inline channel_order order_of(const channel_tensor *t, size_t first)
{
    channel_order order = {0, SIZE_MAX};
    if (!t->groups && t->nhwc)
        order.columns = 1;
    else if (!t->groups && t->s < LANES_S)
        order.columns = t->s;
    else if (!t->groups)
        order.period = t->s - first % t->s; /* whole samples, or a part of one that does not reach the next */
    else if (t->nhwc && t->s > 1)
        order.columns = t->group_channels;
    return order;
}

#endif
