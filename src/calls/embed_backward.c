/* The public layer of the embedding layer's gradients: the order of the tokens, which needs no kernel, and the sums.
 *
 * SPDX-License-Identifier: MIT */
#include "embed_inputs.h"

enum {
    ARGS_SIZE_MIN = offsetof(nrg_embed_backward_args, scale) + sizeof(float),
    /* Shares end at whole columns of this many: whole steps of every kernel, and whole cache lines. */
    COLUMNS = 64
};

enum operand { D_O = 1, D_TABLE = 2, IDS = 4, WORKSPACE = 8 };

/* What the workspace begins with; behind it start[table_rows + 1], then order[rows]. The tokens of row k are order[start[k]] up
 * to order[start[k + 1]]. */
typedef struct heading {
    uint64_t rows, table_rows; /* plus a number that memory does not hold by chance */
} heading;

static const uint64_t heading_mark = UINT64_C(0x6e72672d6f726465);

static inline uint32_t *start_of(void *workspace) { return (uint32_t *)(void *)((heading *)workspace + 1); }

static nrg_status workspace_bytes(const nrg_embed_backward_args *a, size_t *bytes)
{
    *bytes = 0;
    if (!a->ids)
        return NRG_OK;
    if (a->rows >= UINT32_MAX || a->table_rows >= UINT32_MAX)
        return NRG_ERR_OVERFLOW;
    const uint64_t numbers = (uint64_t)a->rows + a->table_rows + 1,
                   all = sizeof(heading) + (numbers + 1) / 2 * 2 * sizeof(uint32_t);
    if (all > SIZE_MAX)
        return NRG_ERR_OVERFLOW;
    *bytes = (size_t)all;
    return NRG_OK;
}

/* What the two phases check. Strides become the real ones. */
static nrg_status check(const nrg_embed_backward_args *a, extents *all, size_t *d_o_stride, size_t *d_table_stride)
{
    if (a->dim == 0)
        return NRG_ERR_DIM;
    if (!is_dtype(a->dtype) || (a->table_dtype != NRG_DTYPE_SAME && !is_dtype(a->table_dtype)) ||
        (unsigned)a->store > NRG_STORE_STREAM)
        return NRG_ERR_ENUM;
    if (!is_beside(a->table_dtype, a->dtype))
        return NRG_ERR_DTYPE;
    if (!(fabsf(a->scale) <= FLT_MAX))
        return NRG_ERR_CONSTANT;
    if ((a->rows && !a->d_o) || (a->table_rows && !a->d_table) || (a->ids && !a->workspace))
        return NRG_ERR_NULL;
    if (a->ids && a->first)
        return NRG_ERR_COMBINATION;
    const nrg_dtype table_dtype = a->table_dtype ? a->table_dtype : a->dtype;
    size_t space, ids_stride = 0;
    nrg_status status = workspace_bytes(a, &space);
    if (status != NRG_OK)
        return status;
    if (space > a->workspace_size)
        return NRG_ERR_WORKSPACE;
    *d_o_stride = a->d_o_stride;
    *d_table_stride = a->d_table_stride;
    if ((status = add_operand(all, D_O, ANY_OPERAND, a->d_o, a->dtype, a->dim, a->rows, d_o_stride)) != NRG_OK ||
        (status = add_operand(all, IDS, ANY_OPERAND, a->ids, NRG_F32, a->rows, a->rows ? 1 : 0, &ids_stride)) != NRG_OK ||
        (status = add_operand(all, D_TABLE, 0, a->d_table, table_dtype, a->dim, a->table_rows, d_table_stride)) != NRG_OK ||
        (status = add_words(all, WORKSPACE, 0, a->ids ? a->workspace : NULL, space / 8, 8)) != NRG_OK)
        return status;
    return check_overlap(all);
}

