/* Rows of a table that an embedding layer picks, and what is added up by nrg_embed_forward and nrg_embed_norm_forward: the terms
 * of the job, and whether those rows are there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_EMBED_INPUTS_H
#define NRG_CALLS_EMBED_INPUTS_H

#include "../internal.h"
#include "../job/embed.h"
#include "../operands/check.h"
#include "../operands/embed.h"

/* How many rows later one is prefetched: the next, or as many as make two kilobytes. Measured with rows of 768 from memory, one
 * row or two: with bf16 two are 1.3 × as fast, with f32 they are alike. */
static inline size_t embed_prefetch_rows(size_t row_bytes) { return 1 + 2048 / row_bytes; }

/* Whether n rows from `first` on are rows of a table. */
static inline int embed_counted_rows_exist(int32_t first, size_t n, size_t rows)
{
    return !n || (first >= 0 && (size_t)first <= rows && n <= rows - (size_t)first);
}

/* Whether all of n ids are rows of a table. Loops without exits, and eight at a time: what gcc makes vectors of at -O2. */
static inline int embed_ids_exist(const int32_t *ids, size_t n, size_t rows)
{
    const uint32_t limit = rows < (uint32_t)INT32_MAX + 1 ? (uint32_t)rows : (uint32_t)INT32_MAX + 1;
    uint32_t wrong[8] = {0}, any = 0;
    size_t t = 0;
    for (; t + 8 <= n; t += 8)
        for (size_t i = 0; i < 8; i++)
            wrong[i] |= (uint32_t)ids[t + i] >= limit;
    for (; t < n; t++)
        any |= (uint32_t)ids[t] >= limit;
    for (size_t i = 0; i < 8; i++)
        any |= wrong[i];
    return !any;
}

/* What a call makes of its arguments: real strides, the dtype of tables, the bytes it moves. */
typedef struct embed_call {
    const nrg_embed_args *args;
    const nrg_embed_table *tables; /* [table_count] of this version */
    size_t table_count;
    size_t x_stride, table_stride[NRG_EMBED_TABLES], bytes;
    nrg_dtype table_dtype;
} embed_call;

/* Of a table no more rows are counted than tokens could pick. */
static inline embed_call embed_call_of(const nrg_embed_args *a, const nrg_embed_terms *terms, const nrg_laid *l)
{
    embed_call call = {
        .args = a,
        .tables = terms->table,
        .table_count = NRG_EMBED_TABLES,
        .x_stride = l->stride[NRG_EMBED_X][0],
        .bytes = l->bytes,
        .table_dtype = nrg_own_dtype(a->table_dtype, a->dtype),
    };
    const size_t row = a->dim * (call.table_dtype == NRG_F32 ? 4 : 2);
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_table *t = &call.tables[k];
        call.table_stride[k] = l->stride[NRG_EMBED_TABLE + k][0];
        if (t->table && t->rows > a->rows)
            call.bytes -= (t->rows - a->rows) * row;
    }
    return call;
}

/* Fills the terms of the job. Returns NRG_ERR_POSITION if an id or a position is outside of its table. */
static inline nrg_status embed_terms(nrg_embed_job *job, const embed_call *call)
{
    const nrg_embed_args *a = call->args;
    const int table_f32 = call->table_dtype == NRG_F32;
    job->terms = 0;
    job->scaled = 0;
    job->far = -1;
    if (a->x)
        job->term[job->terms++] =
            (nrg_embed_term){.from = a->x, .period = SIZE_MAX, .stride = call->x_stride, .scale = 1, .f32 = a->dtype == NRG_F32};
    for (size_t k = 0; k < call->table_count; k++) {
        const nrg_embed_table *t = &call->tables[k];
        if (!t->table)
            continue;
        const size_t picked = nrg_embed_ids_count(a->rows, t->period), stride = call->table_stride[k];
        if (!(t->ids ? embed_ids_exist(t->ids, picked, t->rows) : embed_counted_rows_exist(t->first_position, picked, t->rows)))
            return NRG_ERR_POSITION;
        const char *const from = t->table;
        if (job->far < 0 && t->ids && t->rows * stride > nrg_l2_bytes())
            job->far = job->terms;
        job->scaled |= t->scale != 1;
        job->term[job->terms++] = (nrg_embed_term){.from = t->ids || !a->rows ? from : from + (size_t)t->first_position * stride,
                                                   .ids = t->ids,
                                                   .period = t->period,
                                                   .stride = stride,
                                                   .scale = t->scale,
                                                   .f32 = table_f32};
    }
    job->prefetch = job->far >= 0 ? embed_prefetch_rows(a->dim * (table_f32 ? 4 : 2)) : 0;
    job->is_copy = job->terms == 1 && !job->scaled && job->term[0].f32 == (a->dtype == NRG_F32);
    return NRG_OK;
}

#endif
