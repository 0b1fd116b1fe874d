/* The walk over the rows of a batch that ends with their factors, a chunk at a time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_WALK_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_WALK_H

#include "norm_backward_factors.h"

typedef struct backward_walk {
    backward_batch *batch;
    int row;
    int summing; /* 0: statistics */
    size_t begin;
    backward_row_sums sums;
} backward_walk;

/* The mean of a centred norm takes a walk of its own, where it was not saved. */
NRG_INLINE int walks_of(const backward *b) { return b->job->formula.centred && !b->job->mean ? 2 : 1; }

static void start_row(const backward *b, backward_walk *walk)
{
    walk->begin = 0;
    walk->summing = walks_of(b) == 1;
    if (walk->row == walk->batch->rows)
        return;
    const size_t at = (walk->batch->n + (size_t)walk->row) * b->job->groups + walk->batch->group;
    backward_factors *f = &walk->batch->f[walk->row];
    memset(f, 0, sizeof *f);
    f->plain.mean = b->job->mean ? b->job->mean[at] : 0;
}

static void start_batch(const backward *b, backward_walk *walk, backward_batch *batch)
{
    walk->batch = batch;
    walk->row = 0;
    start_row(b, walk);
}

/* One chunk of one row. */
static void walk_on(const backward *b, backward_walk *walk)
{
    const size_t dim = b->job->dim, end = sum_end(b, walk->begin);
    const backward_row *row = &walk->batch->row[walk->row];
    backward_factors *f = &walk->batch->f[walk->row];
    if (!walk->summing) {
        if (nrg_norm_is_exact(&b->job->formula, b->D))
            statistics_part(b, &walk->sums.statistics, row, walk->begin, end);
        else if (!V_SMALL && b->raw)
            mean_half_part(b, &walk->sums.mean, row, walk->begin, end);
        else
            mean_part(b, &walk->sums, row, walk->begin, end);
        walk->begin = end;
        if (end < dim)
            return;
        f->plain.mean = row_mean(b, row, &walk->sums);
        walk->begin = 0;
        walk->summing = 1;
        return;
    }
    sum_part(b, &walk->sums.gradient, row, walk->begin, end, f, !b->on_output);
    walk->begin = end;
    if (end < dim)
        return;
    if (!plain_factors(b, f, row, &walk->sums.gradient))
        fallback_factors(b, f, row, &walk->sums);
    walk->row++;
    start_row(b, walk);
}

#endif
