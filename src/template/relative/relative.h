/* Relative position representations: what their three operations share about queries, and the slots their keys fall into. A slot
 * is a class counted from p_max down (src/job/relative.h).
 *
 * The code that walks knows the dtype at run time, and is there once; see relative_elements.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_H

#include "relative_product.h"

typedef struct rel_query {
    size_t batch, head, row;
    int64_t zero;      /* the key in slot 0, were there no clipping */
    size_t first, end; /* the slots that have keys */
} rel_query;

NRG_INLINE size_t rel_clip(int64_t at, size_t most) { return at < 0 ? 0 : (uint64_t)at > most ? most : (size_t)at; }

/* The slots of a query whose row is known. */
NRG_INLINE void rel_find_slots(rel_query *q, const nrg_relative_job *job)
{
    q->zero = job->zero + (int64_t)q->row;
    q->first = q->end = 0;
    if (job->keys) {
        q->first = rel_clip(-q->zero, job->slots - 1);
        q->end = rel_clip((int64_t)job->keys - 1 - q->zero, job->slots - 1) + 1;
    }
}

/* NULL, or whatever that leads to, where there are no keys, and nothing is read. */
NRG_INLINE const char *rel_table(const nrg_relative_job *job, size_t head)
{
    return (const char *)((uintptr_t)job->table + head * job->table_head_stride);
}

NRG_INLINE size_t rel_row_at(nrg_head_strides s, const rel_query *q)
{
    return q->batch * s.batch + q->head * s.head + q->row * s.row;
}

/* Rows n and those after it that may share a table's rows: at most REL_ROWS. Returns how many. */
REL_NOINLINE size_t rel_group(rel_query *group, const nrg_relative_job *job, size_t n)
{
    rel_query q = {.row = n % job->queries, .head = n / job->queries % job->heads, .batch = n / job->queries / job->heads};
    size_t count = 0;
    while (count < REL_ROWS && n + count < job->end) {
        rel_find_slots(&q, job);
        group[count++] = q;
        if (++q.row < job->queries)
            continue;
        q.row = 0;
        if (++q.head == job->heads) {
            q.head = 0;
            q.batch++;
        }
        if (job->table_head_stride)
            break;
    }
    return count;
}

/* Keys before the one that follows slot 0; keys from the last slot on. */
NRG_INLINE size_t rel_left_end(const nrg_relative_job *job, int64_t zero)
{
    return job->slots == 1 ? job->keys : rel_clip(zero + 1, job->keys);
}

NRG_INLINE size_t rel_right_begin(const nrg_relative_job *job, int64_t zero)
{
    return job->slots == 1 ? 0 : rel_clip(zero + (int64_t)(job->slots - 1), job->keys);
}

/* The sums of a query's outermost slots, those that are asked for. */
REL_NOINLINE void rel_ends(double ends[2], const nrg_relative_job *job, const char *a, int64_t zero, int left, int right,
                           nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), begin = rel_right_begin(job, zero);
    ends[0] = ends[1] = 0;
    if (left)
        rel_sum(&ends[0], a, rel_left_end(job, zero), D);
    if (right)
        rel_sum(&ends[1], a + begin * size, job->keys - begin, D);
}

/* Slots first to end of a query that has them, as doubles; written up to a multiple of REL_STAGE_STEP, and one more. */
REL_NOINLINE void rel_stage_slots(double *to, const nrg_relative_job *job, const char *a, int64_t zero, const double ends[2],
                                  size_t first, size_t end, nrg_dtype D)
{
    const size_t last = job->slots - 1, inner = first ? first : 1, inner_end = end <= last ? end : last;
    if (inner < inner_end)
        rel_stage(to + (inner - first), a + bytes_of((size_t)(zero + (int64_t)inner), D, 0), inner_end - inner, D);
    if (first == 0)
        to[0] = ends[0];
    if (end > last)
        to[last - first] = ends[1];
}

#endif
