/* Relative position representations: the reference. docs/ops/relative.md says in words what these loops do to the last bit.
 *
 * A slot is a class counted from p_max down, so that slots ascend with the keys (src/job/relative.h).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/relative.h"
#include "element.h"
#include "lanes.h"

/* Elements of a dot product that are summed before they are folded. */
enum { SEGMENT = 128 };

/* One query of a job. */
typedef struct query {
    size_t batch, head, row;
    int64_t zero; /* the key in slot 0, were there no clipping */
} query;

static query query_at(const nrg_relative_job *job, size_t batch, size_t head, size_t row)
{
    return (query){batch, head, row, job->zero + (int64_t)row};
}

static query query_of_row(const nrg_relative_job *job, size_t n)
{
    return query_at(job, n / job->queries / job->heads, n / job->queries % job->heads, n % job->queries);
}

static size_t row_at(nrg_head_strides s, query at) { return at.batch * s.batch + at.head * s.head + at.row * s.row; }

/* In tensors that may be absent: where there are no keys, or no columns, nothing is read or written. */
static const char *from(const char *tensor, size_t offset) { return tensor ? tensor + offset : NULL; }
static char *into(char *tensor, size_t offset) { return tensor ? tensor + offset : NULL; }
static const char *row_of(const char *tensor, nrg_head_strides s, query at) { return from(tensor, row_at(s, at)); }

/* The keys of a slot, first to end; none: first = end. */
typedef struct key_range {
    size_t first, end;
} key_range;

static size_t clipped(int64_t at, size_t most) { return at < 0 ? 0 : (uint64_t)at > most ? most : (size_t)at; }

static key_range keys_of_slot(const nrg_relative_job *job, query at, size_t slot)
{
    key_range keys = {0, job->keys};
    if (slot > 0)
        keys.first = clipped(at.zero + (int64_t)slot, job->keys);
    if (slot < job->slots - 1)
        keys.end = clipped(at.zero + (int64_t)slot + 1, job->keys);
    return keys;
}

/* The slots that have keys, first to end. */
static key_range slots_of_query(const nrg_relative_job *job, query at)
{
    key_range slots = {0, 0};
    if (job->keys) {
        slots.first = clipped(-at.zero, job->slots - 1);
        slots.end = clipped((int64_t)job->keys - 1 - at.zero, job->slots - 1) + 1;
    }
    return slots;
}

static int is_end(const nrg_relative_job *job, size_t slot) { return slot == 0 || slot == job->slots - 1; }

/* q · R of one slot. Products of floats are exact in double. */
static float dot(const nrg_relative_job *job, const char *q, nrg_dtype dtype, const char *r, nrg_dtype table_dtype)
{
    double total = 0;
    for (size_t segment = 0; segment < job->dim; segment += SEGMENT) {
        double lanes[8] = {0};
        for (size_t c = segment; c < job->dim && c < segment + SEGMENT; c++)
            lanes[c % 8] += (double)load(q, c, dtype) * (double)load(r, c, table_dtype);
        total += fold_doubles(lanes, 8, 1);
    }
    return (float)total;
}

/* What the keys of a slot add up to: one as it is, but the end slots as a sum, also of one. */
static double sum_of_slot(const char *a, nrg_dtype dtype, key_range keys, int end)
{
    if (!end)
        return (double)load(a, keys.first, dtype);
    double lanes[32] = {0};
    for (size_t j = keys.first; j < keys.end; j++)
        lanes[(j - keys.first) % 32] += (double)load(a, j, dtype);
    return fold_doubles(lanes, 32, 1);
}

static void scores(const nrg_relative_job *job, nrg_dtype dtype)
{
    const nrg_dtype table_dtype = job->table_f32 ? NRG_F32 : dtype;
    for (size_t n = job->begin; n < job->end; n++) {
        const query at = query_of_row(job, n);
        const char *q = row_of(job->q, job->q_strides, at), *table = from(job->table, at.head * job->table_head_stride);
        char *out = into(job->out, row_at(job->out_strides, at));
        const key_range slots = slots_of_query(job, at);
        for (size_t slot = slots.first; slot < slots.end; slot++) {
            const float u = dot(job, q, dtype, table - slot * job->table_stride, table_dtype);
            const key_range keys = keys_of_slot(job, at, slot);
            for (size_t j = keys.first; j < keys.end; j++)
                store(out, j, dtype, job->accumulate ? load(out, j, dtype) + u : u);
        }
    }
}

