/* Gradients of the table: pieces of eight slots and 64 columns. Their sums stay on the stack while all queries pass by,
 * thirty-two at a time. A query that has not all of the slots goes alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_BACKWARD_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_BACKWARD_H

#ifndef NRG_NO_BACKWARD
#include "../store_sums.h"
#include "relative.h"

enum { GRADIENT_ROWS = 32, GRADIENT_SLOTS = NRG_RELATIVE_SLOTS };

_Static_assert((int)GRADIENT_SLOTS == 2 * (int)REL_ROWS, "slots are multiplied four at a time");

typedef struct backward_piece {
    const nrg_relative_job *job;
    double *sums;           /* GRADIENT_SLOTS rows of REL_COLUMNS */
    size_t slot, slot_end;  /* of the piece */
    size_t column, columns; /* likewise */
    size_t first, end;      /* queries that have a key in any of the slots */
    size_t full, full_end;  /* that have one in all of them; none: full = full_end = end */
} backward_piece;

/* The queries from the first to the last of those that have a key in a slot of the piece. */
NRG_INLINE void find_queries(backward_piece *p)
{
    const nrg_relative_job *job = p->job;
    const size_t queries = job->queries, last = job->slots - 1;
    p->first = p->full_end = queries;
    p->end = p->full = 0;
    for (size_t slot = p->slot; slot < p->slot_end; slot++) {
        /* clipped keys are in the outermost slots */
        const size_t from = slot < last ? rel_clip(-job->zero - (int64_t)slot, queries) : 0;
        const size_t to = slot > 0 ? rel_clip((int64_t)job->keys - job->zero - (int64_t)slot, queries) : queries;
        p->first = from < p->first ? from : p->first;
        p->end = to > p->end ? to : p->end;
        p->full = from > p->full ? from : p->full;
        p->full_end = to < p->full_end ? to : p->full_end;
    }
    if (p->full >= p->full_end)
        p->full = p->full_end = p->end;
}

/* The sums of a query's outermost slots, as far as the piece has them. */
REL_NOINLINE void backward_ends(double ends[2], const backward_piece *p, const rel_query *q, nrg_dtype D)
{
    const nrg_relative_job *job = p->job;
    if (job->ends)
        memcpy(ends, job->ends + 2 * ((q->batch * job->heads + q->head) * job->queries + q->row), 2 * sizeof *ends);
    else
        rel_ends(ends, job, job->a + rel_row_at(job->a_strides, q), q->zero, p->slot == 0, p->slot_end == job->slots, D);
}

/* Weights of so many queries from q on, which have all slots of the piece. */
NRG_INLINE void backward_weights(double *weights, const backward_piece *p, rel_query q, size_t count, nrg_dtype D)
{
    const nrg_relative_job *job = p->job;
    const size_t last = job->slots - 1, size = bytes_of(1, D, 0);
    const size_t first = p->slot ? p->slot : 1, end = p->slot_end <= last ? p->slot_end : last;
    if (first < end) /* one key further in every row */
        rel_gather(weights + (first - p->slot),
                   job->a + rel_row_at(job->a_strides, &q) + (size_t)(q.zero + (int64_t)first) * size, job->a_strides.row + size,
                   count, end - first, D);
    else
        rel_clear(weights, GRADIENT_ROWS * GRADIENT_SLOTS);
    if (p->slot && p->slot_end <= last)
        return;
    for (; count; count--, weights += GRADIENT_SLOTS, q.row++, q.zero++) {
        double ends[2];
        backward_ends(ends, p, &q, D);
        if (!p->slot)
            weights[0] = ends[0];
        if (p->slot_end > last)
            weights[last - p->slot] = ends[1];
    }
}

