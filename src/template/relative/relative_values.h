/* Weights times the table: o of four queries at a time, a block of slots and of columns after the other. What their slots have in
 * common is one product; slots that only some of them have go alone, since a row of the table that a query has no key for may
 * hold anything.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_VALUES_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_VALUES_H

#include "relative.h"

enum {
    VALUE_ROOM = (int)REL_SLOTS + (int)REL_STAGE_STEP
}; /* weights of a query's block, with room for a whole step and one more */

typedef struct value_group {
    rel_query query[REL_ROWS];
    const char *a[REL_ROWS];
    double ends[REL_ROWS][2];
    size_t count;
    size_t first, end;         /* slots that any of them has */
    size_t shared, shared_end; /* slots that all have; none: shared = shared_end = end */
} value_group;

NRG_INLINE void value_group_at(value_group *g, const nrg_relative_job *job, size_t n, nrg_dtype D)
{
    g->count = rel_group(g->query, job, n);
    g->first = g->shared = g->query[0].first;
    g->end = g->shared_end = g->query[0].end;
    for (size_t m = 0; m < g->count; m++) {
        const rel_query *q = &g->query[m];
        g->first = q->first < g->first ? q->first : g->first;
        g->end = q->end > g->end ? q->end : g->end;
        g->shared = q->first > g->shared ? q->first : g->shared;
        g->shared_end = q->end < g->shared_end ? q->end : g->shared_end;
        g->ends[m][0] = g->ends[m][1] = 0;
        if (job->a) {
            g->a[m] = job->a + rel_row_at(job->a_strides, q);
            rel_ends(g->ends[m], job, g->a[m], q->zero, 1, 1, D);
        }
        if (job->ends_out)
            memcpy(job->ends_out + 2 * (n + m), g->ends[m], sizeof g->ends[m]);
    }
    if (g->shared >= g->shared_end)
        g->shared = g->shared_end = g->end;
}

/* Slots first to end of the block that begins at `slot`, as far as query m has them, for it alone. */
REL_NOINLINE void value_row(const value_group *g, const rel_product *block, size_t m, size_t slot, size_t first, size_t end,
                            nrg_dtype T)
{
    const rel_query *q = &g->query[m];
    rel_product p = *block;
    first = first > q->first ? first : q->first;
    end = end < q->end ? end : q->end;
    if (first >= end)
        return;
    p.sums += m * REL_COLUMNS;
    p.weights += m * VALUE_ROOM + (first - slot);
    p.x += (ptrdiff_t)(first - slot) * p.x_step;
    p.count = end - first;
    rel_multiply(&p, 0, T);
}

/* Slots first to end, at most REL_SLOTS, of all queries of a group. block: x in slot `first`, and no weights yet. */
NRG_INLINE void value_slots(const nrg_relative_job *job, const value_group *g, const rel_product *block, size_t first, size_t end,
                            nrg_dtype D, nrg_dtype T)
{
    double weights[REL_ROWS * VALUE_ROOM + 1];
    const size_t shared = g->shared > first ? g->shared : first, shared_end = g->shared_end < end ? g->shared_end : end;
    const size_t before = shared < end ? shared : end, after = shared_end > first ? shared_end : first;
    rel_product p = *block;
    p.weights = weights;
    for (size_t m = 0; m < g->count; m++) {
        const rel_query *q = &g->query[m];
        const size_t from = q->first > first ? q->first : first, to = q->end < end ? q->end : end;
        if (from < to)
            rel_stage_slots(weights + m * VALUE_ROOM + (from - first), job, g->a[m], q->zero, g->ends[m], from, to, D);
        value_row(g, &p, m, first, first, before, T);
    }
    if (shared < shared_end) {
        for (size_t m = g->count; m < REL_ROWS; m++)
            rel_clear(weights + m * VALUE_ROOM, REL_SLOTS);
        rel_product all = p;
        all.weights += shared - first;
        all.x += (ptrdiff_t)(shared - first) * p.x_step;
        all.count = shared_end - shared;
        rel_multiply(&all, 1, T);
    }
    for (size_t m = 0; m < g->count; m++)
        value_row(g, &p, m, first, after, end, T);
}

REL_NOINLINE void relative_values(const nrg_relative_job *job, nrg_dtype D)
{
    double sums[REL_ROWS * REL_COLUMNS];
    value_group g;
    const nrg_dtype T = job->table_f32 ? NRG_F32 : D;
    const size_t dim = job->dim;
    for (size_t n = job->begin; n < job->end; n += g.count) {
        value_group_at(&g, job, n, D);
        const char *table = rel_table(job, g.query[0].head);
        for (size_t c = 0; c < dim; c += REL_COLUMNS) {
            const size_t columns = dim - c < REL_COLUMNS ? dim - c : REL_COLUMNS;
            rel_clear(sums, REL_ROWS * REL_COLUMNS);
            for (size_t slot = g.first; slot < g.end; slot += REL_SLOTS) {
                const rel_product block = {
                    .sums = sums,
                    .row_step = VALUE_ROOM,
                    .step = 1,
                    .x = table - slot * job->table_stride + bytes_of(c, T, 0),
                    .x_step = -(ptrdiff_t)job->table_stride,
                    .columns = columns,
                };
                value_slots(job, &g, &block, slot, g.end - slot < REL_SLOTS ? g.end : slot + REL_SLOTS, D, T);
            }
            for (size_t m = 0; m < g.count; m++) {
                char *o = job->out + rel_row_at(job->out_strides, &g.query[m]) + bytes_of(c, D, 0);
                rel_put_sums(o, sums + m * REL_COLUMNS, columns, job->accumulate, D);
            }
        }
    }
}

NRG_PATH_KERNELS(relative_values, relative, relative_values)

#endif