/* Columns begin to end, at most 64 of them, of one row of o. */
static void value_columns(const nrg_relative_job *job, query at, nrg_dtype dtype, size_t begin, size_t end)
{
    const nrg_dtype table_dtype = job->table_f32 ? NRG_F32 : dtype;
    const char *a = row_of(job->a, job->a_strides, at), *table = from(job->table, at.head * job->table_head_stride);
    const key_range slots = slots_of_query(job, at);
    double sums[NRG_RELATIVE_COLUMNS] = {0};
    for (size_t slot = slots.first; slot < slots.end; slot++) {
        const double weight = sum_of_slot(a, dtype, keys_of_slot(job, at, slot), is_end(job, slot));
        const char *r = table - slot * job->table_stride;
        for (size_t c = begin; c < end; c++)
            sums[c - begin] = fma(weight, (double)load(r, c, table_dtype), sums[c - begin]);
    }
    char *o = into(job->out, row_at(job->out_strides, at));
    for (size_t c = begin; c < end; c++) {
        const float value = (float)sums[c - begin];
        store(o, c, dtype, job->accumulate ? load(o, c, dtype) + value : value);
    }
}

/* A sum over no keys is 0. */
static double end_of(const nrg_relative_job *job, const char *a, query at, nrg_dtype dtype, size_t slot)
{
    return a ? sum_of_slot(a, dtype, keys_of_slot(job, at, slot), 1) : 0;
}

static void values(const nrg_relative_job *job, nrg_dtype dtype)
{
    for (size_t n = job->begin; n < job->end; n++) {
        const query at = query_of_row(job, n);
        for (size_t c = 0; c < job->dim; c += NRG_RELATIVE_COLUMNS)
            value_columns(job, at, dtype, c, job->dim - c < NRG_RELATIVE_COLUMNS ? job->dim : c + NRG_RELATIVE_COLUMNS);
        if (job->ends_out) {
            const char *a = row_of(job->a, job->a_strides, at);
            job->ends_out[2 * n] = end_of(job, a, at, dtype, 0);
            job->ends_out[2 * n + 1] = end_of(job, a, at, dtype, job->slots - 1);
        }
    }
}

SCALAR_KERNELS(relative_scores, relative, scores)
SCALAR_KERNELS(relative_values, relative, values)

#ifndef NRG_NO_BACKWARD
/* Columns begin to end of d_table in one slot, of one head or (heads: all) of all. */
static void backward_slot(const nrg_relative_job *job, size_t first_head, size_t end_head, nrg_dtype dtype, size_t slot,
                          size_t begin, size_t end)
{
    double sums[NRG_RELATIVE_COLUMNS] = {0};
    for (size_t batch = 0; batch < job->batch; batch++)
        for (size_t head = first_head; head < end_head; head++)
            for (size_t row = 0; row < job->queries; row++) {
                const query at = query_at(job, batch, head, row);
                const key_range keys = keys_of_slot(job, at, slot);
                if (keys.first >= keys.end)
                    continue;
                const double *ends = job->ends ? job->ends + 2 * ((batch * job->heads + head) * job->queries + row) : NULL;
                const double weight = ends && is_end(job, slot)
                                          ? ends[slot ? 1 : 0]
                                          : sum_of_slot(job->a + row_at(job->a_strides, at), dtype, keys, is_end(job, slot));
                const char *q = row_of(job->q, job->q_strides, at);
                for (size_t c = begin; c < end; c++)
                    sums[c - begin] = fma(weight, (double)load(q, c, dtype), sums[c - begin]);
            }
    const size_t table = job->d_table_head_stride ? first_head : 0;
    float *out = (float *)(void *)((char *)job->d_table + table * job->d_table_head_stride - slot * job->d_table_stride);
    for (size_t c = begin; c < end; c++)
        out[c] = (float)(job->accumulate ? (double)out[c] + sums[c - begin] : sums[c - begin]);
}

static void backward(const nrg_relative_job *job, nrg_dtype dtype)
{
    const size_t blocks = (job->slots - 1) / NRG_RELATIVE_SLOTS + 1;
    for (size_t piece = job->begin; piece < job->end; piece += job->step) {
        /* the outermost blocks first, so that different threads have them */
        const size_t turn = piece % blocks, block = turn == 0 ? 0 : turn == 1 ? blocks - 1 : turn - 1;
        const size_t table = piece / blocks % job->tables, column = piece / blocks / job->tables * NRG_RELATIVE_COLUMNS;
        const size_t slot = block * NRG_RELATIVE_SLOTS;
        const size_t end = job->dim - column < NRG_RELATIVE_COLUMNS ? job->dim : column + NRG_RELATIVE_COLUMNS;
        const size_t first_head = job->d_table_head_stride ? table : 0;
        const size_t end_head = job->d_table_head_stride ? table + 1 : job->heads;
        for (size_t s = slot; s < job->slots && s < slot + NRG_RELATIVE_SLOTS; s++)
            backward_slot(job, first_head, end_head, dtype, s, column, end);
    }
}

SCALAR_KERNELS(relative_backward, relative, backward)
#endif