/* Queries from q on that have all slots of the piece, at most GRADIENT_ROWS. */
NRG_INLINE void backward_rows(const backward_piece *p, rel_query q, size_t count, nrg_dtype D)
{
    double weights[(GRADIENT_ROWS + 1) * GRADIENT_SLOTS];
    const nrg_relative_job *job = p->job;
    rel_product product = {
        .sums = p->sums,
        .weights = weights,
        .row_step = 1,
        .step = GRADIENT_SLOTS,
        .count = count,
        .x = job->q + rel_row_at(job->q_strides, &q) + bytes_of(p->column, D, 0),
        .x_step = (ptrdiff_t)job->q_strides.row,
        .columns = p->columns,
    };
    backward_weights(weights, p, q, count, D);
    rel_multiply(&product, 1, D);
    product.sums += REL_ROWS * REL_COLUMNS;
    product.weights += REL_ROWS;
    if (p->slot_end - p->slot > REL_ROWS)
        rel_multiply(&product, 1, D);
}

/* A query that has some of the slots, or none. */
REL_NOINLINE void backward_row(const backward_piece *p, const rel_query *q, nrg_dtype D)
{
    double weights[GRADIENT_SLOTS + REL_STAGE_STEP + 1];
    const nrg_relative_job *job = p->job;
    const size_t first = q->first > p->slot ? q->first : p->slot, end = q->end < p->slot_end ? q->end : p->slot_end;
    if (first >= end)
        return;
    double ends[2] = {0, 0};
    if (first == 0 || end == job->slots)
        backward_ends(ends, p, q, D);
    rel_stage_slots(weights, job, job->a + rel_row_at(job->a_strides, q), q->zero, ends, first, end, D);
    for (size_t s = first; s < end; s++) {
        const rel_product product = {
            .sums = p->sums + (s - p->slot) * REL_COLUMNS,
            .weights = weights + (s - first),
            .step = 1,
            .count = 1,
            .x = job->q + rel_row_at(job->q_strides, q) + bytes_of(p->column, D, 0),
            .columns = p->columns,
        };
        rel_multiply(&product, 0, D);
    }
}

NRG_INLINE void backward_head(const backward_piece *p, size_t batch, size_t head, nrg_dtype D)
{
    for (size_t row = p->first, count; row < p->end; row += count) {
        rel_query q = {.batch = batch, .head = head, .row = row};
        rel_find_slots(&q, p->job);
        count = 1;
        if (row >= p->full && row < p->full_end) {
            count = p->full_end - row < GRADIENT_ROWS ? p->full_end - row : GRADIENT_ROWS;
            backward_rows(p, q, count, D);
        } else {
            backward_row(p, &q, D);
        }
    }
}

REL_NOINLINE void relative_backward(const nrg_relative_job *job, nrg_dtype D)
{
    double sums[GRADIENT_SLOTS * REL_COLUMNS];
    const size_t blocks = (job->slots - 1) / GRADIENT_SLOTS + 1, tables = job->tables, per_head = job->d_table_head_stride;
    for (size_t n = job->begin; n < job->end; n += job->step) {
        /* the outermost blocks first, so that different threads have them */
        const size_t turn = n % blocks, block = turn == 0 ? 0 : turn == 1 ? blocks - 1 : turn - 1;
        const size_t table = n / blocks % tables, slot = block * GRADIENT_SLOTS, column = n / blocks / tables * REL_COLUMNS;
        backward_piece p = {
            .job = job,
            .sums = sums,
            .slot = slot,
            .slot_end = job->slots - slot < GRADIENT_SLOTS ? job->slots : slot + GRADIENT_SLOTS,
            .column = column,
            .columns = job->dim - column < REL_COLUMNS ? job->dim - column : REL_COLUMNS,
        };
        find_queries(&p);
        rel_clear(sums, GRADIENT_SLOTS * REL_COLUMNS);
        for (size_t batch = 0; batch < job->batch; batch++)
            for (size_t head = per_head ? table : 0; head < (per_head ? table + 1 : job->heads); head++)
                backward_head(&p, batch, head, D);
        for (size_t s = slot; s < p.slot_end; s++) {
            char *out = (char *)job->d_table + table * per_head - s * job->d_table_stride;
            store_sums((float *)(void *)out + column, sums + (s - slot) * REL_COLUMNS, p.columns, job->accumulate);
        }
    }
}

NRG_PATH_KERNELS(relative_backward, relative, relative_backward)
#endif

#endif
