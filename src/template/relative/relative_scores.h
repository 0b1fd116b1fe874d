/* Scores of the classes, and scores of the keys out of them. Four queries at a time are multiplied with a block of the table; the
 * scores of its slots then go to the keys of each query: a slice in the order of the slots, and what is clipped.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_SCORES_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_SCORES_H

#include "relative.h"

/* The keys of slots first to end of one query; u: of slot first. */
REL_NOINLINE void score_slots(const nrg_relative_job *job, const rel_query *q, size_t first, size_t end, const float *u,
                              nrg_dtype D)
{
    char *out = job->out + rel_row_at(job->out_strides, q);
    const int accumulate = job->accumulate;
    const size_t last = job->slots - 1, size = bytes_of(1, D, 0), right = rel_right_begin(job, q->zero);
    const size_t inner = first ? first : 1, inner_end = end <= last ? end : last;
    if (first == 0)
        rel_put(out, u, rel_left_end(job, q->zero), 0, accumulate, D);
    if (inner < inner_end)
        rel_put(out + (size_t)(q->zero + (int64_t)inner) * size, u + (inner - first), inner_end - inner, 1, accumulate, D);
    if (end > last && last > 0)
        rel_put(out + right * size, u + (last - first), job->keys - right, 0, accumulate, D);
}

/* n elements of each query of a group, from column c on, as doubles; there are always REL_ROWS, the missing ones of zeros. */
NRG_INLINE void stage_queries(double *q, const nrg_relative_job *job, const rel_query *group, size_t count, size_t c, size_t n,
                              nrg_dtype D)
{
    for (size_t m = 0; m < REL_ROWS; m++, q += REL_SEGMENT) {
        if (m < count)
            rel_stage(q, job->q + rel_row_at(job->q_strides, group + m) + bytes_of(c, D, 0), n, D);
        else
            rel_clear(q, REL_SEGMENT);
    }
}

NRG_INLINE void score_group(const nrg_relative_job *job, const rel_query *group, size_t count, nrg_dtype D)
{
    double q[REL_ROWS * REL_SEGMENT], u[REL_ROWS * REL_SLOTS];
    float rounded[REL_ROWS * REL_SLOTS];
    const nrg_dtype T = job->table_f32 ? NRG_F32 : D;
    const char *table = rel_table(job, group->head);
    const size_t dim = job->dim, step = job->table_stride;
    size_t first = group->first, end = group->end;
    for (size_t m = 1; m < count; m++) {
        first = group[m].first < first ? group[m].first : first;
        end = group[m].end > end ? group[m].end : end;
    }
    for (size_t slot = first, slots; slot < end; slot += slots) {
        slots = end - slot < REL_SLOTS ? end - slot : REL_SLOTS;
        rel_clear(u, REL_ROWS * REL_SLOTS);
        for (size_t c = 0, n; c < dim; c += n) {
            n = dim - c < REL_SEGMENT ? dim - c : REL_SEGMENT;
            /* one segment is all there is, most of the time */
            if (slot == first || dim > REL_SEGMENT)
                stage_queries(q, job, group, count, c, n, D);
            rel_dots(u, q, table - slot * step + bytes_of(c, T, 0), step, slots, n, T);
        }
        for (size_t i = 0; i < REL_ROWS * REL_SLOTS; i += VN)
            v_st_f32(rounded + i, v_from_vd(vd_ld(u + i), vd_ld(u + i + VN / 2)));
        for (size_t m = 0; m < count; m++) {
            const size_t from = group[m].first > slot ? group[m].first : slot;
            const size_t to = group[m].end < slot + slots ? group[m].end : slot + slots;
            if (from < to)
                score_slots(job, group + m, from, to, rounded + m * REL_SLOTS + (from - slot), D);
        }
    }
}

REL_NOINLINE void relative_scores(const nrg_relative_job *job, nrg_dtype D)
{
    rel_query group[REL_ROWS];
    for (size_t n = job->begin, count; n < job->end; n += count) {
        count = rel_group(group, job, n);
        score_group(job, group, count, D);
    }
}

NRG_PATH_KERNELS(relative_scores, relative, relative_scores)

#endif