nrg_status nrg_embed_backward_workspace(const nrg_embed_backward_args *args, size_t *bytes)
{
    if (!args || !bytes)
        return NRG_ERR_NULL;
    nrg_embed_backward_args copy;
    args = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    return args ? workspace_bytes(args, bytes) : NRG_ERR_STRUCT_SIZE;
}

/* A counting sort that keeps tokens of the same id in order. */
static void sort_tokens(const int32_t *ids, uint32_t rows, uint32_t table_rows, uint32_t *start, uint32_t *order)
{
    memset(start, 0, ((size_t)table_rows + 1) * sizeof *start);
    for (uint32_t t = 0; t < rows; t++)
        start[ids[t]]++;
    uint32_t end = 0;
    for (uint32_t k = 0; k <= table_rows; k++)
        start[k] = end += start[k];
    /* start[k] is where row k ends; from the last token backwards it becomes where it begins */
    for (uint32_t t = rows; t-- > 0;)
        order[--start[ids[t]]] = t;
}

nrg_status nrg_embed_backward_order(const nrg_embed_backward_args *args)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_embed_backward_args copy;
    args = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    if (!args)
        return NRG_ERR_STRUCT_SIZE;
    size_t d_o_stride, d_table_stride;
    extent operands[4];
    extents all = {0, operands};
    nrg_status status = check(args, &all, &d_o_stride, &d_table_stride);
    if (status != NRG_OK || !args->ids)
        return status;
    if (!embed_ids_exist(args->ids, args->rows, args->table_rows))
        return NRG_ERR_POSITION;
    heading *h = args->workspace;
    uint32_t *start = start_of(h);
    sort_tokens(args->ids, (uint32_t)args->rows, (uint32_t)args->table_rows, start, start + args->table_rows + 1);
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
    return k < job->first ? 0 : k - job->first < job->tokens ? k - job->first : job->tokens;
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

static nrg_status backward(const nrg_embed_backward_args *a, int ith, int nth)
{
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    nrg_embed_backward_job job;
    extent operands[4];
    extents all = {0, operands};
    size_t work;
    nrg_status status = check(a, &all, &job.d_o_stride, &job.d_table_stride);
    if (status != NRG_OK)
        return status;
    if (!a->ids && !embed_counted_rows_exist(a->first, a->rows, a->table_rows))
        return NRG_ERR_POSITION;
    if (a->ids) {
        const heading *h = a->workspace;
        if (h->rows != heading_mark + a->rows || h->table_rows != heading_mark + a->table_rows)
            return NRG_ERR_WORKSPACE;
    }
    job.start = a->ids ? start_of(a->workspace) : NULL;
    job.order = a->ids ? job.start + a->table_rows + 1 : NULL;
    job.d_o = a->d_o;
    job.d_table = a->d_table;
    job.first = a->ids || a->first < 0 ? 0 : (size_t)a->first;
    job.tokens = a->rows;
    job.dim = a->dim;
    job.ahead = embed_rows_ahead(a->dim * (a->dtype == NRG_F32 ? 4 : 2)) - 1;
    job.scale = a->scale != 0 ? (double)a->scale : 1;
    job.accumulate = a->accumulate != 0;
    job.table_f32 = (a->table_dtype ? a->table_dtype : a->dtype) == NRG_F32;
    job.stream = wants_stream(a->store, &all);

    const size_t columns = a->dim / COLUMNS + (a->dim % COLUMNS != 0);
    if (!product(a->rows + a->table_rows, columns, &work))
        return NRG_ERR_OVERFLOW;
    const place begin = place_at(&job, a->table_rows, share(work, ith, nth), columns);
    const place end = place_at(&job, a->table_rows, share(work, ith + 1, nth), columns);
    job.row_begin = begin.row;
    job.column_begin = begin.column;
    job.row_end = end.row;
    job.column_end = end.column;
    if (begin.row == end.row && begin.column == end.column)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(embed_backward, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_embed_backward(const nrg_embed_backward_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_embed_backward_args copy;
    args = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    return args ? backward(args, ith, nth) : NRG_ERR_STRUCT_SIZE;
}
