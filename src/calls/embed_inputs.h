/* What is added up by nrg_embed_forward and nrg_embed_norm_forward: the checks of their args, and the terms of the job.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_EMBED_INPUTS_H
#define NRG_CALLS_EMBED_INPUTS_H

#include <float.h>
#include <math.h>

#include "checks.h"

/* The size of the first version's struct. */
enum { EMBED_SIZE_MIN = offsetof(nrg_embed_args, tables) + NRG_EMBED_TABLES * sizeof(nrg_embed_table) };

/* Names of operands. A table's is EMBED_TABLE << k, those of its ids EMBED_IDS << k. */
enum embed_operand {
    EMBED_X = 1,
    EMBED_TABLE = 2,
    EMBED_IDS = EMBED_TABLE << NRG_EMBED_TABLES,
    EMBED_AFTER = EMBED_IDS << NRG_EMBED_TABLES /* the caller's own begin here */
};

/* Most operands that embed_inputs adds. */
enum { EMBED_INPUTS = 1 + 2 * NRG_EMBED_TABLES };

/* How many rows later one is asked for: the next, or as many as make two kilobytes. Measured with rows of 768 from memory, one
 * row or two: with bf16 two are 1.3 × as fast, with f32 they are alike. */
static inline size_t embed_rows_ahead(size_t row_bytes) { return 1 + 2048 / row_bytes; }

/* All that can be said without looking at pointers. */
static inline nrg_status embed_options(const nrg_embed_args *a)
{
    if (a->dim == 0)
        return NRG_ERR_DIM;
    if (!is_dtype(a->dtype) || (a->table_dtype != NRG_DTYPE_SAME && !is_dtype(a->table_dtype)) ||
        (unsigned)a->store > NRG_STORE_STREAM)
        return NRG_ERR_ENUM;
    if (!is_beside(a->table_dtype, a->dtype))
        return NRG_ERR_DTYPE;
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        if (!(fabsf(a->tables[k].scale) <= FLT_MAX))
            return NRG_ERR_CONSTANT;
    return NRG_OK;
}

/* Which pointers there are. */
static inline nrg_status embed_pointers(const nrg_embed_args *a)
{
    int terms = a->x != NULL;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_table *t = &a->tables[k];
        if (!t->table && t->ids)
            return NRG_ERR_NULL;
        if (t->ids && t->first)
            return NRG_ERR_COMBINATION;
        terms += t->table != NULL;
    }
    return a->rows && !terms ? NRG_ERR_NULL : NRG_OK;
}

/* Adds the inputs to the operands and makes them the job's terms. */
static inline nrg_status embed_inputs(nrg_embed_job *job, extents *all, const nrg_embed_args *a)
{
    const nrg_dtype table_dtype = a->table_dtype ? a->table_dtype : a->dtype;
    nrg_status status;
    job->terms = 0;
    job->scaled = 0;
    job->far = -1;
    if (a->x) {
        nrg_embed_term *term = &job->term[job->terms++];
        *term = (nrg_embed_term){.from = a->x, .stride = a->x_stride, .scale = 1, .f32 = a->dtype == NRG_F32};
        if ((status = add_operand(all, EMBED_X, ANY_OPERAND, a->x, a->dtype, a->dim, a->rows, &term->stride)) != NRG_OK)
            return status;
    }
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_table *t = &a->tables[k];
        size_t ids_stride = 0;
        if (!t->table)
            continue;
        nrg_embed_term *term = &job->term[job->terms++];
        *term = (nrg_embed_term){.from = t->table, .ids = t->ids, .stride = t->stride, .scale = 1, .f32 = table_dtype == NRG_F32};
        if ((status = add_operand(all, (unsigned)EMBED_TABLE << k, ANY_OPERAND, t->table, table_dtype, a->dim, t->rows,
                                  &term->stride)) != NRG_OK ||
            (status = add_operand(all, (unsigned)EMBED_IDS << k, ANY_OPERAND, t->ids, NRG_F32, a->rows, a->rows ? 1 : 0,
                                  &ids_stride)) != NRG_OK)
            return status;
        if (t->scale != 0 && t->scale != 1) {
            term->scale = t->scale;
            job->scaled = 1;
        }
        if (job->far < 0 && t->ids && t->rows > nrg_l2_bytes() / term->stride)
            job->far = (int)(term - job->term);
    }
    job->ahead = 0;
    if (job->far >= 0)
        job->ahead = embed_rows_ahead(a->dim * (table_dtype == NRG_F32 ? 4 : 2));
    job->is_copy = job->terms == 1 && !job->scaled && job->term[0].f32 == (a->dtype == NRG_F32);
    return NRG_OK;
}

/* Whether n rows from `first` on are rows of a table. */
static inline int embed_counted_rows_exist(int32_t first, size_t n, size_t rows)
{
    return !n || (first >= 0 && (size_t)first <= rows && n <= rows - (size_t)first);
}

/* Whether all of n ids are rows of a table. A loop without exits, which the compiler makes vectors of. */
static inline int embed_ids_exist(const int32_t *ids, size_t n, size_t rows)
{
    const uint32_t limit = rows < (uint32_t)INT32_MAX + 1 ? (uint32_t)rows : (uint32_t)INT32_MAX + 1;
    uint32_t wrong = 0;
    for (size_t t = 0; t < n; t++)
        wrong |= (uint32_t)ids[t] >= limit;
    return !wrong;
}

/* The last check: whether every row that is picked is there. Terms that count begin at the row of token 0 afterwards. */
static inline nrg_status embed_positions(nrg_embed_job *job, const nrg_embed_args *a)
{
    nrg_embed_term *term = &job->term[a->x != NULL];
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_table *t = &a->tables[k];
        if (!t->table)
            continue;
        if (!(t->ids ? embed_ids_exist(t->ids, a->rows, t->rows) : embed_counted_rows_exist(t->first, a->rows, t->rows)))
            return NRG_ERR_POSITION;
        if (!t->ids && a->rows)
            term->from += (size_t)t->first * term->stride;
        term++;
    }
    return NRG_OK;
}

/* Counts no more rows of a table than tokens could pick: what a call touches of it, for wants_stream. After check_overlap. */
static inline void embed_touched(extents *all, size_t rows)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->e[i].name >= (unsigned)EMBED_TABLE && all->e[i].name < (unsigned)EMBED_IDS && all->e[i].rows > rows)
            all->e[i].rows = rows;
}

#endif
