/* The sum of a set's segments, exactly: as two doubles, which hold it nearly always, or in the integers of exact/channel_sums.h,
 * where those are wanted or two doubles do not suffice. docs/ops/channel_norm.md, "Statistics", 3 and 4.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_TOTAL_H
#define NRG_TEMPLATE_CHANNEL_TOTAL_H

#include "../../exact/channel_sums.h"
#include "../step.h"

/* What two doubles do not say of a set. */
enum {
    CHANNEL_OVERFLOWED = 1, /* its sums have more bits: they are to be taken again, in integers */
    CHANNEL_POISONED = 2,   /* a segment has a NaN or an infinity */
    CHANNEL_ROUNDED = 4     /* they have been taken in integers, and the doubles are those nearest to them */
};

/* Σ of the segments so far. */
typedef struct channel_total {
    double count, t, t_low, q, q_low;
    unsigned state;
} channel_total;

/* Adds x to high + low. Returns whether that is still exact. */
static inline int add_exactly(double *high, double *low, double x)
{
    const double sum = *high + x, back = sum - *high, error = (*high - (sum - back)) + (x - back);
    const double rest = *low + error, rest_back = rest - *low, rest_error = (*low - (rest - rest_back)) + (error - rest_back);
    *high = sum;
    *low = rest;
    return rest_error == 0;
}

/* Adds a segment: to record, or where that is NULL to the total. */
static inline void add_segment(channel_total *total, int64_t *record, double count, double t, double q)
{
    total->count += count;
    if (record)
        nrg_sums_segment(record, count, t, q);
    else if (!add_exactly(&total->t, &total->t_low, t) || !add_exactly(&total->q, &total->q_low, q))
        total->state |= fabs(t) <= DBL_MAX && fabs(q) <= DBL_MAX ? CHANNEL_OVERFLOWED : CHANNEL_POISONED;
}

/* As the nearest double and the nearest to what that leaves. */
static inline void split_sum(double high, double low, double *nearest, double *rest)
{
    const double sum = high + low, back = sum - high;
    *nearest = sum;
    *rest = (high - (sum - back)) + (low - back);
}

/* Once all are there, and not overflowed. */
static inline nrg_set_sums total_sums(const channel_total *total)
{
    nrg_set_sums sums = {total->count, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (total->state & CHANNEL_POISONED)
        return sums;
    if (total->state & CHANNEL_ROUNDED) /* the rest of what is left may make their sum another double */
        return (nrg_set_sums){total->count, total->t, total->t_low, total->q, total->q_low};
    split_sum(total->t, total->t_low, &sums.t, &sums.t_low);
    split_sum(total->q, total->q_low, &sums.q, &sums.q_low);
    return sums;
}

/* The totals of sets side by side, all of as many elements: arrays of the caller's. */
typedef struct channel_totals {
    double *t, *t_low, *q, *q_low;
    unsigned char *state;
    double count; /* of each set */
} channel_totals;

/* store: 4 · room. */
static inline channel_totals totals_in(double *store, unsigned char *state, size_t room)
{
    return (channel_totals){store, store + room, store + 2 * room, store + 3 * room, state, 0};
}

static inline void clear_totals(channel_totals *totals, size_t sets)
{
    for (size_t i = 0; i < sets; i++)
        totals->t[i] = totals->t_low[i] = totals->q[i] = totals->q_low[i] = totals->state[i] = 0;
    totals->count = 0;
}

static inline channel_total total_of(const channel_totals *totals, size_t i)
{
    return (channel_total){totals->count, totals->t[i], totals->t_low[i], totals->q[i], totals->q_low[i], totals->state[i]};
}

static inline void put_total(channel_totals *totals, size_t i, const channel_total *total)
{
    totals->t[i] = total->t;
    totals->t_low[i] = total->t_low;
    totals->q[i] = total->q;
    totals->q_low[i] = total->q_low;
    totals->state[i] = (unsigned char)total->state;
}

/* Adds a segment of set i: to its record, or where records is NULL to its total, whose count is not touched. */
static inline void add_segment_of(channel_totals *totals, int64_t *records, size_t i, double count, double t, double q)
{
    if (records) {
        nrg_sums_segment(records + i * NRG_CHANNEL_NORM_SUMS_WORDS, count, t, q);
        return;
    }
    channel_total total = total_of(totals, i);
    add_segment(&total, NULL, count, t, q);
    put_total(totals, i, &total);
}

/* Whether a set is to be summed again, in integers: where two doubles do not hold its sums, or where these are asked for and it
 * is poisoned. */
static inline int needs_integers(unsigned state, int integers) { return state == CHANNEL_OVERFLOWED || (integers && state); }

#endif
