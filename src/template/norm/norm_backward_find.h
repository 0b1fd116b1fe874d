/* Where the rows of a batch are, one batch after the other.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_FIND_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_FIND_H

#include "norm_backward_parts.h"

/* The rows of a batch, which may be in several planes. Apart from the walk over a matrix, which has nothing to divide. */
static __attribute__((noinline)) void find_in_planes(const backward *b, backward_batch *batch)
{
    const nrg_planes *p = b->job->planes;
    for (int k = 0; k < batch->rows; k++) {
        const size_t n = batch->n + (size_t)k, plane = n / p->count[0];
        batch->row[k] = backward_row_at(b->job, n % p->count[0], batch->group, b->D);
        move_to_plane(&batch->row[k], p, plane);
    }
}

static void find_batch(const backward *b, backward_batch *batch)
{
    if (b->job->planes) {
        find_in_planes(b, batch);
        return;
    }
    for (int k = 0; k < batch->rows; k++)
        batch->row[k] = backward_row_at(b->job, batch->n + (size_t)k, batch->group, b->D);
}

/* The rows after `before` (NULL: the first), which may be none. */
static void next_batch(const backward *b, backward_batch *batch, const backward_batch *before)
{
    const nrg_norm_backward_job *job = b->job;
    batch->n = before ? before->n : job->row_begin;
    batch->group = before ? before->group + 1 : 0;
    if (batch->group == job->groups) {
        batch->group = 0;
        batch->n += (size_t)before->rows;
    }
    batch->rows = job->row_end - batch->n < NRG_ROW_BATCH ? (int)(job->row_end - batch->n) : NRG_ROW_BATCH;
    find_batch(b, batch);
}

#endif
