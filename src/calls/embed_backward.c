/* The public layer of the embedding layer's gradients: the order of the tokens, which needs no kernel, and the sums.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/embed.h"
#include "../operands/check.h"
#include "../operands/embed.h"
#include "../operands/place.h"
#include "call.h"
#include "embed_inputs.h"

/* Shares end at whole columns of this many: whole steps of every kernel, and whole cache lines. */
enum { COLUMNS = 64 };

/* What a table's part of the workspace begins with; behind it start[table_rows + 1], then order[rows]. The tokens of row k are
 * order[start[k]] up to order[start[k + 1]]. */
typedef struct heading {
    uint64_t rows, table_rows; /* plus a number that memory does not hold by chance */
} heading;

static const uint64_t heading_mark = UINT64_C(0x6e72672d6f726465);

static inline uint32_t *start_of(heading *h) { return (uint32_t *)(void *)(h + 1); }

/* The part of table k, which has ids. */
static inline heading *heading_of(const nrg_embed_backward_args *args, const nrg_embed_gradient *tables, int k)
{
    double *part = args->workspace;
    for (int before = 0; before < k; before++)
        if (tables[before].ids)
            part += nrg_embed_order_doubles(args->rows, tables[before].rows);
    return (heading *)(void *)part;
}

_Static_assert(sizeof(heading) == NRG_EMBED_BACKWARD_HEADING * sizeof(double), "a part has room for it");

nrg_status nrg_embed_backward_workspace(const nrg_embed_backward_args *args, size_t *bytes)
{
    const nrg_embed_gradients gradients = nrg_embed_gradients_of(args);
    return nrg_ask_bytes(bytes, &nrg_call_embed_backward_workspace, (const void *const[]){args, &gradients},
                         NRG_EMBED_BACKWARD_WORKSPACE_N_SPACE, sizeof(double));
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
    nrg_laid l;
    const nrg_embed_gradients gradients = nrg_embed_gradients_of(args);
    const nrg_status status = nrg_lay(&l, &nrg_call_embed_backward, (const void *const[]){args, &gradients}, 0, 1);
    if (status != NRG_OK)
        return status;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients.table[k];
        if (t->ids && !embed_ids_exist(t->ids, nrg_embed_ids_count(args->rows, t->period), t->rows))
            return NRG_ERR_POSITION;
    }
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients.table[k];
        if (!t->ids)
            continue;
        heading *h = heading_of(args, gradients.table, k);
        uint32_t *start = start_of(h);
        sort_tokens(t->ids, (uint32_t)nrg_embed_ids_count(args->rows, t->period), (uint32_t)args->rows, (uint32_t)t->rows, start,
                    start + t->rows + 1);
        h->rows = heading_mark + args->rows;
        h->table_rows = heading_mark + t->rows;
    }
    return NRG_OK;
}

/* A place in a table, where shares begin and end. */
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

/* What one thread does: a part of each table. */
typedef struct share {
    nrg_embed_backward_job job[NRG_EMBED_TABLES];
    int jobs;
} share;

/* The job of table k without its share; its place in the table, and whether there is an order, are looked at. */
static nrg_status fill_job(nrg_embed_backward_job *job, const nrg_embed_backward_args *a, const nrg_embed_gradient *tables,
                           const nrg_laid *l, int k)
{
    const nrg_embed_gradient *const t = &tables[k];
    if (!t->ids && !embed_counted_rows_exist(t->first_position, nrg_embed_ids_count(a->rows, t->period), t->rows))
        return NRG_ERR_POSITION;
    job->start = job->order = NULL;
    if (t->ids) {
        heading *h = heading_of(a, tables, k);
        if (h->rows != heading_mark + a->rows || h->table_rows != heading_mark + t->rows)
            return NRG_ERR_WORKSPACE;
        job->start = start_of(h);
        job->order = job->start + t->rows + 1;
    }
    job->d_o = a->d_o;
    job->d_table = t->d_table;
    job->first = t->ids || t->first_position < 0 ? 0 : (size_t)t->first_position;
    job->tokens = a->rows;
    job->period = t->period;
    job->dim = a->dim;
    job->d_o_stride = l->stride[NRG_EMBED_BACKWARD_D_O][0];
    job->d_table_stride = l->stride[NRG_EMBED_BACKWARD_D_TABLE + k][0];
    job->prefetch = embed_prefetch_rows(a->dim * (a->dtype == NRG_F32 ? 4 : 2)) - 1;
    job->scale = (double)t->scale;
    job->accumulate = t->accumulate != 0;
    job->table_f32 = nrg_own_dtype(a->table_dtype, a->dtype) == NRG_F32;
    job->stream = nrg_wants_stream(a->store, l->bytes);
    return NRG_OK;
}

/* Share ith of nth of a table's work. */
static nrg_status set_share(nrg_embed_backward_job *job, size_t table_rows, int ith, int nth)
{
    const size_t columns = job->dim / COLUMNS + (job->dim % COLUMNS != 0);
    size_t work;
    if (!nrg_product(job->tokens + table_rows, columns, &work))
        return NRG_ERR_OVERFLOW;
    const place begin = place_at(job, table_rows, nrg_share(work, ith, nth), columns);
    const place end = place_at(job, table_rows, nrg_share(work, ith + 1, nth), columns);
    job->row_begin = begin.row;
    job->column_begin = begin.column;
    job->row_end = end.row;
    job->column_end = end.column;
    return NRG_OK;
}

#define NRG_MAKE_TABLES
#include "../operands/embed_backward_calls.def"

NRG_OWN_FRAME nrg_status make_share(share *s, const nrg_embed_backward_args *args, int ith, int nth)
{
    nrg_laid l;
    const nrg_embed_gradients gradients = nrg_embed_gradients_of(args);
    nrg_status status = embed_backward_precheck(args, &gradients, ith, nth, &l) == NRG_OK
                            ? NRG_OK
                            : NRG_LAY(&l, embed_backward, args, &gradients);
    if (status != NRG_OK)
        return status;
    s->jobs = 0;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        if (!gradients.table[k].d_table)
            continue;
        nrg_embed_backward_job *job = &s->job[s->jobs];
        status = fill_job(job, args, gradients.table, &l, k);
        if (status == NRG_OK)
            status = set_share(job, gradients.table[k].rows, ith, nth);
        if (status != NRG_OK)
            return status;
        s->jobs += job->row_begin != job->row_end || job->column_begin != job->column_end;
    }
    return NRG_OK;
}

NRG_TABLES(embed_backward)

nrg_status nrg_embed_backward(const nrg_embed_backward_args *args, int ith, int nth)
{
    share s;
    const nrg_status status = make_share(&s, args, ith, nth);
    if (status != NRG_OK || !s.jobs)
        return status;
    nrg_embed_backward_kernel *const sum = NRG_ACTIVE_KERNEL(embed_backward, args->dtype);
    for (int i = 0; i < s.jobs; i++)
        sum(&s.job[i]);
    return NRG_OK;
}

nrg_status nrg_embed_backward_check(const nrg_embed_backward_args *args)
{
    share s;
    return nrg_asked(make_share(&s, args, 0, 1));
}
