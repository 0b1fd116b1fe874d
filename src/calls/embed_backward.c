/* The public layer of the embedding layer's gradients: the order of the tokens, which needs no kernel, and the sums.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../internal.h"
#include "../job/embed.h"
#include "../operands/check.h"
#include "../operands/embed.h"
#include "embed_rows.h"
#include "share.h"
#include "stream.h"

/* Shares end at whole columns of this many: whole steps of every kernel, and whole cache lines. */
enum { COLUMNS = 64 };

/* What the workspace begins with; behind it start[table_rows + 1], then order[rows]. The tokens of row k are order[start[k]] up
 * to order[start[k + 1]]. */
typedef struct heading {
    uint64_t rows, table_rows; /* plus a number that memory does not hold by chance */
} heading;

static const uint64_t heading_mark = UINT64_C(0x6e72672d6f726465);

static inline uint32_t *start_of(void *workspace) { return (uint32_t *)(void *)((heading *)workspace + 1); }

_Static_assert(sizeof(heading) == NRG_EMBED_BACKWARD_HEADING * sizeof(double), "the workspace has room for it");

nrg_status nrg_embed_backward_workspace(const nrg_embed_backward_args *args, size_t *bytes)
{
    nrg_checked c;
    if (!bytes)
        return NRG_ERR_NULL;
    const nrg_status status = nrg_check_options(&c, &nrg_call_embed_backward_workspace, (const void *const[]){args});
    if (status != NRG_OK)
        return status;
    *bytes = c.sizes.n[NRG_EMBED_BACKWARD_SPACE] * sizeof(double);
    return NRG_OK;
}

/* A counting sort that keeps tokens of the same id in order. Token t has ids[t % count]. */
static void sort_tokens(const int32_t *ids, uint32_t count, uint32_t rows, uint32_t table_rows, uint32_t *start, uint32_t *order)
{
    memset(start, 0, ((size_t)table_rows + 1) * sizeof *start);
    for (uint32_t t = 0, i = 0; t < rows; t++, i = i + 1 == count ? 0 : i + 1)
        start[ids[i]]++;
    uint32_t end = 0;
    for (uint32_t k = 0; k <= table_rows; k++)
        start[k] = end += start[k];
    /* start[k] is where row k ends; from the last token backwards it becomes where it begins */
    for (uint32_t t = rows, i = rows ? rows % count : 0; t-- > 0;) {
        i = (i ? i : count) - 1;
        order[--start[ids[i]]] = t;
    }
}

nrg_status nrg_embed_backward_order(const nrg_embed_backward_args *args)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_embed_backward, (const void *const[]){args}, 0, 1);
    if (status != NRG_OK)
        return status;
    args = c.part[0];
    if (!args->ids)
        return NRG_OK;
    const size_t count = nrg_embed_ids_count(args->rows, args->period);
    if (!embed_ids_exist(args->ids, count, args->table_rows))
        return NRG_ERR_POSITION;
    heading *h = args->workspace;
    uint32_t *start = start_of(h);
    sort_tokens(args->ids, (uint32_t)count, (uint32_t)args->rows, (uint32_t)args->table_rows, start,
                start + args->table_rows + 1);
    h->rows = heading_mark + args->rows;
    h->table_rows = heading_mark + args->table_rows;
    return NRG_OK;
}

/* A place in the table, where shares begin and end. */
typedef struct place {
    size_t row, column;
} place;

/* Tokens of all rows before row k. */
static inline size_t tokens_before(const nrg_embed_backward_job *job, size_t k)
{
    if (job->start)
        return job->start[k];
    if (k < job->first)
        return 0;
    /* each of the rows from the first on has a token for every whole period, and so many of them one more */
    const size_t rows = k - job->first < job->period ? k - job->first : job->period, more = job->tokens % job->period;
    return job->tokens / job->period * rows + (rows < more ? rows : more);
}

/* Where the work before is `work`: a row's is a unit for itself and one for every token, for each COLUMNS of its columns. */
static place place_at(const nrg_embed_backward_job *job, size_t table_rows, size_t work, size_t columns)
{
    const size_t rows_work = work / columns; /* row k begins before or at it: tokens_before(k) + k is not more */
    size_t low = 0, high = table_rows;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (tokens_before(job, middle) + middle <= rows_work)
            low = middle;
        else
            high = middle - 1;
    }
    place p = {low, 0};
    if (low < table_rows) {
        const size_t before = tokens_before(job, low), each = tokens_before(job, low + 1) - before + 1;
        p.column = (work - (before + low) * columns) / each * COLUMNS;
    }
    return p;
}

/* In a frame of its own: what checking takes shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_job(nrg_embed_backward_job *job, nrg_dtype *dtype,
                                                     const nrg_embed_backward_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_embed_backward, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_embed_backward_args *a = c.part[0];
    if (!a->ids && !embed_counted_rows_exist(a->first, nrg_embed_ids_count(a->rows, a->period), a->table_rows))
        return NRG_ERR_POSITION;
    if (a->ids) {
        const heading *h = a->workspace;
        if (h->rows != heading_mark + a->rows || h->table_rows != heading_mark + a->table_rows)
            return NRG_ERR_WORKSPACE;
    }
    job->start = a->ids ? start_of(a->workspace) : NULL;
    job->order = a->ids ? job->start + a->table_rows + 1 : NULL;
    job->d_o = a->d_o;
    job->d_table = a->d_table;
    job->first = a->ids || a->first < 0 ? 0 : (size_t)a->first;
    job->tokens = a->rows;
    job->period = a->period ? a->period : SIZE_MAX;
    job->dim = a->dim;
    job->d_o_stride = c.stride[NRG_EMBED_BACKWARD_D_O][0];
    job->d_table_stride = c.stride[NRG_EMBED_BACKWARD_D_TABLE][0];
    job->prefetch = embed_prefetch_rows(a->dim * (a->dtype == NRG_F32 ? 4 : 2)) - 1;
    job->scale = a->scale != 0 ? (double)a->scale : 1;
    job->accumulate = a->accumulate != 0;
    job->table_f32 = c.sizes.type[NRG_EMBED_BACKWARD_TYPE_TABLE] == NRG_F32;
    job->stream = nrg_wants_stream(a->store, c.bytes);
    *dtype = a->dtype;

    const size_t columns = a->dim / COLUMNS + (a->dim % COLUMNS != 0);
    size_t work;
    if (!nrg_product(a->rows + a->table_rows, columns, &work))
        return NRG_ERR_OVERFLOW;
    const place begin = place_at(job, a->table_rows, nrg_share(work, ith, nth), columns);
    const place end = place_at(job, a->table_rows, nrg_share(work, ith + 1, nth), columns);
    job->row_begin = begin.row;
    job->column_begin = begin.column;
    job->row_end = end.row;
    job->column_end = end.column;
    return NRG_OK;
}

nrg_status nrg_embed_backward(const nrg_embed_backward_args *args, int ith, int nth)
{
    nrg_embed_backward_job job;
    nrg_dtype dtype;
    const nrg_status status = make_job(&job, &dtype, args, ith, nth);
    if (status != NRG_OK || (job.row_begin == job.row_end && job.column_begin == job.column_end))
        return status;
    NRG_ACTIVE_KERNEL(embed_backward, dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_embed_backward_check(const nrg_embed_backward_args *args)
{
    nrg_embed_backward_job job;
    nrg_dtype dtype;
    return make_job(&job, &dtype, args, 0, 1);
}
