/* The public layer of the embedding layer, forward: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/place.h"
#include "call.h"
#include "embed_inputs.h"
#include "quick.h"

#define NRG_MAKE_TABLES
#include "../operands/embed_calls.def"

static inline nrg_status fill_job(nrg_embed_job *job, const embed_call *call, size_t o_stride, int ith, int nth)
{
    const nrg_embed_args *a = call->args;
    const nrg_status status = embed_terms(job, call);
    if (status != NRG_OK)
        return status;
    job->o = a->o;
    job->o_stride = o_stride;
    job->dim = a->dim;
    job->row_begin = nrg_share(a->rows, ith, nth);
    job->row_end = job->prefetch_end = nrg_share(a->rows, ith + 1, nth);
    /* lines that are in cache because the call is in place gain nothing by streaming */
    job->stream = a->o != a->x && nrg_wants_stream(a->store, call->bytes);
    return NRG_OK;
}

/* Terms of one dtype. Whether they are plainly sound; *call and *o_stride are then complete. */
static inline int is_plain(embed_call *call, size_t *o_stride, const nrg_embed_args *a)
{
    const nrg_dtype dtype = a->dtype;
    const size_t element = dtype == NRG_F32 ? 4 : 2, row = a->dim * element, rows = a->rows;
    if (a->size != sizeof *a)
        return 0;
    const int options = ((unsigned)dtype - NRG_F32 <= NRG_BF16 - NRG_F32) &
                        (a->table_dtype == NRG_DTYPE_SAME || a->table_dtype == dtype) & ((unsigned)a->store <= NRG_STORE_STREAM) &
                        !a->reserved;
    const int sizes = (a->dim - 1 < NRG_PLACE_MOST) & (rows - 1 < NRG_PLACE_MOST) & (a->o != NULL);
    if (!(options & sizes) || a->table_count > NRG_EMBED_TABLES || (a->table_count && !a->tables))
        return 0;
    quick_operand o, x;
    int is_sound = quick_rows(&o, a->o, a->o_stride, rows, row, element - 1) &
                   quick_rows(&x, a->x, a->x_stride, rows, row, element - 1) & quick_apart(&o, &x, 1);
    int terms = a->x != NULL;
    *o_stride = o.stride;
    call->args = a;
    call->tables = a->tables;
    call->table_count = a->table_count;
    call->x_stride = x.stride;
    call->bytes = row * rows * (size_t)(1 + terms);
    call->table_dtype = dtype;
    for (size_t k = 0; k < a->table_count; k++) {
        const nrg_embed_table *t = &a->tables[k];
        if (t->size != sizeof *t)
            return 0;
        is_sound &= (fabsf(t->scale) <= FLT_MAX) & (t->period != 0);
        if (!t->table) {
            is_sound &= !t->ids & !t->rows;
            continue;
        }
        const size_t ids_bytes = nrg_embed_ids_count(rows, t->period) * sizeof *t->ids;
        quick_operand table, ids;
        is_sound &= quick_rows(&table, t->table, t->table_stride, t->rows, row, element - 1) & quick_apart(&o, &table, 0) &
                    quick_rows(&ids, t->ids, 0, 1, ids_bytes, sizeof *t->ids - 1) & quick_apart(&o, &ids, 0) &
                    (t->rows - 1 < NRG_PLACE_MOST) & !(t->ids && t->first_position);
        call->table_stride[k] = table.stride;
        call->bytes += row * (t->rows < rows ? t->rows : rows) + (t->ids ? ids_bytes : 0);
        terms++;
    }
    return is_sound & (terms != 0);
}

/* All other calls. */
NRG_OWN_FRAME nrg_status make_job(nrg_embed_job *job, const nrg_embed_args *args, int ith, int nth)
{
    nrg_laid l;
    const nrg_embed_terms terms = nrg_embed_terms_of(args);
    const nrg_status status = NRG_LAY(&l, embed_forward, args, &terms);
    if (status != NRG_OK)
        return status;
    const embed_call call = embed_call_of(args, &terms, &l);
    return fill_job(job, &call, l.stride[NRG_EMBED_O][0], ith, nth);
}

NRG_TABLES(embed)

nrg_status nrg_embed_forward(const nrg_embed_args *args, int ith, int nth)
{
    nrg_embed_job job;
    embed_call call;
    size_t o_stride;
    nrg_status status;
    if (args && (ith >= 0) & (ith < nth) && is_plain(&call, &o_stride, args))
        status = fill_job(&job, &call, o_stride, ith, nth);
    else
        status = make_job(&job, args, ith, nth);
    if (status != NRG_OK || job.row_begin == job.row_end)
        return status;
    NRG_ACTIVE_KERNEL(embed, args->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_embed_forward_check(const nrg_embed_args *args)
{
    nrg_embed_job job;
    return nrg_asked(make_job(&job, args, 0, 1));
}
